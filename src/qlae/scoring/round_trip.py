"""The round trip: how often encoding a decoded code returns the same code. It needs no labels.

A latent whose codes return carries its meaning through the decoder, and the encoder reads it from the result. Codes of
the data show whether this holds where the model was trained; *recombined* codes, each latent drawn independently from
those of the data, whether it holds for new combinations. Codes of a latent that hardly varies always return, so compare
with the share of its most frequent code.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.latents import DiscreteLatent
from ..models.model import Model

NUM_ROWS = 500  # the standard error of a share is at most 2.3%
DIGITS = 4

Bools = NDArray[np.bool_]


def measure_round_trip(model: Model, codes: NDArray[np.integer[Any]]) -> dict[str, Any]:
    """Return the shares of codes (n, num_latents) that survive decoding, as ``results.json`` has them.

    Returns:
        ``num_rows``, and for codes of the ``data`` and ``recombined`` ones: ``latents``, the share of each latent,
        their ``mean``, and the share of rows all of whose codes return, ``all``.
    """
    kept = draw_rows(codes, NUM_ROWS)
    results: dict[str, Any] = {"num_rows": len(kept)}
    for name, rows in (("data", kept), ("recombined", recombine(codes, len(kept)))):
        returned = model.encode(model.decode(rows, as_array=True)) == rows
        results[name] = {
            "latents": returned.mean(0).round(DIGITS).tolist(),
            "mean": round(float(returned.mean()), DIGITS),
            "all": round(float(returned.all(1).mean()), DIGITS),
        }
    return results


def has_round_trip(model: Model) -> bool:
    """Return whether a model has codes that can be compared."""
    return isinstance(model.latent, DiscreteLatent)


def draw_rows(codes: NDArray[Any], count: int) -> NDArray[Any]:
    """Return ``count`` rows of a table, or all if there are fewer, spread evenly."""
    return np.asarray(codes[np.linspace(0, len(codes) - 1, min(count, len(codes))).round().astype(int)])


def recombine(codes: NDArray[Any], count: int) -> NDArray[Any]:
    """Return rows (count, num_latents) whose entries are drawn from those of the columns, independently of each other.

    >>> recombine(np.array([[0, 5], [1, 6]]), 3).shape
    (3, 2)
    """
    rows = np.random.default_rng(0).integers(len(codes), size=(count, codes.shape[1]))
    return np.asarray(np.take_along_axis(codes, rows, axis=0))
