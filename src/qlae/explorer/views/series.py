"""Series travel as curves of at most ``MAX_POINTS`` points; an upload is a table with one line per time step."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numbers import NumberView
from .numeric_text import NumericText
from .view import Examples

MAX_POINTS = 1024  # of a curve, which is more than the page has pixels for


class SeriesView(NumberView):
    """Shows series."""

    @property
    def stride(self) -> int:
        """The page draws every step of a short series, and every ``stride``-th of a long one."""
        return math.ceil(self.observations.shape[0] / MAX_POINTS)

    def describe(self, examples: Examples) -> dict[str, Any]:
        num_steps = self.observations.shape[0]
        points = {"num_steps": num_steps, "stride": self.stride, "num_points": len(range(0, num_steps, self.stride))}
        return super().describe(examples) | points

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return series (n, t, c) as curves (n, points, c)."""
        return super().to_page(arrays[:, :: self.stride])

    def _pick(self, text: NumericText) -> tuple[NDArray[np.float64], str]:
        num_steps, num_channels = self.observations.shape
        if text.names is None and num_channels == 1 and len(text.rows) == 1:  # all steps on one line
            text = NumericText(None, text.rows.T)
        if text.names is None and text.rows.shape == (num_channels, num_steps) and num_steps != num_channels:
            raise ValueError(
                f"a series must have one line per time step ({num_steps:,} lines of {num_channels:,} channels), got "
                f"one line per channel; transpose it"
            )
        rows = self._columns(text)
        if len(rows) != num_steps:
            raise ValueError(f"this model takes series of {num_steps:,} time steps, got {len(rows):,} lines of numbers")
        return rows, ""

    @property
    def _feature_word(self) -> str:
        return "channel" if self.observations.num_features == 1 else "channels"
