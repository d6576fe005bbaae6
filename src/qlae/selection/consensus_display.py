"""Show a consensus as a table in the terminal or as text, and compute its scores for data with sources."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from .consensus import Consensus

TEXT_WIDTH = 120  # characters of a table as text
SCORES = ("infom", "infoe", "infoc")
HOW = ("protocol", "prune", "num_samples")  # settings that scores must have in common to be compared


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


def score_rows(scores: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return the rows of the table of scores, with their names."""
    rows = [("consensus", scores["code"])]
    if scores["confirmed"] and scores["confirmed"] != scores["code"]:
        rows.append(("confirmed factors alone", scores["confirmed"]))
    if scores["mean"]:
        rows.append((f"mean of {scores['num_runs']} single runs", scores["mean"]))
        rows.append(("single run with the highest InfoM", scores["best"]))
    return rows


def score_consensus(consensus: Consensus) -> dict[str, Any] | None:
    """Return InfoMEC of a consensus and of its runs; see `Consensus.scores`. Scores have no part in finding it."""
    from ..scoring.latent_labels import find_encoded_sources
    from ..scoring.sample import known_kinds

    if not consensus.runs or not consensus.sources.shape[1] or not consensus.factors:
        return None
    all_results = [run.results for run in consensus.runs]
    how = {key: all_results[0][key] for key in HOW}
    alike = [results[consensus.weights] for results in all_results if all(results[key] == how[key] for key in HOW)]
    scored = [_infomec(scores) for scores in alike if all(key in scores for key in SCORES)]
    if len({len(consensus.sources), how["num_samples"]}) > 1:  # scored on other observations
        scored = []
    options = {"protocol": how["protocol"], "prune": how["prune"], "source_kinds": known_kinds(all_results[0]["data"])}
    everything = list(range(len(consensus.factors)))
    confirmed = [k for k in everything if consensus.factors[k].is_confirmed]
    names, scores = all_results[0]["data"]["source_names"], _score(consensus, everything, options)
    encoded = find_encoded_sources(scores, len(everything))
    only_confirmed = scores if confirmed == everything else _score(consensus, confirmed, options) if confirmed else None
    return {
        **how,
        "code": _infomec(scores),
        "confirmed": _infomec(only_confirmed) if only_confirmed else None,
        "num_runs": len(scored),
        "mean": {key: float(np.mean([scores[key] for scores in scored])) for key in SCORES} if scored else None,
        "best": max(scored, key=lambda scores: scores["infom"]) if scored else None,
        "sources": [(names[each[0]], each[1]) if each else None for each in encoded],
    }


def _score(consensus: Consensus, columns: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """Return InfoMEC of some of the factors, with its details."""
    from ..scoring.sample import score_weights

    arrays = {"codes": consensus.codes[:, columns]}
    if consensus.latents is not None:
        arrays["latents"] = consensus.latents[:, columns]
        if all(consensus.is_continuous[k] for k in columns):
            del arrays["codes"]
    return score_weights(consensus.sources, arrays, show=False, **options)


def _infomec(scores: dict[str, Any]) -> dict[str, float]:
    return {key: scores[key] for key in SCORES}
