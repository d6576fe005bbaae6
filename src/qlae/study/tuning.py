"""Select the value of a model's grid with the best InfoM; for autoencoders, among those whose PSNR is near the best.

On data without sources, the agreement between the runs of the grid takes the place of InfoM (see `qlae.selection`).
For vectors and series, −10 log10(1 − R²) takes the place of the PSNR. docs/study.md explains the rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from ..runs.directory import Run
from ..scoring.fidelity import FIDELITIES, fidelity_db
from ..selection.agreement import agreement_matrix, scores_of
from ..selection.ranking import common_representations, read_codes

#: Default of ``near_db``: twice the root mean squared error; docs/study.md says why.
NEAR_DB = 6.0
#: PSNR of images, R² of vectors, series and tables.
FIDELITY_SCORES = tuple(dict.fromkeys(fidelity.key for fidelity in FIDELITIES))
AGREEMENT = "agreement"  # the score that takes the place of InfoM


class Candidate(NamedTuple):
    """A value of a grid, with the mean InfoM (or agreement) of the runs that finished.

    `near` says whether the mean PSNR is near the best of the grid, `selected` whether the value is the selected one.
    """

    value: float
    quality: float
    near: bool
    selected: bool


def select(scores: Iterable[tuple[float, Mapping[str, Any]]], near_db: float | None) -> list[Candidate]:
    """Return the candidates of one data set and model in increasing order of their values, one of them selected.

    Args:
        scores: for each finished run, the value and the scores of one set of weights: ``psnr``, and ``infom`` or, on
            data without sources, ``agreement``.
        near_db: how many decibels below the best mean PSNR a value may be; None to ignore the PSNR, as for GANs.

    >>> runs = [(0.1, {"infom": 0.8, "psnr": 30.0}), (1.0, {"infom": 0.9, "psnr": 25.0})]
    >>> [[c.value for c in select(runs, near_db) if c.selected] for near_db in (3.0, 6.0, None)]
    [[0.1], [1.0], [1.0]]
    """
    runs = [(value, own.get("infom"), own.get(AGREEMENT), fidelity_db(own) or 0.0) for value, own in scores]
    if not runs:
        return []
    table = pd.DataFrame(runs, columns=["value", "infom", AGREEMENT, "psnr"])
    quality = AGREEMENT if table.infom.isna().any() else "infom"
    means = table.groupby("value").agg(quality=(quality, fmean), psnr=("psnr", fmean))
    near = means.psnr >= (float("-inf") if near_db is None else means.psnr.max() - near_db)
    best = means.quality[near].idxmax()  # the smallest of equally good values
    return [Candidate(value, means.quality[value], near[value], value == best) for value in means.index]


def describe_rule(near_db: float, scored_weights: str, fidelity: Sequence[str] = ("psnr",)) -> str:
    """Describe how a value is selected; `fidelity` has the scores that measure reconstructions.

    >>> "mean R² is near the best of the grid (1 − R² at most 4 times as large)" in describe_rule(6.0, "raw", ["r2"])
    True
    """
    rules = {
        "psnr": f"mean PSNR is at most {near_db:g} dB below the best of the grid",
        "r2": f"mean R² is near the best of the grid (1 − R² at most {10 ** (near_db / 10):.2g} times as large)",
    }
    return (
        f"the value with the best mean InfoM of the {scored_weights} weights; for autoencoders, among those whose "
        f"{' or, for vectors and series, '.join(rules[key] for key in rules if key in fidelity)}. On data without "
        "sources, mean agreement with the other runs of the grid takes the place of InfoM"
    )


def lowest_near(score: str, best: float, near_db: float) -> float:
    """Return the lowest PSNR or R² that counts as near the best one of a grid.

    >>> lowest_near("psnr", 30.0, 6.0), round(lowest_near("r2", 0.99, 10.0), 6)
    (24.0, 0.9)
    """
    return best - near_db if score == "psnr" else 1 - (1 - best) * 10 ** (near_db / 10)


def run_agreements(runs: Sequence[Run], weights: str) -> dict[Path, float]:
    """Return the mean agreement of each run with the others, by path.

    Runs whose sample is missing or damaged are absent, and so is a run without others to agree with.
    """
    compared, _ = read_codes(runs, weights=weights)
    if len(compared) < 2:
        return {}
    scores = scores_of(agreement_matrix(common_representations(compared)))
    return {run.run.path: float(score) for run, score in zip(compared, scores, strict=True)}
