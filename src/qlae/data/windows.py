"""Windows of recordings: where they may lie, and the array of them, whose windows are parts of one array of rows.

No window spans the border between two units, a gap in time, or a row with missing values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .dataset import LazyImages, first_few

#: A step in time that is longer than this many usual ones is a gap.
GAP = 1.5
#: A step that differs by more than this fraction from the usual one is irregular.
TOLERANCE = 0.05
CHUNK_ROWS = 2**16

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Windows(LazyImages):
    """Windows (n, window, channels) of rows (t, channels), which are taken from them when they are indexed.

    Args:
        rows: one row per time step, which may be on disk.
        starts: (n,) the row with which each window begins.
        window: the number of rows of a window.
    """

    stays_lazy = True

    def __init__(self, rows: NDArray[Any], starts: Ints, window: int) -> None:
        self.rows = rows
        self.starts = starts
        self.shape = (len(starts), window, rows.shape[1])
        self.dtype = rows.dtype

    def compute(self, rows: Ints) -> NDArray[Any]:
        return self[rows]

    def __getitem__(self, rows: Any, /) -> NDArray[Any]:
        windows: NDArray[Any] = self.rows[self.starts[rows][..., None] + np.arange(self.shape[1])]
        return windows


@dataclass(frozen=True)
class Recording:
    """Rows of one or several units, in order of time within each unit.

    Attributes:
        what: the name of the recording in messages.
        rows: (t, channels), which may have missing values.
        units: (t,) the number of each row's unit; rows of a unit lie together.
        unit_names: the name of each unit.
        seconds: (t,) increasing times within each unit, in any unit of time; None if only the order is known.
        remarks: what was noticed while the rows were read, as parts of a message.
    """

    what: str
    rows: NDArray[Any]
    units: Ints
    unit_names: Sequence[Any] = ("",)
    seconds: NDArray[np.float64] | None = None
    remarks: tuple[str, ...] = ()


def find_windows(recording: Recording, window: int, stride: int) -> tuple[Ints, list[str]]:
    """Return the first rows of all windows, and remarks about the recording.

    Raises:
        ValueError: no unit has as many rows as a window without a gap.
    """
    breaks = np.diff(recording.units, prepend=-1) != 0
    gaps, remarks = _gaps(recording, breaks)
    is_complete = _complete_rows(recording.rows)
    if not is_complete.all():
        remarks.append(
            f"{count_of(int((~is_complete).sum()), 'row')} with missing or infinite values, which no window spans"
        )
    starts = _starts(breaks | gaps, is_complete, window, stride)
    present = np.unique(recording.units[starts])
    if len(present) < len(recording.unit_names):
        short = [str(name) for i, name in enumerate(recording.unit_names) if i not in set(present.tolist())]
        if not len(starts) or len(recording.unit_names) == 1:
            longest = _longest_run(breaks | gaps, is_complete)
            raise ValueError(
                f"{recording.what} has no window of {window:,} rows: the longest part without a gap has {longest:,} "
                f"rows{''.join(f'; {remark}' for remark in (*recording.remarks, *remarks))}. Choose a smaller window"
            )
        remarks.append(f"{count_of(len(short), 'unit')} shorter than a window, left out: {first_few(short)}")
    return starts, [*recording.remarks, *remarks]


def _gaps(recording: Recording, breaks: Bools) -> tuple[Bools, list[str]]:
    """Return the rows that follow a gap in time, and remarks on gaps and irregular steps."""
    if recording.seconds is None:
        return np.zeros(len(breaks), dtype=bool), []
    steps = pd.Series(np.where(breaks, np.nan, np.diff(recording.seconds, prepend=np.nan)))
    usual = steps.groupby(recording.units).transform("median").to_numpy()
    lengths = steps.to_numpy()
    gaps = lengths > GAP * usual
    irregular = ~gaps & (np.abs(lengths - usual) > TOLERANCE * usual)
    remarks = []
    if gaps.any():
        units = len(np.unique(recording.units[gaps]))
        of = f" in {count_of(units, 'unit')}" if len(recording.unit_names) > 1 else ""
        remarks.append(f"{count_of(int(gaps.sum()), 'gap')}{of}, which no window spans")
    if irregular.any():
        low, high = lengths[irregular].min(), lengths[irregular].max()
        remarks.append(
            f"irregular sampling: {count_of(int(irregular.sum()), 'step')} from {low:.4g} to {high:.4g}, the usual is "
            f"{np.nanmedian(usual):.4g}; windows have as many rows, not as much time: resample if that matters"
        )
    return gaps, remarks


def _complete_rows(rows: NDArray[Any]) -> Bools:
    """Return which rows have no missing and no infinite value, reading a few at a time."""
    parts = [np.isfinite(rows[at : at + CHUNK_ROWS]).all(1) for at in range(0, len(rows), CHUNK_ROWS)]
    return np.concatenate(parts)


def _runs(borders: Bools, is_complete: Bools) -> Ints:
    """Return the first row of each part (k, 2) that windows may lie in, and the first row after it."""
    numbers = np.cumsum(borders | np.diff(is_complete, prepend=False))
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = np.append(first[1:], len(numbers))
    runs = np.stack([first, ends], axis=1)
    return runs[is_complete[first]]


def _starts(borders: Bools, is_complete: Bools, window: int, stride: int) -> Ints:
    parts = [np.arange(first, end - window + 1, stride) for first, end in _runs(borders, is_complete)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _longest_run(borders: Bools, is_complete: Bools) -> int:
    return int(np.diff(_runs(borders, is_complete), axis=1).max(initial=0))


def sources_of_windows(values: Sequence[Any], starts: Ints, window: int) -> tuple[list[Any], int]:
    """Return the value of a source for each window, and the number of windows in which it varies.

    This is the mean of numbers with fractions, and the most frequent one of other values (the first of several).
    """
    column = pd.Series(values)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    codes, names = pd.factorize(column, use_na_sentinel=False)
    changes = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
    varies = changes[starts + window - 1] != changes[starts]
    if np.isfinite(numbers).all() and (numbers != np.floor(numbers)).any():
        sums = np.append(0.0, np.cumsum(numbers))
        means = np.where(varies, (sums[starts + window] - sums[starts]) / window, numbers[starts])
        return means.tolist(), int(varies.sum())
    chosen = codes[starts]
    for i in np.flatnonzero(varies):
        part = codes[starts[i] : starts[i] + window]
        counts = np.bincount(part)
        chosen[i] = part[np.argmax(counts[part])]
    return pd.Series(names).iloc[chosen].tolist(), int(varies.sum())


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, such as "3 gaps"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
