"""Tables of numbers, from CSV or Parquet files or data frames: columns are features, or sources where the user says so.

Every column that is neither a source nor left out must hold numbers, without gaps. Pandas reads the files; one error
names all columns with text and all lines with missing values.
"""

from __future__ import annotations

import contextlib
import csv
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._checks import require_known
from .._io import DAMAGE, open_regular
from ..metrics.sample_files import is_number
from ..observations import VECTORS, Observations
from ..registry import DATA
from .cache import name_of_files
from .dataset import Progress, SourceDataset, first_few, observe
from .spec import DataSpec

PARQUET_SUFFIXES = (".parquet", ".pq")
SUFFIXES = (".csv", ".tsv", ".txt", *PARQUET_SUFFIXES)
DELIMITERS = (",", ";", "\t")
#: Cells that stand for a missing value.
MISSING = [f(word) for word in ("", "na", "n/a", "nan", "null", "none", "?") for f in (str.lower, str.upper, str.title)]
DECIMAL_COMMA = r"[-+]?\d*,\d+"


def is_table(path: str | Path) -> bool:
    """Return whether a path has the suffix of a table."""
    return Path(path).suffix.lower() in SUFFIXES


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
        feature_names(column_names(self.path), self.path, self.source_columns, self.drop_columns)
        frame = read_frame(self.path, self.source_columns)
        if frame.empty:
            raise ValueError(f"{self.path} has no line below its first one, which names the columns")
        features, names, sources = split_frame(frame, self.path, self.source_columns, self.drop_columns)
        observations = observe(features, VECTORS, names, name=self.path)
        data = SourceDataset.from_columns(features, sources, observations, name=self.name)
        data.checksum = data.compute_checksum()
        return data


#: Features (n, d) of a table, their names, and the values of each source.
Table = tuple[NDArray[np.float64], list[str], dict[str, list[Any]]]


def feature_names(
    names: Sequence[str], what: str, source_columns: Sequence[str], drop_columns: Sequence[str]
) -> list[str]:
    """Return the columns that are features; raise an error for names that are unknown or contradict each other."""
    for name in (*source_columns, *drop_columns):
        require_known(name, names, f"column of {what}")
    for name in source_columns:
        if name in drop_columns:
            raise ValueError(f"{name!r} is in source_columns and in drop_columns: leave it out of one of them")
    features = [name for name in names if name not in source_columns and name not in drop_columns]
    if not features:
        raise ValueError(f"{what} has no column left to observe, out of {', '.join(names) or 'none'}")
    return features


def from_frame(frame: Any, source_columns: Sequence[str], drop_columns: Sequence[str]) -> Table:
    """Return the features and sources of a data frame of pandas, Polars or the like."""
    frame = to_pandas(frame)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True)
    _require_distinct(list(frame.columns), "the data frame")
    return split_frame(frame, "the data frame", source_columns, drop_columns)


def to_pandas(frame: Any) -> pd.DataFrame:
    """Return a data frame of pandas, Polars or the like as one of pandas."""
    if isinstance(frame, pd.DataFrame):
        return frame
    return pd.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns})


def split_frame(frame: pd.DataFrame, what: str, source_columns: Sequence[str], drop_columns: Sequence[str]) -> Table:
    """Return the features and sources in a data frame; one error names all text and missing values in it.

    Messages call a row by the name of the frame's index, and the table by `what`.
    """
    names = feature_names(list(frame.columns), what, source_columns, drop_columns)
    numbers = {name: numbers_in(frame[name]) for name in names}
    texts = {name: frame[name][np.isnan(numbers[name]) & frame[name].notna()] for name in names}
    texts = {name: cells for name, cells in texts.items() if len(cells)}
    gaps = {name: frame.index[~np.isfinite(numbers[name])] for name in names if name not in texts}
    gaps |= {name: frame.index[frame[name].isna()] for name in source_columns}
    gaps = {name: rows for name, rows in gaps.items() if len(rows)}
    unit = frame.index.name or "row"
    problems = ([_describe_text(texts, unit)] if texts else []) + ([_describe_gaps(gaps, unit)] if gaps else [])
    if problems:
        raise ValueError(f"{what} has {' It also has '.join(problems)}")
    sources = {name: frame[name].tolist() for name in source_columns}
    return np.stack(list(numbers.values()), axis=1), names, sources


def numbers_in(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Return the numbers of a column as floats (n,), NaN where a cell is missing or is anything else."""
    if column.dtype.kind == "O":
        try:
            column = pd.to_numeric(column.astype(object), errors="coerce")
        except OverflowError:
            raise ValueError(f"{column.name!r} has numbers that are too large; use another unit") from None
    if column.dtype.kind not in "fiub":  # dates
        return np.full(len(column), np.nan)
    numbers: NDArray[np.float64] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _describe_text(texts: Mapping[str, pd.Series[Any]], unit: str) -> str:
    """Describe columns with text, given the cells of each that are no numbers."""
    cells = {name: f"{str(cells.iloc[0])[:30]!r} in {unit} {cells.index[0]}" for name, cells in texts.items()}
    for name, column in texts.items():
        if column.astype(str).str.fullmatch(DECIMAL_COMMA).iloc[0]:
            return f"numbers with a decimal comma, such as {cells[name]} of {name!r}; write them with a decimal point."
    return (
        f"text in {first_few([f'{name!r} ({cell})' for name, cell in cells.items()])}. Name columns that are sources "
        f"in source_columns (--source-columns {next(iter(texts))!r}), leave columns out with drop_columns "
        "(--drop-columns), or encode them as numbers, for instance one column of 0 and 1 for each value."
    )


def _describe_gaps(gaps: Mapping[str, pd.Index[Any]], unit: str) -> str:
    """Describe columns with missing or infinite values, given the places of these."""
    parts = [f"{name!r} ({unit}{'s' * (len(rows) > 1)} {first_few(rows)})" for name, rows in gaps.items()]
    return (
        f"missing or infinite values in {first_few(parts)}. Fill them in, remove these {unit}s, or leave the columns "
        "out with drop_columns (--drop-columns)."
    )


def read_frame(path: str | Path, texts: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table in a file, also columns with text and missing values; `texts` of a CSV are read as text."""
    return _read_parquet(path) if _is_parquet(path) else read_csv(path, texts)


def column_names(path: str | Path) -> list[str]:
    """Return the names of a file's columns."""
    return list(_read_parquet(path, num_rows=0).columns) if _is_parquet(path) else _read_header(path)[0]


def _is_parquet(path: str | Path) -> bool:
    return Path(path).suffix.lower() in PARQUET_SUFFIXES


def read_csv(path: str | Path, texts: Sequence[str] = (), *, as_text: bool = False) -> pd.DataFrame:
    """Return the table in a CSV, without blank lines; its index has the line of each row.

    The columns `texts` are read as text. With `as_text` all are, and only empty cells are missing.
    """
    names, delimiter = _read_header(path, may_be_numbers=as_text)
    with _explain(path, "a CSV"), open_regular(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions read floats exactly by default, and deprecate the option
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a line longer than the first
        text = io.TextIOWrapper(file, encoding="utf-8-sig")
        lines = [number for number, line in enumerate(text, 1) if line.strip() or delimiter in line][1:]
        file.seek(0)
        frame = pd.read_csv(
            file,
            sep=delimiter,
            header=None,
            skiprows=1,
            names=names,
            index_col=False,
            dtype=str if as_text else dict.fromkeys(texts, str),
            na_values=[""] if as_text else MISSING,
            keep_default_na=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
            float_precision="round_trip",
            low_memory=False,
        )
    # A quoted cell may span lines; rows are then counted instead.
    frame.index = pd.Index(lines if len(lines) == len(frame) else range(2, len(frame) + 2), name="line")
    for name in texts:
        frame[name] = frame[name].str.strip()
    return frame


def _read_header(path: str | Path, *, may_be_numbers: bool = False) -> tuple[list[str], str]:
    """Return the names of a CSV's columns, and the delimiter: the one that occurs most often in its first line."""
    with _explain(path, "a CSV"), io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        delimiter = max(DELIMITERS, key=first.count)
        names = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter, strict=True), [])]
    got = f"got {delimiter.join(names)[:60]!r}"
    if not first.strip() or "\0" in first:
        raise ValueError(f"{path} is empty or no text: it needs a line of column names, and one line per row; {got}")
    if not may_be_numbers and all(is_number(name) for name in names):
        raise ValueError(f"the first line of {path} must name the columns, and it has numbers: add a line; {got}")
    if "" in names:
        raise ValueError(
            f"the first line of {path} must name all columns, and column {names.index('') + 1} has no name; {got}"
        )
    _require_distinct(names, path)
    return names, delimiter


def _require_distinct(names: Sequence[str], what: object) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{what} has {names.count(twice)} columns named {twice!r}: give each another name")


def _read_parquet(path: str | Path, *, num_rows: int | None = None) -> pd.DataFrame:
    """Return the columns of a Parquet file, without the index that pandas stores; no rows if `num_rows` is 0."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{path} is a Parquet file, which needs pyarrow: pip install 'qlae[parquet]'") from None
    with _explain(path, "a Parquet file", pyarrow.ArrowException), open_regular(path) as file:
        content = pyarrow.parquet.ParquetFile(file)
        names = [str(name) for name in content.schema_arrow.names]
        table = content.schema_arrow.empty_table() if num_rows == 0 else content.read(use_threads=False)
        frame: pd.DataFrame = table.to_pandas()
    _require_distinct(names, path)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


@contextlib.contextmanager
def _explain(path: str | Path, kind: str, *others: type[Exception]) -> Iterator[None]:
    """Turn `DAMAGE`, and other errors of a reader, into one ``ValueError`` that names the file."""
    expected: tuple[type[Exception], ...] = (OSError, Warning, *DAMAGE, *others)
    try:
        yield
    except expected as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = "a line is longer than the first" if isinstance(error, Warning) else " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read as {kind} ({reason})") from error
