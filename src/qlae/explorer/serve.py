"""Serve the explorer on a local port and open it in the browser."""

import contextlib
import logging
import os
import socket
import threading
import webbrowser
from collections.abc import Iterator

from ..data import SourceDataset
from ..models.building import Networks
from .exploration import open_run

ADDRESS = "127.0.0.1"
PORT = 8642


def explore(
    path: str | os.PathLike[str],
    beside: str | os.PathLike[str] | None = None,
    *,
    port: int = PORT,
    browser: bool = True,
    data: SourceDataset | None = None,
    networks: Networks | None = None,
    device: str = "cpu",
    show: bool = True,
) -> None:
    """Serve the explorer of a run, or of two runs side by side, until Ctrl-C.

    Args:
        path: The run directory.
        beside: Another run of the same data.
        port: Preferred port on 127.0.0.1; if it is not available, a free one is used.
        browser: Whether to open the page in the browser.
        data: The data set that the run was trained on, if it cannot be loaded by name.
        networks: The encoder and the decoder, if the first run was trained with custom networks.
        device: Where the models run.
        show: Whether to draw progress bars.
    """
    try:
        import uvicorn

        from .server import build_app
    except ImportError as error:
        raise ValueError(f"the explorer needs {error.name}: pip install 'qlae[explorer]'") from None
    exploration = open_run(path, data=data, networks=networks, device=device, show=show)
    other = None if beside is None else open_run(beside, data=data, device=device, show=show)
    if other is not None and (difference := exploration.run.config.data.difference(other.run.config.data)):
        raise ValueError(f"runs side by side must have the same data: {difference}; explore them one after the other")
    with bind(port) as server_socket:
        address = f"http://{ADDRESS}:{server_socket.getsockname()[1]}"
        server_socket.listen()  # connections made before the server is up wait instead of being refused
        runs = path if beside is None else f"{path} and {beside}"
        print(f"exploring {runs} at {address} (press Ctrl-C to stop)", flush=True)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        config = uvicorn.Config(
            build_app(exploration, other),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            ws="none",
        )
        with without_tracebacks():
            uvicorn.Server(config).run(sockets=[server_socket])


def bind(port: int) -> socket.socket:
    """Return a socket bound to the preferred port of this machine, or to a free one if that port is not available."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port must lie between 0 and 65535, got {port}")
    server_socket = socket.socket()
    if os.name == "posix":  # on Windows this option would share a port that is in use
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server_socket.bind((ADDRESS, port))
    except OSError:
        server_socket.bind((ADDRESS, 0))
    return server_socket


@contextlib.contextmanager
def without_tracebacks() -> Iterator[None]:
    """Keep errors of a caller who breaks HTTP in the middle of a request out of the terminal.

    The connection is closed. uvicorn would print a traceback instead.
    """

    def is_ours(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not type(error).__module__.startswith("h11")

    loggers = [logging.getLogger(name) for name in ("asyncio", "uvicorn.error")]
    for logger in loggers:
        logger.addFilter(is_ours)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_ours)
