"""What the page draws for each latent: its values at their true positions, how often each is used, what it tells.

There are three kinds of control. ``values``: a scalar codebook or grid, a tick a value. ``range``: a continuous latent,
a slider over what the sample covers. ``vectors``: a codebook of vectors, which have no order, so a list of those in
use.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..models.latents import DiscreteLatent, LatentSpace

MAX_STEPS = 12  # tiles of a strip
RANGE_STEPS = 9
NUM_BINS = 32  # of the histogram of a continuous latent
INACTIVE_SHARE = 20  # continuous: inactive below the widest range / 20, as in InfoMEC


@dataclass(frozen=True)
class Control:
    """One latent, ready for JSON.

    Attributes:
        index: j of z_j.
        kind: ``"values"``, ``"range"`` or ``"vectors"``.
        active: whether it varies over the sample.
        values: the position of every code (``values`` only).
        order: codes as the control goes through them: by position, or for vectors by use.
        counts: how often each code of ``order`` occurs in the sample; for ``range`` a histogram.
        num_values: codes that exist.
        num_used: codes that occur in the sample.
        perplexity: exp(entropy) of the codes in the sample.
        low, high: ends of the control.
        steps: what a strip goes through: codes, or numbers for ``range``.
        source, nmi: the source it tells most about, by its column, and how much; ``None`` if none is known.
    """

    index: int
    kind: str
    active: bool
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


def build_controls(latent: LatentSpace, form: NDArray[Any], scores: dict[str, Any]) -> list[Control]:
    """A control for each latent.

    Args:
        latent: the model's latent space.
        form: codes or latents (n, num_latents) of the sample.
        scores: of the run, perhaps without ``nmi`` where sources are not known.
    """
    active = active_latents(form, scores)
    found = meanings(scores, form.shape[1])
    controls = []
    for j in range(form.shape[1]):
        facts = _facts(latent, form, j)
        source, nmi = found[j]
        controls.append(Control(index=j, active=bool(active[j]), source=source, nmi=nmi, **facts))
    return controls


def active_latents(form: NDArray[Any], scores: dict[str, Any]) -> NDArray[np.bool_]:
    """(num_latents,) as the run was scored; without sources by the same rule of the ranges."""
    if "active_latents" in scores:
        return np.asarray(scores["active_latents"], dtype=bool)
    ranges = np.ptp(form, axis=0)
    least = 0.0 if np.issubdtype(form.dtype, np.integer) else ranges.max(initial=0) / INACTIVE_SHARE
    return np.asarray(ranges > least)


def meanings(scores: dict[str, Any], num_latents: int) -> list[tuple[int | None, float | None]]:
    """For each latent the column of the source that it tells most about and the NMI; none where it is only noise."""
    if "nmi" not in scores:
        return [(None, None)] * num_latents
    nmi = np.asarray(scores["nmi"], dtype=float)  # (n_s, n_z)
    tells = scores.get("informative_latents", [True] * num_latents)
    best = nmi.argmax(0)
    return [(int(i), float(nmi[i, j])) if tells[j] else (None, None) for j, i in enumerate(best)]


def _facts(latent: LatentSpace, form: NDArray[Any], j: int) -> dict[str, Any]:
    if not isinstance(latent, DiscreteLatent):
        return _range_facts(form[:, j])
    counts = np.bincount(form[:, j], minlength=latent.num_values[j])
    if latent.num_outputs == latent.num_latents:
        return _value_facts(positions(latent, j), counts)
    return _vector_facts(counts)


def positions(latent: DiscreteLatent, j: int) -> NDArray[np.float64]:
    """The values of latent ``j`` by code, (num_values,), of a space in which every latent is one number."""
    size = latent.num_values[j]
    codes = torch.zeros(size, latent.num_latents, dtype=torch.int64, device=latent.sizes.device)
    codes[:, j] = torch.arange(size)
    with torch.inference_mode():
        return latent.to_values(codes)[:, j].double().cpu().numpy()


def _value_facts(values: NDArray[np.float64], counts: NDArray[np.int64]) -> dict[str, Any]:
    order = np.argsort(values, kind="stable")
    steps = order[np.linspace(0, len(order) - 1, min(len(order), MAX_STEPS)).round().astype(int)]
    return _usage(counts) | {
        "kind": "values",
        "values": [round(float(value), 6) for value in values],
        "order": order.tolist(),
        "counts": counts[order].tolist(),
        "low": float(values.min()),
        "high": float(values.max()),
        "steps": steps.tolist(),
    }


def _vector_facts(counts: NDArray[np.int64]) -> dict[str, Any]:
    order = np.argsort(-counts, kind="stable")[: max(int((counts > 0).sum()), 1)]
    return _usage(counts) | {
        "kind": "vectors",
        "values": [],
        "order": order.tolist(),
        "counts": counts[order].tolist(),
        "low": 0.0,
        "high": float(len(counts) - 1),
        "steps": order[:MAX_STEPS].tolist(),
    }


def _range_facts(column: NDArray[np.floating[Any]]) -> dict[str, Any]:
    low, high = float(column.min()), float(column.max())
    if low == high:  # a slider of no length cannot be drawn
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


def _usage(counts: NDArray[np.int64]) -> dict[str, Any]:
    share = counts[counts > 0] / max(counts.sum(), 1)
    return {
        "num_values": len(counts),
        "num_used": len(share),
        "perplexity": round(float(np.exp(-(share * np.log(share)).sum())), 3),
    }
