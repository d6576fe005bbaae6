"""Scores in the terminal: a table of all numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .infomec import InfoMEC
from .registry import find_score
from .scoring import Scores

if TYPE_CHECKING:
    from rich.table import Table


def score_table(scores: Scores, *, title: str | None = None) -> Table:
    """A `rich` table: one line a number, with its protocol, its meaning and, if there is one, its interval."""
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
    """Print the table, and what InfoMEC found out about the latents."""
    from rich.console import Console

    console = console or Console()
    console.print(score_table(scores, title=title))
    found = scores.results.get("infomec")
    if isinstance(found, InfoMEC):
        silent = np.flatnonzero(found.active & ~found.informative)
        console.print(f"{found.num_active} of {found.active.size} latents active, n = {found.num_samples:,}.")
        if silent.size:
            names = ", ".join(f"z{j}" for j in silent)
            told = "no more than noise would, and InfoM and InfoC count that all the same."
            console.print(f"Of the sources {names} {'tells' if silent.size == 1 else 'tell'} {told}")


def _protocol_of(scores: Scores, name: str) -> str:
    for result in scores.results.values():
        if name in result.to_dict():
            if name == "infoe" and isinstance(result, InfoMEC):
                return f"{result.protocol}, {result.infoe_input}"
            return str(result.protocol)
    return ""
