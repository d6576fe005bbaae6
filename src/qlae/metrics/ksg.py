"""Mutual information with a continuous variable, from distances to nearest neighbours (KSG), in nats.

Discrete label d, continuous c (Ross 2014, "Mutual Information between Discrete and Continuous Data Sets", PLoS ONE):

    I(d; c) = ψ(n) + ⟨ψ(k_i)⟩ − ⟨ψ(n_{d_i})⟩ − ⟨ψ(m_i)⟩

r_i is the distance from c_i to its k-th nearest neighbour among samples of the same label; m_i counts the samples of
any label, itself included, at a distance strictly below r_i; n_d is the size of label d. A label of size n_d ≤ k takes
k_i = n_d − 1; samples whose label occurs once leave the sample.

Two continuous variables (Kraskov, Stögbauer & Grassberger 2004, Phys. Rev. E 69, estimator 1, maximum norm):

    I(x; y) = ψ(n) + ψ(k) − ⟨ψ(n_x + 1) + ψ(n_y + 1)⟩.

Latents are one-dimensional, so no tree is needed for the first: sort each latent once, keep the order within each
label, slide a window of k neighbours. `rescale_and_jitter` repeats what `sklearn.feature_selection.mutual_info_classif`
does to its input, draw for draw, so that both agree to the last bits for the same seed.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma
from sklearn.preprocessing import scale

from .inputs import Floats, Ints, plain_columns

JITTER = 1e-10


def rescale_and_jitter(values: Floats, random: np.random.RandomState) -> Floats:
    """Columns in units of their standard deviation, plus noise that breaks ties."""
    scaled = np.asarray(scale(plain_columns(values), with_mean=False), dtype=np.float64)
    means = np.maximum(1, np.mean(np.abs(scaled), axis=0))
    scaled += JITTER * means * random.standard_normal(size=scaled.shape)
    return scaled


class Ordered:
    """One continuous variable, sorted once, to be compared with many sources."""

    def __init__(self, values: Floats) -> None:
        self.order = np.argsort(values)
        self.sorted = values[self.order]

    def with_labels(self, labels: Ints, size: int, k: int) -> float:
        """I(labels; values) by Ross's estimator; may fall below 0."""
        x = self.sorted
        ordered = labels[self.order].astype(np.uint16 if size <= 1 << 16 else np.int64)
        counts = np.bincount(ordered, minlength=size)
        if counts.min() < 2:
            keep = counts[ordered] > 1
            x, ordered = x[keep], ordered[keep]
            counts = counts[counts > 1]
        if not counts.size:
            raise ValueError(
                "every sample has a label of its own: a source whose values never repeat is continuous. "
                "Pass it as floats, or say source_kinds='continuous'."
            )
        places = np.argsort(ordered, kind="stable")  # by label, ascending within each
        grouped = x[places]
        radius, far = _kth_neighbours(grouped, counts, k)
        n = x.size
        if np.any(x[1:] == x[:-1]):
            inside = _count_inside(x, grouped, radius)
        else:
            leftward = far < np.arange(n)
            # The k-th neighbour marks one end of the interval; only the other end is searched for.
            found = np.searchsorted(x, np.where(leftward, grouped + radius, grouped - radius))
            first = np.where(leftward, places[far] + 1, found)
            last = np.where(leftward, found, places[far])
            first, last = _adjust(x, grouped, radius, first, last)
            inside = np.maximum(last - first, 1)
        table = _digammas(n)
        return float(
            table[n]
            + np.dot(counts, table[np.minimum(k, counts - 1)]) / n
            - np.dot(counts, table[counts]) / n
            - table[inside].mean()
        )


@lru_cache(maxsize=2)
def _digammas(n: int) -> Floats:
    """ψ(0 … n), where ψ(0) is never asked for."""
    return np.concatenate([[np.nan], digamma(np.arange(1.0, n + 1.0))])


def _kth_neighbours(grouped: Floats, counts: Ints, k: int) -> tuple[Floats, Ints]:
    """Within groups that are sorted and follow each other: distance to the k-th neighbour, and where it stands."""
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
    """Fill radius and far: of the windows of k + 1 values around each value, the one that reaches least far."""
    n = x.size - k
    index = np.arange(n)
    for a in range(k + 1):  # a values to the left of the centre, k − a to the right
        centre = x[a : n + a]
        left, right = centre - x[:n], x[k:] - centre
        reach = np.maximum(left, right)
        for back in range(1, k + 1):  # windows across the border of two groups do not count
            reach[borders - back] = np.inf
        better = reach < radius[a : n + a]
        np.copyto(radius[a : n + a], reach, where=better)
        np.copyto(far[a : n + a], np.where(left > right, index, index + k), where=better)


def _count_inside(x: Floats, centres: Floats, radius: Floats) -> Ints:
    """How many of the sorted x lie strictly closer than radius to each centre, at least 1 (the centre itself)."""
    distinct, counts = np.unique(x, return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    first = np.searchsorted(distinct, centres - radius)
    last = np.searchsorted(distinct, centres + radius)
    first, last = _adjust(distinct, centres, radius, first, last)
    return np.asarray(np.maximum(below[last] - below[first], 1), dtype=np.int64)


def _adjust(x: Floats, centres: Floats, radius: Floats, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Where the values of x (ascending, all different) closer than radius to each centre begin and end (exclusive).

    `first` and `last` are almost right: rounding in centre ± radius may put them a place off. The distance decides.
    """
    top = x.size - 1
    while (inside := (first > 0) & (centres - x[first - 1] < radius)).any():
        first = first - inside
    while (outside := (centres - x[np.minimum(first, top)] >= radius) & (x[np.minimum(first, top)] < centres)).any():
        first = first + outside
    while (inside := (last <= top) & (x[np.minimum(last, top)] - centres < radius)).any():
        last = last + inside
    while (outside := (x[last - 1] - centres >= radius) & (x[last - 1] > centres)).any():
        last = last - outside
    return first, last


def continuous_pair(x: Floats, y: Floats, k: int) -> float:
    """I(x; y) by the KSG estimator; may fall below 0."""
    n = x.size
    k = min(k, n - 1)
    plane = np.column_stack([x, y])
    radius = cKDTree(plane).query(plane, k=k + 1, p=np.inf)[0][:, -1]
    table = _digammas(n)
    total = 0.0
    for axis in (x, y):
        total += float(table[_count_inside(np.sort(axis), axis, radius)].mean())  # itself included
    return float(table[n] + table[k] - total)
