"""Vectors travel as their features; an upload is one row of a table."""

import numpy as np
from numpy.typing import NDArray

from .numbers import NumberView
from .numeric_text import NumericText


class VectorView(NumberView):
    """Shows vectors."""

    def _pick(self, text: NumericText) -> tuple[NDArray[np.float64], str]:
        if text.names is None and text.rows.shape[1] == 1 and len(text.rows) > 1:  # one number per line
            text = NumericText(None, text.rows.T)
        rows = self._columns(text)
        return rows[0], "" if len(rows) == 1 else f"The first of {len(rows):,} rows is shown."
