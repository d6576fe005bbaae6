"""The cells of a table: the mean of a score over seeds, its 95% interval, and which cells of a column are bold.

The ordinary t-interval is mean ± t·s/√n, with s from n − 1. The authors' tables use all seven seeds of a model, those
of tuning included (t = 2.447), and s from n, which makes an interval of seven seeds 7% narrower. Over several data
sets, they take t for all values together (2.052 for 28) times the mean of the standard errors.

Bold are the cells that a test cannot tell from the best, if it can tell any. Each model is compared with the one of
the highest mean by Welch's t-test, one-sided (is it lower?), at 5% over the whole column (Holm's correction). The test
does not assume equal variances, which differ a lot between models, and needs no seeds in common. The paper's rule is
that intervals overlap the one with the highest upper end. It has no known error rate and ignores the number of models,
and with two seeds nearly all intervals overlap, so that everything is bold. It applies if the tables follow the authors
(``aggregate = "authors"``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev, stdev

from scipy import stats

MIN_SEEDS = 3  # below that, a mean has no useful interval (t = 12.7 for two seeds) and single values are shown
LEVEL = 0.05


@dataclass(frozen=True)
class Cell:
    """The values of a score over seeds, and half of the width of the mean's 95% interval if it has one."""

    values: tuple[float, ...]
    half: float | None = None

    @property
    def mean(self) -> float:
        return fmean(self.values)


def make_cell(values: Sequence[float], aggregate: str = "reruns") -> Cell:
    """Return the values of seeds with their 95% interval; with fewer than three values it has none.

    >>> round(make_cell((0.8, 0.9, 1.0)).half, 4), round(make_cell((0.8, 0.9, 1.0), "authors").half, 4)
    (0.2484, 0.2028)
    """
    if len(values) < MIN_SEEDS:
        return Cell(tuple(values))
    return Cell(tuple(values), _t(len(values)) * _standard_error(values, aggregate))


def combine_data_sets(by_data: Sequence[Mapping[int, float]], aggregate: str = "reruns") -> Cell | None:
    """Return the mean over data sets, from the values of each by seed; None if there is nothing to combine.

    Each value of the cell is the mean over data sets of one seed, for the seeds that all data sets have. With
    ``"authors"``, all values are pooled, as in the authors' tables.
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


def mark_bold(cells: Sequence[Cell | None], *, aggregate: str = "reruns", digits: int = 2) -> list[bool]:
    """Return which cells of a column are bold.

    Cells with fewer than three seeds are never bold. Nothing is bold if such a cell has the highest mean, or if the
    test cannot tell any model from the best. Means that are printed alike, with so many digits, count as equal.

    >>> mark_bold([make_cell((0.5, 0.5, 0.6)), make_cell((0.9, 0.9, 0.8)), None])
    [False, True, False]
    """
    if aggregate == "authors":
        return _overlap_highest(cells)
    best = max((cell for cell in cells if cell), key=lambda cell: cell.mean, default=None)
    if best is None or best.half is None:
        return [False] * len(cells)
    tested = {number: cell for number, cell in enumerate(cells) if cell and cell.half is not None}
    p_values = sorted((_p_value(best, cell, digits), number) for number, cell in tested.items() if cell is not best)
    worse = set()
    for rank, (p, number) in enumerate(p_values):  # Holm's procedure
        if p > LEVEL / (len(p_values) - rank):
            break
        worse.add(number)
    return [bool(worse) and number in tested and number not in worse for number in range(len(cells))]


def _p_value(best: Cell, other: Cell, digits: int) -> float:
    """Return p of Welch's test; 1 if the means are printed alike."""
    if f"{best.mean:.{digits}f}" == f"{other.mean:.{digits}f}":
        return 1.0
    if len(set(best.values)) == len(set(other.values)) == 1:
        return 0.0  # neither varies over seeds, and the means differ
    moments = [number for cell in (best, other) for number in (cell.mean, stdev(cell.values), len(cell.values))]
    return float(stats.ttest_ind_from_stats(*moments, equal_var=False, alternative="greater").pvalue)


def _overlap_highest(cells: Sequence[Cell | None]) -> list[bool]:
    """Return which intervals overlap the one with the highest upper end; a cell without an interval is not bold."""
    ends = [(c.mean - c.half, c.mean + c.half) if c and c.half is not None else None for c in cells]
    highest = max((end for end in ends if end), key=lambda end: end[1], default=None)
    return [end is not None and highest is not None and end[1] >= highest[0] for end in ends]
