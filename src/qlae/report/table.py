"""Scores of runs as a table for the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..run import Run

COLUMNS = (
    ("InfoM", "infom", "{:.3f}"),
    ("InfoE", "infoe", "{:.3f}"),
    ("InfoC", "infoc", "{:.3f}"),
    ("D", "d", "{:.3f}"),
    ("I", "i", "{:.3f}"),
    ("C", "c", "{:.3f}"),
    ("active", "active", "{:d}"),
    ("PSNR", "psnr", "{:.1f}"),
)


def results_table(runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",)) -> Table:
    """One row a run and set of weights."""
    table = Table(title=_title(runs), title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("model", overflow="fold")
    if len(weights) > 1:
        table.add_column("weights", no_wrap=True)
    scored = [run.results[kind] for run in runs for kind in weights]
    columns = [column for column in COLUMNS if any(column[1] in scores for scores in scored)]
    for name, _, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("updates", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    for run in runs:
        results = run.results
        for kind in weights:
            scores = results[kind]
            cells = [shape.format(scores[key]) if key in scores else "–" for _, key, shape in columns]
            named = [results["model"]] + ([kind] if len(weights) > 1 else [])
            table.add_row(*named, *cells, f"{results['steps']:,}", f"{results['seconds']:.0f}")
    return table


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


def _title(runs: Sequence[Run]) -> str:
    results = runs[0].results
    data = results["data"]
    return (
        f"{data['name']} ({data['origin']}, {data['resolution']}×{data['resolution']}), "
        f"{results['num_samples']:,} samples, protocol {results['protocol']}, seed {results['seed']}"
    )
