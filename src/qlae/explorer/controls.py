"""The control that the page draws for each latent: the position and use of its values, and the source it encodes.

There are three kinds of control:

- ``values`` is a slider with one tick per value, for a scalar codebook or grid;
- ``range`` is a slider over the range that the sample covers, for a continuous latent;
- ``vectors`` is a list of the vectors in use, for a codebook of vectors, which have no order.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..models.latents import DiscreteLatent, LatentSpace
from ..scoring.latent_labels import find_active, find_encoded_sources, find_informative

MAX_STEPS = 12  # tiles in the strip of a latent with codes
RANGE_STEPS = 9  # tiles in the strip of a continuous latent
NUM_BINS = 32  # of the histogram of a continuous latent


@dataclass(frozen=True)
class Control:
    """The control of one latent, ready for JSON.

    Attributes:
        index: The index j of z_j.
        kind: ``"values"``, ``"range"`` or ``"vectors"``; decides how the page draws it.
        active: Whether the latent varies over the sample.
        informative: Whether it is informative about some source, as far as is known.
        values: Position of every code; empty unless the control has ticks.
        order: Codes in the order in which the control steps through them: by position, or by use for vectors.
        counts: Number of samples with each code of ``order``; a histogram for ``range``.
        num_values: Number of codes that exist.
        num_used: Number of codes that occur in the sample.
        perplexity: exp(entropy) of the codes in the sample; ``None`` for ``range``.
        low: Lower end of the control.
        high: Upper end of the control.
        steps: What the tiles of the strip set the latent to: codes, or numbers for ``range``.
        source: Column of the source that the latent is most informative about; ``None`` if there is none.
        nmi: NMI of the latent and that source; ``None`` if there is none.
    """

    index: int
    kind: str
    active: bool
    informative: bool
    values: list[float]
    order: list[int]
    counts: list[int]
    num_values: int
    num_used: int
    perplexity: float | None
    low: float
    high: float
    steps: list[float]
    source: int | None = None
    nmi: float | None = None


def build_controls(latent: LatentSpace, codes: NDArray[Any], scores: dict[str, Any]) -> list[Control]:
    """Return one control per latent.

    Args:
        latent: Latent space of the model.
        codes: Codes or continuous latents (n, num_latents) of the sample.
        scores: Scores of the run; without ``nmi`` where the data have no sources.
    """
    active, informative = find_active(scores, codes), find_informative(scores, codes.shape[1])
    controls = []
    for j, encoded in enumerate(find_encoded_sources(scores, codes.shape[1])):
        source, nmi = encoded or (None, None)
        fields = _control_fields(latent, codes, j)
        fields |= {"active": bool(active[j]), "informative": bool(informative[j]), "source": source, "nmi": nmi}
        controls.append(Control(index=j, **fields))
    return controls


def _control_fields(latent: LatentSpace, codes: NDArray[Any], j: int) -> dict[str, Any]:
    if not isinstance(latent, DiscreteLatent):
        return _range_fields(codes[:, j])
    counts = np.bincount(codes[:, j], minlength=latent.num_values[j])
    if latent.num_outputs == latent.num_latents:
        return _value_fields(value_positions(latent, j), counts)
    return _vector_fields(counts)


def value_positions(latent: DiscreteLatent, j: int) -> NDArray[np.float64]:
    """Return the values of latent ``j``, indexed by code.

    Args:
        latent: A latent space in which every latent is one number.
        j: Index of the latent.

    Returns:
        Values (num_values,).
    """
    size = latent.num_values[j]
    codes = torch.zeros(size, latent.num_latents, dtype=torch.int64, device=latent.sizes.device)
    codes[:, j] = torch.arange(size)
    with torch.inference_mode():
        return latent.to_values(codes)[:, j].double().cpu().numpy()


def _value_fields(values: NDArray[np.float64], counts: NDArray[np.int64]) -> dict[str, Any]:
    order = np.argsort(values, kind="stable")
    steps = order[np.linspace(0, len(order) - 1, min(len(order), MAX_STEPS)).round().astype(int)]
    return _usage_fields(counts) | {
        "kind": "values",
        "values": [round(float(value), 6) for value in values],
        "order": order.tolist(),
        "counts": counts[order].tolist(),
        "low": float(values.min()),
        "high": float(values.max()),
        "steps": steps.tolist(),
    }


def _vector_fields(counts: NDArray[np.int64]) -> dict[str, Any]:
    order = np.argsort(-counts, kind="stable")[: max(int((counts > 0).sum()), 1)]
    return _usage_fields(counts) | {
        "kind": "vectors",
        "values": [],
        "order": order.tolist(),
        "counts": counts[order].tolist(),
        "low": 0.0,
        "high": float(len(counts) - 1),
        "steps": order[:MAX_STEPS].tolist(),
    }


def _range_fields(column: NDArray[np.floating[Any]]) -> dict[str, Any]:
    low, high = float(column.min()), float(column.max())
    if low == high:  # the page cannot draw a slider of length 0
        low, high = low - 0.5, high + 0.5
    return {
        "kind": "range",
        "values": [],
        "order": [],
        "counts": np.histogram(column, NUM_BINS, (low, high))[0].tolist(),
        "num_values": 0,
        "num_used": 0,
        "perplexity": None,
        "low": low,
        "high": high,
        "steps": [round(float(step), 6) for step in np.linspace(low, high, RANGE_STEPS)],
    }


def _usage_fields(counts: NDArray[np.int64]) -> dict[str, Any]:
    shares = counts[counts > 0] / max(counts.sum(), 1)
    return {
        "num_values": len(counts),
        "num_used": len(shares),
        "perplexity": round(float(np.exp(-(shares * np.log(shares)).sum())), 3),
    }
