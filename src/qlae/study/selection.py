"""Select: of a model's grid, the value with the best InfoM among those whose PSNR is near the best.

The paper filters its autoencoders "for near-perfect data reconstruction" and gives no number. Here near is a setting,
``near_db``: the mean PSNR over seeds may lie so many decibels below that of the best value of the same grid.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """A value of a grid, with means over the seeds that finished."""

    value: float
    infom: float
    psnr: float
    num_seeds: int
    near: bool
    selected: bool

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def select(scores: Iterable[tuple[float, Mapping[str, Any]]], near_db: float) -> list[Candidate]:
    """The candidates of one data set and model, in the order of their values, with one selected.

    Args:
        scores: of each finished run, the value and ``results["averaged"]``.
        near_db: how far below the best mean PSNR a value may lie.

    >>> runs = [(0.1, {"infom": 0.8, "psnr": 30.0}), (1.0, {"infom": 0.9, "psnr": 25.0})]
    >>> [c.value for c in select(runs, 3.0) if c.selected], [c.value for c in select(runs, 6.0) if c.selected]
    ([0.1], [1.0])
    """
    grouped: dict[float, list[Mapping[str, Any]]] = defaultdict(list)
    for value, found in scores:
        grouped[value].append(found)
    means = {value: (fmean(s["infom"] for s in g), fmean(s["psnr"] for s in g)) for value, g in sorted(grouped.items())}
    if not means:
        return []
    best_psnr = max(psnr for _, psnr in means.values())
    near = {value for value, (_, psnr) in means.items() if psnr >= best_psnr - near_db}
    chosen = max(near, key=lambda value: (means[value][0], -value))
    return [
        Candidate(value, infom, psnr, len(grouped[value]), value in near, value == chosen)
        for value, (infom, psnr) in means.items()
    ]
