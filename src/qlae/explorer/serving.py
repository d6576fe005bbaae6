"""The explorer on a port of this machine, and in the browser."""

import os
import socket
import threading
import webbrowser
from typing import TYPE_CHECKING

from ..data import SourceDataset
from ..models.building import Networks
from .exploration import open_run

if TYPE_CHECKING:
    from starlette.applications import Starlette

ADDRESS = "127.0.0.1"
PORT = 8642


def explore(
    path: str | os.PathLike[str],
    *,
    port: int = PORT,
    browser: bool = True,
    data: SourceDataset | None = None,
    networks: Networks | None = None,
    device: str = "cpu",
    show: bool = True,
) -> None:
    """Serve the explorer of a run until Ctrl-C.

    Args:
        path: the run directory.
        port: the wanted one; where it is taken, a free one is used instead.
        browser: open the page.
        data: what the run was trained on, where only you have it.
        networks: the encoder and the decoder, where it was trained with networks of your own.
        device: where the model runs.
        show: draw progress bars.
    """
    require_server()
    exploration = open_run(path, data=data, networks=networks, device=device, show=show)
    from .server import build_app

    with bind(port) as bound:
        address = f"http://{ADDRESS}:{bound.getsockname()[1]}"

        bound.listen()  # whoever connects from now on waits for the server instead of being refused
        print(f"exploring {path} at {address} (Ctrl-C ends)", flush=True)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        _serve(build_app(exploration), bound)


def require_server() -> None:
    """An error that says what to install where Starlette or uvicorn is missing."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ValueError(f"the explorer needs {error.name}: pip install 'qlae[explorer]'") from None


def bind(port: int) -> socket.socket:
    """A socket on the wanted port of this machine, or on a free one where that is taken or not allowed."""
    if not 0 <= port <= 65535:
        raise ValueError(f"a port is a number from 0 to 65535, got {port}")
    for wanted in (port, 0):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # elsewhere this would share a port that is in use
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((ADDRESS, wanted))
        except OSError:
            bound.close()
            if wanted == 0:
                raise
        else:
            return bound
    raise AssertionError("unreachable")


def _serve(app: "Starlette", bound: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2, ws="none"
    )
    uvicorn.Server(config).run(sockets=[bound])
