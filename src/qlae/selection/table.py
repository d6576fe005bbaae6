"""Show a selection: as a table in the terminal, in words, and as CSV."""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .result import RankedRun, Selection

CSV_COLUMNS = (
    *("run", "model", "seed", "agreement", "lower_quartile", "upper_quartile", "first", "gap", "num_used"),
    *("num_latents", "psnr", "r2", "is_near", "uses_few", "infom", "taken"),
)


def selection_table(selection: Selection) -> Table:
    """Return a table with one row per run, best first."""
    runs, many = selection.runs, selection.traits.many
    table = Table(
        title=f"{selection.data}, {len(runs)} runs, {selection.num_images:,} {many}, {selection.weights} weights",
        caption=f"Agreement of unrelated runs: {_chance_text(selection.chance)}",
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
        "gap": [_number(run.gap, 2) for run in runs],
        "used": [f"{run.num_used} of {run.num_latents}{_few_mark(run)}" for run in runs],
        "PSNR": [_number(run.psnr, 1) + _low_mark(run) for run in runs],
        "R²": [_number(run.r2, 3) + _low_mark(run) for run in runs],
        "InfoM": [_number(run.infom, 3) for run in runs],
    }
    missing = [name for name, values in columns.items() if all(value.startswith("–") for value in values)]
    for name in missing:
        del columns[name]
    for name in columns:
        left = name in ("run", "model")
        table.add_column(name, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for number, run in enumerate(runs):
        style = "bold" if run is selection.best else None
        table.add_row(*(escape(values[number]) for values in columns.values()), style=style)
    return table


def print_selection(selection: Selection) -> None:
    """Print the table, the runs that were skipped, the warnings, and the run to take."""
    console = Console()
    table = selection_table(selection)
    if not console.is_terminal:
        console = Console(width=max(console.width, Console(width=1000).measure(table).maximum))
    console.print(table)
    for skip in selection.skipped:
        _say(console, f"Skipped {skip.path}: {skip.reason}", "yellow")
    for warning in selection.warnings:
        _say(console, f"Warning: {warning}", "yellow")
    _say(console, describe_choice(selection))


def describe_choice(selection: Selection) -> str:
    """Return in words which run to take, how sure the choice is, and why runs above it are not taken."""
    best, others = selection.best, [run for run in selection.runs if run is not selection.best and run.is_near]
    text = f"Take {best.path}: agreement {best.agreement:.3f}"
    if others:
        text += f", next {others[0].agreement:.3f}"
    if len(selection.runs) >= 3:
        text += f"; first in {best.first:.0%} of bootstrap draws of the other runs"
    text += "."
    rivals = [run for run in others if run.first >= 0.5 * best.first]
    if len(selection.runs) >= 3 and best.first < 0.5 and rivals:
        names = ", ".join(str(run.path) for run in rivals[:3])
        text += f" The choice is open: {names} would serve as well."
    return text + _describe_refused(selection)


def _describe_refused(selection: Selection) -> str:
    """Return in words why runs above the one to take are not taken; empty if there are none."""
    above = selection.runs[: selection.runs.index(selection.best)]
    few = [run for run in above if run.uses_few]
    text = ""
    if len(few) < len(above):
        count = len(above) - len(few)
        runs = "1 run above it reconstructs" if count == 1 else f"{count} runs above it reconstruct"
        text += f" {runs} too badly to be taken: more than {selection.near_db:g} dB below the best."
    if few:
        runs = "1 run above it uses" if len(few) == 1 else f"{len(few)} runs above it use"
        text += f" {runs} too few latents to be taken: at most a quarter as many as the median run."
    return text


def selection_csv(selection: Selection) -> str:
    """Return the runs as CSV, best first, with a header; unknown numbers are empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for run in selection.runs:
        fields = run.to_dict() | {"lower_quartile": run.spread[0], "upper_quartile": run.spread[1]}
        fields["taken"] = run is selection.best
        writer.writerow(["" if fields[name] is None else fields[name] for name in CSV_COLUMNS])
    return file.getvalue()


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the paths without the folder that all of them share, or their own names if they share none.

    >>> short_names([Path("runs/a/s0"), Path("runs/a/s1"), Path("runs/b/s0")])
    ['a/s0', 'a/s1', 'b/s0']
    """
    absolute = [path.absolute() for path in paths]
    common = Path(os.path.commonpath([path.parent for path in absolute]))
    return [str(path.relative_to(common)) for path in absolute]


def _chance_text(chance: float) -> str:
    return f"{chance:.3f}" if chance >= 0.001 else "below 0.001"


def _low_mark(run: RankedRun) -> str:
    """Return a mark for a run that reconstructs too badly; one that uses few latents is refused for that reason."""
    return "" if run.is_near or run.uses_few else " (low)"


def _few_mark(run: RankedRun) -> str:
    return " (few)" if run.uses_few and not run.is_near else ""


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
