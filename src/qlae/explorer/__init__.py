"""The explorer: a page on this machine where a person sees what every code of a trained model means.

``exploration`` answers questions about a run in NumPy; ``server`` puts them behind a small API; ``saved`` writes a page
that needs no server. Starlette and uvicorn are imported only where a server is asked for.
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
