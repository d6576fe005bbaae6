"""From rows of a table to the features that a model sees, and back.

`describe_columns` describes the columns of training data, `encode_rows` turns any table with these columns into
features, and `decode_rows` turns features into a data frame with the columns and types of the training data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..columns import CATEGORY, DATE, DATE_PARTS, NUMBER, TableColumn, feature_places
from ..observations import TABLES, Observations
from .dataset import LARGEST, first_few
from .table_columns import numbers_in, to_dates
from .table_files import refuse

EPOCH = pd.Timestamp("1970-01-01")
DAY = 86_400  # seconds
TRUE = "True"
#: Content of a category, as pandas calls it, and the type of its values.
VALUES = {"boolean": "bool", "integer": "int", "floating": "float", "mixed-integer-float": "float"}


def describe_columns(frame: pd.DataFrame, kinds: dict[str, str], date_parts: Sequence[str] = ()) -> list[TableColumn]:
    """Return the description of the columns that are numbers, categories or dates."""
    described = []
    for name, kind in kinds.items():
        column = frame[name] if kind in (NUMBER, CATEGORY, DATE) else None
        if column is None:
            continue
        has_missing = bool(column.isna().any())
        if kind == NUMBER:
            described.append(TableColumn(name, NUMBER, _type_of_numbers(column), has_missing=has_missing))
        elif kind == CATEGORY:
            described.append(_describe_category(column, has_missing))
        else:
            dates = to_dates(column)
            values = "date" if (dates.dropna() == dates.dropna().dt.normalize()).all() else "datetime"
            zone = "" if dates.dt.tz is None else str(dates.dt.tz)
            parts = tuple(part for part in date_parts if part != "hour" or values == "datetime")
            described.append(TableColumn(name, DATE, values, parts=parts, timezone=zone, has_missing=has_missing))
    return described


def is_plain(columns: Sequence[TableColumn]) -> bool:
    """Return whether columns are numbers without gaps, which are vectors."""
    return all(column.kind == NUMBER and not column.has_missing for column in columns)


def observe_rows(frame: pd.DataFrame, columns: Sequence[TableColumn], what: str) -> tuple[NDArray[Any], Observations]:
    """Return the features (n, d) of training data, and their description with the statistics of observed values."""
    array = _features(frame, columns)
    for column, places in zip(columns, feature_places(tuple(columns)), strict=True):
        most = np.nanmax(np.abs(array[:, places.start]))
        if most > LARGEST:
            raise ValueError(f"{what} has numbers as large as {most:.3g} in {column.name!r}; use another unit")
    width, names = array.shape[1], tuple(feature for column in columns for feature in column.features)
    plain = Observations(TABLES, (width,), "float64", names, (0.0,) * width, (1.0,) * width, tuple(columns))
    return measure_rows(np.nan_to_num(array), plain, np.arange(len(array)))


def measure_rows(
    array: NDArray[np.float64], observations: Observations, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], Observations]:
    """Return features with means in the place of missing numbers, and their description with the statistics of rows.

    Args:
        array: features (n, d).
        observations: their description, whose statistics are measured anew.
        rows: numbers of the rows that count.
    """
    array, columns = array.copy(), []
    offset, scale = np.zeros(array.shape[1]), np.ones(array.shape[1])
    for column, places in zip(observations.columns, feature_places(observations.columns), strict=True):
        if column.kind == CATEGORY:
            counts = array[rows, places.start : places.stop].sum(0)
            shares = tuple((counts / max(1.0, counts.sum())).tolist())
            columns.append(dataclasses.replace(column, shares=shares))
            continue
        columns.append(column)
        numbers = places[: len(places) - column.indicates_missing]
        is_missing = array[:, places.stop - 1] > 0 if column.indicates_missing else np.zeros(len(array), bool)
        for place in numbers:
            values = array[rows, place][~is_missing[rows]]
            if len(values):
                offset[place] = values.mean()
                scale[place] = values.std() if np.ptp(values) > 0 else 1.0
            array[is_missing, place] = offset[place]
    offsets, scales = tuple(offset.tolist()), tuple(scale.tolist())
    return array, dataclasses.replace(observations, offset=offsets, scale=scales, columns=tuple(columns))


def with_gaps(array: NDArray[np.float64], observations: Observations) -> NDArray[np.float64]:
    """Return features (n, d) with NaN in all features of missing values."""
    array = np.array(array)
    for column, places in zip(observations.columns, feature_places(observations.columns), strict=True):
        features = array[:, places.start : places.stop]
        if column.kind == CATEGORY:
            features[features.max(1) <= 0] = np.nan
        elif column.indicates_missing:
            features[features[:, -1] > 0, :-1] = np.nan
    return array


def encode_rows(frame: pd.DataFrame, observations: Observations, what: str) -> NDArray[np.float64]:
    """Return the features (n, d) of a table with the columns that a model takes, in any order.

    Raises:
        ValueError: columns are missing, a category has other levels than in the training data, values are missing in a
            column that was complete then, or are no numbers or dates. The message names all of them.
    """
    problems = [problem for column in observations.columns for problem in _problems_of(frame, column)]
    refuse(what, problems)
    array = _features(frame, observations.columns)
    return np.where(np.isnan(array), np.asarray(observations.offset), array)


def decode_rows(array: NDArray[Any], observations: Observations) -> pd.DataFrame:
    """Return features (n, d) as a data frame with the columns and types of the training data.

    The most probable level of a category is its value; integers and dates are rounded.
    """
    table: dict[str, Any] = {}
    for column, places in zip(observations.columns, feature_places(observations.columns), strict=True):
        features = array[:, places.start : places.stop]
        if column.kind == CATEGORY:
            values = pd.Series(_labels(column)).iloc[features.argmax(1)].reset_index(drop=True)
            is_missing = features.max(1) <= 0
        else:
            values = _from_numbers(features[:, 0], column)
            is_missing = features[:, -1] > 0.5 if column.indicates_missing else np.zeros(len(array), bool)
        table[column.name] = values.mask(is_missing) if is_missing.any() else values
    return pd.DataFrame(table)


def _type_of_numbers(column: pd.Series[Any]) -> str:
    if column.dtype.kind in "iu":
        return "int"
    return "int" if pd.api.types.infer_dtype(column, skipna=True) == "integer" else "float"


def _describe_category(column: pd.Series[Any], has_missing: bool) -> TableColumn:
    """Return the description of a category, whose levels are in their own order or else sorted."""
    cells = column.dropna()
    kind = pd.api.types.infer_dtype(cells.astype(object))
    values = VALUES.get(str(kind), "str")
    if isinstance(column.dtype, pd.CategoricalDtype):
        present = set(cells)
        own = [level for level in column.cat.categories if level in present]
    else:
        own = sorted(cells.unique()) if values != "str" else sorted(cells.astype(str).unique())
    levels = tuple(str(level) for level in own)
    counts = cells.astype(object).map(str).value_counts()
    shares = tuple(float(counts[level] / len(cells)) for level in levels)
    return TableColumn(str(column.name), CATEGORY, values, levels, shares, has_missing=has_missing)


def _features(frame: pd.DataFrame, columns: Sequence[TableColumn]) -> NDArray[np.float64]:
    """Return the features (n, d) of columns, NaN where a number is missing."""
    parts: list[NDArray[np.float64]] = []
    for column in columns:
        cells = frame[column.name]
        if column.kind == CATEGORY:
            codes = level_codes(cells, column)
            parts.append((codes[:, None] == np.arange(len(column.levels))).astype(np.float64))
            continue
        numbers = numbers_in(cells) if column.kind == NUMBER else _seconds(_dates(cells, column))
        parts.append(numbers[:, None])
        for part in column.parts:
            angles = _angles(_dates(cells, column), part)
            parts += [np.sin(angles)[:, None], np.cos(angles)[:, None]]
        if column.indicates_missing:
            parts.append(np.isnan(numbers).astype(np.float64)[:, None])
    return np.concatenate(parts, axis=1)


def level_codes(cells: pd.Series[Any], column: TableColumn) -> NDArray[np.int64]:
    """Return the level of each cell (n,), −1 where it is missing and −2 where the training data do not have it."""
    places = {level: place for place, level in enumerate(column.levels)}
    if column.values == "float":  # 1 for 1.0
        places |= {str(int(float(level))): place for level, place in places.items() if float(level).is_integer()}
    if column.values == "int":
        places |= {f"{level}.0": place for level, place in places.items()}
    codes = cells.astype(object).map(lambda cell: places.get(str(cell).strip(), -2), na_action="ignore")
    result: NDArray[np.int64] = codes.fillna(-1).to_numpy(dtype=np.int64)
    return result


def _labels(column: TableColumn) -> Any:
    """Return the levels of a category in their type."""
    if column.values == "bool":
        return np.array([level == TRUE for level in column.levels])
    kinds = {"int": int, "float": float}
    return [kinds.get(column.values, str)(level) for level in column.levels]


def _from_numbers(numbers: NDArray[Any], column: TableColumn) -> pd.Series[Any]:
    """Return numbers in the type of a column."""
    if column.kind == DATE:
        seconds = np.round(numbers / DAY) * DAY if column.values == "date" else np.round(numbers)
        dates = pd.Series(pd.to_datetime(seconds, unit="s", errors="coerce"))
        return dates.dt.tz_localize("UTC").dt.tz_convert(column.timezone) if column.timezone else dates
    return pd.Series(np.round(numbers).astype(np.int64) if column.values == "int" else numbers)


def _dates(cells: pd.Series[Any], column: TableColumn) -> pd.Series[Any]:
    """Return the dates in a column, in its time zone."""
    dates = to_dates(cells)
    return dates.dt.tz_convert(column.timezone) if column.timezone and dates.dt.tz is not None else dates


def _seconds(dates: pd.Series[Any]) -> NDArray[np.float64]:
    """Return dates as seconds since 1970, NaN where one is missing."""
    if dates.dt.tz is not None:
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    seconds: NDArray[np.float64] = (dates - EPOCH).dt.total_seconds().to_numpy(dtype=np.float64)
    return seconds


def _angles(dates: pd.Series[Any], part: str) -> NDArray[np.float64]:
    """Return the places of dates on the circle of a part, NaN where one is missing."""
    places = {
        "hour": lambda: dates.dt.hour + dates.dt.minute / 60,
        "weekday": lambda: dates.dt.day_of_week,
        "month": lambda: dates.dt.month - 1,
    }
    place = places[part]()
    angles: NDArray[np.float64] = 2 * np.pi * place.to_numpy(dtype=np.float64) / DATE_PARTS[part]
    return angles


def _problems_of(frame: pd.DataFrame, column: TableColumn) -> list[str]:
    """Return why a model cannot take a column of a table."""
    if column.name not in frame:
        return [f"lacks the column {column.name!r}, which the model takes."]
    cells, problems = frame[column.name], []
    unit = str(frame.index.name or "row")
    gaps = frame.index[cells.isna()]
    if len(gaps) and not column.has_missing:
        problems.append(
            f"has missing values in {column.name!r} ({unit} {first_few(gaps)}), which had none in the training data: "
            "leave these rows out, or fill the gaps."
        )
    if column.kind == CATEGORY:
        unseen = cells[level_codes(cells, column) == -2].astype(str).unique().tolist()
        if unseen:
            otherwise = ", or make them missing" if column.has_missing else ""
            problems.append(
                f"has {first_few([repr(level) for level in unseen])} in {column.name!r}, which the training data did "
                f"not have (levels: {first_few(column.levels)}): leave these rows out{otherwise}."
            )
    elif column.kind == NUMBER:
        wrong = cells[cells.notna() & ~np.isfinite(numbers_in(cells))]
        if len(wrong):
            problems.append(
                f"has {str(wrong.iloc[0])[:30]!r} in {column.name!r} ({unit} {wrong.index[0]}): no finite number."
            )
    else:
        try:
            to_dates(cells)
        except (ValueError, TypeError, OverflowError) as error:
            problems.append(f"has a date in {column.name!r} that cannot be read ({str(error)[:80]}).")
    return problems
