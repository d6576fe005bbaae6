"""The values of a score over seeds: their mean, its 95% interval, and the mean over several data sets.

The ordinary t-interval is mean ± t·s/√n, with s from n − 1. The authors' tables use all seven seeds of a model, those
of tuning included (t = 2.447), and s from n, which makes an interval of seven seeds 7% narrower. Over several data
sets, they take t for all values together (2.052 for 28) times the mean of the standard errors.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev, stdev

from scipy import stats

MIN_SEEDS = 3  # below that, a mean has no useful interval (t = 12.7 for two seeds) and single values are shown

Values = Mapping[int, float]  # by seed


@dataclass(frozen=True)
class Cell:
    """The values of a score over seeds, and half of the width of the mean's 95% interval if it has one."""

    values: tuple[float, ...]
    half: float | None = None

    @property
    def mean(self) -> float:
        return fmean(self.values)


def make_cell(values: Sequence[float], aggregate: str = "reruns") -> Cell:
    """Return the values with their 95% interval; with fewer than three values it has none.

    Args:
        values: one per seed.
        aggregate: ``"authors"`` for the interval of the authors' tables, otherwise the ordinary t-interval.

    >>> round(make_cell((0.8, 0.9, 1.0)).half, 4), round(make_cell((0.8, 0.9, 1.0), "authors").half, 4)
    (0.2484, 0.2028)
    """
    if len(values) < MIN_SEEDS:
        return Cell(tuple(values))
    return Cell(tuple(values), _t(len(values)) * _standard_error(values, aggregate))


def combine_data_sets(by_data: Sequence[Values], aggregate: str = "reruns") -> Cell | None:
    """Return the mean over data sets.

    Args:
        by_data: the values of each data set.
        aggregate: ``"authors"`` to pool all values, as the authors' tables do. Otherwise each value of the cell is the
            mean over data sets of one seed, for the seeds that all data sets have.

    Returns:
        None if there is nothing to combine.
    """
    if not by_data or not all(by_data):
        return None
    if aggregate == "authors" and min(map(len, by_data)) >= MIN_SEEDS:
        pooled = tuple(value for values in by_data for value in values.values())
        error = fmean(_standard_error(tuple(values.values()), aggregate) for values in by_data)
        return Cell(pooled, _t(len(pooled)) * error)
    common = sorted(set.intersection(*(set(values) for values in by_data)))
    return make_cell([fmean(values[seed] for values in by_data) for seed in common]) if common else None


def _t(count: int) -> float:
    return float(stats.t.ppf(0.975, count - 1))


def _standard_error(values: Sequence[float], aggregate: str) -> float:
    deviation = pstdev(values) if aggregate == "authors" else stdev(values)
    return deviation / math.sqrt(len(values))
