"""Light on surfaces, its conversion to brightness, and colours from the levels of a source.

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


def hue(turn: Tensor) -> Tensor:
    """Return fully saturated colours (k, 3) at hues (k,), where 0 and 1 are both red.

    >>> hue(torch.tensor([0.0, 1 / 3])).round(decimals=3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    # In sixths of the circle, each channel is a trapezoid: on for two, falling for one, off for two, rising for one.
    place = torch.stack([(turn * 6 + start) % 6 for start in (0, 4, 2)], dim=-1)
    return ((place - 3).abs() - 1).clamp(0, 1)


def between(values: Sequence[float] | Sequence[Sequence[float]], levels: Tensor) -> Tensor:
    """Interpolate linearly in a table with one value per level, at levels (k,); exact at integers.

    >>> between([10.0, 20.0, 40.0], torch.tensor([0.0, 1.5])).tolist()
    [10.0, 30.0]
    """
    table = torch.tensor(values, dtype=torch.float64)
    low = levels.floor().long().clamp(0, len(table) - 1)
    high = (low + 1).clamp(max=len(table) - 1)
    share = (levels - low).reshape(-1, *[1] * (table.ndim - 1))
    return table[low] + (table[high] - table[low]) * share
