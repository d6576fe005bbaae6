"""Print scores in the terminal, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .infomec_result import InfoMEC
from .null_encoder import NullScores
from .registry import find_score
from .scoring import Scores

if TYPE_CHECKING:
    from rich.table import Table


def score_table(scores: Scores, *, title: str | None = None, null: NullScores | None = None) -> Table:
    """Return a `rich` table with one row per score: its value, interval (if there is one), protocol and meaning.

    Args:
        scores: what `score` returns.
        title: of the table.
        null: scores of null encoders, as a column beside the values.
    """
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("score")
    table.add_column("value", justify="right")
    if scores.intervals:
        table.add_column(f"{scores.confidence:.0%} interval", justify="right")
    if null is not None:
        table.add_column("null encoder", justify="right")
    table.add_column("protocol")
    table.add_column("what it says")
    for name, value in scores.values.items():
        described = find_score(name)
        row = [described.title, described.format(value)]
        if scores.intervals:
            row.append(" – ".join(map(described.format, scores.intervals.get(name, ()))))
        if null is not None:
            row.append(described.format(null[name]) if name in null.values else "")
        table.add_row(*row, _protocol_of(scores, name), _meaning_of(scores, name))
    return table


def print_scores(
    scores: Scores, *, title: str | None = None, console: Any = None, null: NullScores | None = None
) -> None:
    """Print the table of scores, and how many latents are active and which of them are noise, if InfoMEC says so.

    Args:
        scores: what `score` returns.
        title: of the table.
        console: a `rich` console; standard output by default.
        null: scores of null encoders, as a column beside the values; see `null_scores`.
    """
    from rich.console import Console

    console = console or Console()
    console.print(score_table(scores, title=title, null=null))
    result = scores.results.get("infomec")
    if isinstance(result, InfoMEC):
        noise = np.flatnonzero(result.active & ~result.informative)
        unpruned = "" if result.prune else ", not pruned"
        console.print(
            f"{result.num_active} of {result.active.size} latents active{unpruned}, {result.num_informative} of them "
            f"informative, n = {result.num_samples:,}."
        )
        if noise.size:
            names = ", ".join(f"z{j}" for j in noise)
            console.print(
                f"{names} {'is' if noise.size == 1 else 'are'} no more informative about any source than noise; "
                "InfoM and InfoC count them nevertheless, the corrected scores as 0."
            )


def _meaning_of(scores: Scores, key: str) -> str:
    """Return what a score says; with InfoM, how many of the latents that it counts are informative."""
    meaning = find_score(key).meaning
    result = scores.results.get("infomec")
    if key == "infom" and isinstance(result, InfoMEC):
        return f"{meaning} ({result.num_informative} of {result.num_active} active latents informative)"
    return meaning


def _protocol_of(scores: Scores, key: str) -> str:
    for result in scores.results.values():
        if key in result.to_dict():
            if key in ("infoe", "infoe_corrected") and isinstance(result, InfoMEC):
                return f"{result.protocol}, {result.infoe_input}"
            return str(result.protocol)
    return ""
