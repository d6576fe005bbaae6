"""Search in the evaluation sample: rows with certain values of latents, rows with the nearest codes, files by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from .controls import Control

Number = int | float  # an integer stays one, since codes are integers
MAX_VALUES = 1024  # of a condition


class Matches(NamedTuple):
    """The result of a search."""

    rows: list[int]  # of the sample, best match first
    distances: list[float]  # for codes the number of latents that differ, for continuous latents the distance
    total: int  # number of rows that match; ``rows`` may list fewer


@dataclass(frozen=True)
class Condition:
    """A latent and its allowed ``values``, or the lowest and the highest number of a continuous latent."""

    latent: int
    values: Annotated[list[Number], msgspec.Meta(min_length=1, max_length=MAX_VALUES)] | None = None
    low: Number | None = None
    high: Number | None = None


def find_matching(codes: NDArray[Any], conditions: Sequence[Condition], limit: int) -> Matches:
    """Return rows that fulfil all conditions, spread evenly over the sample.

    Args:
        codes: Codes or continuous latents (n, num_latents) of the sample.
        conditions: One per latent that matters; with values for codes, with both ends for continuous latents.
        limit: Maximum number of rows to return.
    """
    matching = np.ones(len(codes), dtype=bool)
    for condition in conditions:
        column = codes[:, condition.latent]
        if condition.low is not None and condition.high is not None:
            matching &= (column >= condition.low) & (column <= condition.high)
        else:
            matching &= np.isin(column, condition.values or ())
    found = np.flatnonzero(matching)
    rows = found[np.linspace(0, len(found) - 1, min(limit, len(found))).round().astype(int)]
    return Matches(rows.tolist(), [0.0] * len(rows), len(found))


def find_nearest(codes: NDArray[Any], code: NDArray[Any], controls: Sequence[Control], limit: int) -> Matches:
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
    if np.issubdtype(codes.dtype, np.integer):
        distances = (codes[:, compared] != code[compared]).sum(1)
        gaps = np.sum([_value_gaps(controls[j], codes[:, j], int(code[j])) for j in compared], axis=0)
        rows = np.lexsort((gaps, distances))[:limit]
    else:
        deviations = codes[:, compared].std(0)
        offsets = (codes[:, compared] - code[compared]) / np.where(deviations > 0, deviations, 1)
        distances = np.sqrt((offsets**2).sum(1))
        rows = np.argsort(distances, kind="stable")[:limit]
    return Matches(rows.tolist(), distances[rows].astype(float).round(4).tolist(), len(codes))


def _value_gaps(control: Control, column: NDArray[np.int64], code: int) -> NDArray[np.float64]:
    """Return how far the values of a column lie from that of a code, as a share of the codebook's range."""
    if not control.values or control.high == control.low:
        return np.zeros(len(column))
    values = np.asarray(control.values)
    return np.asarray(np.abs(values[column] - values[code]) / (control.high - control.low))


def find_files(names: Sequence[str], text: str, limit: int) -> Matches:
    """Return rows whose file name contains a text; a file of exactly that name comes first.

    Args:
        names: File of each row.
        text: Part of a name, in any case.
        limit: Maximum number of rows to return.
    """
    rows = [row for row, name in enumerate(names) if text.casefold() in name.casefold()]
    rows.sort(key=lambda row: (names[row] != text, names[row]))
    return Matches(rows[:limit], [0.0] * len(rows[:limit]), len(rows))
