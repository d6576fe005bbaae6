"""Recordings: long tables or arrays with one row per time step, cut into windows, which are series.

A table (CSV, Parquet, a data frame) may hold several units, such as patients or machines, and times; its other columns
are channels, or sources where the user says so. In an array, rows are (time, channels), or (unit, time, channels).
One message reports everything about a recording that is not as it should be.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._checks import require_known, whole_number
from ..observations import MIN_SIDE, SERIES, Observations
from ..registry import DATA
from .array_files import is_array_file, open_observations, read_raw
from .cache import name_of_files
from .dataset import Progress, SourceDataset, observe, unmask
from .spec import UserData
from .table_columns import numbers_in
from .table_files import RawTable, is_table, read_header, read_table, refuse
from .windows import Ints, Recording, Windows, count_of, find_windows, sources_of_windows

OPTIONS = ("window", "stride", "unit_column", "time_column")
ROW = "row"  # the name of the start of a window where no column has times


class Cutting(NamedTuple):
    """How recordings become windows.

    Attributes:
        window: rows per window.
        stride: rows from one window to the next; None for a quarter of a window.
        unit_column, time_column: columns of a table with the unit and the time of each row.
        source_columns: columns that are sources; see `sources_of_windows`.
        drop_columns: columns to leave out.
    """

    window: int
    stride: int | None = None
    unit_column: str | None = None
    time_column: str | None = None
    source_columns: Sequence[str] = ()
    drop_columns: Sequence[str] = ()

    def check(self) -> None:
        """Raise a ``ValueError`` for numbers that are not possible."""
        if not self.window:
            raise ValueError("recordings are cut into windows: choose their number of rows, such as window=64")
        whole_number("window", self.window, at_least=MIN_SIDE)
        if self.stride is not None:
            whole_number("stride", self.stride)

    @property
    def step(self) -> int:
        """Rows from one window to the next."""
        return max(1, self.window // 4) if self.stride is None else self.stride

    @property
    def columns(self) -> list[str]:
        """The columns of a table that are no channels."""
        named = [name for name in (self.unit_column, self.time_column) if name is not None]
        return [*named, *self.source_columns, *self.drop_columns]

    def with_times_of_index(self, table: RawTable) -> Cutting:
        """Return the same, with the index of a data frame as times if it has dates and no column of times is named."""
        if self.time_column is not None or len(table.index_columns) != 1:
            return self
        index = table.frame[table.index_columns[0]]
        is_number = bool(np.isfinite(numbers_in(index)).any())
        if is_number or index.name in self.columns or not np.isfinite(to_seconds(index)).all():
            return self
        return self._replace(time_column=str(index.name))

    def channels(self, names: Sequence[str], what: str) -> list[str]:
        """Return the columns that are channels; raise an error for names that are unknown or contradict each other."""
        for name in self.columns:
            require_known(name, names, f"column of {what}")
        twice = next((name for name in self.columns if self.columns.count(name) > 1), None)
        if twice is not None:
            raise ValueError(
                f"{twice!r} is named twice: a column is the unit_column, the time_column, one of the source_columns or "
                "one of the drop_columns"
            )
        channels = [name for name in names if name not in self.columns]
        if not channels:
            raise ValueError(f"{what} has no column left to observe, out of {', '.join(names) or 'none'}")
        return channels


@DATA.register("recordings")
@dataclass(frozen=True, kw_only=True)
class RecordingFile(UserData):
    """Windows of the recordings in a table or an array.

    Attributes:
        path: a CSV or Parquet file with one row per time step; or an ``.npy`` or ``.npz`` of shape (time, channels) or
            (units, time, channels), of which an ``.npy`` stays on disk.
        window: rows per window.
        stride: rows from one window to the next; None for a quarter of a window.
        unit_column: a column with the name of each row's unit; no window spans two units.
        time_column: a column of numbers or dates, by which rows are ordered and gaps are found.
        source_columns: columns that are sources and not channels.
        drop_columns: columns to leave out.
    """

    title: ClassVar[str] = "the recordings in"
    path_fields: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    window: int = 0
    stride: int | None = None
    unit_column: str | None = None
    time_column: str | None = None
    source_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cutting.check()
        if not is_table(self.path) and not is_array_file(self.path):
            raise ValueError(f"recordings come as a CSV, a Parquet file, an .npy or an .npz, got {self.path}")
        if is_array_file(self.path) and self.cutting.columns:
            raise ValueError(
                f"{self.path} is an array, which has no columns: leave {', '.join(self.cutting.columns)} out"
            )
        self._set(name=name_of_files(self.path, self.name), stride=self.cutting.step)

    @property
    def cutting(self) -> Cutting:
        """How the recordings become windows."""
        return Cutting(*(getattr(self, name) for name in Cutting._fields))

    def preview(self) -> Observations:
        if is_array_file(self.path):
            shape = open_observations(Path(self.path)).shape
            return Observations(SERIES, (self.window, shape[-1] if len(shape) > 1 else 1), "float64")
        names = self.cutting.channels(self._columns(read_header(self.path)), self.path)
        return Observations(SERIES, (self.window, len(names)), "float64", tuple(names))

    def read(self, progress: Progress | None = None) -> SourceDataset:
        if is_array_file(self.path):
            return windows_of_array(read_raw(Path(self.path)), self.cutting, self.path, name=self.name)
        self.cutting.channels(self._columns(read_header(self.path)), self.path)  # of which reading as text takes some
        table = read_table(self.path, [*self.source_columns, *([self.unit_column] if self.unit_column else [])])
        refuse(self.path, table.problems)
        cutting = self.cutting.with_times_of_index(table)
        return windows_of_frame(table.frame[self._columns(table, cutting)], cutting, self.path, name=self.name)

    def _columns(self, table: RawTable, cutting: Cutting | None = None) -> list[str]:
        return columns_in_use(table, cutting or self.cutting)


def columns_in_use(table: RawTable, cutting: Cutting) -> list[str]:
    """Return the columns without the index of a data frame, unless it is one of those that have names here."""
    unused = {*table.index_columns} - {*cutting.columns}
    return [name for name in table.frame.columns if name not in unused]


def windows_of_array(
    array: Any, cutting: Cutting, what: str, *, name: str, feature_names: Sequence[str] = ()
) -> SourceDataset:
    """Return the windows of an array (time,), (time, channels) or (units, time, channels)."""
    cutting.check()
    array = np.asarray(unmask(array, what))
    if array.ndim not in (1, 2, 3) or array.dtype.kind not in "fiub" or not array.size:
        raise ValueError(
            f"{what} must hold numbers (time, channels) or (units, time, channels), got {array.dtype} of shape "
            f"{array.shape}"
        )
    if array.ndim == 2 and len(array) < cutting.window <= array.shape[1]:
        raise ValueError(
            f"{what} has shape {array.shape}, and rows of a recording are time steps: if time runs along the last "
            "axis, pass array.T"
        )
    num_units = len(array) if array.ndim == 3 else 1
    rows = array.reshape(-1, array.shape[-1] if array.ndim > 1 else 1)
    if rows.dtype not in (np.float32, np.float64):  # these may stay on disk
        rows = rows.astype(np.result_type(rows.dtype, np.float32))
    units = np.repeat(np.arange(num_units), len(rows) // num_units)
    recording = Recording(what, rows, units, range(num_units))
    starts, remarks = find_windows(recording, cutting.window, cutting.step)
    ids = {"unit": units[starts]} if num_units > 1 else {}
    ids[ROW] = starts - units[starts] * (len(rows) // num_units)
    return _to_data(recording, starts, cutting, remarks, ids, {}, feature_names, name)


def windows_of_frame(frame: pd.DataFrame, cutting: Cutting, what: str, *, name: str) -> SourceDataset:
    """Return the windows of a table with one row per time step."""
    cutting.check()
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    channels = cutting.channels(list(frame.columns), what)
    if frame.empty:
        raise ValueError(f"{what} has no rows")
    frame, units, seconds, remarks = _in_order(frame, cutting, what)
    rows = np.stack([_channel(frame[channel], what) for channel in channels], axis=1)
    codes, unit_names = pd.factorize(units)
    recording = Recording(what, rows, codes.astype(np.int64), list(unit_names), seconds, tuple(remarks))
    starts, remarks = find_windows(recording, cutting.window, cutting.step)
    ids: dict[str, Any] = {}
    if cutting.unit_column is not None:
        ids[cutting.unit_column] = frame[cutting.unit_column].to_numpy()[starts]
    if cutting.time_column is not None:
        ids[cutting.time_column] = frame[cutting.time_column].to_numpy()[starts]
    else:
        firsts = np.flatnonzero(np.diff(codes, prepend=-1))
        ids[ROW] = starts - firsts[codes[starts]]
    sources: dict[str, list[Any]] = {}
    for column in cutting.source_columns:
        if frame[column].isna().any():
            raise ValueError(f"{what} has missing values in the source {column!r}: fill them in, or drop the column")
        sources[column], varying = sources_of_windows(frame[column].tolist(), starts, cutting.window)
        if varying:
            remarks.append(
                f"{column!r} varies in {count_of(varying, 'window')}: its most frequent value or mean is used"
            )
    return _to_data(recording, starts, cutting, remarks, ids, sources, channels, name)


def _in_order(
    frame: pd.DataFrame, cutting: Cutting, what: str
) -> tuple[pd.DataFrame, pd.Series[Any], NDArray[np.float64] | None, list[str]]:
    """Return the rows sorted by unit and time, their units, their times as numbers, and remarks."""
    remarks: list[str] = []
    unit, time = cutting.unit_column, cutting.time_column
    seconds = None if time is None else to_seconds(frame[time])
    is_known = np.ones(len(frame), dtype=bool) if seconds is None else np.isfinite(seconds)
    if not is_known.any():
        raise ValueError(f"{what} has no times in {time!r}: they must be numbers or dates, got {frame[time].iloc[0]!r}")
    if unit is not None:
        is_known &= frame[unit].notna().to_numpy()
    if not is_known.all():
        remarks.append(f"{count_of(int((~is_known).sum()), 'row')} without a unit or a time, left out")
        frame, seconds = frame[is_known], None if seconds is None else seconds[is_known]
    units = pd.Series(0, index=frame.index) if unit is None else frame[unit]
    codes = pd.factorize(units)[0]
    order = np.argsort(codes, kind="stable") if seconds is None else np.lexsort((seconds, codes))
    if seconds is not None:
        together = np.argsort(codes, kind="stable")  # as they come, unit by unit
        backwards = (np.diff(seconds[together]) < 0) & (np.diff(codes[together]) == 0)
        if backwards.any():
            remarks.append(f"time runs backwards at {count_of(int(backwards.sum()), 'row')}: sorted by {time!r}")
        seconds, codes = seconds[order], codes[order]
        repeated = np.append(False, (np.diff(seconds) == 0) & (np.diff(codes) == 0))
        if repeated.any():
            order, seconds = order[~repeated], seconds[~repeated]
            remarks.append(_describe_repeated(int(repeated.sum()), len(frame), cutting, what))
    return frame.iloc[order], units.iloc[order], seconds, remarks


def _describe_repeated(number: int, num_rows: int, cutting: Cutting, what: str) -> str:
    """Describe duplicate times; raise an error if there are so many that they must be those of several units."""
    if 2 * number >= num_rows:
        hint = "name the column that tells them apart in unit_column" if cutting.unit_column is None else "check both"
        raise ValueError(
            f"{number:,} of the {num_rows:,} rows of {what} repeat a time in {cutting.time_column!r}, as rows of "
            f"several units would: {hint}"
        )
    return f"{count_of(number, 'duplicate time')}, of which the first row is used"


def to_seconds(times: pd.Series[Any]) -> NDArray[np.float64]:
    """Return times as numbers, dates and time stamps in seconds; NaN where a cell is neither."""
    if pd.api.types.is_timedelta64_dtype(times):
        return _as_floats(times)
    if not pd.api.types.is_datetime64_any_dtype(times):
        numbers = numbers_in(times)
        if np.isfinite(numbers).any():
            return numbers
        times = pd.to_datetime(times.astype(object), errors="coerce", utc=True, format="mixed")
    first = times.min()
    if pd.isna(first):
        return np.full(len(times), np.nan)
    return _as_floats(times - first)


def _as_floats(differences: pd.Series[Any]) -> NDArray[np.float64]:
    seconds: NDArray[np.float64] = differences.dt.total_seconds().to_numpy(dtype=np.float64)
    return seconds


def _channel(column: pd.Series[Any], what: str) -> NDArray[np.float64]:
    """Return the numbers of a channel, NaN where one is missing; text is an error."""
    numbers = numbers_in(column)
    texts = column[np.isnan(numbers) & column.notna().to_numpy()]
    if len(texts):
        raise ValueError(
            f"{what} has text in {column.name!r}, such as {str(texts.iloc[0])[:30]!r}: name the column in unit_column, "
            "time_column or source_columns, or leave it out with drop_columns; if the text stands for missing values, "
            "remove it first"
        )
    return numbers


def _to_data(
    recording: Recording,
    starts: Ints,
    cutting: Cutting,
    remarks: Sequence[str],
    ids: Mapping[str, Any],
    sources: Mapping[str, Sequence[Any]],
    feature_names: Sequence[str],
    name: str,
) -> SourceDataset:
    """Return windows as data, and give one warning with all remarks."""
    windows = Windows(recording.rows, starts, cutting.window)
    if remarks:
        warnings.warn(
            f"{recording.what}: {len(starts):,} windows of {cutting.window:,} rows, {cutting.step:,} apart. "
            f"{'; '.join(remarks)}",
            stacklevel=5,
        )
    observations = observe(windows, SERIES, feature_names, name=recording.what)
    data = SourceDataset.from_columns(windows, sources, observations, name=name)
    data.ids = pd.DataFrame(dict(ids))
    data.groups = recording.units[starts]
    data.spans = np.stack([starts, starts + cutting.window], axis=1)
    data.details = {"windows": {"window": cutting.window, "stride": cutting.step, "remarks": list(remarks)}}
    data.checksum = data.compute_checksum()
    return data
