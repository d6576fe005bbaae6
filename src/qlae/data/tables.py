"""Tables of numbers, from CSV or Parquet files or data frames: columns are features, or sources where the user says so.

Every column that is neither a source nor left out must hold numbers, without gaps. Pandas reads the values. If it finds
anything else, a CSV is read again line by line, so that one error names all columns and lines to correct.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._checks import require_known
from .._io import open_regular
from ..metrics.sample_files import is_number
from ..observations import VECTORS, Observations
from ..registry import DATA
from .cache import name_of_files
from .dataset import Progress, SourceDataset, observe
from .sources import level_table
from .spec import DataSpec

CSV_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
DELIMITERS = (",", ";", "\t")
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # cells that stand for a missing value, in lower case
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
NUM_NAMED = 5  # lines or columns that an error names
SURPLUS = "\0surplus"  # the column for cells of rows that are longer than the first line


def is_table(path: str | Path) -> bool:
    """Return whether a path has the suffix of a table."""
    return Path(path).suffix.lower() in (*CSV_SUFFIXES, *PARQUET_SUFFIXES)


def is_frame(data: Any) -> bool:
    """Return whether an object is a data frame, such as those of pandas and Polars."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy") and not hasattr(data, "detach")


@DATA.register("table")
@dataclass(frozen=True, kw_only=True)
class TableFile(DataSpec):
    """A table of vectors.

    Attributes:
        path: a CSV whose first line names the columns, separated by commas, semicolons or tabs; or a Parquet file.
        source_columns: columns that are sources and not features.
        drop_columns: columns to leave out, such as row numbers.
    """

    title: ClassVar[str] = "the table"
    path_fields: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    source_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(name=name_of_files(self.path, self.name))

    def preview(self) -> Observations:
        names = feature_names(column_names(self.path), self.path, self.source_columns, self.drop_columns)
        return Observations(VECTORS, (len(names),), "float64", tuple(names))

    def read(self, progress: Progress | None = None) -> SourceDataset:
        path = Path(self.path)
        if not path.exists():
            raise ValueError(f"{path} does not exist: give the path of a CSV or Parquet file")
        if path.suffix.lower() in PARQUET_SUFFIXES:
            table = split_frame(_read_parquet(path), str(path), self.source_columns, self.drop_columns)
        else:
            table = _read_csv(path, self.source_columns, self.drop_columns)
        data = SourceDataset(
            table.features,
            level_table(table.sources, len(table.features)),
            name=self.name,
            origin="real",
            source_names=list(table.sources),
            observations=observe(table.features, VECTORS, table.feature_names, name=str(path)),
        )
        data.checksum = data.compute_checksum()
        return data


@dataclass(frozen=True)
class Table:
    """Features and sources of a table.

    Attributes:
        features: (n, d) float64.
        feature_names: of the columns of `features`.
        sources: the values of each source column, by name.
    """

    features: NDArray[np.float64]
    feature_names: tuple[str, ...]
    sources: dict[str, list[Any]]


def feature_names(
    names: Sequence[str], what: str, source_columns: Sequence[str], drop_columns: Sequence[str]
) -> list[str]:
    """Return the columns that are features; raise an error for names that are unknown or contradict each other."""
    for name in (*source_columns, *drop_columns):
        require_known(name, names, f"column of {what}")
    both = [name for name in source_columns if name in drop_columns]
    if both:
        raise ValueError(f"{both[0]!r} is in source_columns and in drop_columns: leave it out of one of them")
    features = [name for name in names if name not in source_columns and name not in drop_columns]
    if not features:
        raise ValueError(f"{what} has no column left to observe, out of {', '.join(names) or 'none'}")
    return features


def from_frame(frame: Any, *, source_columns: Sequence[str] = (), drop_columns: Sequence[str] = ()) -> Table:
    """Return the features and sources of a data frame of pandas, Polars or the like."""
    names = [str(name) for name in frame.columns]
    if isinstance(frame, pd.DataFrame):
        frame = frame.set_axis(names, axis=1)
    else:
        frame = pd.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns})
    _require_distinct(names, "the data frame")
    return split_frame(frame, "the data frame", source_columns, drop_columns)


def split_frame(
    frame: pd.DataFrame,
    what: str,
    source_columns: Sequence[str],
    drop_columns: Sequence[str],
    lines: Sequence[int] | None = None,
) -> Table:
    """Return the features and sources in a data frame.

    Args:
        frame: the table; missing values are None or NaN.
        what: what error messages call the table.
        source_columns, drop_columns: names.
        lines: the line of each row in a file; without it, messages count rows from 0.

    Raises:
        ValueError: features have text, or features or sources have missing values; the message names all of them.
    """
    places, unit = (range(len(frame)), "row") if lines is None else (lines, "line")
    texts: dict[str, tuple[str, str]] = {}
    gaps: dict[str, list[int]] = {}
    numbers = []
    for name in feature_names(list(frame.columns), what, source_columns, drop_columns):
        column, first_text = _as_numbers(frame[name])
        numbers.append(column)
        if first_text is not None:
            texts[name] = str(frame[name].iloc[first_text]), f"{unit} {places[first_text]}"
        elif not np.isfinite(column).all():
            gaps[name] = [places[row] for row in np.flatnonzero(~np.isfinite(column)).tolist()]
    for name in source_columns:
        if frame[name].isna().any():
            gaps[name] = [places[row] for row in np.flatnonzero(frame[name].isna()).tolist()]
    _refuse(texts, gaps, what, unit)
    sources = {name: frame[name].tolist() for name in source_columns}
    names = [name for name in frame.columns if name not in source_columns and name not in drop_columns]
    return Table(np.stack(numbers, axis=1), tuple(names), sources)


def _as_numbers(column: pd.Series[Any]) -> tuple[NDArray[np.float64], int | None]:
    """Return a column as floats, NaN where a value is missing, and the row of the first cell that is no number."""
    if column.dtype.kind in "fiub":
        return column.to_numpy(dtype=np.float64, na_value=np.nan), None
    cells = column.to_numpy(dtype=object)
    is_missing = column.isna().to_numpy()
    is_number = np.array([isinstance(cell, int | float | np.number | np.bool_) for cell in cells], dtype=bool)
    wrong = np.flatnonzero(~is_missing & ~is_number)
    numbers = np.full(len(cells), np.nan)
    numbers[is_number] = cells[is_number].astype(np.float64)
    return numbers, int(wrong[0]) if len(wrong) else None


def _refuse(texts: Mapping[str, tuple[str, str]], gaps: Mapping[str, list[int]], what: str, unit: str) -> None:
    """Raise an error if columns have text or missing values.

    Args:
        texts: a cell with text of each such column, and its place.
        gaps: the rows or lines of missing and infinite values of each such column.
        what: what the message calls the table.
        unit: "row" or "line".
    """
    problems = [describe for describe in (_describe_text(texts), _describe_gaps(gaps, unit)) if describe]
    if problems:
        raise ValueError(f"{what} has {' It also has '.join(problems)}")


def _describe_text(texts: Mapping[str, tuple[str, str]]) -> str:
    """Return a message about columns with text; empty if there are none."""
    if not texts:
        return ""
    comma = next((name for name, (cell, _) in texts.items() if DECIMAL_COMMA.fullmatch(cell)), None)
    if comma is not None:
        return (
            f"numbers with a decimal comma, such as {texts[comma][0]!r} in {texts[comma][1]} of {comma!r}; write them "
            "with a decimal point."
        )
    cells = {name: cell if len(cell) <= 30 else f"{cell[:29]}…" for name, (cell, _) in texts.items()}
    parts = [f"{name!r} ({cells[name]!r} in {texts[name][1]})" for name in list(texts)[:NUM_NAMED]]
    rest = f" and {len(texts) - NUM_NAMED} more columns" if len(texts) > NUM_NAMED else ""
    return (
        f"text in {', '.join(parts)}{rest}. Name columns that are sources in source_columns "
        f"(--source-columns {next(iter(texts))!r}), leave columns out with drop_columns (--drop-columns), or encode "
        "them as numbers, for instance one column of 0 and 1 for each value."
    )


def _describe_gaps(gaps: Mapping[str, list[int]], unit: str) -> str:
    """Return a message about columns with missing or infinite values; empty if there are none."""
    if not gaps:
        return ""
    parts = []
    for name, rows in list(gaps.items())[:NUM_NAMED]:
        few = ", ".join(map(str, rows[:NUM_NAMED]))
        more = f", … ({len(rows):,} in all)" if len(rows) > NUM_NAMED else ""
        parts.append(f"{name!r} ({unit}{'s' if len(rows) > 1 else ''} {few}{more})")
    rest = f" and {len(gaps) - NUM_NAMED} more columns" if len(gaps) > NUM_NAMED else ""
    return (
        f"missing or infinite values in {', '.join(parts)}{rest}. Fill them in, remove these {unit}s, or leave the "
        "columns out with drop_columns (--drop-columns)."
    )


def read_frame(path: str | Path) -> pd.DataFrame:
    """Return all columns of a file, also those with text and missing values (None or NaN)."""
    path = Path(path)
    return _read_parquet(path) if path.suffix.lower() in PARQUET_SUFFIXES else _read_lines(path)[0]


def column_names(path: str | Path) -> list[str]:
    """Return the names of a file's columns."""
    path = Path(path)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return [str(name) for name in _read_parquet(path, num_rows=0).columns]
    return _read_header(path)[0]


def _read_csv(path: Path, source_columns: Sequence[str], drop_columns: Sequence[str]) -> Table:
    names, delimiter = _read_header(path)
    features = feature_names(names, str(path), source_columns, drop_columns)
    frame = _parse_csv(path, delimiter, names, source_columns)
    if frame is not None and all(frame[name].dtype.kind in "fiub" for name in features):
        numbers = frame[features].to_numpy(dtype=np.float64)
        sources = {name: frame[name].str.strip() for name in source_columns}
        if np.isfinite(numbers).all() and not any(column.isna().any() for column in sources.values()):
            return Table(numbers, tuple(features), {name: column.tolist() for name, column in sources.items()})
    frame, lines = _read_lines(path, source_columns)
    if not len(frame):
        raise ValueError(f"{path} has no line below its first one, which names the columns")
    return split_frame(frame, str(path), source_columns, drop_columns, lines)


def _parse_csv(path: Path, delimiter: str, names: list[str], texts: Sequence[str]) -> pd.DataFrame | None:
    """Return a CSV read by pandas; None if rows may be longer or shorter than the first line, or there are none.

    Args:
        path: the file.
        delimiter, names: as its first line has them.
        texts: columns that are read as text.
    """
    missing = {form(word) for word in MISSING for form in (str.lower, str.upper, str.title)} | {"NaN"}
    with open_regular(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions read floats exactly by default, and deprecate the option
        try:
            frame = pd.read_csv(
                file,
                sep=delimiter,
                header=None,
                skiprows=1,
                names=[*names, SURPLUS],
                index_col=False,
                dtype=dict.fromkeys(texts, str),
                na_values=sorted(missing),
                keep_default_na=False,
                skipinitialspace=True,
                encoding="utf-8-sig",
                float_precision="round_trip",
                low_memory=False,
            )
        except (ValueError, OverflowError):
            return None
    is_ragged = frame[SURPLUS].notna().any() or frame[names[-1]].isna().any()
    return None if is_ragged or not len(frame) else frame


def _read_lines(path: Path, texts: Sequence[str] = ()) -> tuple[pd.DataFrame, list[int]]:
    """Return a CSV read line by line, and the line number of each row; this takes longer than pandas.

    Raises:
        ValueError: lines have more or fewer cells than the first one.
    """
    names, delimiter = _read_header(path)
    rows, lines = [], []
    ragged: list[tuple[int, int]] = []
    for line, cells in csv_lines(path, delimiter):
        if len(cells) == len(names):
            rows.append(cells)
            lines.append(line)
        else:
            ragged.append((line, len(cells)))
    if ragged:
        line, count = ragged[0]
        more = f"; {len(ragged) - 1:,} more lines differ from it" if len(ragged) > 1 else ""
        raise ValueError(f"line {line} of {path} has {count} columns, its first line has {len(names)}{more}")
    columns = {
        name: pd.Series([_cell_value(row[i].strip(), is_text=name in texts) for row in rows], dtype=object)
        for i, name in enumerate(names)
    }
    return pd.DataFrame(columns), lines


def _cell_value(cell: str, *, is_text: bool) -> float | str | None:
    if cell.lower() in MISSING:
        return None
    if is_text:
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell


def csv_lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line below the first; empty lines are left out."""
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            next(reader, None)
            for cells in reader:
                if len(cells) > 1 or any(cell.strip() for cell in cells):
                    yield reader.line_num, cells
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} cannot be read as a CSV ({error})") from error


def csv_header(path: Path) -> tuple[list[str], str]:
    """Return the cells of the first line of a CSV, and the delimiter: the one that occurs most often in it."""
    with _open_text(path) as file:
        try:
            first = file.readline()
            delimiter = max(DELIMITERS, key=first.count)
            names = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter), [])]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} cannot be read as a CSV ({error})") from error
    if not names or not first.strip():
        raise ValueError(
            f"{path} is empty, or its first line is: it needs a line of column names, and one line per row"
        )
    if "\0" in first:
        raise ValueError(f"{path} is not a text file: its first line has null bytes; copy it again")
    return names, delimiter


def _read_header(path: Path) -> tuple[list[str], str]:
    """Return the names of a CSV's columns, and the delimiter."""
    names, delimiter = csv_header(path)
    got = f"got {delimiter.join(names)[:60]!r}"
    if all(is_number(name) for name in names):
        raise ValueError(f"the first line of {path} must name the columns, and it has numbers: add a line; {got}")
    if "" in names:
        raise ValueError(
            f"the first line of {path} must name all columns, and column {names.index('') + 1} has no name; {got}"
        )
    _require_distinct(names, str(path))
    return names, delimiter


def _require_distinct(names: Sequence[str], what: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{what} has {names.count(twice)} columns named {twice!r}: give each a name of its own")


def _open_text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="")


def _read_parquet(path: Path, *, num_rows: int | None = None) -> pd.DataFrame:
    """Return the columns of a Parquet file, without the index that pandas stores; at most ``num_rows`` if given."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{path} is a Parquet file, which needs pyarrow: pip install 'qlae[parquet]'") from None
    try:
        with open_regular(path) as file:
            content = pyarrow.parquet.ParquetFile(file)
            _require_distinct(content.schema_arrow.names, str(path))
            table = content.schema_arrow.empty_table() if num_rows == 0 else content.read(use_threads=False)
            frame: pd.DataFrame = table.to_pandas()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as a Parquet file ({' '.join(str(error).split())})") from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)
