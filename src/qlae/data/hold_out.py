"""Which rows of a user's data are held out: they take no part in the training, and are scored separately.

The split is a function of the number of rows, or of their groups and times, and of nothing else. So all seeds and all
models of the same data have the same training rows. There are three rules:

- *Rows* are drawn evenly from the data, by a fixed hash of their number.
- *Groups*, such as the samples of one patient, stay together: whole groups are drawn.
- *Spans* are the times that windows of a recording cover. Windows that overlap must not be on both sides. With ten
  recordings or more, whole recordings are drawn. With fewer, the end of each recording is held out, and the windows
  that reach from the training part into it belong to neither side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HOLD_OUT = 0.1  # share of the rows that is held out by default
MOST_ROWS = 10_000  # to hold out, as many as the paper's evaluation sample
FEWEST_ROWS = 20  # on which a score means something
MOST_SHARE = 0.25  # of the rows, where the fewest rows are more than the share that was asked for
FEWEST_RECORDINGS = 10  # of which whole ones are held out

Ints = NDArray[np.int64]


class Split(NamedTuple):
    """Row numbers in increasing order: those that train, and those that are held out."""

    training: Ints
    held_out: Ints


def split_rows(
    num_rows: int, share: float, *, groups: NDArray[Any] | None = None, spans: NDArray[Any] | None = None
) -> Split:
    """Return which rows train and which are held out.

    At most 10,000 rows are held out. If the share is fewer than 20 rows, 20 are held out, or none if these would be
    more than a quarter of the data.

    Args:
        num_rows: n.
        share: of the rows, in [0, 1), to hold out.
        groups: (n,) labels; rows with equal labels are on the same side. At least one group is held out, and none if
            there is only one.
        spans: (n, 2) first time of each row and first time after it, in its recording; ``groups`` are the recordings.

    >>> split_rows(1000, 0.1).held_out[:4].tolist(), len(split_rows(100, 0.1).held_out)
    ([2, 4, 32, 33], 20)
    """
    everything, count = np.arange(num_rows), num_held_out(num_rows, share)
    labels = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if not count:
        return Split(everything, everything[:0])
    if spans is not None and (labels is None or labels.max() + 1 < FEWEST_RECORDINGS):
        labels = np.zeros(num_rows, dtype=np.int64) if labels is None else labels
        return _split_in_time(labels, np.asarray(spans), count)
    is_held_out = np.zeros(num_rows, dtype=bool)
    if labels is None:
        is_held_out[_shuffled(num_rows)[:count]] = True
    else:
        is_held_out = np.isin(labels, _draw_groups(np.bincount(labels), count))
    return Split(np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out))


def num_held_out(num_rows: int, share: float) -> int:
    """Return the number of rows to hold out, if rows need not stay together.

    >>> [num_held_out(n, 0.1) for n in (60, 120, 5_000, 1_000_000)]
    [0, 20, 500, 10000]
    """
    if not share:
        return 0
    count = min(round(share * num_rows), MOST_ROWS)
    if count >= FEWEST_ROWS:
        return count
    return FEWEST_ROWS if num_rows * MOST_SHARE >= FEWEST_ROWS else 0


def require_share(share: Any) -> float:
    """Return a share of rows to hold out; raise a ``ValueError`` unless it lies in [0, 1)."""
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 <= share < 1:
        raise ValueError(f"hold_out must be a share of the rows in [0, 1), such as 0.1, or 0 for none, got {share!r}")
    return float(share)


def _draw_groups(sizes: Ints, count: int) -> list[int]:
    """Draw groups, given the size of each, that have about ``count`` rows in all."""
    drawn: list[int] = []
    total = 0
    for group in _shuffled(len(sizes)).tolist():
        if abs(total + sizes[group] - count) < abs(total - count):
            drawn.append(group)
            total += int(sizes[group])
        if total >= count:
            break
    if not drawn and len(sizes) > 1:  # all groups are large
        drawn = [int(sizes.argmin())]
    return drawn


def _split_in_time(labels: Ints, spans: NDArray[Any], count: int) -> Split:
    """Hold out the end of each recording, in all about ``count`` rows; rows that cross the cut are on neither side."""
    num_rows = len(labels)
    training, held_out = np.zeros(num_rows, dtype=bool), np.zeros(num_rows, dtype=bool)
    for label in range(labels.max() + 1):
        rows = np.flatnonzero(labels == label)
        starts, ends = spans[rows].T
        last = max(1, round(count * len(rows) / num_rows))
        cut = np.sort(starts)[-last]
        held_out[rows], training[rows] = starts >= cut, ends <= cut
    if not training.any():
        return Split(np.arange(num_rows), np.arange(0))
    return Split(np.flatnonzero(training), np.flatnonzero(held_out))


def _shuffled(count: int) -> Ints:
    """Return 0 … count − 1 in an order that never changes, by a hash (the finaliser of SplitMix64).

    NumPy's generators may give other numbers in a later version.
    """
    z = (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(z ^ (z >> np.uint64(31)), kind="stable")
