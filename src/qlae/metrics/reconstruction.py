"""Fidelity of reconstructions: PSNR of images, in decibels, and R² of vectors and series."""

from __future__ import annotations

from typing import Any

import numpy as np

from .inputs import Floats, unwrap_tensor
from .metric import Score, register_score

CHUNK = 256  # images at a time
PERFECT = 100.0  # decibels of an image whose mean squared error is at most 1e-10
register_score(Score("psnr", "PSNR", digits=1, unit="dB", meaning="fidelity of reconstructions", watched=True))


def psnr(images: Any, reconstructions: Any) -> float:
    """Return the mean over images of PSNR = −10 log10(mean squared error), for intensities in [0, 1], in dB.

    A perfect reconstruction would have infinite PSNR. Every image is capped at 100 dB (a mean squared error of 1e-10),
    so that the mean stays defined.

    Args:
        images, reconstructions: (num_images, …) of equal shape, uint8 (divided by 255) or float in [0, 1].

    >>> import numpy as np
    >>> images = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    >>> psnr(images, images)
    100.0
    >>> round(psnr(images, np.full(images.shape, 0.1)), 6)
    20.0
    """
    first, second = _intensities(images, "images"), _intensities(reconstructions, "reconstructions")
    if first.shape != second.shape:
        raise ValueError(f"images have shape {first.shape}, reconstructions {second.shape}: give equal shapes.")
    errors = np.empty(len(first))
    for start in range(0, len(first), CHUNK):
        a, b = (
            values[start : start + CHUNK].astype(np.float64) / (255.0 if values.dtype == np.uint8 else 1.0)
            for values in (first, second)
        )
        errors[start : start + CHUNK] = np.mean((a - b).reshape(len(a), -1) ** 2, axis=1)
    return float(psnr_of_errors(errors).mean())


def psnr_of_errors(errors: Floats) -> Floats:
    """Return the PSNR (num_images,) of images with these mean squared errors (num_images,)."""
    return np.asarray(-10.0 * np.log10(np.maximum(errors, 10 ** (-PERFECT / 10))))


def _intensities(array: Any, name: str) -> Any:
    values = np.asarray(unwrap_tensor(array, name))
    if values.ndim < 2 or values.size == 0:
        raise ValueError(f"{name} has shape {values.shape}; give (num_images, …) with at least one image.")
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind != "f":
        raise ValueError(f"{name} has type {values.dtype}; give uint8, or floats in [0, 1].")
    low, high = float(values.min()), float(values.max())
    if not (low >= -1e-6 and high <= 1 + 1e-6):  # also catches NaN
        raise ValueError(f"{name} ranges from {low} to {high}; floats must lie in [0, 1] (divide by 255, or clip).")
    return values


register_score(Score("r2", "R²", digits=3, meaning="fidelity of reconstructions", watched=True))
register_score(Score("r2_numbers", "R² of numbers", digits=3, meaning="of the numbers and dates of a table"))
register_score(Score("accuracy", "accuracy", digits=3, meaning="of the categories of a table"))
register_score(Score("majority", "most frequent", digits=3, meaning="accuracy of the most frequent levels"))
register_score(Score("held_out_psnr", "held-out PSNR", 1, "dB", "PSNR of rows that took no part in the training"))
register_score(Score("held_out_r2", "held-out R²", 3, meaning="R² of rows that took no part in the training"))
register_score(Score("held_out_accuracy", "held-out accuracy", 3, meaning="of rows that took no part in the training"))


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
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has values that are not finite; remove or fill them.")
    return values.astype(np.float64)
