"""Show a selection: as a table in the terminal, as a sentence, as CSV, and as a picture."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from .._io import write_whole
from ..metrics.heatmap import escape_math
from ..observations import KINDS
from ..report.score_table import print_table
from ..scoring.held_out import describe_gap
from .ranking import Selection

SUFFIXES = (".png", ".svg", ".pdf")
FEW = 16  # runs up to which each cell of the matrix shows its number
DARKEST = 0.5  # agreement at which the colours end, or later, so that runs with little in common stay pale
CSV_COLUMNS = [
    *("run", "model", "seed", "agreement", "lower_quartile", "upper_quartile", "first", "num_used"),
    *("num_latents", "psnr", "r2", "is_near", "uses_few", "infom", "held_out_psnr", "held_out_r2", "taken"),
]


def selection_table(selection: Selection) -> Table:
    """Return a table with one row per run, best first."""
    runs, many = selection.runs, KINDS[selection.kind].many
    chance = f"{selection.chance:.3f}" if selection.chance >= 0.001 else "below 0.001"
    # A run that uses few latents is refused for that reason, others for bad reconstructions.
    few = {run.path: " (few)" for run in runs if run.uses_few and not run.is_near}
    low = {run.path: " (low)" for run in runs if not (run.uses_few or run.is_near)}
    table = Table(
        title=f"{selection.data}, {len(runs)} runs, {selection.num_images:,} {many}, {selection.weights} weights",
        caption=f"Agreement of unrelated runs: {chance}",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
    )
    columns = {
        "run": short_names([run.path for run in runs]),
        "model": [run.model for run in runs],
        "seed": [str(run.seed) for run in runs],
        "agreement": [f"{run.agreement:.3f}" for run in runs],
        "middle half": [f"{run.spread[0]:.3f} to {run.spread[1]:.3f}" for run in runs],
        "first": [f"{run.first:.0%}" for run in runs],
        "used": [f"{run.num_used} of {run.num_latents}{few.get(run.path, '')}" for run in runs],
        "PSNR": [_number(run.psnr, 1) + low.get(run.path, "") for run in runs],
        "held-out PSNR": [_number(run.held_out_psnr, 1) for run in runs],
        "R²": [_number(run.r2, 3) + low.get(run.path, "") for run in runs],
        "held-out R²": [_number(run.held_out_r2, 3) for run in runs],
        "InfoM": [_number(run.infom, 3) for run in runs],
    }
    columns = {name: values for name, values in columns.items() if not all(value.startswith("–") for value in values)}
    for name in columns:
        left = name in ("run", "model")
        table.add_column(name, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for number, run in enumerate(runs):
        style = "bold" if run is selection.best else None
        table.add_row(*(escape(values[number]) for values in columns.values()), style=style)
    return table


def print_selection(selection: Selection) -> None:
    """Print the table, the runs that were skipped, the warnings, and the run to take."""
    console = print_table(selection_table(selection))
    notes = [f"Skipped: {skip.reason}" for skip in selection.skipped]
    notes += [f"Warning: {warning}" for warning in selection.warnings]
    if gap := describe_gap({key: value for key, value in selection.best.to_dict().items() if value is not None}):
        notes.append(f"Warning: {selection.best.path}: {gap}")
    for note in notes:
        console.print(note, style="yellow", markup=False, highlight=False, soft_wrap=True)
    console.print(describe_choice(selection), markup=False, highlight=False, soft_wrap=True)


def describe_choice(selection: Selection) -> str:
    """Describe which run to take, how certain the choice is, and why runs above it are not taken."""
    best, others = selection.best, [run for run in selection.runs if run is not selection.best and run.is_near]
    many = len(selection.runs) >= 3
    text = f"Take {best.path}: agreement {best.agreement:.3f}"
    text += f", next {others[0].agreement:.3f}" if others else ""
    text += f"; first in {best.first:.0%} of bootstrap draws of the other runs." if many else "."
    rivals = [str(run.path) for run in others if run.first >= 0.5 * best.first]
    if many and best.first < 0.5 and rivals:
        text += f" The choice is open: {', '.join(rivals[:3])} would serve as well."
    above = selection.runs[: selection.runs.index(best)]
    few = sum(run.uses_few for run in above)
    for count, verb, reason in (
        (len(above) - few, "reconstruct", f"too badly to be taken: more than {selection.near_db:g} dB below the best"),
        (few, "use", "too few latents to be taken: at most a quarter as many as the median run"),
    ):
        if count:
            text += f" {count} run{'s' * (count > 1)} above it {verb}{'s' * (count == 1)} {reason}."
    return text


def selection_csv(selection: Selection) -> str:
    """Return the runs as CSV, best first, with a header; unknown numbers are empty."""
    rows = [
        run.to_dict()
        | dict(zip(("lower_quartile", "upper_quartile"), run.spread, strict=True))
        | {"taken": run is selection.best}
        for run in selection.runs
    ]
    return str(pd.DataFrame(rows).to_csv(columns=CSV_COLUMNS, index=False, lineterminator="\n"))


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the paths without the folder that all of them share, or their own names if they share none.

    >>> short_names([Path("runs/a/s0"), Path("runs/a/s1"), Path("runs/b/s0")])
    ['a/s0', 'a/s1', 'b/s0']
    """
    absolute = [path.absolute() for path in paths]
    common = Path(os.path.commonpath([path.parent for path in absolute]))
    return [str(path.relative_to(common)) for path in absolute]


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


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
    """Return the matrix of agreement, runs in the order of their score."""
    matrix, names = selection.matrix, short_names([run.path for run in selection.runs])
    count, largest = len(names), max(float(np.nanmax(matrix)), DARKEST)
    size = 1.2 + max(2.4, min(0.42, 12 / count) * count)
    figure = Figure(figsize=(size + 0.6 + 0.07 * max(map(len, names)), size), layout="constrained")
    figure.suptitle(escape_math(f"{selection.data}: agreement between {count} runs"), fontsize=11)
    axes = figure.subplots()
    image = axes.imshow(np.ma.masked_invalid(matrix), cmap="Blues", vmin=0.0, vmax=largest)
    axes.set_xticks(range(count), [str(place) for place in range(1, count + 1)], fontsize=7)
    labels = [f"{escape_math(name)}  {place}" for place, name in enumerate(names, start=1)]
    axes.set_yticks(range(count), labels, fontsize=7)
    axes.get_yticklabels()[selection.runs.index(selection.best)].set_fontweight("bold")
    axes.tick_params(length=0)
    for (i, j), value in np.ndenumerate(matrix) if count <= FEW else ():
        if i != j:
            colour = "white" if value > 0.6 * largest else "#333333"
            axes.text(j, i, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=6, color=colour)
    figure.colorbar(image, ax=axes, shrink=0.7, label="agreement")
    return figure
