"""A page that needs no server: the explorer with the strips of some samples made beforehand.

It opens from disk or from any web host. A page from disk may not fetch files, so what it knows is a script,
``saved.js``, and its pictures are PNG sheets inside that.
"""

import base64
import io
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .._files import write_bytes
from .._progress import progress_bar
from .exploration import Exploration
from .page import ICON, SCRIPTS, STYLE, page_html

NUM_SAMPLES = 12
MAX_SAMPLES = 500
COLUMNS = 16  # tiles a row of a sheet
CONTENT = "saved.js"


def save_page(
    exploration: Exploration, folder: str | os.PathLike[str], *, num_samples: int = NUM_SAMPLES, show: bool = True
) -> Path:
    """Write the page to a folder; the path of its ``index.html``.

    Args:
        exploration: the run.
        folder: made if it is not there; it must be empty or hold such a page already.
        num_samples: drawn at random from the sample, always the same.
        show: draw a progress bar.
    """
    if not 1 <= num_samples <= MAX_SAMPLES:
        raise ValueError(f"a saved page has 1 to {MAX_SAMPLES} samples, got {num_samples}")
    place = Path(folder)
    _require_free(place)
    rows = np.random.default_rng(0).choice(len(exploration), min(num_samples, len(exploration)), replace=False)
    samples = []
    with progress_bar("decoding strips", len(rows), show=show) as report:
        for row in rows.tolist():
            samples.append(saved_sample(exploration, row))
            report(len(samples))
    content = json.dumps({"run": exploration.describe(), "samples": samples}, allow_nan=False)
    place.mkdir(parents=True, exist_ok=True)
    write_bytes(place / CONTENT, f"window.qlaeSaved = {content};\n".encode())
    for name in (STYLE, ICON, *SCRIPTS):
        write_bytes(place / name, (files(__package__) / "page" / name).read_bytes())
    write_bytes(place / "index.html", page_html(CONTENT).encode())
    return place / "index.html"


def saved_sample(exploration: Exploration, row: int) -> dict[str, Any]:
    """A sample with its sheet: the reconstruction, every latent at each of its steps, and the original."""
    code = exploration.form[row]
    codes = [code]
    for control in exploration.controls:
        for step in control.steps:
            moved = code.copy()
            moved[control.index] = step
            codes.append(moved)
    tiles = np.concatenate([exploration.decode(np.stack(codes)), exploration.pictures([row])])
    return exploration.sample(row) | {"num_tiles": len(tiles), "sheet": _address(sheet(tiles))}


def sheet(tiles: NDArray[np.uint8]) -> bytes:
    """Tiles (n, r, r, 3), row by row → a PNG."""
    count, side = tiles.shape[:2]
    columns = min(COLUMNS, count)
    lines = -(-count // columns)
    whole = np.zeros((lines * columns, side, side, 3), np.uint8)
    whole[:count] = tiles
    pixels = whole.reshape(lines, columns, side, side, 3).swapaxes(1, 2).reshape(lines * side, columns * side, 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _address(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _require_free(place: Path) -> None:
    """An error rather than a page among files of another kind."""
    if place.is_dir():
        strangers = sorted({path.name for path in place.iterdir()} - {STYLE, ICON, CONTENT, "index.html", *SCRIPTS})
        if strangers:
            raise ValueError(
                f"{place} holds other files ({strangers[0]}, …); choose a new or empty folder for --export"
            )
    elif place.exists():
        raise ValueError(f"{place} is a file, not a folder; choose a folder for --export")
