"""The explorer: a local web page that shows what each latent and each code of a trained model means.

``exploration`` answers questions about a run in NumPy, ``server`` offers the answers as a small API, and
``static_page`` writes a page that needs no server. Starlette and uvicorn are imported only to serve.
"""

from .exploration import Exploration, open_run
from .serve import explore
from .static_page import save_page

__all__ = ["Exploration", "explore", "open_run", "save_page"]
