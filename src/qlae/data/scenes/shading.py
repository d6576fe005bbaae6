"""Light on surfaces, and its conversion to brightness.

A lamp is a point. A surface reflects its paint times the light that it receives, plus a highlight in the colour of the
lamp. This file uses arithmetic and square roots only, for the reason given in `vectors`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .tracing import Solids, Surface, sees_lamp
from .vectors import Vec


def lamp_light(
    surface: Surface, lamp: Vec, solids: Sequence[Solids], among: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return how a lamp lights a surface.

    Args:
        surface: the points.
        lamp: the position of the lamp.
        solids: the solids that may cast a shadow.
        among: a mask of the points that nothing else shadows; all by default.

    Returns:
        The cosine between the normal and the direction of the lamp, 0 in shadow, and the squared distance to the lamp,
        each (b, r).
    """
    to_lamp = lamp - surface.point
    squared: Tensor = to_lamp.dot(to_lamp)
    cosine: Tensor = surface.normal.dot(to_lamp) * (1.0 / squared.sqrt())
    facing = cosine > 0 if among is None else (cosine > 0) & among
    return torch.where(sees_lamp(solids, surface, lamp, facing), cosine, 0.0), squared


def highlight(surface: Surface, lamp: Vec, rays: Vec, doublings: int) -> Tensor:
    """Return the cosine between the normal and the half-way vector to the power of 2 ** `doublings`: (b, r)."""
    half = (lamp - surface.point).unit() - rays
    value: Tensor = surface.normal.dot(half.unit()).clamp_min(0)
    for _ in range(doublings):
        value = value * value
    return value


def film(light: Tensor) -> Tensor:
    """Map light from [0, ∞) to brightness in [0, 1): steep in the dark, saturating in the bright, like a film.

    Close to (1 − exp(−light)) ** (2/3), from operations that every device rounds in the same way.
    """
    exposed = 1.0 - 1.0 / (light * (light * 0.5 + 1.0) + 1.0)
    return exposed.sqrt().mul_(0.6).add_(exposed.mul_(0.4))
