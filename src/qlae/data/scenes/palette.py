"""Colours and other values from the levels of a source."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


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
