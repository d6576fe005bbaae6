"""Show the scores of runs as tables in the terminal."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..metrics import count_informative, find_score, known_scores
from ..observations import described_observations
from ..runs.directory import Run
from ..scoring.held_out import describe_gap

FIRST = ("infom", "informative", "infoe", "infoc", "d", "i", "c")
LAST = ("psnr", "held_out_psnr", "r2", "held_out_r2", "accuracy", "held_out_accuracy", "majority")
#: Facts that runs may share, and how a title words them.
FACTS = {"data": "{}", "images": "", "samples": "{} samples", "protocol": "protocol {}", "seed": "seed {}"}
TABLE_SCORES = (
    "R² counts all columns, a category by the decoded shares of its levels; R² of numbers leaves categories out. "
    "Accuracy is that of the categories; “most frequent” is what guessing the most frequent level reaches."
)
ELSEWHERE = ("infoe_scalar", "active")  # scores that have no column here


def results_table(runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",)) -> Table:
    """Return a table with one row per run and set of weights (``"averaged"``, ``"raw"``).

    The title names the data, samples, protocol and seed that the runs have in common; columns show the differences.
    """
    return results_tables(runs, weights=weights)[0]


def results_tables(
    runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",), width: int | None = None
) -> list[Table]:
    """Return the columns of `results_table` in as many tables as it takes for none to be wider than ``width``."""
    rows = pd.DataFrame([_row(run, kind) for run in runs for kind in weights]).fillna("–")
    shared = {name: rows[name].iloc[0] for name in FACTS if rows[name].nunique() == 1}
    title = ", ".join(FACTS[name].format(fact) for name, fact in shared.items() if FACTS[name])
    facts = [name for name in FACTS if name not in shared]
    if rows.duplicated(["model", *facts, "weights"]).any():  # two runs would look the same without their paths
        facts.insert(0, "run")
    others = [key for key in known_scores() if key not in (*FIRST, *LAST, *ELSEWHERE)]
    scores = [key for key in (*FIRST, *others, *LAST) if key in rows]
    names = ["model", *facts, *["weights"] * (len(weights) > 1)]
    parts: list[list[str]] = [[*scores, "updates", "seconds"]]
    longest = None  # characters of a path in a line
    if width is not None and _full_width(_as_table(rows[[*names, *parts[0]]])) > width:
        longest, columns, parts = width // 3, parts[0], [[]]
        for column in columns:
            if parts[-1] and _full_width(_as_table(rows[[*names, *parts[-1], column]], longest=longest)) > width:
                parts.append([])
            parts[-1].append(column)
    titles = [title or None, *[None] * len(parts)]
    return [_as_table(rows[[*names, *part]], one, longest) for one, part in zip(titles, parts, strict=False)]


def _row(run: Run, weights: str) -> dict[str, str]:
    results = run.results
    data, scores = results["data"], results[weights]
    cells = {key: find_score(key).format(scores[key]) for key in known_scores() if key in scores}
    if "informative" in scores and (count := count_informative(scores)) is not None:
        cells["informative"] = str(count)  # among the latents that InfoM counts
    return {
        "model": results["model"],
        "run": escape(str(run.path)),
        "data": f"{data['name']} ({data['origin']}, {described_observations(data).size})",
        "images": f"{data['num_images']:,}",
        "samples": f"{results['num_samples']:,}",
        "protocol": str(results["protocol"]),
        "seed": str(results["seed"]),
        "weights": weights,
        **cells,
        "updates": f"{results['steps']:,}",
        "seconds": f"{results['seconds']:.0f}",
    }


def _as_table(rows: pd.DataFrame, title: str | None = None, longest: int | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for name in rows:
        is_text, is_fact = name in ("model", "run", "data", "protocol", "weights"), name in ("model", "run", *FACTS)
        heading = find_score(name).title if name in known_scores() else name
        least = 8 if name == "model" else None
        justify: Any = "left" if is_text else "right"
        most = longest if name == "run" else None
        options: dict[str, Any] = {"overflow": "fold", "no_wrap": not is_fact, "min_width": least, "max_width": most}
        table.add_column(heading, justify=justify, **options)
    for cells in rows.itertuples(index=False):
        table.add_row(*cells)
    return table


def print_results(runs: Sequence[Run], *, weights: Sequence[str] = ("averaged",), warn: bool = True) -> None:
    """Print the table of runs, in parts that fit the width of a terminal; into files and pipes as one.

    With ``warn``, also print a warning where InfoM describes noise, unless scoring has just issued it.
    """
    width = Console().width if Console().is_terminal else None
    for table in results_tables(runs, weights=weights, width=width):
        console = print_table(table)
    if weights == ("averaged",):
        note = "Scores of the averaged weights; results.json also has those of the raw ones, after the last update."
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    if all("accuracy" in run.results["averaged"] for run in runs):
        console.print(TABLE_SCORES, markup=False, highlight=False, soft_wrap=True)
    described = [run.results["data"] for run in runs]
    if single := dict.fromkeys(data["name"] for data in described if len(data["source_names"]) == 1):
        note = f"{', '.join(single)}: one source is known, so InfoM is 1 for every model; read InfoE."
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    counts = [(run, count_informative(run.results[kind])) for run in runs for kind in weights if warn]
    noted = [
        (f"{run.path}: " if len(runs) > 1 else "") + count.warning for run, count in counts if count and count.warning
    ]
    gaps = [(run, describe_gap(run.results["averaged"])) for run in runs if warn]
    noted += [(f"{run.path}: " if len(runs) > 1 else "") + gap for run, gap in gaps if gap]
    for warning in dict.fromkeys(noted):  # each once
        console.print(f"Warning: {warning}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def print_table(table: Table) -> Console:
    """Print a table, into files and pipes at full width, and return the console for further output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, _full_width(table)))
    if table.title is not None:  # by itself, because a narrow table would wrap it
        console.print(table.title, style="table.title", highlight=False, soft_wrap=True)
        table.title = None
    console.print(table)
    return console


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
