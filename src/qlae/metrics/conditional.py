"""Mutual information of two variables given a third, I(x; y | c), in nats, and what it is by chance.

**A discrete condition** divides the sample into parts in which it is constant. The estimate of every part, by counts or
nearest neighbours as for two variables alone (information.py, ksg.py), is weighted by the number of its samples.

**A continuous condition** needs neighbours that are close in all three variables (Frenzel & Pompe 2007, Phys. Rev.
Lett. 99; Mesner & Shalizi 2021, IEEE Trans. Inf. Theory 67, for classes, whose distance is 0 or infinite):

    I(x; y | c) = ⟨ψ(k_i)⟩ − ⟨ψ(n_xc)⟩ − ⟨ψ(n_yc)⟩ + ⟨ψ(n_c)⟩

r_i is the distance (maximum norm) from sample i to its k-th nearest neighbour in x, y and c; n_xc counts the samples,
itself included, that are closer than r_i in x and c, and so on. A group of classes with n ≤ k members takes k_i =
n − 1.

This estimator is biased towards 0 if x or y almost follows from c, which is the case that matters here: a latent that
copies the source c. Two changes that leave I(x; y | c) as it is remove most of this bias. Each continuous variable is
replaced by its normal scores (ranks, as quantiles of a normal distribution), so that only its order counts. And the
regression of x and of y on c, a polynomial, is subtracted, which leaves the part of each that c does not explain.

**By chance**: for counts the moments are exact, as those of chance.py within each part; for nearest neighbours they are
those of shuffled samples. If the condition is continuous and both others are classes, samples are shuffled among
neighbours in c only, so that they keep their dependence on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .chance import moments_of_shuffles, shuffled_moments
from .information import entropy, sum_count_log_count
from .inputs import Floats, Ints
from .ksg import Ordered, count_inside, digammas, kth_neighbours

_ROWS = 5_000  # at most this many rows for a continuous condition
_SHUFFLED_ROWS = 1_000  # rows of a shuffled sample,
_PER_GROUP, _MOST_SHUFFLED_ROWS = 5, 4_000  # or this many for each combination of classes, if that is more
_NEIGHBOURS = 20  # samples are shuffled among as many neighbours
_DEGREE = 5  # of the polynomial in the condition
_FAR_APART = 64.0  # between parts; normal scores are below 7
_EXPLAINED = 1e-6  # share of the deviation below which the rest is rounding


@dataclass(frozen=True, eq=False)
class Variable:
    """One variable (n,): labels 0 … size − 1, or normal scores."""

    labels: Ints | None
    scores: Floats | None
    size: int = 0

    @property
    def is_discrete(self) -> bool:
        return self.labels is not None

    def at(self, rows: Ints) -> Variable:
        """Return the variable at some of the samples."""
        if self.labels is not None:
            return Variable(self.labels[rows], None, self.size)
        assert self.scores is not None
        return Variable(None, self.scores[rows])

    @classmethod
    def of_labels(cls, labels: Ints, size: int) -> Variable:
        return cls(np.ascontiguousarray(labels), None, size)

    @classmethod
    def of_values(cls, values: Floats, seed: int = 0) -> Variable:
        """Return the normal scores of values; the seed breaks ties."""
        return cls(None, normal_scores(values, np.random.default_rng(seed)))


def normal_scores(values: Floats, random: np.random.Generator) -> Floats:
    """Return the quantiles of a normal distribution at the ranks of values (n,), with ties in random order.

    >>> normal_scores(np.array([10.0, 1.0, 100.0]), np.random.default_rng(0)).round(2)
    array([ 0.  , -0.97,  0.97])
    """
    from scipy.special import ndtri

    order = np.lexsort((random.random(values.size), values))
    result = np.empty(values.size)
    result[order] = ndtri((np.arange(values.size) + 0.5) / values.size)
    return result


def conditional_information(x: Variable, y: Variable, condition: Variable, *, k: int, seed: int = 0) -> float:
    """Return the estimate of I(x; y | c) in nats, which may be below 0 unless all three are discrete."""
    if condition.labels is not None:
        if x.labels is not None and y.labels is not None:
            return _from_counts(x, y, condition)
        return _in_parts(x, y, condition, k)
    assert condition.scores is not None
    n = condition.scores.size
    if n > _ROWS:
        rows = np.random.default_rng(seed).choice(n, _ROWS, replace=False)
        x, y, condition = x.at(rows), y.at(rows), condition.at(rows)
    return _by_neighbours(x, y, condition, k)


def conditional_entropy(labels: Variable, condition: Variable) -> float:
    """Return H(x | c) of labels in nats, by counts, or by neighbours if the condition is continuous."""
    assert labels.labels is not None
    if condition.labels is not None:
        joint = labels.labels * condition.size + condition.labels
        both = sum_count_log_count(np.unique(joint, return_counts=True)[1])
        return max(0.0, (sum_count_log_count(np.bincount(condition.labels)) - both) / labels.labels.size)
    assert condition.scores is not None
    known = Ordered(condition.scores).with_labels(labels.labels, labels.size, 3)
    return max(0.0, entropy(labels.labels) - max(0.0, known))


def _from_counts(x: Variable, y: Variable, condition: Variable) -> float:
    assert x.labels is not None
    assert y.labels is not None
    assert condition.labels is not None
    xc = x.labels * condition.size + condition.labels
    yc = y.labels * condition.size + condition.labels
    xyc = xc * y.size + y.labels
    counts = [np.unique(joint, return_counts=True)[1] for joint in (xyc, xc, yc, condition.labels)]
    both, first, second, alone = map(sum_count_log_count, counts)
    return max(0.0, (both - first - second + alone) / xc.size)


def _in_parts(x: Variable, y: Variable, condition: Variable, k: int) -> float:
    """Return the mean of estimates within the samples of each label of the condition, by their number of samples.

    All parts are computed at once: continuous variables are shifted so far apart that no neighbour is in another part.
    """
    assert condition.labels is not None
    if x.labels is not None:
        x, y = y, x
    assert x.scores is not None
    parts = condition.labels
    shifted = _in_ranks(x.scores, parts) + _FAR_APART * parts
    if y.labels is not None:
        return _classes_in_parts(shifted, y.labels, y.size, parts, k)
    assert y.scores is not None
    return _pairs_in_parts(shifted, _in_ranks(y.scores, parts) + _FAR_APART * parts, parts, k)


def _in_ranks(scores: Floats, parts: Ints) -> Floats:
    """Return the normal scores of values (n,) within each part."""
    from scipy.special import ndtri

    order = np.lexsort((scores, parts))
    counts = np.bincount(parts)
    first = (np.cumsum(counts) - counts)[parts[order]]
    result = np.empty(scores.size)
    result[order] = ndtri((np.arange(scores.size) - first + 0.5) / counts[parts[order]])
    return result


def _classes_in_parts(x: Floats, labels: Ints, size: int, parts: Ints, k: int) -> float:
    """Return Ross's estimate for x without ties; samples whose label occurs once in their part are left out."""
    joint = parts * size + labels
    several = np.bincount(joint)[joint] > 1
    if not several.any():
        return 0.0
    x, joint, parts = x[several], joint[several], parts[several]
    order = np.lexsort((x, joint))
    counts = np.unique(joint, return_counts=True)[1]
    radius, _ = kth_neighbours(x[order], counts, k)
    inside = count_inside(np.sort(x), x[order], radius)
    table = digammas(x.size)
    own = np.repeat(counts, counts)
    around = np.bincount(parts)[parts[order]]
    return float(np.mean(table[around] + table[np.minimum(k, own - 1)] - table[own] - table[inside]))


def _pairs_in_parts(x: Floats, y: Floats, parts: Ints, k: int) -> float:
    """Return the KSG estimate for x and y without ties; parts of at most k samples are left out."""
    from scipy.spatial import cKDTree

    many = np.bincount(parts)[parts] > k
    if not many.any():
        return 0.0
    x, y, parts = x[many], y[many], parts[many]
    plane = np.column_stack([x, y])
    radius = cKDTree(plane).query(plane, k=k + 1, p=np.inf)[0][:, -1]
    table, around = digammas(x.size), np.bincount(parts)[parts]
    near = sum(table[count_inside(np.sort(axis), axis, radius)] for axis in (x, y))
    return float(np.mean(table[around] - near) + table[k])


def _by_neighbours(x: Variable, y: Variable, condition: Variable, k: int) -> float:
    """Return I(x; y | c) for a continuous condition."""
    from scipy.spatial import cKDTree

    assert condition.scores is not None
    c, n = condition.scores, condition.scores.size
    axes = {"x": _unexplained(x, c), "y": _unexplained(y, c)}
    if any(variable is None for variable in axes.values()):  # a function of the condition says nothing beyond it
        return 0.0
    smooth = {name: v for name, v in axes.items() if v is not None and v.ndim}
    groups = {name: v.labels for name, v in (("x", x), ("y", y)) if v.labels is not None}
    joint = np.zeros(n, dtype=np.int64)
    for name, labels in groups.items():
        joint = joint * (x.size if name == "x" else y.size) + labels
    points = np.column_stack([*smooth.values(), c])
    radius, neighbours = np.full(n, -1.0), np.zeros(n, dtype=np.int64)
    for rows in _groups(joint):
        if rows.size > 1:
            near = min(k, rows.size - 1)
            radius[rows] = cKDTree(points[rows]).query(points[rows], k=near + 1, p=np.inf)[0][:, -1]
            neighbours[rows] = near
    used = radius > 0
    if not used.any():
        return 0.0

    def mean_digamma(name: str | None) -> float:
        """Return ⟨ψ(count)⟩ of the samples that are near in the condition, and in x or y if one is named."""
        plane = points[:, -1:] if name not in smooth else np.column_stack([smooth[str(name)], c])
        labels = groups.get(str(name))
        counts = np.zeros(n, dtype=np.int64)
        for rows in [np.arange(n)] if labels is None else _groups(labels):
            own = rows[used[rows]]
            if own.size:
                counts[own] = _count_near(plane[rows], plane[own], radius[own])
        return float(digammas(n)[np.maximum(counts[used], 1)].mean())

    table = digammas(n)
    return float(table[neighbours[used]].mean()) - mean_digamma("x") - mean_digamma("y") + mean_digamma(None)


def _count_near(points: Floats, centres: Floats, radius: Floats) -> Ints:
    """Return how many points (m, d) are closer to each centre (q, d) than its radius (q,)."""
    from scipy.spatial import cKDTree

    if points.shape[1] == 1:
        return count_inside(np.sort(points[:, 0]), centres[:, 0], radius)
    inner = np.nextafter(radius, 0)
    return np.asarray(cKDTree(points).query_ball_point(centres, inner, p=np.inf, return_length=True))


def _groups(labels: Ints) -> list[Ints]:
    """Return the rows of each label."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _unexplained(variable: Variable, condition: Floats) -> Floats | None:
    """Return what a polynomial in the condition leaves of a variable, at a deviation of 1; None if it leaves nothing.

    Labels, which have no regression, become an array without dimensions.
    """
    if variable.scores is None:
        return np.zeros(())
    degree = min(_DEGREE, condition.size // 50 + 1)
    powers = np.polynomial.hermite_e.hermevander(condition, degree)
    rest = variable.scores - powers @ np.linalg.lstsq(powers, variable.scores, rcond=None)[0]
    deviation = float(rest.std())
    return None if deviation < _EXPLAINED else rest / deviation


def by_chance(x: Variable, y: Variable, condition: Variable, *, k: int, seed: int) -> tuple[float, float]:
    """Return mean and deviation of the estimate of I(x; y | c) if x and y are independent given c.

    A continuous x or y is replaced by random numbers, since estimates hardly depend on its distribution; so pairs with
    the same classes and the same condition have the same moments.
    """
    if x.labels is not None and y.labels is not None and condition.labels is not None:
        return _moments_of_counts(x.labels, y.labels, condition.labels)
    random = np.random.default_rng(seed)
    groups = np.zeros(_length(condition), dtype=np.int64)
    for variable in (x, y, condition):
        if variable.labels is not None:
            groups = groups * variable.size + variable.labels
    num_rows = min(max(_SHUFFLED_ROWS, _PER_GROUP * np.unique(groups).size), _MOST_SHUFFLED_ROWS)

    def estimate(draw: int, rows: Ints, others: Ints) -> float:
        first, second, given = x.at(rows), y.at(rows), condition.at(rows)
        if first.labels is not None and second.labels is not None:
            return conditional_information(_shuffle_nearby(first, given, random), second, given, k=k)
        if first.labels is None:
            first = Variable(None, random.normal(size=rows.size))
        if second.labels is None:
            second = Variable(None, random.normal(size=rows.size))
        return conditional_information(first, second, given, k=k)

    mean, deviation = moments_of_shuffles(estimate, _length(condition), num_rows, random)
    return float(mean), float(deviation)


def _moments_of_counts(x: Ints, y: Ints, condition: Ints) -> tuple[float, float]:
    parts = _groups(condition)
    moments = [shuffled_moments(np.bincount(x[rows]), np.bincount(y[rows])) for rows in parts]
    weights = np.array([rows.size for rows in parts]) / condition.size
    means, deviations = np.array(moments).T
    return float(weights @ means), float(np.sqrt(weights**2 @ deviations**2))


def _shuffle_nearby(variable: Variable, condition: Variable, random: np.random.Generator) -> Variable:
    """Return labels shuffled within blocks of samples that are next to each other in the condition."""
    assert variable.labels is not None
    assert condition.scores is not None
    order = np.argsort(condition.scores)
    places = np.lexsort((random.random(order.size), np.arange(order.size) // _NEIGHBOURS))
    shuffled = np.empty_like(variable.labels)
    shuffled[order] = variable.labels[order[places]]
    return Variable.of_labels(shuffled, variable.size)


def _length(variable: Variable) -> int:
    values = variable.labels if variable.labels is not None else variable.scores
    assert values is not None
    return int(values.size)
