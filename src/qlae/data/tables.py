"""Tables of numbers, from CSV or Parquet files or data frames: columns are features, or sources where the user says so.

Every column that is neither a source nor left out must hold numbers, without gaps. Errors name columns and lines.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .._io import open_regular
from ..metrics.sample_files import is_number

CSV_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
DELIMITERS = (",", ";", "\t")
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # cells that stand for a missing value, in lower case
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
NUM_NAMED = 5  # lines or columns that an error names


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


def is_table(path: str | Path) -> bool:
    """Return whether a path has the suffix of a table."""
    return Path(path).suffix.lower() in (*CSV_SUFFIXES, *PARQUET_SUFFIXES)


def is_frame(data: Any) -> bool:
    """Return whether an object is a data frame, such as those of pandas and Polars."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy") and not hasattr(data, "detach")


def read_table_file(path: str | Path, *, source_columns: Sequence[str] = (), drop_columns: Sequence[str] = ()) -> Table:
    """Read a CSV or Parquet file.

    Args:
        path: a CSV whose first line names the columns, separated by commas, semicolons or tabs; or a Parquet file.
        source_columns: columns that are sources and not features.
        drop_columns: columns to leave out, such as row numbers.

    Raises:
        ValueError: the file cannot be read, or a column of features has text or missing values.
    """
    path = Path(path)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return from_columns(_parquet_columns(path), str(path), source_columns, drop_columns)
    return _read_csv(path, source_columns, drop_columns)


def read_columns(path: str | Path) -> dict[str, NDArray[Any]]:
    """Return all columns of a file by name, also those with text (str) and missing values (None or NaN)."""
    path = Path(path)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return _parquet_columns(path)
    names, delimiter = _read_header(path)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for _, cells in _lines(path, delimiter, names):
        for name, cell in zip(names, cells, strict=True):
            columns[name].append(_cell_value(cell.strip()))
    arrays = {name: np.empty(len(values), dtype=object) for name, values in columns.items()}
    for name, values in columns.items():
        arrays[name][:] = values
    return arrays


def _cell_value(cell: str) -> float | str | None:
    if cell.lower() in MISSING:
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


def column_names(path: str | Path) -> list[str]:
    """Return the names of a file's columns."""
    path = Path(path)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return list(_parquet(path).schema_arrow.names)
    return _read_header(path)[0]


def from_frame(frame: Any, *, source_columns: Sequence[str] = (), drop_columns: Sequence[str] = ()) -> Table:
    """Return the features and sources of a data frame."""
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    return from_columns(columns, "the data frame", source_columns, drop_columns)


def from_columns(
    columns: dict[str, NDArray[Any]], what: str, source_columns: Sequence[str], drop_columns: Sequence[str]
) -> Table:
    """Return the features and sources among columns of equal length.

    Args:
        columns: by name.
        what: the table in words, for error messages.
        source_columns, drop_columns: names.
    """
    features = _feature_names(list(columns), what, source_columns, drop_columns)
    texts = {name: text for name in features if (text := _first_text(columns[name])) is not None}
    _refuse_text(texts, what)
    numbers = [_as_numbers(columns[name]) for name in features]
    gaps = {name: np.flatnonzero(~np.isfinite(column)) for name, column in zip(features, numbers, strict=True)}
    _refuse_gaps({name: rows.tolist() for name, rows in gaps.items() if len(rows)}, what, "row")
    sources = {name: _source_values(columns[name], name, what) for name in source_columns}
    return Table(np.stack(numbers, axis=1), tuple(features), sources)


def _feature_names(
    names: list[str], what: str, source_columns: Sequence[str], drop_columns: Sequence[str]
) -> list[str]:
    for name in (*source_columns, *drop_columns):
        require_known(name, names, f"column of {what}")
    both = [name for name in source_columns if name in drop_columns]
    if both:
        raise ValueError(f"{both[0]!r} is in source_columns and in drop_columns: leave it out of one of them")
    features = [name for name in names if name not in source_columns and name not in drop_columns]
    if not features:
        raise ValueError(f"{what} has no column left to observe, out of {', '.join(names) or 'none'}")
    return features


def _first_text(column: NDArray[Any]) -> tuple[str, str] | None:
    """Return the first cell that is no number, and its row; None if all are numbers or missing."""
    if column.dtype.kind in "fiub":
        return None
    if column.dtype.kind in "mM" and len(column):
        return str(column[0]), "row 0"
    for row, cell in enumerate(column.tolist()):
        if not isinstance(cell, int | float | None):
            return str(cell), f"row {row}"
    return None


def _as_numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    return np.array([np.nan if cell is None else cell for cell in column.tolist()], dtype=np.float64)


def _source_values(column: NDArray[Any], name: str, what: str) -> list[Any]:
    values: list[Any] = column.tolist()
    rows = [i for i, value in enumerate(values) if value is None or value != value]
    _refuse_gaps({name: rows} if rows else {}, what, "row")
    return values


def _refuse_text(texts: dict[str, tuple[str, str]], what: str) -> None:
    """Raise an error if columns have text; ``texts`` holds a cell of each, and where it stands."""
    if not texts:
        return
    comma = next((name for name, (cell, _) in texts.items() if DECIMAL_COMMA.fullmatch(cell)), None)
    if comma is not None:
        raise ValueError(
            f"{what} has numbers with a decimal comma, such as {texts[comma][0]!r} in {texts[comma][1]} of {comma!r}; "
            "write them with a decimal point"
        )
    cells = {name: cell if len(cell) <= 30 else f"{cell[:29]}…" for name, (cell, _) in texts.items()}
    parts = [f"{name!r} ({cells[name]!r} in {texts[name][1]})" for name in list(texts)[:NUM_NAMED]]
    rest = f" and {len(texts) - NUM_NAMED} more columns" if len(texts) > NUM_NAMED else ""
    raise ValueError(
        f"{what} has text in {', '.join(parts)}{rest}. Name columns that are sources in source_columns "
        f"(--source-columns {next(iter(texts))!r}), leave columns out with drop_columns (--drop-columns), or encode "
        "them as numbers, for instance one column of 0 and 1 for each value"
    )


def _refuse_gaps(gaps: dict[str, list[int]], what: str, unit: str) -> None:
    """Raise an error if columns have missing or infinite values.

    Args:
        gaps: the rows or lines of each column with gaps.
        what: the table in words.
        unit: "row", counted from 0, or "line" of a file, counted from 1.
    """
    if not gaps:
        return
    parts = []
    for name, rows in list(gaps.items())[:NUM_NAMED]:
        few = ", ".join(map(str, rows[:NUM_NAMED]))
        more = f", … ({len(rows):,} in all)" if len(rows) > NUM_NAMED else ""
        parts.append(f"{name!r} ({unit}{'s' if len(rows) > 1 else ''} {few}{more})")
    rest = f" and {len(gaps) - NUM_NAMED} more columns" if len(gaps) > NUM_NAMED else ""
    raise ValueError(
        f"{what} has missing or infinite values in {', '.join(parts)}{rest}. Fill them in, remove these {unit}s, or "
        "leave the columns out with drop_columns (--drop-columns)"
    )


def _read_csv(path: Path, source_columns: Sequence[str], drop_columns: Sequence[str]) -> Table:
    names, delimiter = _read_header(path)
    features = _feature_names(names, str(path), source_columns, drop_columns)
    places = [names.index(name) for name in features]
    numbers = _load_numbers(path, delimiter, places)
    if numbers is None:  # slower, but it knows the line of whatever is wrong
        numbers = _parse_numbers(path, delimiter, names, places)
    if not len(numbers):
        raise ValueError(f"{path} has no line below its first one, which names the columns")
    sources = _read_sources(path, delimiter, names, source_columns)
    for name, values in sources.items():
        if len(values) != len(numbers):
            raise ValueError(f"{path} has {len(numbers):,} rows of numbers, and {len(values):,} of {name!r}")
    return Table(numbers, tuple(features), sources)


def _load_numbers(path: Path, delimiter: str, places: list[int]) -> NDArray[np.float64] | None:
    """Return columns of finite numbers, read in C; None if a cell is anything else."""
    with _open_text(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a file without rows, which is reported elsewhere
        try:
            numbers = np.loadtxt(
                file, delimiter=delimiter, skiprows=1, usecols=places, ndmin=2, comments=None, quotechar='"'
            )
        except (ValueError, IndexError):
            return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def _parse_numbers(path: Path, delimiter: str, names: list[str], places: list[int]) -> NDArray[np.float64]:
    gaps: dict[str, list[int]] = {}
    texts: dict[str, tuple[str, str]] = {}
    rows = []
    for line, cells in _lines(path, delimiter, names):
        row = []
        for place in places:
            cell = cells[place].strip()
            number = np.nan
            if cell.lower() not in MISSING:
                try:
                    number = float(cell)
                except ValueError:
                    texts.setdefault(names[place], (cell, f"line {line}"))
                    number = 0.0
            if not np.isfinite(number):
                gaps.setdefault(names[place], []).append(line)
            row.append(number)
        rows.append(row)
    _refuse_text(texts, str(path))
    _refuse_gaps(gaps, str(path), "line")
    return np.array(rows, dtype=np.float64).reshape(-1, len(places))


def _read_sources(path: Path, delimiter: str, names: list[str], source_columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the cells of source columns as text; a cell must not be empty."""
    sources: dict[str, list[Any]] = {name: [] for name in source_columns}
    gaps: dict[str, list[int]] = {}
    for line, cells in _lines(path, delimiter, names) if sources else ():
        for name, values in sources.items():
            cell = cells[names.index(name)].strip()
            if cell.lower() in MISSING:
                gaps.setdefault(name, []).append(line)
            values.append(cell)
    _refuse_gaps(gaps, str(path), "line")
    return sources


def _lines(path: Path, delimiter: str, names: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line below the first; empty lines are left out."""
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            next(reader)
            for cells in reader:
                if not any(cell.strip() for cell in cells) and len(cells) <= 1:
                    continue
                if len(cells) != len(names):
                    raise ValueError(
                        f"line {reader.line_num} of {path} has {len(cells)} columns, its first line has {len(names)}"
                    )
                yield reader.line_num, cells
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} cannot be read as a CSV ({error})") from error


def _read_header(path: Path) -> tuple[list[str], str]:
    """Return the names of a CSV's columns, and the delimiter: the one that occurs most often in the first line."""
    with _open_text(path) as file:
        try:
            first = file.readline()
            delimiter = max(DELIMITERS, key=first.count)
            names = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter), [])]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} cannot be read as a CSV ({error})") from error
    if not names or not first.strip():
        raise ValueError(f"{path} is empty: it needs a line of column names, and one line per row")
    if "\0" in first:
        raise ValueError(f"{path} is not a text file: its first line has null bytes; copy it again")
    got = f"got {first[:60].rstrip()!r}"
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


def _parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{path} is a Parquet file, which needs pyarrow: pip install 'qlae[parquet]'") from None
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as a Parquet file ({_one_line(error)})") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _parquet_columns(path: Path) -> dict[str, NDArray[Any]]:
    file = _parquet(path)
    _require_distinct(file.schema_arrow.names, str(path))
    try:
        table = file.read()
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a Parquet file ({_one_line(error)})") from error
    return {name: table.column(name).to_numpy() for name in table.column_names}
