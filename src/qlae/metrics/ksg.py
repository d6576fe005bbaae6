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

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma
from sklearn.preprocessing import scale

from qlae.metrics.inputs import Floats, Ints

JITTER = 1e-10


def rescale_and_jitter(values: Floats, random: np.random.RandomState) -> Floats:
    """Columns in units of their standard deviation, plus noise that breaks ties."""
    scaled = np.asarray(scale(values, with_mean=False), dtype=np.float64)
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
        grouped = x[np.argsort(ordered, kind="stable")]  # by label, ascending within each
        radius, neighbours = _radii(grouped, counts, k)
        inside = _count_inside(x, grouped, radius)
        n = x.size
        table = digamma(np.arange(1, n + 1))
        return float(
            table[n - 1]
            + np.dot(counts, table[neighbours - 1]) / n
            - np.dot(counts, table[counts - 1]) / n
            - table[inside - 1].mean()
        )


def _radii(grouped: Floats, counts: Ints, k: int) -> tuple[Floats, Ints]:
    """Distance to the k-th neighbour within each group of an array sorted group by group, and k for each group."""
    n = grouped.size
    neighbours = np.minimum(k, counts - 1)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    radius = np.full(n, np.inf)
    if counts.min() > k:
        # A window holds a neighbours to the left and k − a to the right; its reach is the larger side.
        gaps = grouped[k:] - grouped[:-k]  # (n − k,) width of each window of k + 1 consecutive values
        ends = (starts + counts)[:-1]
        for a in range(k + 1):
            reach = (
                gaps
                if a in (0, k)
                else np.maximum(grouped[a : n - k + a] - grouped[: n - k], grouped[k:] - grouped[a : n - k + a])
            )
            if ends.size:  # windows across the border of two groups do not count
                reach = reach.copy() if a in (0, k) else reach
                for back in range(1, k + 1):
                    reach[ends - back] = np.inf
            np.minimum(radius[a : n - k + a], reach, out=radius[a : n - k + a])
        return radius, neighbours
    for start, count, kk in zip(starts, counts, neighbours, strict=True):
        part = grouped[start : start + count]
        for a in range(kk + 1):
            middle = part[a : count - kk + a]
            reach = np.maximum(middle - part[: count - kk], part[kk:] - middle)
            window = radius[start + a : start + count - kk + a]
            np.minimum(window, reach, out=window)
    return radius, neighbours


def _count_inside(x: Floats, centres: Floats, radius: Floats) -> Ints:
    """How many of the sorted x lie strictly closer than radius to each centre, at least 1 (the centre itself)."""
    # Rounding in centre ± radius may put the border one place off: the distance itself decides.
    first = np.searchsorted(x, centres - radius, side="left")
    while True:
        outside = centres - x[np.minimum(first, x.size - 1)] >= radius
        outside &= x[np.minimum(first, x.size - 1)] < centres
        if not outside.any():
            break
        first += outside
    while True:
        inside = (first > 0) & (centres - x[first - 1] < radius)
        if not inside.any():
            break
        first -= inside
    last = np.searchsorted(x, centres + radius, side="right")
    while True:
        outside = (x[last - 1] - centres >= radius) & (x[last - 1] > centres)
        if not outside.any():
            break
        last -= outside
    while True:
        inside = (last < x.size) & (x[np.minimum(last, x.size - 1)] - centres < radius)
        if not inside.any():
            break
        last += inside
    return np.asarray(np.maximum(last - first, 1), dtype=np.int64)


def continuous_pair(x: Floats, y: Floats, k: int) -> float:
    """I(x; y) by the KSG estimator; may fall below 0."""
    n = x.size
    k = min(k, n - 1)
    plane = np.column_stack([x, y])
    radius = cKDTree(plane).query(plane, k=k + 1, p=np.inf)[0][:, -1]
    within = [_count_inside(np.sort(axis), axis, radius) for axis in (x, y)]  # itself included
    return float(digamma(n) + digamma(k) - sum(np.mean(digamma(counts)) for counts in within))
