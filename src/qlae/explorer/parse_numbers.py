"""Read numbers from text that users paste or upload: CSV with or without names, JSON, or numbers separated by spaces.

Every reader raises a ``ValueError`` that says which line and column it could not read.
"""

import csv
import json
import math
import re
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..metrics.sample_files import is_number

DELIMITERS = (";", "\t", ",")  # the first that occurs separates cells, since a comma may also stand for a decimal point
QUOTED = re.compile('"[^"]*"')
MAX_CELL = 1000  # characters
SHOWN = 30  # characters of a cell in a message
FORMS = "a CSV, a JSON list or object, or numbers separated by commas or spaces"


class NumericText(NamedTuple):
    """A table of numbers."""

    names: list[str] | None  # of the columns, if the text names them
    rows: NDArray[np.float64]  # (n, columns), all finite


def parse_numbers(content: bytes, known: Collection[str]) -> NumericText:
    """Return the numbers in a text.

    Args:
        content: The bytes of the text.
        known: Names of columns that may be numbers themselves, such as "2019".
    """
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise ValueError(f"this is not text; give {FORMS}") from None
    if not text:
        raise ValueError(f"there are no numbers; give {FORMS}")
    return _parse_json(text) if text[0] in "[{" else _parse_csv(text, known)


def _parse_csv(text: str, known: Collection[str]) -> NumericText:
    lines = [line for line in text.splitlines() if line.strip()]
    unquoted = QUOTED.sub("", lines[0])
    delimiter = next((character for character in DELIMITERS if character in unquoted), None)
    try:
        cells = (
            [line.split() for line in lines]
            if delimiter is None
            else list(csv.reader(lines, delimiter=delimiter, strict=True))
        )
    except csv.Error as error:
        raise ValueError(f"this cannot be read as a CSV: {error}") from None
    cells = [[cell.strip() for cell in row] for row in cells]
    has_names = not any(is_number(cell) for cell in cells[0]) or set(known) <= set(cells[0])
    names = cells[0] if has_names else None
    if names is not None and delimiter is None and len(cells) > 1 and len(cells[1]) == 1:
        names = [lines[0].strip()]  # one name, which may contain spaces
    return _to_rows(names, cells if names is None else cells[1:], first_line=1 if names is None else 2)


def _parse_json(text: str) -> NumericText:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("this begins like JSON but cannot be read as JSON") from None
    if isinstance(content, dict):
        return _from_columns(content)
    if content and all(isinstance(entry, dict) for entry in content):
        names = list(content[0])
        if any(list(entry) != names for entry in content):
            raise ValueError("the objects of a JSON list must have the same names, in the same order")
        return _to_rows(names, [list(entry.values()) for entry in content])
    if content and all(isinstance(entry, list) for entry in content):
        return _to_rows(None, content)
    return _to_rows(None, [content])


def _from_columns(columns: dict[str, Any]) -> NumericText:
    """Return a JSON object of numbers, or of lists of equal length, as a table."""
    if not columns:
        raise ValueError("the JSON object is empty; give one number per name")
    values = [entry if isinstance(entry, list) else [entry] for entry in columns.values()]
    if len({len(column) for column in values}) > 1:
        raise ValueError("the lists of a JSON object must have the same length")
    return _to_rows(list(columns), [list(row) for row in zip(*values, strict=True)])


def _to_rows(names: list[str] | None, cells: list[list[Any]], first_line: int = 1) -> NumericText:
    if not cells or not cells[0]:
        raise ValueError(f"there are no numbers; give {FORMS}")
    if names is not None and len(set(names)) < len(names):
        raise ValueError("two columns have the same name")
    width = len(cells[0]) if names is None else len(names)
    for i, row in enumerate(cells):
        if len(row) != width:
            raise ValueError(f"line {i + first_line} has {len(row):,} numbers, expected {width:,}")
    numbers = np.empty((len(cells), width))
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            numbers[i, j] = _to_number(cell, i + first_line, j + 1 if names is None else names[j])
    return NumericText(names, numbers)


def _to_number(cell: Any, line: int, column: int | str) -> float:
    place = f"in line {line}, column {column if isinstance(column, int) else repr(column[:SHOWN])}"
    if isinstance(cell, str) and not cell:
        raise ValueError(f"a number is missing {place}")
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        raise ValueError(f"{place} must be a number, got {type(cell).__name__}")
    try:
        number = float(cell) if len(str(cell)) <= MAX_CELL else math.inf
    except (ValueError, OverflowError):
        hint = "; write decimals with a point" if isinstance(cell, str) and "," in cell else ""
        raise ValueError(f"{str(cell)[:SHOWN]!r} {place} is not a number{hint}") from None
    if not math.isfinite(number):
        raise ValueError(f"{str(cell)[:SHOWN]!r} {place} is missing or infinite; give a finite number")
    return number
