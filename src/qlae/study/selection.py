"""Select the value of a model's grid with the best InfoM; for autoencoders, among those whose PSNR is near the best.

The paper filters its autoencoders "for near-perfect data reconstruction", gives no number, and does not filter its
InfoGANs, which "are generally more lossy". Here *near* is a setting, ``near_db``: the mean PSNR over seeds may be at
most that many decibels below the best mean of the same grid.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

#: Default of ``near_db``: twice the root mean squared error. The authors' choices are up to 5.7 dB below what the same
#: model reaches without its regularizer (docs/study.md), so a default must be larger than that.
NEAR_DB = 6.0
LEAST_ERROR = 1e-10  # share of the variance, as for the PSNR, which is capped at 100 dB


@dataclass(frozen=True)
class Candidate:
    """A value of a grid, with the mean scores over the seeds that finished."""

    value: float
    infom: float
    psnr: float
    num_seeds: int
    near: bool
    selected: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return dict(self.__dict__)


def describe_rule(near_db: float, scored_weights: str) -> str:
    """Return in words how a value is selected."""
    return (
        f"the value with the best mean InfoM of the {scored_weights} weights; for autoencoders, among those whose mean "
        f"PSNR is at most {near_db:g} dB below the best of the grid"
    )


def fidelity_db(scores: Mapping[str, Any]) -> float:
    """Return how faithful reconstructions are, in decibels: the PSNR of images, or −10 log10(1 − R²) of other data.

    Both are ratios of a signal to the mean squared error, so a distance means the same: 6 dB are twice the error.

    >>> round(fidelity_db({"r2": 0.99}), 6), fidelity_db({"psnr": 30.0})
    (20.0, 30.0)
    """
    if "psnr" in scores:
        return float(scores["psnr"])
    return -10 * math.log10(max(1 - scores["r2"], LEAST_ERROR))


def lowest_near(score: str, best: float, near_db: float) -> float:
    """Return the lowest PSNR or R² that counts as near the best one of a grid.

    >>> lowest_near("psnr", 30.0, 6.0), round(lowest_near("r2", 0.99, 10.0), 6)
    (24.0, 0.9)
    """
    return best - near_db if score == "psnr" else 1 - (1 - best) * 10 ** (near_db / 10)


def select(scores: Iterable[tuple[float, Mapping[str, Any]]], near_db: float | None) -> list[Candidate]:
    """Return the candidates of one data set and model, one of them selected.

    Args:
        scores: for each finished run, the value and the scores of one set of weights.
        near_db: how many decibels below the best mean PSNR a value may be; None to ignore the PSNR, as for GANs.

    Returns:
        The candidates in increasing order of their values; none if there are no scores.

    >>> runs = [(0.1, {"infom": 0.8, "psnr": 30.0}), (1.0, {"infom": 0.9, "psnr": 25.0})]
    >>> [[c.value for c in select(runs, near_db) if c.selected] for near_db in (3.0, 6.0, None)]
    [[0.1], [1.0], [1.0]]
    """
    by_value: dict[float, list[Mapping[str, Any]]] = defaultdict(list)
    for value, run_scores in scores:
        by_value[value].append(run_scores)
    means = {
        value: (fmean(s["infom"] for s in group), fmean(fidelity_db(s) for s in group))
        for value, group in sorted(by_value.items())
    }
    if not means:
        return []
    floor = float("-inf") if near_db is None else max(psnr for _, psnr in means.values()) - near_db
    near = {value for value, (_, psnr) in means.items() if psnr >= floor}
    best = max(near, key=lambda value: (means[value][0], -value))
    return [
        Candidate(value, infom, psnr, len(by_value[value]), value in near, value == best)
        for value, (infom, psnr) in means.items()
    ]
