"""Splits into training and test rows, as several metrics need them: mostly nine tenths train, one tenth tests."""

from __future__ import annotations

import warnings

import numpy as np

from .inputs import Ints, Sources

MIN_TEST_ROWS = 10  # fewer may have a single value of a source by chance


def train_size(n: int) -> int:
    """Return ⌈0.9 n⌉, the number of training rows, but leave at least one row for testing.

    >>> train_size(25), train_size(5)
    (23, 4)
    """
    return min(int(np.ceil(0.9 * n)), n - 1)


def random_split(n: int, seed: int) -> tuple[Ints, Ints]:
    """Return the numbers of the training rows and of the test rows out of n, in random order."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: train_size(n)], order[train_size(n) :]


def honest_split(n: int, seed: int) -> tuple[Ints, Ints, Ints]:
    """Return the numbers of the rows that train (eight tenths), that choose a model and that test (one tenth each).

    >>> [rows.size for rows in honest_split(100, seed=0)]
    [80, 10, 10]
    """
    if n < 3:
        raise ValueError(f"an honest split needs at least 3 rows: to train, to choose and to test; got {n}.")
    held_out = max(1, n // 10)
    order = np.random.default_rng(seed).permutation(n)
    return order[: n - 2 * held_out], order[n - 2 * held_out : n - held_out], order[n - held_out :]


def warn_if_ordered(sources: Sources, test_rows: slice) -> None:
    """Warn if a source has a single value in the test rows: rows are then sorted, and the others say little of them."""
    for i in np.flatnonzero(sources.varying & np.array(sources.discrete)).tolist():
        labels = sources.labels[test_rows, i]
        if len(labels) >= MIN_TEST_ROWS and (labels == labels[0]).all():
            warnings.warn(
                f"source {i} has one value only in the rows held out, the last {len(labels)}: sorted rows give wrong "
                "scores; shuffle them, or use qlae.metrics.score, which does.",
                stacklevel=3,
            )
            return
