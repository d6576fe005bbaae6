"""Show a consensus as a table in the terminal, or as text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .factors import Factor

if TYPE_CHECKING:
    from .consensus import Consensus

TEXT_WIDTH = 120  # characters of a table as text


def consensus_table(consensus: Consensus) -> Table:
    """Return a table with one row per factor, the confirmed ones first."""
    table = Table(title=describe_comparison(consensus), title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for name in ("factor", "run", "latent", "found in", "similarity", "purity", "stability", "verdict"):
        is_text = name in ("run", "verdict")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold", no_wrap=name != "verdict")
    for number in ordered_factors(consensus):
        factor = consensus.factors[number]
        cells = (
            f"f{number}",
            escape(consensus.names[factor.run]),
            f"z{factor.latent}",
            f"{factor.num_found} of {len(factor.found)}",
            f"{factor.replicability:.2f}",
            f"{factor.purity:.2f}",
            "–" if np.isnan(factor.stability) else f"{factor.stability:.0%}",
            consensus.describe_factor(number),
        )
        table.add_row(*cells, style=None if factor.is_confirmed else "dim")
    return table


def ordered_factors(consensus: Consensus) -> list[int]:
    """Return the positions of the factors, the confirmed ones first."""
    return sorted(range(len(consensus.factors)), key=lambda k: not consensus.factors[k].is_confirmed)


def describe_comparison(consensus: Consensus) -> str:
    """Describe the comparison: the data, and the numbers of runs and observations."""
    from ..observations import KINDS

    many = KINDS[consensus.kind].many if consensus.kind else "rows"
    parts = [consensus.data, f"{len(consensus.names)} {'runs' if consensus.runs else 'models'}"]
    parts += [f"{consensus.num_images:,} {many}", f"{consensus.weights} weights" if consensus.weights else ""]
    return ", ".join(filter(None, parts))


def consensus_text(consensus: Consensus) -> str:
    """Return the table and the verdict as plain text."""
    console = Console(file=io.StringIO(), width=TEXT_WIDTH)
    if consensus.factors:
        console.print(consensus_table(consensus))
    console.print(consensus.describe(), markup=False, highlight=False, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def factor_name(consensus: Consensus, factor: Factor) -> str:
    """Return where a factor is from, such as "s20 z3"."""
    return f"{consensus.names[factor.run]} z{factor.latent}"
