"""Print scores in the terminal, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .infomec import InfoMEC
from .registry import find_score
from .scoring import Scores

if TYPE_CHECKING:
    from rich.table import Table


def score_table(scores: Scores, *, title: str | None = None) -> Table:
    """Return a `rich` table with one row per score: its value, interval (if there is one), protocol and meaning."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("score")
    table.add_column("value", justify="right")
    if scores.intervals:
        table.add_column(f"{scores.confidence:.0%} interval", justify="right")
    table.add_column("protocol")
    table.add_column("what it says")
    for name, value in scores.values.items():
        described = find_score(name)
        row = [name, described.format(value)]
        if scores.intervals:
            row.append(" – ".join(map(described.format, scores.intervals.get(name, ()))))
        table.add_row(*row, _protocol_of(scores, name), described.meaning)
    return table


def print_scores(scores: Scores, *, title: str | None = None, console: Any = None) -> None:
    """Print the table of scores, and how many latents are active and which of them are noise, if InfoMEC says so.

    Args:
        scores: what `score` returns.
        title: of the table.
        console: a `rich` console; standard output by default.
    """
    from rich.console import Console

    console = console or Console()
    console.print(score_table(scores, title=title))
    result = scores.results.get("infomec")
    if isinstance(result, InfoMEC):
        noise = np.flatnonzero(result.active & ~result.informative)
        console.print(f"{result.num_active} of {result.active.size} latents active, n = {result.num_samples:,}.")
        if noise.size:
            names = ", ".join(f"z{j}" for j in noise)
            console.print(
                f"{names} {'is' if noise.size == 1 else 'are'} no more informative about any source than noise; "
                "InfoM and InfoC count them nevertheless."
            )


def _protocol_of(scores: Scores, key: str) -> str:
    for result in scores.results.values():
        if key in result.to_dict():
            if key == "infoe" and isinstance(result, InfoMEC):
                return f"{result.protocol}, {result.infoe_input}"
            return str(result.protocol)
    return ""
