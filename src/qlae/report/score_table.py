"""Show the scores of runs as tables in the terminal."""

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..metrics import count_informative, find_score, known_scores
from ..observations import described_observations
from ..runs.directory import Run

CORRECTED = ("infom_corrected", "infoe_corrected", "infoc_corrected")
LESS_IMPORTANT = ("modularity", "explicitness", "irs", "mcc", *CORRECTED)  # left out of narrow terminals
FIRST = ("infom", "informative", "infoe", "infoc", "d", "i", "c")
LAST = ("psnr", "r2")
ELSEWHERE = ("infoe_scalar", "active")  # scores that have no column here


def results_table(runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",), width: int | None = None) -> Table:
    """Return a table with one row per run and set of weights (``"averaged"``, ``"raw"``).

    The title names the data, samples, protocol and seed that the runs have in common; columns show the differences. The
    least important columns are left out if the table would be wider than ``width`` characters.
    """
    present = {key for run in runs for kind in weights for key in run.results[kind]}
    others = [key for key in known_scores() if key not in (*FIRST, *LAST, *ELSEWHERE)]
    columns = [key for key in (*FIRST, *others, *LAST) if key in present]
    table = _table(runs, weights, columns, costs=("updates", "seconds"))
    if width is not None and _full_width(table) > width:
        table = _table(runs, weights, [key for key in columns if key not in LESS_IMPORTANT], costs=())
    return table


def print_results(runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",), warn: bool = True) -> None:
    """Print the table of runs, fitted to the width of a terminal; into files and pipes at full width.

    With ``warn``, also print a warning where InfoM describes noise, unless scoring has just issued it.
    """
    console, table = Console(), results_table(runs, weights=weights)
    if console.is_terminal:
        table = results_table(runs, weights=weights, width=console.width)
    else:
        console = Console(width=max(console.width, _full_width(table)))
    console.print(table)
    described = [run.results["data"] for run in runs]
    if single := dict.fromkeys(data["name"] for data in described if len(data["source_names"]) == 1):
        note = f"{', '.join(single)}: one source is known, so InfoM is 1 for every model; read InfoE."
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    counts = [(run, count_informative(run.results[kind])) for run in runs for kind in weights if warn]
    noted = [
        (f"{run.path}: " if len(runs) > 1 else "") + count.warning for run, count in counts if count and count.warning
    ]
    for warning in dict.fromkeys(noted):  # each once
        console.print(f"Warning: {warning}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def _table(runs: Sequence[Run], weights: Sequence[str], columns: Sequence[str], *, costs: Sequence[str]) -> Table:
    title, differing = _split_facts(runs)
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("model", overflow="fold", min_width=8)
    for name in differing[0]:
        table.add_column(name, overflow="fold", justify="left" if name in ("run", "data", "protocol") else "right")
    if len(weights) > 1:
        table.add_column("weights", no_wrap=True)
    for name in [*(find_score(key).title for key in columns), *costs]:
        table.add_column(name, justify="right", no_wrap=True)
    for run, own in zip(runs, differing, strict=True):
        results = run.results
        cost = {"updates": f"{results['steps']:,}", "seconds": f"{results['seconds']:.0f}"}
        for kind in weights:
            scores = results[kind]
            cells = [_cell(scores, key) for key in columns]
            names = [results["model"], *own.values()] + ([kind] if len(weights) > 1 else [])
            table.add_row(*names, *cells, *(cost[name] for name in costs))
    return table


def _cell(scores: dict[str, Any], key: str) -> str:
    """Return a score as text; informative latents are counted among those that InfoM counts."""
    if key == "informative" and (count := count_informative(scores)) is not None:
        return str(count)
    return find_score(key).format(scores[key]) if key in scores else "–"


def _full_width(table: Table) -> int:
    """Return the number of characters that a table needs without wrapping."""
    return Console(width=1000).measure(table).maximum


def intervals_table(run: Run) -> Table:
    """Return a table of the averaged weights' scores with the intervals that ``qlae evaluate --bootstrap`` computed."""
    scores = run.results["averaged"]
    table = Table(title=f"95% intervals, {scores['bootstrap']} half samples, averaged weights", title_justify="left")
    for name in ("score", "value", "interval"):
        table.add_column(name, justify="left" if name == "score" else "right")
    for name, (low, high) in scores["intervals"].items():
        format_value = find_score(name).format
        table.add_row(
            find_score(name).title, format_value(scores[name]), f"{format_value(low)} to {format_value(high)}"
        )
    return table


def _facts(run: Run) -> dict[str, str]:
    """Return the data and the protocol that a run was scored with, by name of the column."""
    results = run.results
    data = results["data"]
    return {
        "data": f"{data['name']} ({data['origin']}, {described_observations(data).size})",
        "images": f"{data['num_images']:,}",
        "samples": f"{results['num_samples']:,}",
        "protocol": str(results["protocol"]),
        "seed": str(results["seed"]),
    }


def _split_facts(runs: Sequence[Run]) -> tuple[str | None, list[dict[str, str]]]:
    """Return a title with the facts that all runs share, if any, and for each run those that differ.

    The path is added to the latter if two runs would look the same without it.
    """
    facts = [_facts(run) for run in runs]
    shared = {name: fact for name, fact in facts[0].items() if all(other[name] == fact for other in facts)}
    differing = [{name: fact for name, fact in each.items() if name not in shared} for each in facts]
    rows = {(run.results["model"], *each.values()) for run, each in zip(runs, differing, strict=True)}
    if len(rows) < len(runs):
        differing = [{"run": escape(str(run.path))} | each for run, each in zip(runs, differing, strict=True)]
    phrases = {"data": "{}", "samples": "{} samples", "protocol": "protocol {}", "seed": "seed {}"}
    title = ", ".join(phrases[name].format(fact) for name, fact in shared.items() if name in phrases)
    return title or None, differing
