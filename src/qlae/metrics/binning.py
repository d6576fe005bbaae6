"""Equal-width bins, as the older metrics cut continuous variables into labels."""

from __future__ import annotations

import numpy as np

from .inputs import Floats, Ints, whole_number


def equal_width(values: Floats, num_bins: int) -> Ints:
    """Bin of each value, 0 … num_bins − 1, of `num_bins` equal bins between the least and the largest value.

    A bin holds its lower border; the largest value goes into the last bin.

    >>> import numpy as np
    >>> equal_width(np.array([0.0, 0.4, 0.5, 1.0]), 2)
    array([0, 0, 1, 1])
    """
    whole_number("num_bins", num_bins, 1)
    edges = np.histogram_bin_edges(values, num_bins)
    return np.asarray(np.digitize(values, edges[:-1]) - 1, dtype=np.int64)


def equal_width_columns(values: Floats, num_bins: int) -> tuple[Ints, tuple[int, ...]]:
    """Each column in bins, and the number of bins of each."""
    bins = np.column_stack([equal_width(column, num_bins) for column in values.T])
    return bins, (num_bins,) * bins.shape[1]
