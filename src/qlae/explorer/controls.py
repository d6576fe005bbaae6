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
    """The control of one latent, ready for JSON."""

    index: int  # j of z_j
    active: bool  # whether the latent varies over the sample
    informative: bool  # about some source, as far as is known
    source: int | None  # column of the source that the latent is most informative about
    nmi: float | None  # of the latent and that source
    kind: str  # "values", "range" or "vectors"
    low: float  # ends of the control
    high: float
    steps: list[float]  # what the tiles of the strip set the latent to: codes, or numbers for "range"
    counts: list[int]  # of samples with each code of `order`; a histogram for "range"
    order: list[int]  # codes in the order of the control: by position, or by use for vectors
    values: list[float]  # position of every code; empty unless the control has ticks
    num_values: int = 0  # codes that exist
    num_used: int = 0  # codes that occur in the sample
    perplexity: float | None = None  # exp(entropy) of the codes in the sample


def build_controls(latent: LatentSpace, codes: NDArray[Any], scores: dict[str, Any]) -> list[Control]:
    """Return one control per latent, from the codes or continuous latents (n, num_latents) of the sample."""
    active, informative = find_active(scores, codes), find_informative(scores, codes.shape[1])
    controls = []
    for j, encoded in enumerate(find_encoded_sources(scores, codes.shape[1])):
        source, nmi = encoded or (None, None)
        column = codes[:, j]
        fields = _code_fields(latent, column, j) if isinstance(latent, DiscreteLatent) else _range_fields(column)
        controls.append(Control(j, bool(active[j]), bool(informative[j]), source, nmi, **fields))
    return controls


def _code_fields(latent: DiscreteLatent, column: NDArray[np.int64], j: int) -> dict[str, Any]:
    """Return what a control shows of a latent with codes."""
    counts = np.bincount(column, minlength=latent.num_values[j])
    shares = counts[counts > 0] / len(column)
    has_ticks = latent.num_outputs == latent.num_latents
    if has_ticks:
        every = torch.zeros(len(counts), latent.num_latents, dtype=torch.int64, device=latent.sizes.device)
        every[:, j] = torch.arange(len(counts))
        with torch.inference_mode():
            positions = latent.to_values(every)[:, j].double().cpu().numpy()
        order = np.argsort(positions, kind="stable")
        steps = order[np.linspace(0, len(order) - 1, min(len(order), MAX_STEPS)).round().astype(int)]
    else:
        positions = np.arange(len(counts), dtype=np.float64)
        order = np.argsort(-counts, kind="stable")[: len(shares)]
        steps = order[:MAX_STEPS]
    return {
        "kind": "values" if has_ticks else "vectors",
        "low": float(positions.min()),
        "high": float(positions.max()),
        "steps": steps.tolist(),
        "counts": counts[order].tolist(),
        "order": order.tolist(),
        "values": positions.round(6).tolist() if has_ticks else [],
        "num_values": len(counts),
        "num_used": len(shares),
        "perplexity": round(float(np.exp(-(shares * np.log(shares)).sum())), 3),
    }


def _range_fields(column: NDArray[np.floating[Any]]) -> dict[str, Any]:
    """Return what a control shows of a continuous latent."""
    low, high = float(column.min()), float(column.max())
    if low == high:  # the page cannot draw a slider of length 0
        low, high = low - 0.5, high + 0.5
    return {
        "kind": "range",
        "low": low,
        "high": high,
        "steps": np.linspace(low, high, RANGE_STEPS).round(6).tolist(),
        "counts": np.histogram(column, NUM_BINS, (low, high))[0].tolist(),
        "order": [],
        "values": [],
    }
