"""Mean and variance of the plug-in mutual information of two labellings if one of them is shuffled.

Shuffling keeps how often each label occurs. The count c of a cell of the table is then hypergeometric with mean
m = a b / n, for labels that occur a and b times among n samples, and

    n I = Σ c log(c / m)

is a sum over cells. Its mean is exact: a sum over the counts that each cell can take (Vinh, Epps & Bailey 2010, as in
adjusted mutual information). Its variance has two parts. The part that is linear in the counts has a closed form under
shuffling. The rest is summed over cells and scaled so that it equals the variance of χ²/2 with (rows − 1)(columns − 1)
degrees of freedom if all counts are large. Both hold for sparse tables, where the χ² approximation fails: for 40 × 40
labels of 300 samples it puts the mean at 2.5 nats instead of 1.7, and the deviation at 0.09 instead of 0.02.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .inputs import Floats, Ints

_LARGE = 200.0  # expected counts above this are normal to three digits
_REACH = 7.0  # standard deviations of a count that are summed over
_CELLS = 1 << 20  # summed at once


def shuffled_moments(row_counts: Ints, column_counts: Ints) -> tuple[float, float]:
    """Return mean and standard deviation, in nats, of the information of two labellings, one of which is shuffled.

    Args:
        row_counts, column_counts: how often each label of either labelling occurs; both have the same sum n ≥ 2. Labels
            that do not occur do not matter.

    >>> import numpy as np
    >>> mean, deviation = shuffled_moments(np.array([1, 1]), np.array([1, 1]))  # always log 2
    >>> round(mean, 4), round(deviation, 4)
    (0.6931, 0.0)
    """
    row_counts, column_counts = row_counts[row_counts > 0], column_counts[column_counts > 0]
    n = int(row_counts.sum())
    num_rows, num_columns = row_counts.size, column_counts.size
    freedom = (num_rows - 1) * (num_columns - 1)
    if freedom == 0:
        return 0.0, 0.0
    if float(row_counts.min()) * float(column_counts.min()) / n > _LARGE:
        return freedom / (2 * n), float(np.sqrt(freedom / 2)) / n
    rows, row_repeats = np.unique(row_counts, return_counts=True)  # cells of equal margins are alike
    columns, column_repeats = np.unique(column_counts, return_counts=True)
    mean, rest, slope = _cell_moments(rows, columns, n)
    repeats = np.outer(row_repeats, column_repeats)
    row_shares, column_shares = row_repeats * rows / n, column_repeats * columns / n
    centred = slope - (slope @ column_shares)[:, None] - row_shares @ slope + row_shares @ slope @ column_shares
    linear = n * n / (n - 1) * float(row_shares @ centred**2 @ column_shares)
    unscaled = float(repeats.ravel() @ np.outer((1 - rows / n) ** 2, (1 - columns / n) ** 2).ravel())
    variance = linear + float((repeats * rest).sum()) * freedom / unscaled
    return float((repeats * mean).sum()) / n, float(np.sqrt(variance)) / n


def _cell_moments(rows: Ints, columns: Ints, n: int) -> tuple[Floats, Floats, Floats]:
    """Return for each cell of (rows, columns) three numbers about f = c log(c / m).

    They are its mean, the variance that a linear function of c does not explain, and the slope of that function.
    """
    shape = rows.size, columns.size
    a, b = (part.ravel() for part in np.broadcast_arrays(rows[:, None], columns[None, :]))
    m = a * b / n
    deviation = np.sqrt(m * (1 - a / n) * (1 - b / n) * n / (n - 1))
    low = np.maximum(np.maximum(0, a + b - n), np.floor(m - _REACH * deviation - 4)).astype(np.int64)
    high = np.minimum(np.minimum(a, b), np.ceil(m + _REACH * deviation + 10)).astype(np.int64)
    width = int((high - low).max()) + 1
    parts = []
    step = max(1, _CELLS // width)
    for start in range(0, a.size, step):
        part = slice(start, start + step)
        parts.append(_sums_over_counts(a[part], b[part], m[part], low[part], high[part], width, n))
    mean, rest, slope = (np.concatenate(columns).reshape(shape) for columns in zip(*parts, strict=True))
    return mean, rest, slope


def _sums_over_counts(
    a: Ints, b: Ints, m: Floats, low: Ints, high: Ints, width: int, n: int
) -> tuple[Floats, Floats, Floats]:
    """Return the three numbers of `_cell_moments` for cells (cells,), summed over the counts from low to high."""
    from scipy.special import xlogy

    log_factorial = _log_factorials(n)
    possible = low[:, None] + np.arange(width)
    c = np.minimum(possible, high[:, None])
    a, b = a[:, None], b[:, None]
    fixed = log_factorial[a] + log_factorial[b] + log_factorial[n - a] + log_factorial[n - b] - log_factorial[n]
    varying = log_factorial[c] + log_factorial[a - c] + log_factorial[b - c] + log_factorial[n - a - b + c]
    probability = np.where(possible == c, np.exp(fixed - varying), 0.0)
    f = xlogy(c, c / m[:, None])
    mean = (probability * f).sum(axis=1)
    from_mean = c - m[:, None]
    spread = (probability * from_mean**2).sum(axis=1)
    covariance = (probability * from_mean * f).sum(axis=1)
    slope = np.divide(covariance, spread, out=np.zeros_like(spread), where=spread > 0)
    variance = (probability * (f - mean[:, None]) ** 2).sum(axis=1)
    return mean, np.maximum(variance - slope * covariance, 0.0), slope


@lru_cache(maxsize=2)
def _log_factorials(n: int) -> Floats:
    """Return log 0! … log n!."""
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(n + 1.0) + 1.0))
