"""Search in the evaluation sample: rows that share values of latents, and rows with the nearest codes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .controls import Control


class Matches(NamedTuple):
    """The result of a search."""

    rows: list[int]  # of the sample, best match first
    distances: list[float]  # for codes the number of latents that differ, for continuous latents the distance
    total: int  # number of rows that match; ``rows`` may list fewer


class Condition(NamedTuple):
    """What a latent must be: one of several codes, or between two numbers for a continuous latent."""

    latent: int
    values: list[float]  # codes, or the lowest and the highest number


def find_matching(codes: NDArray[Any], conditions: list[Condition], limit: int) -> Matches:
    """Return rows that fulfil all conditions, spread evenly over the sample.

    Args:
        codes: Codes or continuous latents (n, num_latents) of the sample.
        conditions: One per latent that matters.
        limit: Maximum number of rows to return.
    """
    matching = np.ones(len(codes), dtype=bool)
    for latent, values in conditions:
        column = codes[:, latent]
        if np.issubdtype(codes.dtype, np.integer):
            matching &= np.isin(column, values)
        else:
            matching &= (column >= min(values)) & (column <= max(values))
    return _spread(np.flatnonzero(matching), limit)


def _spread(matching: NDArray[np.intp], limit: int) -> Matches:
    """Return some of the matching rows, evenly spread over them."""
    rows = matching[np.linspace(0, len(matching) - 1, min(limit, len(matching))).round().astype(int)]
    return Matches(rows.tolist(), [0.0] * len(rows), len(matching))


def find_sharing(codes: NDArray[Any], latent: int, value: float, limit: int) -> Matches:
    """Return rows that share a value of one latent.

    Args:
        codes: Codes or continuous latents (n, num_latents) of the sample.
        latent: Index of the latent.
        value: A code, or a number for a continuous latent.
        limit: Maximum number of rows to return.

    Returns:
        For codes, rows with exactly this code, spread evenly over the sample. For a continuous latent, the rows whose
        value is nearest.
    """
    column = codes[:, latent]
    if np.issubdtype(codes.dtype, np.integer):
        return _spread(np.flatnonzero(column == value), limit)
    distances = np.abs(column - value)
    rows = np.argsort(distances, kind="stable")[:limit]
    return Matches(rows.tolist(), _round_all(distances[rows]), len(codes))


def find_nearest(codes: NDArray[Any], code: NDArray[Any], controls: list[Control], limit: int) -> Matches:
    """Return the rows nearest to a code, compared over the active latents.

    Codes are ranked by the number of latents that differ and, among equals, by how far apart their values are.
    Continuous latents are ranked by Euclidean distance, each latent in units of its standard deviation.

    Args:
        codes: Codes or continuous latents (n, num_latents) of the sample.
        code: The code to compare with (num_latents,).
        controls: One control per latent.
        limit: Maximum number of rows to return.
    """
    compared = [control.index for control in controls if control.active] or list(range(codes.shape[1]))
    if not np.issubdtype(codes.dtype, np.integer):
        deviations = codes[:, compared].std(0)
        offsets = (codes[:, compared] - code[compared]) / np.where(deviations > 0, deviations, 1)
        distances = np.sqrt((offsets**2).sum(1))
        rows = np.argsort(distances, kind="stable")[:limit]
        return Matches(rows.tolist(), _round_all(distances[rows]), len(codes))
    num_different = (codes[:, compared] != code[compared]).sum(1)
    gaps = np.sum([_value_gaps(controls[j], codes[:, j], int(code[j])) for j in compared], axis=0)
    rows = np.lexsort((gaps, num_different))[:limit]
    return Matches(rows.tolist(), _round_all(num_different[rows]), len(codes))


def _value_gaps(control: Control, column: NDArray[np.int64], code: int) -> NDArray[np.float64]:
    """Return how far the values of a column lie from that of a code, as a share of the codebook's range."""
    if not control.values or control.high == control.low:
        return np.zeros(len(column))
    values = np.asarray(control.values)
    return np.asarray(np.abs(values[column] - values[code]) / (control.high - control.low))


def _round_all(numbers: NDArray[Any]) -> list[float]:
    return [round(float(number), 4) for number in numbers]
