"""Search in the sample: the images that share a code value, and those nearest in code."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .controls import Control


class Found(NamedTuple):
    """What a search found."""

    rows: list[int]  # of the sample, best first
    distances: list[float]  # latents that differ for codes, standardised distance for continuous ones
    total: int  # rows that match, of which ``rows`` are some


def sharing(form: NDArray[Any], latent: int, value: float, limit: int) -> Found:
    """Rows whose latent has this code, spread over the sample; for a continuous latent those nearest to the value."""
    column = form[:, latent]
    if np.issubdtype(form.dtype, np.integer):
        matches = np.flatnonzero(column == value)
        shown = matches[np.linspace(0, len(matches) - 1, min(limit, len(matches))).round().astype(int)]
        return Found(shown.tolist(), [0.0] * len(shown), len(matches))
    away = np.abs(column - value)
    shown = np.argsort(away, kind="stable")[:limit]
    return Found(shown.tolist(), _rounded(away[shown]), len(form))


def nearest(form: NDArray[Any], code: NDArray[Any], controls: list[Control], limit: int) -> Found:
    """Rows nearest to a code over the active latents.

    For codes that is the number of latents that differ and, among equals, how far apart their values are; for
    continuous latents the Euclidean distance, each latent in its standard deviations.
    """
    kept = [control.index for control in controls if control.active] or list(range(form.shape[1]))
    if not np.issubdtype(form.dtype, np.integer):
        spread = form[:, kept].std(0)
        away = np.sqrt((((form[:, kept] - code[kept]) / np.where(spread > 0, spread, 1)) ** 2).sum(1))
        rows = np.argsort(away, kind="stable")[:limit]
        return Found(rows.tolist(), _rounded(away[rows]), len(form))
    differ = (form[:, kept] != code[kept]).sum(1)
    apart = np.sum([_apart(controls[j], form[:, j], int(code[j])) for j in kept], axis=0)
    rows = np.lexsort((apart, differ))[:limit]
    return Found(rows.tolist(), _rounded(differ[rows]), len(form))


def _apart(control: Control, column: NDArray[np.int64], code: int) -> NDArray[np.float64]:
    """How far the values of a column lie from that of a code, as a share of the codebook's length."""
    if control.kind != "values" or control.high == control.low:
        return np.zeros(len(column))
    values = np.asarray(control.values)
    return np.asarray(np.abs(values[column] - values[code]) / (control.high - control.low))


def _rounded(numbers: NDArray[Any]) -> list[float]:
    return [round(float(number), 4) for number in numbers]
