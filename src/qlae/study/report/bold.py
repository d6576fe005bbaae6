"""Decide which cells of a column are bold: those that a test cannot tell from the best, if it can tell any.

Each model is compared with the one of the highest mean by Welch's t-test, one-sided (is it lower?), at 5% over the
whole column (Holm's correction). The test does not assume equal variances, which differ a lot between models, and needs
no seeds in common. The paper's rule is that intervals overlap the one with the highest upper end. It has no known error
rate and ignores the number of models, and with two seeds nearly all intervals overlap, so that everything is bold. It
applies if the tables follow the authors (``aggregate = "authors"``).

Cells with fewer than three seeds are never bold. Nothing is bold if such a cell has the highest mean, or if the test
cannot tell any model from the best. Means that are printed alike count as equal.
"""

from collections.abc import Sequence
from statistics import stdev

from scipy import stats

from .cells import Cell

LEVEL = 0.05


def mark_bold(cells: Sequence[Cell | None], *, aggregate: str = "reruns", digits: int = 2) -> list[bool]:
    """Return which cells of a column are bold.

    Args:
        cells: the cells of the models that are compared; None where a model has no score.
        aggregate: ``"authors"`` for the paper's rule: intervals that overlap the one with the highest upper end.
        digits: decimal places of the printed means.

    >>> from .cells import make_cell
    >>> mark_bold([make_cell((0.5, 0.5, 0.6)), make_cell((0.9, 0.9, 0.8)), None])
    [False, True, False]
    """
    if aggregate == "authors":
        return _overlap_highest(cells)
    present = [cell for cell in cells if cell]
    best = max(present, key=lambda cell: cell.mean, default=None)
    if best is None or best.half is None:
        return [False] * len(cells)
    numbers = [number for number, cell in enumerate(cells) if cell and cell.half is not None]
    values = [_p_value(best, cells[number], digits) for number in numbers]
    worse = {number for number, is_worse in zip(numbers, _holm(values), strict=True) if is_worse}
    return [bool(worse) and number in numbers and number not in worse for number in range(len(cells))]


def _p_value(best: Cell, other: Cell | None, digits: int) -> float:
    """Return p of Welch's test; 1 if the means are printed alike."""
    assert other is not None
    if other is best or f"{best.mean:.{digits}f}" == f"{other.mean:.{digits}f}":
        return 1.0
    if len(set(best.values)) == len(set(other.values)) == 1:
        return 0.0  # neither varies over seeds, and the means differ
    moments = [number for cell in (best, other) for number in (cell.mean, stdev(cell.values), len(cell.values))]
    return float(stats.ttest_ind_from_stats(*moments, equal_var=False, alternative="greater").pvalue)


def _holm(values: Sequence[float]) -> list[bool]:
    """Return which p-values are significant by Holm's procedure; the best model's own does not count as a test.

    >>> _holm([1.0, 0.02, 0.04])  # 0.02 ≤ 0.05 / 2, and then 0.04 ≤ 0.05
    [False, True, True]
    >>> _holm([1.0, 0.03, 0.04])
    [False, False, False]
    """
    num_tests = len(values) - 1
    significant = [False] * len(values)
    for rank, number in enumerate(sorted(range(len(values)), key=values.__getitem__)[:num_tests]):
        if values[number] > LEVEL / (num_tests - rank):
            break
        significant[number] = True
    return significant


def _overlap_highest(cells: Sequence[Cell | None]) -> list[bool]:
    """Return which intervals overlap the one with the highest upper end; a cell without an interval is not bold."""
    ends = [(c.mean - c.half, c.mean + c.half) if c and c.half is not None else None for c in cells]
    highest = max((end for end in ends if end), key=lambda end: end[1], default=None)
    return [end is not None and highest is not None and end[1] >= highest[0] for end in ends]
