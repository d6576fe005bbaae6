"""Scores of a consensus next to those of its runs, for data with sources. They have no part in finding it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..scoring.latent_labels import find_encoded_sources
from ..scoring.sample import known_kinds, score_weights

if TYPE_CHECKING:
    from .consensus import Consensus

SCORES = ("infom", "infoe", "infoc")
HOW = ("protocol", "prune", "num_samples")  # settings that scores must have in common to be compared


def score_consensus(consensus: Consensus) -> dict[str, Any] | None:
    """Return InfoMEC of a consensus and of its runs; see `Consensus.scores`."""
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
    arrays = {"codes": consensus.codes[:, columns]}
    if consensus.latents is not None:
        arrays["latents"] = consensus.latents[:, columns]
        if all(consensus.is_continuous[k] for k in columns):
            del arrays["codes"]
    return score_weights(consensus.sources, arrays, show=False, **options)


def _infomec(scores: dict[str, Any]) -> dict[str, float]:
    return {key: scores[key] for key in SCORES}
