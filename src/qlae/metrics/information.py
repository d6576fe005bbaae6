"""Mutual information of every source with every latent, its normalised form NMI (paper, section 4.1), and ratios of it.

Two discrete variables have the plug-in estimate from counts. With joint counts c_xy of n samples, in nats,

    H(x) = log n − (1/n) Σ_x c_x log c_x
    I(x; y) = log n + (1/n) (Σ_xy c_xy log c_xy − Σ_x c_x log c_x − Σ_y c_y log c_y).

The counts are integers, so the result does not depend on the order of the samples. Pairs with a continuous variable are
estimated from distances to nearest neighbours (ksg.py); older metrics use bins of equal width instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .inputs import MAX_DRAWS, Floats, Ints, Latents, Sources, check_pair, require_choice, whole_number
from .ksg import Ordered, continuous_pair, rescale_and_jitter

CONTINUOUS_NMI = ("denoised", "r-squared")
_NOISE = 3.9  # times 1/√(k n): three standard deviations of KSG estimates for independent variables
_ROUNDING = 1e-13  # nats; smaller results are rounding errors of exact zeros
_DENSE_CELLS = 1 << 22  # tables with more cells than this, and than samples, count only the pairs that occur


def mutual_information(
    sources: Any,
    latents: Any,
    *,
    k: int = 3,
    seed: int = 0,
    jitter: bool = True,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> Floats:
    """Estimate the mutual information I(s_i; z_j) of each source with each latent, in nats.

    Discrete source and code: from joint counts (plug-in). One discrete and one continuous: Ross's (2014) KSG estimator.
    Both continuous: the estimator of Kraskov et al. (2004). Estimates below 0 become 0.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        k: number of neighbours in the KSG estimators.
        seed: of the jitter that breaks ties; for the same seed, continuous latents have the values of
            `sklearn.feature_selection.mutual_info_classif(latents, source, n_neighbors=k, random_state=seed)`.
        jitter: False leaves continuous variables exactly as they are; right if no value repeats.

    Returns:
        (n_s, n_z) nats. A constant source or latent has 0.

    >>> import numpy as np
    >>> sources = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> mutual_information(sources, sources[:, ::-1]).round(4)
    array([[0.    , 0.6931],
           [0.6931, 0.    ]])
    """
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    return np.maximum(estimate(s, z, k=k, seed=seed, jitter=jitter), 0.0)


def nmi(
    sources: Any,
    latents: Any,
    *,
    k: int = 3,
    seed: int = 0,
    jitter: bool = True,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
    continuous_nmi: str = "denoised",
) -> Floats:
    """Estimate NMI_ij = I(s_i; z_j) / H(s_i), normalised mutual information: the share of a source in a latent.

    A continuous source has no entropy to divide by. Its NMI is 1 − exp(−2 I), the squared correlation of a Gaussian
    pair with the same information (Linfoot 1957), which corresponds to the R² that InfoE uses for such sources. This
    doubles the noise of small estimates, so I is shrunk before: to I − ε² / I, and to 0 below ε = 3.9 / √(k n), three
    standard deviations of the estimates for independent variables. A constant source has 0. Estimates for continuous
    latents can slightly exceed 1; they are not clipped.

    Args:
        sources, latents, k, seed, jitter, source_kinds, latent_kind: as for `mutual_information`.
        continuous_nmi: NMI of continuous sources: "denoised" as above, or "r-squared" without shrinking I.

    Returns:
        (n_s, n_z), without unit.

    >>> import numpy as np
    >>> sources = np.array([[0], [1], [2], [3]] * 5)
    >>> nmi(sources, sources // 2).round(4)
    array([[0.5]])
    """
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    require_choice("continuous_nmi", continuous_nmi, CONTINUOUS_NMI)
    nats = np.maximum(estimate(s, z, k=k, seed=seed, jitter=jitter), 0.0)
    return normalise(nats, s, z, k=k, continuous_nmi=continuous_nmi)


def estimate(sources: Sources, latents: Latents, *, k: int, seed: int, jitter: bool = True) -> Floats:
    """Return raw estimates (n_s, n_z) in nats; those of KSG may be below 0."""
    whole_number("k", k, 1)
    whole_number("seed", seed, 0)
    result = np.zeros((sources.num_sources, latents.num_latents))
    is_discrete = np.array(sources.discrete)
    discrete, continuous = (np.flatnonzero(kind & sources.varying).tolist() for kind in (is_discrete, ~is_discrete))
    values, columns = _without_ties(sources, latents, continuous, seed) if jitter else (latents.values, sources.values)
    if latents.codes is not None:
        sizes = [sources.sizes[i] for i in discrete]
        labels = sources.labels[:, discrete]
        result[discrete] = discrete_mutual_information(labels, sizes, latents.codes, latents.sizes)
        for i in continuous:
            ordered = Ordered(columns[:, i])
            for j in (j for j, size in enumerate(latents.sizes) if size > 1):
                result[i, j] = ordered.with_labels(latents.codes[:, j], latents.sizes[j], k)
        return result
    for j in np.flatnonzero(latents.varying).tolist():
        ordered = Ordered(values[:, j])
        for i in discrete:
            result[i, j] = ordered.with_labels(sources.labels[:, i], sources.sizes[i], k)
        for i in continuous:
            result[i, j] = continuous_pair(values[:, j], columns[:, i], k)
    return result


def _without_ties(sources: Sources, latents: Latents, continuous: Sequence[int], seed: int) -> tuple[Floats, Floats]:
    """Return latents (n, n_z) and sources (n, n_s) whose continuous columns are rescaled and have no ties."""
    random = np.random.RandomState(seed)  # scikit-learn's generator, for equal draws
    values = rescale_and_jitter(latents.values, random) if latents.codes is None else latents.values
    noise, columns = random.get_state(legacy=True), sources.values.copy()
    for i in continuous:
        random.set_state(noise)
        columns[:, [i]] = rescale_and_jitter(sources.values[:, [i]], random)
    return values, columns


def normalise(nats: Floats, sources: Sources, latents: Latents, *, k: int, continuous_nmi: str = "denoised") -> Floats:
    """Return estimates (n_s, n_z), in nats and at least 0, as NMI; see `nmi`."""
    result = np.zeros_like(nats)
    for i in np.flatnonzero(sources.varying).tolist():
        if sources.discrete[i]:
            result[i] = nats[i] / entropy(sources.labels[:, i])
            if latents.discrete:
                result[i] = np.minimum(result[i], 1.0)  # exact except for rounding
        else:
            result[i] = r_squared(
                nats[i] if continuous_nmi == "r-squared" else _denoised(nats[i], sources.num_samples, k)
            )
    return result


def r_squared(nats: Floats) -> Floats:
    """Return the squared correlation of Gaussian pairs with this mutual information."""
    return np.asarray(-np.expm1(-2.0 * nats))


def _denoised(nats: Floats, num_samples: int, k: int) -> Floats:
    """Return KSG estimates ≥ 0 minus the amount expected by chance; large estimates hardly change."""
    noise = _NOISE / np.sqrt(k * num_samples)
    shrunk = nats - np.divide(noise**2, nats, out=np.full_like(nats, np.inf), where=nats > 0)
    return np.asarray(np.maximum(shrunk, 0.0))


def sum_count_log_count(counts: Ints) -> float:
    """Return Σ c log c over the cells of a table of counts, with 0 log 0 = 0."""
    from scipy.special import xlogy

    return float(xlogy(counts, counts).sum())


def entropy(labels: Ints) -> float:
    """Return the entropy of labels (n,), 0 … size − 1, in nats.

    >>> import numpy as np
    >>> round(entropy(np.array([0, 1, 0, 1])), 4)
    0.6931
    """
    return max(0.0, float(np.log(labels.size)) - sum_count_log_count(np.bincount(labels)) / labels.size)


def discrete_mutual_information(
    labels: Ints, label_sizes: Sequence[int], codes: Ints, code_sizes: Sequence[int]
) -> Floats:
    """Return (n_s, n_z) mutual information in nats of every pair of columns, 0 … size − 1, of (n, n_s) and (n, n_z)."""
    n = labels.shape[0]
    code_terms = [sum_count_log_count(np.bincount(codes[:, j])) for j in range(codes.shape[1])]
    result = np.zeros((labels.shape[1], codes.shape[1]))
    narrow = np.asfortranarray(codes, dtype=np.intp)
    for i in range(labels.shape[1]):
        label_term = sum_count_log_count(np.bincount(labels[:, i]))
        for j, code_size in enumerate(code_sizes):
            cells = label_sizes[i] * code_size
            pair = labels[:, i] * code_size + narrow[:, j]
            if cells > max(_DENSE_CELLS, n):
                joint = np.unique(pair, return_counts=True)[1]
            else:
                joint = np.bincount(pair, minlength=cells)
            nats = np.log(n) + (sum_count_log_count(joint) - label_term - code_terms[j]) / n
            result[i, j] = nats if nats > _ROUNDING else 0.0
    return result


def equal_width(values: Floats, num_bins: int) -> Ints:
    """Return the bin of each value (n,), 0 … num_bins − 1, out of equal bins between the least and the largest value.

    A bin includes its lower edge; the last bin includes the largest value.

    >>> import numpy as np
    >>> equal_width(np.array([0.0, 0.4, 0.5, 1.0]), 2)
    array([0, 0, 1, 1])
    """
    whole_number("num_bins", num_bins, 1, MAX_DRAWS)
    edges = np.histogram_bin_edges(values, num_bins)
    return np.asarray(np.digitize(values, edges[:-1]) - 1, dtype=np.int64)


def equal_width_columns(values: Floats, num_bins: int) -> tuple[Ints, tuple[int, ...]]:
    """Return each column of (n, m) in bins, and the number of bins of each column."""
    bins = np.column_stack([equal_width(column, num_bins) for column in values.T])
    return bins, (num_bins,) * bins.shape[1]


def binned_information(sources: Sources, latents: Latents, num_bins: int) -> tuple[Floats, Ints, Ints]:
    """Return the information (n_s, n_z) of binned latents, in nats, the labels (n, n_s) and the bins (n, n_z).

    Continuous sources are binned, too.
    """
    labels, sizes = sources.labels.copy(), list(sources.sizes)
    for i, discrete in enumerate(sources.discrete):
        if not discrete:
            labels[:, [i]], (sizes[i],) = equal_width_columns(sources.values[:, [i]], num_bins)
    bins, bin_sizes = equal_width_columns(latents.values, num_bins)
    return discrete_mutual_information(labels, sizes, bins, bin_sizes), labels, bins


def concentration(matrix: Floats) -> float:
    """Return the mean over rows of largest entry / sum, mapped from [1/columns, 1] to [0, 1], without rows of zeros.

    >>> import numpy as np
    >>> concentration(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    0.5
    """
    totals = matrix.sum(axis=1)
    rows = totals > 0
    if not rows.any():
        return 0.0
    if matrix.shape[1] == 1:
        return 1.0
    share = float(np.mean(matrix[rows].max(axis=1) / totals[rows]))
    floor = 1.0 / matrix.shape[1]
    return float(np.clip((share - floor) / (1.0 - floor), 0.0, 1.0))


def weighted_concentration(matrix: Floats, weights: Floats) -> float:
    """Return the mean over all rows of weight · largest entry / sum, mapped to [0, 1]; rows of zeros count as 0.

    Args:
        matrix: (rows, columns), at least 0.
        weights: (rows,) from 0 to 1.

    >>> import numpy as np
    >>> weighted_concentration(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0], [1.0, 0.0]]), np.array([1, 1, 1, 0.5]))
    0.375
    """
    if not matrix.size:
        return 0.0
    totals = matrix.sum(axis=1)
    share = matrix.max(axis=1) / np.where(totals > 0, totals, 1.0)
    floor = 1.0 / matrix.shape[1]
    mapped = (share - floor) / (1.0 - floor) if matrix.shape[1] > 1 else (totals > 0).astype(float)
    return float(np.mean(weights * np.clip(mapped, 0.0, 1.0)))


def top_two_gaps(matrix: Floats) -> Floats:
    """Return the largest minus the second largest entry of each row; with a single column, the entry itself.

    >>> import numpy as np
    >>> top_two_gaps(np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]]))
    array([0.5, 0. ])
    """
    if matrix.shape[1] == 1:
        return matrix[:, 0].copy()
    ordered = np.sort(matrix, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])
