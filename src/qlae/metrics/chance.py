"""Estimates of mutual information by chance: for latents that are independent of the sources.

An estimate from a finite sample is not 0 for independent variables. InfoM and InfoC are ratios of such estimates, and a
ratio of two numbers that are both noise is not small: latents drawn at random score InfoM 0.4 to 0.9. The mean and the
standard deviation by chance, for each pair of a source and a latent, tell which estimates exceed noise. The mask of
informative latents and the corrected scores (corrected.py) are computed from them.

**One discrete and one continuous variable, or two continuous ones**: from shuffled samples. The estimates of KSG hardly
depend on the distribution of a continuous variable, so all continuous columns share their shuffles. Their deviation
shrinks as 1/√n, so a part of a large sample suffices.

**Discrete source and code**: from the table of counts alone, without random numbers. Shuffling keeps how often each
label occurs. The count c of a cell is then hypergeometric with mean m = a b / n, for labels that occur a and b times
among n samples, and

    n I = Σ c log(c / m)

is a sum over cells. Its mean is exact: a sum over the counts that each cell can take (Vinh, Epps & Bailey 2010, as in
adjusted mutual information). Its variance has two parts. The part that is linear in the counts has a closed form under
shuffling. The rest is summed over cells and scaled so that it equals the variance of χ²/2 with (rows − 1)(columns − 1)
degrees of freedom if all counts are large. Both hold for sparse tables, where the χ² approximation fails: for 40 × 40
labels of 300 samples it puts the mean at 2.5 nats instead of 1.7, and the deviation at 0.09 instead of 0.02.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .inputs import Bools, Floats, Ints, Latents, Sources
from .ksg import Ordered, continuous_pair, rescale_and_jitter

_SAMPLES = 1_000  # rows of a shuffled sample
_PER_LABEL = 20  # or this many for each label, if that is more
_SHUFFLES = 64  # for each deviation
_CAUTION = 1.1  # a deviation from 64 shuffles has a standard error of 9%
_LARGE = 200.0  # expected counts above this are normal to three digits
_REACH = 7.0  # standard deviations of a count that are summed over
_CELLS = 1 << 20  # summed at once


@dataclass(frozen=True, eq=False)
class Chance:
    """Mean and standard deviation (n_s, n_z) of estimates of mutual information by chance, in nats."""

    mean: Floats
    deviation: Floats
    from_counts: Bools
    """(n_s, n_z) True for plug-in estimates, which are distributed as χ²; those of KSG are normal."""

    def evidence(self, nats: Floats) -> Floats:
        """Return how far estimates (n_s, n_z) exceed chance, in standard deviations of a normal distribution.

        Plug-in estimates are brought to that scale by the cube root (Wilson & Hilferty 1931).
        """
        usable = self.deviation > 1e-9 * np.maximum(self.mean, 1e-3)
        mean, deviation = np.where(usable, self.mean, 1.0), np.where(usable, self.deviation, 1.0)
        by_counts = chi_square_evidence(nats, np.maximum(mean, 1e-12), deviation)
        return np.where(usable, np.where(self.from_counts, by_counts, (nats - mean) / deviation), 0.0)


def chi_square_evidence(value: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Return a value ≥ 0 of a scaled χ² distribution with this mean and deviation on the scale of a standard normal.

    >>> import numpy as np
    >>> chi_square_evidence(*map(np.float64, (30.578, 15.0, 30**0.5))).round(2)  # the 99% quantile of χ² with 15
    np.float64(2.32)
    """
    nine_shapes = 9.0 * (mean / deviation) ** 2
    return np.asarray((np.cbrt(value / mean) - (1.0 - 1.0 / nine_shapes)) * np.sqrt(nine_shapes))


def information_by_chance(sources: Sources, latents: Latents, *, k: int, seed: int) -> Chance:
    """Return the mean and deviation of `information.estimate` for each source and latent if rows are shuffled."""
    shape = sources.num_sources, latents.num_latents
    chance = Chance(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool))
    discrete = np.flatnonzero(np.array(sources.discrete) & sources.varying)
    continuous = np.flatnonzero(~np.array(sources.discrete) & sources.varying)
    moving = np.flatnonzero(latents.varying if latents.codes is None else np.array(latents.sizes) > 1)
    if not moving.size:
        return chance
    random, jitter = np.random.default_rng(seed), np.random.RandomState(seed)

    def enter(rows: Ints, mean: Floats, deviation: Floats) -> None:
        chance.mean[np.ix_(rows, moving)], chance.deviation[np.ix_(rows, moving)] = mean, deviation

    smooth_sources = rescale_and_jitter(sources.values[:, continuous], jitter) if continuous.size else None
    if latents.codes is not None:
        codes = latents.codes[:, moving]
        if discrete.size:
            enter(discrete, *_moments_of_codes(sources.labels[:, discrete], codes))
            chance.from_counts[discrete] = True
        if smooth_sources is not None:
            enter(continuous, *_moments_of_labels(smooth_sources, codes, k, random))
        return chance
    smooth = rescale_and_jitter(latents.values[:, moving], jitter)
    if discrete.size:
        mean, deviation = _moments_of_labels(smooth, sources.labels[:, discrete], k, random)
        enter(discrete, mean[:, None], deviation[:, None])
    if smooth_sources is not None:
        enter(continuous, *_moments_of_pairs(smooth_sources, smooth, k, random))
    return chance


def _moments_of_codes(labels: Ints, codes: Ints) -> tuple[Floats, Floats]:
    """Return mean and deviation (n_s, n_z) of plug-in estimates."""
    label_counts = [np.bincount(column) for column in labels.T]
    code_counts = [np.bincount(column) for column in codes.T]
    moments = np.array([[shuffled_moments(a, b) for b in code_counts] for a in label_counts])
    return moments[:, :, 0], moments[:, :, 1]


def _moments_of_labels(smooth: Floats, labels: Ints, k: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return mean and deviation, for each column of labels (n, q), of its estimates with shuffled continuous columns.

    The continuous columns (n, m) are taken in turn.
    """
    sizes = [int(column.max()) + 1 for column in labels.T]

    def estimate(draw: int, rows: Ints, others: Ints) -> list[float]:
        ordered = Ordered(smooth[others, draw % smooth.shape[1]])
        return [ordered.with_labels(labels[rows, i], size, k) for i, size in enumerate(sizes)]

    return moments_of_shuffles(estimate, labels.shape[0], max(_SAMPLES, _PER_LABEL * max(sizes)), random)


def _moments_of_pairs(x: Floats, y: Floats, k: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return mean and deviation of the estimates of pairs of continuous columns, (n, m) and (n, q), one shuffled."""

    def estimate(draw: int, rows: Ints, others: Ints) -> float:
        return continuous_pair(x[rows, draw % x.shape[1]], y[others, draw % y.shape[1]], k)

    return moments_of_shuffles(estimate, x.shape[0], _SAMPLES, random)


def moments_of_shuffles(
    estimate: Callable[[int, Ints, Ints], Any], n: int, num_rows: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return mean and deviation, for n samples, of an estimate from the rows of one variable and other rows of another.

    Each shuffle draws `num_rows` of either, or all n if these are fewer; the estimate receives its number and the rows.
    """
    part = min(n, num_rows)
    estimates = np.array(
        [
            estimate(draw, random.choice(n, part, replace=False), random.choice(n, part, replace=False))
            for draw in range(_SHUFFLES)
        ]
    )
    shrink = float(np.sqrt(part / n))
    deviation = _CAUTION * shrink * estimates.std(axis=0, ddof=1)
    return np.asarray(shrink * estimates.mean(axis=0)), np.asarray(deviation)


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
