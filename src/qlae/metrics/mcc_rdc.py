"""MCC by RDC: matched pairs of sources and latents, compared by a dependence that need not be linear.

The randomized dependence coefficient (Lopez-Paz, Hennig & Schölkopf 2013) of two variables is the largest canonical
correlation between random sine features of their ranks. It is 1 for any function that is not too irregular, monotone or
not, and |ρ| for Gaussian variables with correlation ρ. For independent variables it is not 0, but about √(8 / n).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .inputs import Floats, check_pair, leave_out_constant, whole_number
from .mcc import match
from .metric import UNIT, MetricResult, Score, register_metric

_FEATURES, _SCALE = 20, 1 / 6  # of the paper
_RANK = 1e-7  # share of the largest singular value below which a direction is rounding, as in R's cancor


@register_metric(
    "mcc_rdc",
    scores=[Score("mcc_rdc", "MCC by RDC", meaning="mean nonlinear correlation of matched pairs", bounds=UNIT)],
    in_all=False,
    takes_checked=True,
)
def mcc_rdc(
    sources: Any,
    latents: Any,
    *,
    seed: int = 0,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute the mean randomized dependence coefficient of matched pairs, in [0, 1]; `matrix` holds all coefficients.

    Sources and codes count as numbers (strings in alphabetical order). If there are fewer latents than sources, a
    source without a latent counts as 0.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        seed: of the random features.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).normal(size=(500, 3))
    >>> print(mcc_rdc(sources, np.cosh(sources[:, [1, 2, 0]])))
    MCC by RDC 1.000  [lopez-paz; n = 500]
    """
    whole_number("seed", seed, 0)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    random = np.random.default_rng(seed)
    first, second = (random.normal(size=(2, _FEATURES)) for _ in range(2))
    bases = [_basis(column, first) for column in s.values.T], [_basis(column, second) for column in z.values.T]
    matrix = np.array([[_largest_correlation(x, y) for y in bases[1]] for x in bases[0]])
    value, pairs = match(matrix, varying)
    return MetricResult("mcc_rdc", value, matrix, "lopez-paz", s.num_samples, {"latent_of_source": pairs})


def _basis(values: Floats, weights: Floats) -> Floats:
    """Return an orthonormal basis (n, rank) of the centred random features of values (n,)."""
    from scipy.stats import rankdata

    if np.ptp(values) == 0:
        return np.zeros((values.size, 0))
    ranks = np.column_stack([rankdata(values) / values.size, np.ones(values.size)])
    features = np.sin(_SCALE / 2 * ranks @ weights)
    features -= features.mean(axis=0)
    left, singular, _ = np.linalg.svd(features, full_matrices=False)
    return left[:, singular > _RANK * singular[0]]


def _largest_correlation(x: Floats, y: Floats) -> float:
    if not x.shape[1] or not y.shape[1]:
        return 0.0
    return float(min(1.0, np.linalg.svd(x.T @ y, compute_uv=False)[0]))
