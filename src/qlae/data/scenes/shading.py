"""Light on surfaces, and what a film makes of it.

A lamp is a point. A surface sends back its paint times the light that falls on it, and a highlight of the lamp's own
colour. Nothing here but arithmetic and square roots, for the reason given in `vectors`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .tracing import Solids, Surface, lit
from .vectors import Vec


def lamp_light(
    seen: Surface, lamp: Vec, solids: Sequence[Solids], among: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The cosine at which a lamp's light falls on each point, 0 in shadow, and the squared distance to it: (b, r).

    Args:
        seen: the points.
        lamp: where the lamp is.
        solids: what may stand between.
        among: the points that nothing else keeps from the lamp (all by default).
    """
    to_lamp = lamp - seen.point
    squared: Tensor = to_lamp.dot(to_lamp)
    cosine: Tensor = seen.normal.dot(to_lamp) * (1.0 / squared.sqrt())
    facing = cosine > 0 if among is None else (cosine > 0) & among
    return torch.where(lit(solids, seen, lamp, facing), cosine, 0.0), squared


def highlight(seen: Surface, lamp: Vec, rays: Vec, doublings: int) -> Tensor:
    """The cosine between the normal and the half-way vector, to the power of 2 ** `doublings`: (b, r)."""
    half = (lamp - seen.point).unit() - rays
    value: Tensor = seen.normal.dot(half.unit()).clamp_min(0)
    for _ in range(doublings):
        value = value * value
    return value


def film(light: Tensor) -> Tensor:
    """Light without a limit → [0, 1): steep in the dark, saturating in the bright.

    Close to (1 − exp(−light)) ** (2/3), from operations that every device rounds alike.
    """
    held = 1.0 - 1.0 / (light * (light * 0.5 + 1.0) + 1.0)
    return held.sqrt().mul_(0.6).add_(held.mul_(0.4))
