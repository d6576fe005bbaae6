"""Write pages before Sphinx reads its sources, into ``docs/reference/generated``, which is not versioned."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def register(app: Any, write: Callable[[Path, Path], None]) -> dict[str, bool]:
    """Let Sphinx call a function with the folder of generated pages and the root of the repository."""
    root = Path(app.confdir).parent
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "generated", root))
    return {"parallel_read_safe": True}


def write_page(path: Path, text: str) -> None:
    """Write a page only if it changed, so that Sphinx reads only what is new."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
