"""How each column of a table is used: as numbers, categories, dates, a source, an identifier, or not at all.

`plan_columns` decides from the values, unless the user says otherwise. It returns all problems together, each with the
option that helps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._checks import nearest_name
from ..columns import CATEGORY, DATE, NUMBER
from .dataset import first_few

IDENTIFIER, SOURCE, GROUP, DROPPED = "identifier", "source", "group", "dropped"
#: Kinds that a user can choose for a column.
CHOICES = (NUMBER, CATEGORY, DATE, IDENTIFIER)
OBSERVED = (NUMBER, CATEGORY, DATE)
MAX_LEVELS = 100
MAX_CHARACTERS = 200  # of a level
MOSTLY = 0.5  # share of numbers from which text among them is a mistake
MIN_ROWS = 10  # below, values may all be different by chance
DECIMAL_COMMA = r"[-+]?\d*,\d+"
ISO_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?"
OTHER_DATE = r"\d{1,4}[./]\d{1,2}[./]\d{1,4}(?:[T ]\d\d?:\d\d.*)?|\d{1,2}-\d{1,2}-\d{4}"
OFFSET = r":\d\d(?:\.\d+)?\s*(?:Z|[+-]\d\d:?\d\d)$"
#: Names of columns that are identifiers if they hold integers that are all different.
KEY_NAME = re.compile(
    r"(?:.*[\s_.-])?(?:ids?|key|index|idx|uid|uuid|guid|row|rownames?|nr|record)|unnamed: ?\d+|number|no\.?|#",
    re.IGNORECASE,
)
CAMEL_CASE = re.compile(r".*[a-z](?:Id|ID|Key|Index)")


class ColumnChoices(NamedTuple):
    """What the user says about columns; see `qlae.data.tables.TableFile`."""

    sources: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    kinds: Mapping[str, str] = {}
    features: tuple[str, ...] = ()
    group: str | None = None
    date_parts: tuple[str, ...] = ()


class TablePlan(NamedTuple):
    """How the columns of a table are used.

    Attributes:
        kinds: the use of each column, in the order of the table.
        problems: why the table cannot be used, one sentence each.
        recognised: identifiers that nobody named.
    """

    kinds: dict[str, str]
    problems: list[str]
    recognised: list[str]

    def names(self, kind: str) -> list[str]:
        """Return the columns of a kind."""
        return [name for name, own in self.kinds.items() if own == kind]


def plan_columns(frame: pd.DataFrame, choices: ColumnChoices, index_columns: Sequence[str] = ()) -> TablePlan:
    """Decide how the columns of a table are used.

    Args:
        frame: the table; the name of its index is what messages call a row.
        choices: what the user says.
        index_columns: columns that were an index.
    """
    problems = _check_choices(list(frame.columns), choices)
    unit = str(frame.index.name or "row")
    if frame.empty:
        rows = "rows" if unit == "row" else f"{unit} below its first one, which names the columns"
        return TablePlan({}, [f"has no {rows}."], [])
    kinds, recognised = dict.fromkeys(frame.columns, NUMBER), []
    for name in frame.columns:
        if name in choices.sources:
            kinds[name] = SOURCE
        elif name == choices.group:
            kinds[name] = GROUP
        elif name in choices.dropped:
            kinds[name] = DROPPED
        elif name in choices.kinds:
            kinds[name] = choices.kinds[name]
        elif name in choices.features:
            kinds[name] = recognise(frame[name])
        elif name in index_columns or is_identifier(frame[name]):
            kinds[name] = IDENTIFIER
            recognised += [] if choices.features else [name]
        else:
            kinds[name] = DROPPED if choices.features else recognise(frame[name])
    plan = TablePlan(kinds, problems, recognised)
    if not any(kind in OBSERVED for kind in kinds.values()):
        listed = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        problems.append(
            f"has no column left to observe, out of {listed}. Use an identifier as a number by column_kinds "
            "(--column-kinds NAME=number)."
        )
    problems += _check_cells(frame, plan, unit)
    return plan


def _check_choices(names: Sequence[str], choices: ColumnChoices) -> list[str]:
    """Return a problem for each name that is unknown, and for each that is named twice."""
    given = {
        "source_columns": choices.sources,
        "drop_columns": choices.dropped,
        "feature_columns": choices.features,
        "column_kinds": tuple(choices.kinds),
        "group_column": () if choices.group is None else (choices.group,),
    }
    problems = []
    for option, columns in given.items():
        unknown = [name for name in columns if name not in names]
        problems += [f"has no column {name!r} for {option}: {nearest_name(name, names)}." for name in unknown]
    for name in names:
        options = [option for option, columns in given.items() if name in columns]
        if len(options) > 1 and options != ["feature_columns", "column_kinds"]:
            problems.append(f"has {name!r} in {' and in '.join(options)}: leave it out of one of them.")
    return problems


def is_identifier(column: pd.Series[Any]) -> bool:
    """Return whether a column names or numbers the rows: all its values are different and no measurements.

    These are text, and integers that are called like a key or count the rows one by one.
    """
    if column.isna().any() or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    named = is_key_name(str(column.name))
    try:
        if not (named or len(column) >= MIN_ROWS) or not column.is_unique:
            return False
    except TypeError:  # lists
        return False
    if column.dtype.kind in "iu":
        return named or bool((np.diff(column.to_numpy(dtype=np.float64)) == 1).all())
    if not is_text(column) or not np.isnan(numbers_in(column)).all():
        return False
    cells = column.astype(str)
    return not (
        cells.str.fullmatch(ISO_DATE).all() or cells.str.fullmatch(OTHER_DATE).all() or has_decimal_commas(column)
    )


def is_key_name(name: str) -> bool:
    """Return whether a column is called like an identifier.

    >>> [is_key_name(name) for name in ("id", "Sample ID", "patientId", "Unnamed: 0", "humid", "valid")]
    [True, True, True, True, False, False]
    """
    return bool(KEY_NAME.fullmatch(name) or CAMEL_CASE.fullmatch(name))


def is_text(column: pd.Series[Any]) -> bool:
    """Return whether all cells that are not missing are text."""
    return str(pd.api.types.infer_dtype(column, skipna=True)) == "string"


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


def recognise(column: pd.Series[Any]) -> str:
    """Return the kind of a column that is observed, from its values."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return CATEGORY
    if pd.api.types.is_datetime64_any_dtype(column):
        return DATE
    content = str(pd.api.types.infer_dtype(column, skipna=True))
    if content == "boolean":
        return CATEGORY
    if content in ("datetime64", "datetime", "date"):
        return DATE
    if content == "string" and not has_decimal_commas(column):
        cells = column.dropna().astype(str)
        if cells.str.fullmatch(ISO_DATE).all():
            return DATE
        is_number = ~np.isnan(numbers_in(cells))
        return NUMBER if is_number.mean() > MOSTLY or cells.str.fullmatch(OTHER_DATE).all() else CATEGORY
    if content == "mixed-integer" and np.isnan(numbers_in(column.dropna())).mean() >= 1 - MOSTLY:
        return CATEGORY
    return NUMBER


def _check_cells(frame: pd.DataFrame, plan: TablePlan, unit: str) -> list[str]:
    """Return the problems with the cells of features and sources."""
    numbers = {name: frame[name] for name in plan.names(NUMBER)}
    texts = {name: cells[np.isnan(numbers_in(cells)) & cells.notna()] for name, cells in numbers.items()}
    texts = {name: cells for name, cells in texts.items() if len(cells)}
    commas = {name: cells for name, cells in texts.items() if has_decimal_commas(cells)}
    commas |= {name: frame[name] for name in plan.names(SOURCE) if has_decimal_commas(frame[name])}
    dates = {name: cells for name, cells in texts.items() if cells.astype(str).str.fullmatch(OTHER_DATE).all()}
    dates |= {name: frame[name].dropna() for name in plan.names(DATE) if not are_dates(frame[name])}
    others = {name: cells for name, cells in texts.items() if name not in commas and name not in dates}
    odd = {name: cells for name, cells in others.items() if not cells.map(lambda cell: isinstance(cell, str)).any()}
    infinite = {name: cells[np.isinf(numbers_in(cells))] for name, cells in numbers.items()}
    observed = [*numbers, *plan.names(CATEGORY), *plan.names(DATE)]
    empty = [name for name in observed if frame[name].isna().all()]
    gaps = {name: frame.index[frame[name].isna()] for name in (*plan.names(SOURCE), *plan.names(GROUP))}
    option = "set decimal=',' or " if unit == "line" else ""
    advice = {
        f"has numbers with a decimal comma in {{}}: {option}write them with a decimal point.": commas,
        "has dates in {}: write them as year-month-day, such as 2024-05-31 or 2024-05-31T12:30, or "
        "leave the columns out with drop_columns (--drop-columns).": dates,
        "has text among the numbers in {}: remove it, leave a cell empty that has no value, or make the column a "
        "category with column_kinds (--column-kinds NAME=category).": {
            name: cells for name, cells in others.items() if name not in odd
        },
        "has cells that are no numbers, text or dates in {}: leave these columns out with drop_columns "
        "(--drop-columns).": odd,
        "has infinite values in {}: make them missing, remove these rows, or leave the columns out with drop_columns "
        "(--drop-columns).": {name: cells for name, cells in infinite.items() if len(cells)},
    }
    problems = [text.format(_listed(cells, unit)) for text, cells in advice.items() if cells]
    problems += _check_levels(frame, plan.names(CATEGORY))
    if empty:
        problems.append(
            f"has no value at all in {first_few([repr(name) for name in empty])}: leave such columns out "
            "with drop_columns (--drop-columns)."
        )
    if parts := [
        f"{name!r} ({unit}{'s' * (len(rows) > 1)} {first_few(rows)})" for name, rows in gaps.items() if len(rows)
    ]:
        problems.append(
            f"has missing values in {first_few(parts)}, and sources and groups must be complete: fill them in, or "
            f"remove these {unit}s."
        )
    return problems


def _check_levels(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return a problem if categories have too many levels, or cells that no level can stand for."""
    crowded, odd, long = [], [], []
    for name in names:
        cells = frame[name].dropna()
        content = str(pd.api.types.infer_dtype(cells.astype(object)))
        if content not in ("string", "boolean", "integer", "floating", "mixed-integer", "mixed-integer-float", "empty"):
            odd.append(f"{name!r} ({type(cells.iloc[0]).__name__})")
        elif (most := int(cells.astype(str).str.len().max())) > MAX_CHARACTERS:
            long.append(f"{name!r} ({most:,} characters)")
        elif (count := cells.astype(str).nunique()) > MAX_LEVELS or (len(cells) >= MIN_ROWS and 2 * count > len(cells)):
            crowded.append(f"{name!r} ({count:,} in {len(cells):,} rows)")
    problems = []
    if crowded:
        problems.append(
            f"has too many different values in {first_few(crowded)}: a category has at most {MAX_LEVELS}, and two rows "
            "for each on average. Name columns that are sources in source_columns (--source-columns), identifiers in "
            "column_kinds (--column-kinds NAME=identifier), what rows have in common, such as a patient, in "
            "group_column (--group-column), or leave columns out with drop_columns (--drop-columns)."
        )
    if long:
        problems.append(
            f"has long text in {first_few(long)}, and a level of a category has at most {MAX_CHARACTERS}: leave these "
            "columns out with drop_columns (--drop-columns)."
        )
    if odd:
        problems.append(
            f"has cells that are no numbers, text or dates in {first_few(odd)}: leave these columns out "
            "with drop_columns (--drop-columns)."
        )
    return problems


def are_dates(column: pd.Series[Any]) -> bool:
    """Return whether `to_dates` can read a column."""
    try:
        to_dates(column)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def to_dates(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of dates, or of text such as 2024-05-31 or 2024-05-31T12:00, as dates of pandas.

    Text with offsets from UTC becomes times in UTC.
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return column
    text = column.astype(object)
    has_offsets = text.dropna().astype(str).str.contains(OFFSET).any()
    dates: pd.Series[Any] = pd.to_datetime(text, format="ISO8601", utc=bool(has_offsets))
    return dates


def has_decimal_commas(column: pd.Series[Any]) -> bool:
    """Return whether the text in a column consists of numbers with a decimal comma, with whole numbers among them."""
    cells = column.dropna()
    if not len(cells) or not is_text(cells):
        return False
    has_comma = cells.str.fullmatch(DECIMAL_COMMA)
    return bool(has_comma.any() and (has_comma | cells.str.fullmatch(r"[-+]?\d+")).all())


def _listed(cells: Mapping[str, pd.Series[Any]], unit: str) -> str:
    """Return the names of columns, each with the first of its cells."""
    return first_few([f"{name!r} ({str(own.iloc[0])[:30]!r} in {unit} {own.index[0]})" for name, own in cells.items()])
