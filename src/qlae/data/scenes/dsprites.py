"""dSprites: a white square, ellipse or heart on black; one channel.

The numbers were fitted to 273 published pictures of the real set (Matthey et al., 2017), of which the renderer
reproduces all but one pixel in 18,000. Lengths are fractions of the canvas. x points right and y down, and a positive
angle turns the sprite counterclockwise. The angles are those of the published grid, ``linspace(0, 2π, 40)``, whose
first and last are the same: so are these pictures, here and in the real set.

The published pixels are black or white: a pixel is white if its centre lies inside the shape. Here, edges are
antialiased over one pixel, so that positions and angles between those of the grid, and other resolutions, look
different as well. A pixel is 128 or brighter exactly if its centre lies inside, so ``images >= 128`` is the published
form.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from .scene import Levels, Scene

SCALES = (0.5, 1.0)
POSITIONS = (0.25, 0.75)  # of the centre, in both directions
SQUARE_SIDE = 0.3
ELLIPSE_RADII = (0.1994, 0.1128)
# The heart is the curve x = sin³ t, y = (13 cos t − 5 cos 2t − 2 cos 3t − cos 4t) / 16, stretched and moved.
HEART_WIDTH = 0.3
HEART_STRETCH = 0.1655  # of y, where x has HEART_WIDTH / 2
HEART_SHIFT = 0.02242  # upwards
HEART_REACH, HEART_CELL = 0.36, 0.00140625  # how far the table of distances extends, and its step
RADIUS = SQUARE_SIDE / math.sqrt(2)  # of a circle around the largest sprite


class DSprites(Scene):
    """737,280 pictures: 3 shapes × 6 scales × 40 orientations × 32 × 32 positions."""

    name = "dsprites"
    layers = ()
    geometry = ("shape", "scale", "orientation", "x", "y")
    shared = ("shape",)

    def develop(self, light: Tensor) -> Tensor:
        return light

    def trace(self, shared: Mapping[str, float], levels: Levels) -> Tensor:
        sizes = self.sizes
        size = _between(SCALES, levels["scale"], sizes["scale"])
        angle = levels["orientation"] * (2 * math.pi / (sizes["orientation"] - 1))
        x, y = (_between(POSITIONS, levels[source], sizes[source]) for source in ("x", "y"))
        cosine, sine = angle.cos() / size, angle.sin() / size
        columns, rows = self._window(x), self._window(y)  # (g, w): nothing outside of them is white
        right, down = (self._centres(columns) - x[:, None], self._centres(rows) - y[:, None])
        # Pixels in the sprite's own coordinates, (g, w, w): each is a sum of a part by column and a part by row.
        across = self._sum(right * cosine[:, None], -down * sine[:, None])
        along = self._sum(right * sine[:, None], down * cosine[:, None])
        pixels = (size * self.resolution).float().to(self.device)[:, None, None]
        inside = SHAPES[int(shared["shape"])](across, along).mul_(pixels).add_(0.5).clamp_(0.0, 1.0)
        rows = torch.arange(len(x))[:, None] * self.resolution + rows  # counted through all pictures
        rows, columns = rows.to(self.device), columns.to(self.device)
        canvas = torch.zeros(len(x), 1, self.resolution**2, device=self.device)
        canvas.view(-1)[rows[:, :, None] * self.resolution + columns[:, None, :]] = inside
        return canvas

    def _window(self, centre: Tensor) -> Tensor:
        """Return the numbers (g, w) of the pixels near the sprites, along one axis; all sprites have as many."""
        num_pixels = min(self.resolution, math.ceil(2 * RADIUS * self.resolution) + 2)
        first = (centre * self.resolution - num_pixels / 2).round().long().clamp_(0, self.resolution - num_pixels)
        return first[:, None] + torch.arange(num_pixels)

    def _centres(self, pixels: Tensor) -> Tensor:
        return (pixels + 0.5).double() / self.resolution

    def _sum(self, by_column: Tensor, by_row: Tensor) -> Tensor:
        """Add parts (g, w), in double precision on the host, to (g, w, w) in single precision on the device."""
        by_column, by_row = (part.float().to(self.device) for part in (by_column, by_row))
        return by_column[:, None, :] + by_row[:, :, None]


def _between(ends: tuple[float, float], levels: Tensor, size: int) -> Tensor:
    low, high = ends
    return low + (high - low) * levels / (size - 1)


# Signed distances to the edge, positive inside; those of the ellipse to first order near its edge.


def square(x: Tensor, y: Tensor) -> Tensor:
    """Return how far points are inside an upright square around the origin."""
    return SQUARE_SIDE / 2 - torch.maximum(x.abs_(), y.abs_())


def ellipse(x: Tensor, y: Tensor) -> Tensor:
    """Return how far points are inside an ellipse around the origin, whose long axis is x."""
    a, b = ELLIPSE_RADII
    x, y = x.mul_(1 / a), y.mul_(1 / b)
    across, along = x * x, y * y
    slope = (across * (1 / a**2) + along * (1 / b**2)).sqrt_().mul_(2.0)
    return (1.0 - (across + along)) / slope  # infinite at the centre, where it is divided by zero


def heart(x: Tensor, y: Tensor) -> Tensor:
    """Return how far points are inside a heart, interpolated in a table of distances."""
    table = heart_distances(x.device)  # rows by y, columns by |x|
    num_columns = table.shape[1]
    column = x.abs_().mul_(1 / HEART_CELL).clamp_(max=num_columns - 1.5)
    row = y.add_(HEART_REACH).mul_(1 / HEART_CELL).clamp_(0.0, table.shape[0] - 1.5)
    left, above = column.floor(), row.floor()
    corner = (above.long() * num_columns).add_(left.long())
    column, row = column.sub_(left), row.sub_(above)
    flat = table.view(-1)
    upper, lower = (flat[start] + (flat[start + 1] - flat[start]) * column for start in (corner, corner + num_columns))
    return upper + (lower - upper) * row


@functools.cache
def heart_distances(device: torch.device) -> Tensor:
    """Return the signed distance of grid points to the edge of the heart, (rows, columns) on a device.

    Rows have y = −HEART_REACH … HEART_REACH and columns x = 0 … HEART_REACH, in steps of HEART_CELL; both halves of the
    heart are alike.
    """
    columns = np.arange(round(HEART_REACH / HEART_CELL) + 1) * HEART_CELL
    rows = np.concatenate([-columns[:0:-1], columns])
    edge, height = heart_curve(np.linspace(0, np.pi, 4_001))
    points = np.stack([axis.reshape(-1) for axis in np.meshgrid(columns, rows)], axis=1)
    distance, _ = cKDTree(np.stack([edge, height], axis=1)).query(points)
    half = len(edge) // 2  # the upper edge goes from the axis to the side, the lower one back
    upper = np.interp(points[:, 0], edge[: half + 1], height[: half + 1])
    lower = np.interp(points[:, 0], edge[half:][::-1], height[half:][::-1])
    is_inside = (points[:, 0] < HEART_WIDTH / 2) & (points[:, 1] > upper) & (points[:, 1] < lower)
    signed = np.where(is_inside, distance, -distance).reshape(len(rows), len(columns))
    return torch.from_numpy(signed).float().to(device)


def heart_curve(t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return x and y of the edge of the heart at 0 ≤ t ≤ π, from the notch at the top over one side to the tip."""
    curve = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return HEART_WIDTH / 2 * np.sin(t) ** 3, -(HEART_STRETCH / 16 * curve + HEART_SHIFT)


SHAPES: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (square, ellipse, heart)
