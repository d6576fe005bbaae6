"""Show the pictures of runs on generated pages: the heatmap of NMI, and next to it the committed pictures."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qlae.metrics.heatmap import nmi_figure

TITLES = {
    "shapes3d": "Shapes3D",
    "mpi3d": "MPI3D",
    "falcor3d": "Falcor3D",
    "isaac3d": "Isaac3D",
    "mixtures": "Mixtures (vectors)",
    "sensors": "Sensors (vectors)",
    "pendulum": "Pendulum (series)",
}
PICTURES = {
    "interventions": "One latent changes in each column.",
    "generated": "Generated images.",
    "reconstructions": "Originals and reconstructions.",
}


def find_pictures(folders: list[Path], name: str) -> dict[str, Path]:
    """Return the pictures in folders, as ``KIND.png`` or ``NAME-KIND.png``, by kind: the most telling first."""
    found = {}
    for kind in PICTURES:
        files = [folder / file for folder in folders for file in (f"{kind}.png", f"{name}-{kind}.png")]
        source = next((file for file in files if file.is_file()), None)
        if source is not None:
            found[kind] = source
    return found


def copy_pictures(found: Mapping[str, Path], pictures: Path, name: str, subject: str) -> list[tuple[str, str, str]]:
    """Copy pictures of a run to those of a page; return the file name, caption and subject of each.

    Args:
        found: pictures by kind, as `find_pictures` returns them.
        pictures: the folder of the page's pictures.
        name: how the copies begin.
        subject: what is shown.
    """
    copied = []
    for kind, source in found.items():
        shutil.copyfile(source, pictures / f"{name}-{kind}.png")
        copied.append((f"{name}-{kind}.png", PICTURES[kind], subject))
    return copied


def beside_heatmap(pictures: Path, heatmap: str, about: str, right: list[tuple[str, str, str]]) -> list[str]:
    """Return the lines of a heatmap on the left and pictures on the right.

    Args:
        pictures: the folder of the page's pictures, next to the page.
        heatmap: file name of the heatmap.
        about: what the heatmap shows.
        right: file name, caption and subject of each picture.
    """
    folder = pictures.name
    lines = ["::::{grid} 1 1 12 12", ":::{grid-item}", ":columns: 12 12 4 4", f"![{about}]({folder}/{heatmap})", ":::"]
    lines += [":::{grid-item}", ":columns: 12 12 8 8"]
    for name, caption, subject in right:
        lines += [f"![{caption} {subject}]({folder}/{name})", f"*{caption}*", ""]
    return [*lines, ":::", "::::", ""]


def draw_heatmap(run: Path, scores: dict[str, Any], source_names: list[str], path: Path) -> None:
    """Draw the NMI matrix of a run's scores, unless the picture is newer than the scores."""
    if not is_older(path, run / "results.json"):
        return
    nmi = np.array(scores["nmi"], float)
    active, informative = (np.array(scores[key]) for key in ("active_latents", "informative_latents"))
    nmi_figure(nmi, active=active, informative=informative, source_names=source_names).savefig(path, dpi=110)


def is_older(path: Path, source: Path) -> bool:
    """Return whether a file is missing, or older than what it is made from."""
    return not path.is_file() or path.stat().st_mtime < source.stat().st_mtime
