"""MCC: mean correlation coefficient of sources and the latents matched to them.

As used for nonlinear ICA (Hyvärinen & Morioka 2016; Khemakhem et al. 2020, ilkhem/icebeem): absolute correlations,
one latent per source by the assignment that maximises their sum, and the mean over sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .inputs import Bools, Floats, check_pair, leave_out_constant, plain_columns, require_choice
from .metric import UNIT, MetricResult, Score, register_metric


@register_metric(
    "mcc", scores=[Score("mcc", "MCC", meaning="mean correlation of matched pairs", bounds=UNIT)], takes_checked=True
)
def mcc(
    sources: Any,
    latents: Any,
    *,
    correlation: str = "pearson",
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute the mean correlation coefficient, in [0, 1]; `matrix` holds the absolute correlations.

    Sources and codes count as numbers (strings in alphabetical order). If there are fewer latents than sources, a
    source without a latent counts as 0.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        correlation: "pearson", or "spearman" for correlations of ranks.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).normal(size=(100, 3))
    >>> print(mcc(sources, -2 * sources[:, [1, 2, 0]]))
    MCC 1.000  [pearson; n = 100]
    """
    from scipy.stats import rankdata

    require_choice("correlation", correlation, ("pearson", "spearman"))
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    x, y = s.values, z.values
    if correlation == "spearman":
        x, y = rankdata(x, axis=0), rankdata(y, axis=0)
    matrix = np.clip(np.abs(_unit(x).T @ _unit(y)), 0.0, 1.0)
    value, pairs = match(matrix, varying)
    return MetricResult("mcc", value, matrix, correlation, s.num_samples, {"latent_of_source": pairs})


def match(matrix: Floats, varying: Bools) -> tuple[float, dict[int, int]]:
    """Return the mean over sources that vary (n_s,) of the matched entries of a matrix (n_s, n_z), and the pairs."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(matrix[varying], maximize=True)
    matched = matrix[varying][rows, columns]
    pairs = dict(zip(np.flatnonzero(varying)[rows].tolist(), columns.tolist(), strict=True))
    return float(matched.sum() / varying.sum()), pairs


def _unit(values: Floats) -> Floats:
    """Return columns centred and scaled to length 1; constant columns become 0."""
    values = plain_columns(values)
    centred = values - values.mean(axis=0)
    centred[:, np.ptp(values, axis=0) == 0] = 0.0
    length = np.linalg.norm(centred, axis=0)
    return np.asarray(centred / np.where(length > 0, length, 1.0))
