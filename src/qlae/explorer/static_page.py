"""Write a page that needs no server: the explorer with the strips of some samples decoded in advance.

The page opens from disk or from any web host. A page opened from disk may not fetch files, so its content is a script,
``saved.js``, that contains images as PNG sheets and numbers as bytes in base64.
"""

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .._io import write_bytes
from .._progress import progress_bar
from .exploration import Exploration
from .page import ICON, SCRIPTS, STYLE, page_html

NUM_SAMPLES = 12
MAX_SAMPLES = 500
CONTENT = "saved.js"
PAGE = "index.html"


def save_page(
    exploration: Exploration, folder: str | os.PathLike[str], *, num_samples: int = NUM_SAMPLES, show: bool = True
) -> Path:
    """Write a page without a server to a folder.

    Args:
        exploration: The run.
        folder: Created if missing. It must be empty or contain an earlier page.
        num_samples: Number of samples on the page, drawn with a fixed seed from the evaluation sample.
        show: Whether to draw a progress bar.

    Returns:
        The path of ``index.html``.
    """
    if not 1 <= num_samples <= MAX_SAMPLES:
        raise ValueError(f"num_samples must lie between 1 and {MAX_SAMPLES}, got {num_samples}")
    target, assets = Path(folder), (STYLE, ICON, *SCRIPTS)
    others = sorted({path.name for path in target.glob("*")} - {*assets, CONTENT, PAGE})
    if others:
        raise ValueError(f"{target} contains other files ({others[0]}, …); choose a new or empty folder")
    target.mkdir(parents=True, exist_ok=True)
    rows = np.random.default_rng(0).choice(len(exploration), min(num_samples, len(exploration)), replace=False)
    samples = []
    with progress_bar("decoding strips", len(rows), show=show) as report:
        for row in rows.tolist():
            samples.append(saved_sample(exploration, row))
            report(len(samples))
    content = json.dumps({"run": exploration.describe(), "samples": samples}, allow_nan=False)
    write_bytes(target / CONTENT, f"window.qlaeSaved = {content};\n".encode())
    for name in assets:
        write_bytes(target / name, (files(__package__) / "page" / name).read_bytes())
    write_bytes(target / PAGE, page_html(CONTENT).encode())
    return target / PAGE


def saved_sample(exploration: Exploration, row: int) -> dict[str, Any]:
    """Return a sample with its pictures: its reconstruction, each latent at each of its steps, the original."""
    codes = [exploration.codes[row]]
    for control in exploration.controls:
        for step in control.steps:
            codes.append(codes[0].copy())
            codes[-1][control.index] = step
    drawn = np.concatenate([exploration.decode(np.stack(codes)), exploration.pictures([row])])
    return exploration.sample(row) | {"num_tiles": len(drawn)} | exploration.view.save(drawn)
