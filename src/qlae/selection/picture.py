"""Draw a selection: the agreement of each pair of runs, and agreement against InfoM where it is known."""

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .._files import write_whole
from ..metrics.heatmap import escape_math
from .result import Selection
from .table import short_names

SUFFIXES = (".png", ".svg", ".pdf")
FEW = 16  # runs up to which each cell of the matrix shows its number
DARKEST = 0.5  # agreement at which the colours end, or later, so that runs with little in common stay pale


def plot_selection(selection: Selection, path: Path) -> Path:
    """Write the picture of a selection; its suffix (.png, .svg, .pdf) decides the format."""
    require_picture_path(path)
    figure = selection_figure(selection)
    write_whole(path, partial(figure.savefig, format=path.suffix.removeprefix("."), dpi=150))
    return path


def require_picture_path(path: Path) -> None:
    """Raise a ``ValueError`` unless a picture can be written to this path."""
    if path.suffix not in SUFFIXES or not path.parent.is_dir():
        raise ValueError(f"a picture is a .png, .svg or .pdf in a folder that exists, got {path}")


def selection_figure(selection: Selection) -> Figure:
    """Return the matrix of agreement, runs in the order of their score; beside it InfoM, if any run has one."""
    runs = selection.runs
    count = len(runs)
    names = short_names([run.path for run in runs])
    if len({run.model for run in runs}) > 1:
        names = [name if run.model in name else f"{name} ({run.model})" for run, name in zip(runs, names, strict=True)]
    labels = [f"{escape_math(name)}  {place}" for place, name in enumerate(names, start=1)]
    has_infom = any(run.infom is not None for run in runs)
    size = 1.2 + max(2.4, min(0.42, 12 / count) * count)
    width = size + 0.6 + 0.07 * max(map(len, labels))
    figure = Figure(figsize=(width + 4.2 * has_infom, size), layout="constrained")
    FigureCanvasAgg(figure)
    ratios = [width, 4.2] if has_infom else [1.0]
    panels = figure.subplots(1, 1 + has_infom, squeeze=False, width_ratios=ratios)[0]
    _draw_matrix(figure, panels[0], selection, labels)
    if has_infom:
        _draw_infom(panels[1], selection)
    figure.suptitle(escape_math(f"{selection.data}: agreement between {count} runs"), fontsize=11)
    return figure


def _draw_matrix(figure: Figure, axes, selection: Selection, labels: list[str]) -> None:  # type: ignore[no-untyped-def]
    matrix, count = selection.matrix, len(labels)
    largest = max(float(np.nanmax(matrix)), DARKEST)
    image = axes.imshow(np.ma.masked_invalid(matrix), cmap="Blues", vmin=0.0, vmax=largest)
    axes.set_xticks(range(count), range(1, count + 1), fontsize=7)
    axes.set_yticks(range(count), labels, fontsize=7)
    place = selection.runs.index(selection.best)
    axes.get_yticklabels()[place].set_fontweight("bold")
    axes.tick_params(length=0)
    if count <= FEW:
        middle = largest * 0.6
        for (i, j), value in np.ndenumerate(matrix):
            if i != j:
                colour = "white" if value > middle else "#333333"
                axes.text(j, i, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=6, color=colour)
    figure.colorbar(image, ax=axes, shrink=0.7, label="agreement")


def _draw_infom(axes, selection: Selection) -> None:  # type: ignore[no-untyped-def]
    for model in sorted({run.model for run in selection.runs}):
        points = [(run.agreement, run.infom) for run in selection.runs if run.model == model and run.infom is not None]
        if points:
            axes.scatter(*zip(*points, strict=True), label=escape_math(model), s=22, alpha=0.8)
    best = selection.best
    if best.infom is not None:
        axes.scatter([best.agreement], [best.infom], s=110, facecolors="none", edgecolors="#222222", label="taken")
    axes.set_xlabel("agreement (label-free)")
    axes.locator_params(axis="x", nbins=6)
    axes.set_ylabel("InfoM (not used for the choice)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
