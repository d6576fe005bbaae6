"""Equal-width bins, by which the older metrics turn continuous variables into labels."""

from __future__ import annotations

import numpy as np

from .inputs import MAX_DRAWS, Floats, Ints, Sources, whole_number


def equal_width(values: Floats, num_bins: int) -> Ints:
    """Return the bin of each value (n,), 0 … num_bins − 1, out of equal bins between the least and the largest value.

    A bin includes its lower edge; the last bin includes the largest value.

    >>> import numpy as np
    >>> equal_width(np.array([0.0, 0.4, 0.5, 1.0]), 2)
    array([0, 0, 1, 1])
    """
    whole_number("num_bins", num_bins, 1, MAX_DRAWS)
    edges = np.histogram_bin_edges(values, num_bins)
    return np.asarray(np.digitize(values, edges[:-1]) - 1, dtype=np.int64)


def equal_width_columns(values: Floats, num_bins: int) -> tuple[Ints, tuple[int, ...]]:
    """Return each column of (n, m) in bins, and the number of bins of each column."""
    bins = np.column_stack([equal_width(column, num_bins) for column in values.T])
    return bins, (num_bins,) * bins.shape[1]


def binned_labels(sources: Sources, num_bins: int) -> tuple[Ints, list[int]]:
    """Return labels (n, n_s) of all sources, continuous ones in bins, and the number of labels of each source."""
    labels, sizes = sources.labels.copy(), list(sources.sizes)
    for i, discrete in enumerate(sources.discrete):
        if not discrete:
            labels[:, [i]], (sizes[i],) = equal_width_columns(sources.values[:, [i]], num_bins)
    return labels, sizes
