"""Mutual information with a continuous variable, from distances to nearest neighbours (KSG), in nats.

Discrete label d, continuous c (Ross 2014, "Mutual Information between Discrete and Continuous Data Sets", PLoS ONE):

    I(d; c) = ψ(n) + ⟨ψ(k_i)⟩ − ⟨ψ(n_{d_i})⟩ − ⟨ψ(m_i)⟩

r_i is the distance from c_i to its k-th nearest neighbour among samples of the same label; m_i counts the samples of
any label, itself included, at a distance strictly below r_i; n_d is the size of label d. A label of size n_d ≤ k takes
k_i = n_d − 1; samples whose label occurs once are left out.

Two continuous variables (Kraskov, Stögbauer & Grassberger 2004, Phys. Rev. E 69, estimator 1, maximum norm):

    I(x; y) = ψ(n) + ψ(k) − ⟨ψ(n_x + 1) + ψ(n_y + 1)⟩.

Latents are one-dimensional, so the first estimator needs no tree: sort each latent once, keep the order within each
label, slide a window of k neighbours. `rescale_and_jitter` does what `sklearn.feature_selection.mutual_info_classif`
does to its input, with the same random draws, so that both agree to the last bits for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from .inputs import Bools, Floats, Ints, plain_columns

JITTER = 1e-10
_STEPS = 16  # by which the place of a distance may be off before it is searched for


def rescale_and_jitter(values: Floats, random: np.random.RandomState) -> Floats:
    """Return columns of (n, m) in units of their standard deviation, plus noise that breaks ties."""
    from sklearn.preprocessing import scale

    scaled = np.asarray(scale(plain_columns(values), with_mean=False, copy=False), dtype=np.float64)
    means = np.maximum(1, np.mean(np.abs(scaled), axis=0))
    noise = random.standard_normal(size=scaled.shape)
    noise *= JITTER * means
    scaled += noise
    return scaled


class Ordered:
    """One continuous variable (n,), sorted once, to be compared with many sources."""

    def __init__(self, values: Floats) -> None:
        self.order = np.argsort(values)
        self.sorted = values[self.order]

    def with_labels(self, labels: Ints, size: int, k: int) -> float:
        """Return I(labels; values) by Ross's estimator with k neighbours, which may be below 0; labels are < size."""
        x = self.sorted
        ordered = labels[self.order].astype(np.uint16 if size <= 1 << 16 else np.int64)
        counts = np.bincount(ordered, minlength=size)
        if counts.min() < 2:
            keep = counts[ordered] > 1
            x, ordered = x[keep], ordered[keep]
            counts = counts[counts > 1]
        if not counts.size:
            raise ValueError(
                "every sample has a different label: values that never repeat are continuous. "
                "Pass them as floats, or say source_kinds='continuous' (of latents: latent_kind='continuous')."
            )
        places = np.argsort(ordered, kind="stable")  # by label, ascending within each label
        grouped = x[places]
        radius, far = kth_neighbours(grouped, counts, k)
        n = x.size
        if np.any(x[1:] == x[:-1]):
            inside = count_inside(x, grouped, radius)
        else:
            leftward = far < np.arange(n)
            # The k-th neighbour is one end of the interval, so only the other end needs a search.
            other_end = np.searchsorted(x, np.where(leftward, grouped + radius, grouped - radius))
            first = np.where(leftward, places[far] + 1, other_end)
            last = np.where(leftward, other_end, places[far])
            first, last = _adjust(x, grouped, radius, first, last)
            inside = np.maximum(last - first, 1)
        table = digammas(n)
        return float(
            table[n]
            + np.dot(counts, table[np.minimum(k, counts - 1)]) / n
            - np.dot(counts, table[counts]) / n
            - table[inside].mean()
        )


@lru_cache(maxsize=2)
def digammas(n: int) -> Floats:
    """Return ψ(0 … n), with NaN for ψ(0), which is never used."""
    from scipy.special import digamma

    return np.concatenate([[np.nan], digamma(np.arange(1.0, n + 1.0))])


def kth_neighbours(grouped: Floats, counts: Ints, k: int) -> tuple[Floats, Ints]:
    """Return for each value the distance to its k-th neighbour within its group, and that neighbour's position.

    Groups, of sizes `counts`, follow each other in `grouped` (n,) and are sorted; too small ones use fewer neighbours.
    """
    n = grouped.size
    radius = np.full(n, np.inf)
    far = np.zeros(n, dtype=np.int64)
    ends = np.cumsum(counts)
    if counts.min() > k:
        _slide(grouped, k, ends[:-1], radius, far)
        return radius, far
    for start, end in zip(ends - counts, ends, strict=True):
        part = slice(start, end)
        _slide(grouped[part], min(k, end - start - 1), np.empty(0, dtype=np.int64), radius[part], far[part])
        far[part] += start
    return radius, far


def _slide(x: Floats, k: int, borders: Ints, radius: Floats, far: Ints) -> None:
    """Fill `radius` and `far` from the window of k + 1 values around each value that reaches least far.

    These outputs (n,) are the distance to the k-th neighbour in the sorted x (n,), and its position. A new group begins
    in x at each of the borders.
    """
    n = x.size - k
    index = np.arange(n)
    for a in range(k + 1):  # a values left of the centre, k − a right of it
        centre = x[a : n + a]
        left, right = centre - x[:n], x[k:] - centre
        reach = np.maximum(left, right)
        for back in range(1, k + 1):  # exclude windows across the border of two groups
            reach[borders - back] = np.inf
        better = reach < radius[a : n + a]
        np.copyto(radius[a : n + a], reach, where=better)
        np.copyto(far[a : n + a], np.where(left > right, index, index + k), where=better)


def count_inside(x: Floats, centres: Floats, radius: Floats) -> Ints:
    """Return how many of the sorted x are strictly closer than radius to each centre, including the centre itself."""
    distinct, counts = np.unique(x, return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    first = np.searchsorted(distinct, centres - radius)
    last = np.searchsorted(distinct, centres + radius)
    first, last = _adjust(distinct, centres, radius, first, last)
    return np.asarray(np.maximum(below[last] - below[first], 1), dtype=np.int64)


def _adjust(x: Floats, centres: Floats, radius: Floats, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return where the values closer than radius (n,) to each centre (n,) begin and end (exclusive) in x.

    x ascends without ties. The estimates `first` and `last` may be off by one, as centre ± radius is rounded; distances
    decide.
    """
    top = x.size - 1
    for _ in range(_STEPS):
        before = (first > 0) & (centres - x[first - 1] < radius)
        after = (centres - x[np.minimum(first, top)] >= radius) & (x[np.minimum(first, top)] < centres)
        first = first - before + after
        beyond = (last <= top) & (x[np.minimum(last, top)] - centres < radius)
        within = (x[last - 1] - centres >= radius) & (x[last - 1] > centres)
        last = last + beyond - within
        if not (before | after | beyond | within).any():
            return first, last
    # Values that lie closer together than the rounding of centre ± radius, next to others far away.
    return _bisect(x, centres, lambda near: centres - near < radius), x.size - _bisect(
        -x[::-1], -centres, lambda near: -near - centres < radius
    )


def _bisect(x: Floats, centres: Floats, is_close: Callable[[Floats], Bools]) -> Ints:
    """Return the first place of the ascending x, up to that of each centre (n,), whose value is close to the centre."""
    low, high = np.zeros(centres.size, dtype=np.int64), np.searchsorted(x, centres)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        close = is_close(x[np.minimum(middle, x.size - 1)])
        high = np.where(open_ & close, middle, high)
        low = np.where(open_ & ~close, middle + 1, low)
    return low


def continuous_pair(x: Floats, y: Floats, k: int) -> float:
    """Return I(x; y) of two continuous variables (n,) by the KSG estimator, which may be below 0."""
    from scipy.spatial import cKDTree

    n = x.size
    k = min(k, n - 1)
    plane = np.column_stack([x, y])
    radius = cKDTree(plane).query(plane, k=k + 1, p=np.inf)[0][:, -1]
    table = digammas(n)
    total = 0.0
    for axis in (x, y):
        total += float(table[count_inside(np.sort(axis), axis, radius)].mean())  # itself included
    return float(table[n] + table[k] - total)
