"""R²: the share of the variance of vectors and series that reconstructions explain."""

from __future__ import annotations

from typing import Any

import numpy as np

from .inputs import Floats
from .reading import unwrap_tensor
from .registry import Score, register_score

SCORE = register_score(Score("r2", "R²", digits=3, meaning="fidelity of reconstructions", watched=True))


def r2(observations: Any, reconstructions: Any) -> float:
    """Return the share of the variance of standardised features that reconstructions explain, 1 at best.

    It is 1 − (mean squared error) / (variance), both averaged over features that were divided by their standard
    deviation, so that every feature counts alike: the mean of `r2_per_feature`. Features that do not vary are left out;
    if none varies, the result is 0.

    Args:
        observations, reconstructions: (n, …, num_features) of equal shape.

    >>> import numpy as np
    >>> vectors = np.random.default_rng(0).normal([0, 50], [1, 10], (1000, 2))
    >>> r2(vectors, vectors), round(r2(vectors, vectors.mean(0).repeat(1000).reshape(2, 1000).T), 12)
    (1.0, 0.0)
    """
    shares = r2_per_feature(observations, reconstructions)
    varying = shares[~np.isnan(shares)]
    return float(varying.mean()) if len(varying) else 0.0


def r2_per_feature(observations: Any, reconstructions: Any) -> Floats:
    """Return R² of each feature, (num_features,); NaN for features that do not vary."""
    first, second = _values(observations, "observations"), _values(reconstructions, "reconstructions")
    if first.shape != second.shape:
        raise ValueError(f"observations have shape {first.shape}, reconstructions {second.shape}: give equal shapes.")
    first, second = (values.reshape(-1, values.shape[-1]) for values in (first, second))
    return r2_of_errors(np.square(first - second).mean(0), first.var(0))


def r2_of_errors(errors: Floats, variances: Floats) -> Floats:
    """Return R² from mean squared errors and variances of the same shape; NaN where nothing varies."""
    varies = variances > 0
    return np.where(varies, 1 - errors / np.where(varies, variances, 1.0), np.nan)


def _values(array: Any, name: str) -> Floats:
    values = np.asarray(unwrap_tensor(array, name))
    if values.ndim < 2 or values.size == 0 or values.dtype.kind not in "fiub":
        raise ValueError(f"{name} is {values.dtype} of shape {values.shape}; give numbers (n, …, num_features).")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has values that are not finite; remove or fill them.")
    return values
