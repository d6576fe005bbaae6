"""Read numbers from text that users paste or upload: CSV with or without names, JSON, or numbers separated by spaces.

Every error is a ``ValueError`` that says where the text is wrong.
"""

import csv
import math
import re
from collections.abc import Collection
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from .._checks import shortened
from ..metrics.sample_files import is_number

DELIMITERS = (";", "\t", ",")  # the first that occurs separates cells, since a comma may also stand for a decimal point
QUOTED = re.compile('"[^"]*"')
FORMS = "a CSV, a JSON list or object, or numbers separated by commas or spaces"

#: A row, rows, rows by name, or columns by name.
JsonNumbers: Any = dict[str, float | list[float]] | list[float | list[float] | dict[str, float]]


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
    names, rows, first_line = _read_json(text) if text.startswith(("[", "{")) else _read_csv(text, known)
    if not rows or not rows[0]:
        raise ValueError(f"there are no numbers; give {FORMS}")
    if names is not None and len(set(names)) < len(names):
        raise ValueError("two columns have the same name")
    width = len(rows[0] if names is None else names)
    for i, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"line {i + first_line} has {len(row):,} numbers, expected {width:,}")
    try:
        numbers = np.fromiter(map(float, chain.from_iterable(rows)), np.float64, len(rows) * width)
    except (ValueError, TypeError):  # text, or a list among numbers
        numbers = np.array([math.nan])
    if not np.isfinite(numbers).all():
        _refuse_cell(names, rows, first_line)
    return NumericText(names, numbers.reshape(-1, width))


def _read_csv(text: str, known: Collection[str]) -> tuple[list[str] | None, list[list[str]], int]:
    """Return the names of columns, the cells, and the number of the line of the first of them."""
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    unquoted = QUOTED.sub("", lines[0])
    delimiter = next((character for character in DELIMITERS if character in unquoted), None)
    try:
        cells = [*csv.reader(lines, delimiter=delimiter, strict=True)] if delimiter else [row.split() for row in lines]
    except csv.Error as error:
        raise ValueError(f"this cannot be read as a CSV: {error}") from None
    cells[0] = [cell.strip() for cell in cells[0]]
    if any(is_number(cell) for cell in cells[0]) and not set(known) <= set(cells[0]):
        return None, cells, 1
    is_single = delimiter is None and len(cells) > 1 and len(cells[1]) == 1  # a name that may contain spaces
    return [lines[0].strip()] if is_single else cells[0], cells[1:], 2


def _read_json(text: str) -> tuple[list[str] | None, list[list[Any]], int]:
    """Return the same for a JSON list or object."""
    try:  # nested lists end at the first that is too deep, before anything is built of the others
        content: Any = msgspec.json.decode(text, type=JsonNumbers)
    except msgspec.DecodeError as error:
        raise ValueError(f"this cannot be read as JSON of numbers: {error}") from None
    if isinstance(content, dict):
        columns = [entry if isinstance(entry, list) else [entry] for entry in content.values()]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the lists of a JSON object must have the same length")
        return list(content), [list(row) for row in zip(*columns, strict=True)], 1
    if content and all(isinstance(entry, dict) for entry in content):
        names = list(content[0])
        if any(list(entry) != names for entry in content):
            raise ValueError("the objects of a JSON list must have the same names, in the same order")
        return names, [list(entry.values()) for entry in content], 1
    return None, content if content and all(isinstance(entry, list) for entry in content) else [content], 1


def _refuse_cell(names: list[str] | None, rows: list[list[Any]], first_line: int) -> None:
    """Raise an error that names the first cell that is not a finite number."""
    for line, row in enumerate(rows, first_line):
        for column, cell in enumerate(row):
            if isinstance(cell, float | str) and is_number(str(cell)) and math.isfinite(float(cell)):
                continue
            place = f"in line {line}, column {column + 1 if names is None else shortened(names[column])}"
            if isinstance(cell, str) and not cell.strip():
                raise ValueError(f"a number is missing {place}")
            hint = "; write decimals with a point" if isinstance(cell, str) and "," in cell else ""
            raise ValueError(f"{shortened(cell)} {place} is not a finite number{hint}")
