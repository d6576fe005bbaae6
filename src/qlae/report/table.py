"""Scores of runs as a table for the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..runs.directory import Run

LEFT_OUT = ("modularity", "explicitness", "irs", "mcc", "active")  # where there is no room
COLUMNS = (
    ("InfoM", "infom", "{:.3f}"),
    ("InfoE", "infoe", "{:.3f}"),
    ("InfoC", "infoc", "{:.3f}"),
    ("D", "d", "{:.3f}"),
    ("I", "i", "{:.3f}"),
    ("C", "c", "{:.3f}"),
    ("MIG", "mig", "{:.3f}"),
    ("SAP", "sap", "{:.3f}"),
    ("modularity", "modularity", "{:.3f}"),
    ("explicitness", "explicitness", "{:.3f}"),
    ("IRS", "irs", "{:.3f}"),
    ("MCC", "mcc", "{:.3f}"),
    ("active", "active", "{:d}"),
    ("PSNR", "psnr", "{:.1f}"),
)


def results_table(runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",), width: int | None = None) -> Table:
    """One row a run and set of weights; the columns that say least are left out where it would be wider than that.

    The title says what the runs share: data, samples, protocol and seed. Where they differ, it stands in the rows.
    """
    scored = [run.results[kind] for run in runs for kind in weights]
    columns = [column for column in COLUMNS if any(column[1] in scores for scores in scored)]
    table = _table(runs, weights, columns, told=("updates", "seconds"))
    if width is not None and _needed(table) > width:
        table = _table(runs, weights, [column for column in columns if column[1] not in LEFT_OUT], told=())
    return table


def print_results(runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",)) -> None:
    """The table in the terminal, as wide as that allows; whole where it goes into a file or another program."""
    console = Console()
    if console.is_terminal:
        console.print(results_table(runs, weights=weights, width=console.width))
    else:
        table = results_table(runs, weights=weights)
        Console(width=max(console.width, _needed(table))).print(table)


def _table(
    runs: Sequence[Run], weights: Sequence[str], columns: Sequence[tuple[str, str, str]], *, told: Sequence[str]
) -> Table:
    shared, differing = _told_apart(runs)
    table = Table(title=_title(shared), title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("model", overflow="fold", min_width=8)
    for name in differing[0]:
        table.add_column(name, overflow="fold", justify="left" if name in ("run", "data", "protocol") else "right")
    if len(weights) > 1:
        table.add_column("weights", no_wrap=True)
    for name in [*(name for name, _, _ in columns), *told]:
        table.add_column(name, justify="right", no_wrap=True)
    for run, own in zip(runs, differing, strict=True):
        results = run.results
        spent = {"updates": f"{results['steps']:,}", "seconds": f"{results['seconds']:.0f}"}
        for kind in weights:
            scores = results[kind]
            cells = [shape.format(scores[key]) if key in scores else "–" for _, key, shape in columns]
            named = [results["model"], *own.values()] + ([kind] if len(weights) > 1 else [])
            table.add_row(*named, *cells, *(spent[name] for name in told))
    return table


def _needed(table: Table) -> int:
    return Console(width=1000).measure(table).maximum


def intervals_table(run: Run) -> Table:
    """The scores of the averaged weights with their intervals, as ``qlae evaluate --bootstrap`` found them."""
    scores = run.results["averaged"]
    table = Table(title=f"95% intervals, {scores['bootstrap']} half samples, averaged weights", title_justify="left")
    for name in ("score", "value", "interval"):
        table.add_column(name, justify="left" if name == "score" else "right")
    for name, (low, high) in scores["intervals"].items():
        digits = 1 if name == "psnr" else 3
        table.add_row(name, f"{scores[name]:.{digits}f}", f"{low:.{digits}f} to {high:.{digits}f}")
    return table


def _facts(run: Run) -> dict[str, str]:
    """What a run was scored on and how, by the names that columns have."""
    results = run.results
    data = results["data"]
    return {
        "data": f"{data['name']} ({data['origin']}, {data['resolution']}×{data['resolution']})",
        "images": f"{data['num_images']:,}",
        "samples": f"{results['num_samples']:,}",
        "protocol": str(results["protocol"]),
        "seed": str(results["seed"]),
    }


def _title(facts: dict[str, str]) -> str | None:
    """What all rows share, in a line."""
    told = {"data": "{}", "samples": "{} samples", "protocol": "protocol {}", "seed": "seed {}"}
    return ", ".join(told[name].format(fact) for name, fact in facts.items() if name in told) or None


def _told_apart(runs: Sequence[Run]) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The facts that all runs share; and for each run those that differ, with its path where they say too little."""
    facts = [_facts(run) for run in runs]
    shared = {name: fact for name, fact in facts[0].items() if all(other[name] == fact for other in facts)}
    differing = [{name: fact for name, fact in each.items() if name not in shared} for each in facts]
    rows = {(run.results["model"], *each.values()) for run, each in zip(runs, differing, strict=True)}
    if len(rows) < len(runs):
        differing = [{"run": escape(str(run.path))} | each for run, each in zip(runs, differing, strict=True)]
    return shared, differing
