"""How each column of a table is used: as numbers, as a source, as an identifier, or not at all.

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
from .dataset import first_few

NUMBER, IDENTIFIER, SOURCE, GROUP, DROPPED = "number", "identifier", "source", "group", "dropped"
#: Kinds that a user can choose for a column.
CHOICES = (NUMBER, IDENTIFIER)
MIN_ROWS = 10  # below, values may all be different by chance
DECIMAL_COMMA = r"[-+]?\d*,\d+"
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
            continue
        elif name in index_columns or is_identifier(frame[name]):
            kinds[name] = IDENTIFIER
            recognised += [] if choices.features else [name]
        elif choices.features:
            kinds[name] = DROPPED
    plan = TablePlan(kinds, problems, recognised)
    if not plan.names(NUMBER):
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
    return is_text(column) and bool(np.isnan(numbers_in(column)).all())


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


def _check_cells(frame: pd.DataFrame, plan: TablePlan, unit: str) -> list[str]:
    """Return the problems with the cells of features and sources."""
    numbers = {name: numbers_in(frame[name]) for name in plan.names(NUMBER)}
    texts = {name: frame[name][np.isnan(values) & frame[name].notna()] for name, values in numbers.items()}
    texts = {name: cells for name, cells in texts.items() if len(cells)}
    commas = {name: cells for name, cells in texts.items() if has_decimal_commas(cells)}
    commas |= {name: frame[name] for name in plan.names(SOURCE) if has_decimal_commas(frame[name])}
    texts = {name: cells for name, cells in texts.items() if name not in commas}
    gaps = {name: frame.index[~np.isfinite(values)] for name, values in numbers.items()}
    gaps = {name: rows for name, rows in gaps.items() if name not in texts and name not in commas}
    gaps |= {name: frame.index[frame[name].isna()] for name in (*plan.names(SOURCE), *plan.names(GROUP))}
    gaps = {name: rows for name, rows in gaps.items() if len(rows)}
    problems = []
    if commas:
        option = ", or set decimal=','" if unit == "line" else ""
        problems.append(
            f"has numbers with a decimal comma in {_listed(commas, unit)}; write them with a decimal point{option}."
        )
    if texts:
        problems.append(
            f"has text in {_listed(texts, unit)}. Name columns that are sources in source_columns (--source-columns "
            f"{next(iter(texts))!r}), leave columns out with drop_columns (--drop-columns), or encode them as numbers, "
            "for instance one column of 0 and 1 for each value."
        )
    if gaps:
        parts = [f"{name!r} ({unit}{'s' * (len(rows) > 1)} {first_few(rows)})" for name, rows in gaps.items()]
        problems.append(
            f"has missing or infinite values in {first_few(parts)}. Fill them in, remove these {unit}s, or leave the "
            "columns out with drop_columns (--drop-columns)."
        )
    return problems


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
