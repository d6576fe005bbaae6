"""Reading tables from CSV and Parquet files into data frames, with everything that is wrong with a file at once.

Pandas reads the cells. What it would pass silently is checked here: rows with more or fewer cells than the header,
columns without a name or with the same name, and the index that pandas writes as a column.
"""

from __future__ import annotations

import contextlib
import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from .._io import DAMAGE, open_regular, require_loadable
from ..metrics.sample_files import is_number
from .dataset import first_few

PARQUET_SUFFIXES = (".parquet", ".pq")
SUFFIXES = (".csv", ".tsv", ".txt", *PARQUET_SUFFIXES)
DELIMITERS = (",", ";", "\t")
#: Cells that stand for a missing value.
MISSING = [f(word) for word in ("", "na", "n/a", "nan", "null", "none", "?") for f in (str.lower, str.upper, str.title)]
BATCH_ROWS = 10_000  # of a Parquet file that are read at once
INDEX = "index"  # the name of an index that has none


class RawTable(NamedTuple):
    """What a file holds.

    Attributes:
        frame: the rows; the name of its index is what messages call a row, ``"line"`` for a CSV.
        index_columns: columns that were the index of a data frame.
        problems: what is wrong with the file, one sentence each.
    """

    frame: pd.DataFrame
    index_columns: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _Header(NamedTuple):
    names: list[str]
    delimiter: str
    num_index: int  # columns without a name at the beginning, as pandas writes them
    problems: tuple[str, ...]


def is_table(path: str | Path) -> bool:
    """Return whether a path has the suffix of a table."""
    return Path(path).suffix.lower() in SUFFIXES


def refuse(what: object, problems: Sequence[str]) -> None:
    """Raise a ``ValueError`` with everything that is wrong with a table, if anything is."""
    if len(problems) == 1:
        raise ValueError(f"{what} {problems[0]}")
    if problems:
        listed = " ".join(f"({number}) It {problem}" for number, problem in enumerate(problems, 1))
        raise ValueError(f"{what} has {len(problems)} problems. {listed}")


def read_frame(path: str | Path, texts: Sequence[str] = (), *, decimal: str = ".") -> pd.DataFrame:
    """Return the table in a file, also columns with text and missing values; `texts` of a CSV are read as text.

    Raises:
        ValueError: rows are longer or shorter than the header, or names of columns are missing or occur twice.
    """
    table = read_table(path, texts, decimal=decimal)
    refuse(path, table.problems)
    return table.frame


def read_table(path: str | Path, texts: Sequence[str] = (), *, decimal: str = ".") -> RawTable:
    """Return the table in a file together with what is wrong with it; arguments as for `read_frame`."""
    return _read_parquet(path) if _is_parquet(path) else _read_csv(path, texts, decimal=decimal)


def read_header(path: str | Path) -> RawTable:
    """Return the columns of a file without rows."""
    if _is_parquet(path):
        return _read_parquet(path, num_rows=0)
    header = _read_header(path)
    return RawTable(pd.DataFrame(columns=header.names), tuple(header.names[: header.num_index]), header.problems)


def column_names(path: str | Path) -> list[str]:
    """Return the names of a file's columns."""
    return list(read_header(path).frame.columns)


def read_csv(path: str | Path) -> pd.DataFrame:
    """Return the table in a CSV with all cells as text, of which only empty ones are missing."""
    table = _read_csv(path, as_text=True)
    refuse(path, table.problems)
    return table.frame


def _is_parquet(path: str | Path) -> bool:
    return Path(path).suffix.lower() in PARQUET_SUFFIXES


def _read_csv(path: str | Path, texts: Sequence[str] = (), *, as_text: bool = False, decimal: str = ".") -> RawTable:
    header = _read_header(path, may_be_numbers=as_text)
    names = header.names
    with _explain(path, "a CSV"), open_regular(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions read floats exactly by default, and deprecate the option
        lines, problem = _check_widths(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), header)
        file.seek(0)
        frame = pd.read_csv(
            file,
            sep=header.delimiter,
            header=None,
            skiprows=1,
            names=names,
            usecols=range(len(names)),
            index_col=False,
            dtype=str if as_text else dict.fromkeys(texts, str),
            na_values=[""] if as_text else MISSING,
            keep_default_na=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
            float_precision=None if decimal != "." else "round_trip",
            decimal=decimal,
            low_memory=False,
            on_bad_lines="skip",  # they are in `problem`
        )
    # A file that pandas divides into other rows has none of these numbers.
    frame.index = pd.Index(lines if len(lines) == len(frame) else range(2, len(frame) + 2), name="line")
    for name in texts:
        if name in frame:
            frame[name] = frame[name].str.strip()
    return RawTable(frame, tuple(names[: header.num_index]), (*header.problems, *([problem] if problem else [])))


def _check_widths(text: io.TextIOWrapper, header: _Header) -> tuple[list[int], str]:
    """Return the line of each row, without blank ones, and a problem if rows are longer or shorter than the header."""
    rows, width = csv.reader(text, delimiter=header.delimiter, skipinitialspace=True), len(header.names)
    next(rows, None)
    start, lines, wrong = rows.line_num + 1, [], []
    for row in rows:
        if len(row) > 1 or (row and row[0].strip()):
            lines.append(start)
            if len(row) != width:
                wrong.append((start, len(row)))
        start = rows.line_num + 1
    text.detach()
    if not wrong:
        return lines, ""
    shown = first_few([f"line {line}: {cells}" for line, cells in wrong])
    hints = ["put quotes around cells that contain the delimiter"]
    if header.delimiter == ",":
        hints.append("if numbers have decimal commas, separate cells by semicolons and set decimal=','")
    if len(wrong) == len(lines) and all(cells == width + 1 for _, cells in wrong):
        hints.append("if each row begins with a name or number, give that column a name in the first line too")
    return lines, (
        f"has rows with another number of cells than the {width} of its first line ({shown}): {'; '.join(hints)}."
    )


def _read_header(path: str | Path, *, may_be_numbers: bool = False) -> _Header:
    """Return the names of a CSV's columns, and the delimiter: the one that occurs most often in its first line.

    Columns that have no name of their own get one, so that the rows can be read.
    """
    with _explain(path, "a CSV"), io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        delimiter = max(DELIMITERS, key=first.count)
        names = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter, strict=True), [])]
    got = f"got {delimiter.join(names)[:60]!r}"
    if not first.strip() or "\0" in first or not any(names):
        raise ValueError(f"{path} is empty or no text: it needs a line of column names, and one line per row; {got}")
    if not may_be_numbers and all(is_number(name) for name in names):
        raise ValueError(f"the first line of {path} must name the columns, and it has numbers: add a line; {got}")
    num_index = next(place for place, name in enumerate(names) if name)
    names[:num_index] = index_names([None] * num_index, names)
    problems = [] if all(names) else [f"must name all columns, and column {names.index('') + 1} has no name; {got}"]
    names = [name or f"column {place}" for place, name in enumerate(names, 1)]
    names, twice = distinct_names(names)
    return _Header(names, delimiter, num_index, (*problems, *twice))


def index_names(names: Sequence[Any], taken: Sequence[str]) -> list[str]:
    """Return the names of the levels of an index, as ``DataFrame.reset_index`` does.

    >>> index_names([None], ["a"]), index_names(["site", None], ["a"])
    (['index'], ['site', 'level_1'])
    """
    alone = INDEX if len(names) == 1 and INDEX not in taken else None
    return [alone or f"level_{place}" if name is None else str(name) for place, name in enumerate(names)]


def distinct_names(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names of which none occurs twice, and a problem for each that did."""
    total = Counter(names)
    twice = [name for name, count in total.items() if count > 1]
    counts = dict.fromkeys(total, 0)
    result = []
    for name in names:
        counts[name] += 1
        result.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return result, tuple(f"has {total[name]} columns named {name!r}: give each another name." for name in twice)


def _read_parquet(path: str | Path, *, num_rows: int | None = None) -> RawTable:
    """Return the columns of a Parquet file, the index that pandas stores among them; no rows if `num_rows` is 0."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{path} is a Parquet file, which needs pyarrow: pip install 'qlae[parquet]'") from None
    with _explain(path, "a Parquet file", pyarrow.ArrowException), open_regular(path) as file:
        content = pyarrow.parquet.ParquetFile(file)
        schema = content.schema_arrow
        names, problems = distinct_names([str(name) for name in schema.names])
        table = schema.empty_table() if num_rows == 0 else _read_batches(content, Path(path))
        frame: pd.DataFrame = table.rename_columns(names).to_pandas(ignore_metadata=True)
        stored = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if name in names]
    levels = [None if name.startswith("__index_level_") else name for name in stored]
    others = [name for name in names if name not in stored]
    renamed = dict(zip(stored, index_names(levels, others), strict=True))
    frame = frame[[*stored, *others]].rename(columns=renamed)
    return RawTable(frame, tuple(renamed.values()), problems)


def _read_batches(content: Any, path: Path) -> Any:
    """Return the table in a Parquet file, which is refused as soon as it takes too much memory."""
    import pyarrow

    groups = [content.metadata.row_group(number) for number in range(content.metadata.num_row_groups)]
    counts = [group.column(place).num_values for group in groups for place in range(group.num_columns)]
    require_loadable(path, num_cells=sum(counts))  # also those in lists
    batches, num_bytes = [], 0
    for batch in content.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
        batches.append(batch)
        num_bytes += batch.nbytes
        require_loadable(path, num_bytes=num_bytes)
    return pyarrow.Table.from_batches(batches, content.schema_arrow)


@contextlib.contextmanager
def _explain(path: str | Path, kind: str, *others: type[Exception]) -> Iterator[None]:
    """Turn `DAMAGE`, and other errors of a reader, into one ``ValueError`` that names the file."""
    expected: tuple[type[Exception], ...] = (OSError, csv.Error, *DAMAGE, *others)
    try:
        yield
    except expected as error:
        if (isinstance(error, OSError) and error.errno is not None) or str(error).startswith(f"{path} has"):
            raise
        raise ValueError(f"{path} cannot be read as {kind} ({' '.join(str(error).split())})") from error
