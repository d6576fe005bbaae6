"""The explorer: a local web page that shows what each latent and each code of a trained model means.

``exploration`` answers questions about a run in NumPy, ``server`` offers the answers as a small API, and ``saved``
writes a page that needs no server. Starlette and uvicorn are imported only to serve.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .exploration import Exploration, open_run
    from .saved import save_page
    from .serving import explore

__all__ = ["Exploration", "explore", "open_run", "save_page"]

_HOMES = {"Exploration": ".exploration", "explore": ".serving", "open_run": ".exploration", "save_page": ".saved"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'qlae.explorer' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name], __name__), name)
