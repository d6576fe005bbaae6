"""How observations of each kind travel to the page, and how an upload becomes an observation.

Images travel as bytes in three colours; uploads are files such as PNG and JPEG. Vectors and series travel as numbers in
the units of the data; uploads are text: one row of a table for a vector, one line per time step for a series.
"""

import base64
import csv
import io
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from .._checks import shortened
from ..columns import DATE, feature_places
from ..data.model_inputs import to_model_inputs
from ..data.pictures import PictureSize, decode, to_colours
from ..metrics.sample_files import is_number
from ..observations import COLOURS, Observations

MAX_UPLOAD_BYTES = 2**24
SHEET_COLUMNS = 16  # tiles per row of a sheet
BLACK_TO_WHITE = 255
MIN_TEXT_BYTES = 2**22  # that can be uploaded, whatever the model
BYTES_PER_NUMBER = 40
MAX_NAMES = 200  # characters of a list of features in a message
LEAST_VARIANCE = 1e-6  # of the share of a level
MAX_POINTS = 1024  # of a curve, which is more than the page has pixels for

DELIMITERS = (";", "\t", ",")  # the first that occurs separates cells, since a comma may also stand for a decimal point
QUOTED = re.compile('"[^"]*"')
FORMS = "a CSV, a JSON list or object, or numbers separated by commas or spaces"

#: Numbers in JSON: a row, rows, rows by name, or columns by name.
JsonNumbers: Any = dict[str, float | list[float]] | list[float | list[float] | dict[str, float]]
#: Returns observations (n, *shape) that are spread over the evaluation sample.
Examples = Callable[[], NDArray[Any]]


class View(ABC):
    """Shows observations of one kind. The page has a class of the same kind that draws them."""

    max_upload_bytes = MAX_UPLOAD_BYTES

    def __init__(self, observations: Observations):
        self.observations = observations

    def describe(self, examples: Examples) -> dict[str, Any]:
        """Return everything that the page needs to draw observations, ready for JSON."""
        traits = self.observations.traits
        return {"kind": traits.name, "one": traits.one, "many": traits.many, "size": self.observations.size}

    @abstractmethod
    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return observations (n, *shape) as the page draws them, one per row of the first axis."""

    @abstractmethod
    def read(self, content: bytes) -> tuple[NDArray[Any], str]:
        """Return the observation (*shape) in an uploaded file or text, and a note for the user, which may be empty."""

    def save(self, drawn: NDArray[Any]) -> dict[str, Any]:
        """Return the result of ``to_page`` in a form for the script of a saved page."""
        return {"numbers": base64.b64encode(drawn.tobytes()).decode()}


class ImageView(View):
    """Shows images."""

    def describe(self, examples: Examples) -> dict[str, Any]:
        height, width, channels = self.observations.shape
        return super().describe(examples) | {"width": width, "height": height, "channels": channels}

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return images (n, h, w, c) as tiles (n, h, w, 3) of bytes."""
        return to_colours(arrays, self.observations)

    def read(self, content: bytes) -> tuple[NDArray[Any], str]:
        """Return an image file as an image (h, w, c), scaled and cropped to the size that the model takes."""
        height, width, channels = self.observations.shape
        if channels not in (1, COLOURS):
            raise ValueError(
                f"this model takes images of {self.observations.size}; only grey and coloured images can be uploaded: "
                "use model.encode in Python"
            )
        try:
            pixels = np.array(decode(content, PictureSize(height, width, channels)))  # torch needs a writable array
        except ValueError as error:
            raise ValueError(
                f"this file cannot be read as a picture (PNG, JPEG, WebP, BMP, GIF or TIFF): {error}"
            ) from None
        if self.observations.dtype == "uint8":
            return pixels, ""
        offset, scale = np.asarray(self.observations.offset), np.asarray(self.observations.scale)
        return (offset + scale * (pixels / BLACK_TO_WHITE)).astype(self.observations.dtype), ""

    def save(self, drawn: NDArray[Any]) -> dict[str, Any]:
        return {"sheet": "data:image/png;base64," + base64.b64encode(encode_sheet(drawn)).decode()}


class NumberView(View):
    """Shows observations whose last axis has named features."""

    def __init__(self, observations: Observations):
        super().__init__(observations)
        text_bytes = max(MIN_TEXT_BYTES, BYTES_PER_NUMBER * observations.num_entries)
        self.max_upload_bytes = min(MAX_UPLOAD_BYTES, text_bytes)

    def describe(self, examples: Examples) -> dict[str, Any]:
        """Return the features: their names, mean and standard deviation, and their range over the examples."""
        rows = examples().reshape(-1, self.observations.num_features).astype(np.float64)
        most = float(np.finfo(np.float32).max)
        rows = np.nan_to_num(rows, posinf=most, neginf=-most)  # reconstructions of a model that has diverged
        return super().describe(examples) | {
            "type": self.observations.dtype,
            "names": list(self.observations.names),
            "mean": list(self.observations.offset),
            "deviation": list(self.observations.scale),
            "low": rows.min(0).tolist(),
            "high": rows.max(0).tolist(),
        }

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(arrays, dtype=np.dtype(self.observations.dtype).newbyteorder("<"))

    def read(self, content: bytes) -> tuple[NDArray[Any], str]:
        rows, note = self._pick(parse_numbers(content, self.observations.names))
        with np.errstate(over="ignore"):
            observation = rows.astype(self.observations.dtype).reshape(self.observations.shape)
        if not np.isfinite(observation).all():
            raise ValueError(f"a number is too large for {self.observations.dtype}")
        return observation, note

    @abstractmethod
    def _pick(self, text: "NumericText") -> tuple[NDArray[np.float64], str]:
        """Return the numbers of one observation, and a note for the user."""

    def _columns(self, text: "NumericText") -> NDArray[np.float64]:
        """Return the columns of the features (n, num_features), by their names if the text has names."""
        names = self.observations.names
        wanted = f"this model takes {len(names):,} numbers per line ({_listed(names)})"
        if text.names is None:
            if text.rows.shape[1] != len(names):
                raise ValueError(
                    f"{wanted}, got {text.rows.shape[1]:,}; give one number for each, in this order, or a first line "
                    "that names the columns"
                )
            return text.rows
        missing = [name for name in names if name not in text.names]
        if missing:
            raise ValueError(f"{wanted}; missing among the columns {_listed(text.names)}: {_listed(missing)}")
        return text.rows[:, [text.names.index(name) for name in names]]


class VectorView(NumberView):
    """Shows vectors."""

    def _pick(self, text: "NumericText") -> tuple[NDArray[np.float64], str]:
        if text.names is None and text.rows.shape[1] == 1 and len(text.rows) > 1:  # one number per line
            text = NumericText(None, text.rows.T)
        rows = self._columns(text)
        return rows[0], "" if len(rows) == 1 else f"The first of {len(rows):,} rows is shown."


class TableView(VectorView):
    """Shows rows of tables by their columns."""

    def describe(self, examples: Examples) -> dict[str, Any]:
        """Return the features, with the statistics of levels, and the columns that they belong to."""
        described, columns = super().describe(examples), []
        for column, places in zip(self.observations.columns, feature_places(self.observations.columns), strict=True):
            for place, share in zip(places, column.shares, strict=False):
                described["mean"][place] = share
                described["deviation"][place] = math.sqrt(max(share * (1 - share), LEAST_VARIANCE))
            missing = places[-1] if column.indicates_missing else None
            entry = {"name": column.name, "first": places[0], "levels": list(column.levels), "missing": missing}
            columns.append(entry | {"date": column.values if column.kind == DATE else ""})
        return described | {"columns": columns}

    def read(self, content: bytes) -> tuple[NDArray[Any], str]:
        """Return the first row of a CSV with the columns of the table as an observation."""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("this is not text; give a CSV") from None
        if not text.strip():
            raise ValueError("there is no row; give a CSV with a line of names and a row")
        header = QUOTED.sub("", text.lstrip().partition("\n")[0])
        delimiter = next((character for character in DELIMITERS if character in header), ",")
        frame = pd.read_csv(io.StringIO(text), sep=delimiter)
        if frame.empty:
            raise ValueError("there is no row; give a CSV with a line of names and a row")
        try:
            row = np.asarray(to_model_inputs(frame[:1], self.observations)[np.arange(1)])[0]
        except ValueError as error:
            raise ValueError(str(error).replace("the data frame", "the table", 1)) from None
        return row, "" if len(frame) == 1 else f"The first of {len(frame):,} rows is shown."


class SeriesView(NumberView):
    """Shows series: every step of a short one, and every ``stride``-th of a long one."""

    def __init__(self, observations: Observations):
        super().__init__(observations)
        self.stride = math.ceil(observations.shape[0] / MAX_POINTS)

    def describe(self, examples: Examples) -> dict[str, Any]:
        num_steps = self.observations.shape[0]
        points = {"num_steps": num_steps, "stride": self.stride, "num_points": len(range(0, num_steps, self.stride))}
        return super().describe(examples) | points

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return series (n, t, c) as curves (n, points, c)."""
        return super().to_page(arrays[:, :: self.stride])

    def _pick(self, text: "NumericText") -> tuple[NDArray[np.float64], str]:
        num_steps, num_channels = self.observations.shape
        if text.names is None and num_channels == 1 and len(text.rows) == 1:  # all steps on one line
            text = NumericText(None, text.rows.T)
        rows = self._columns(text)
        if len(rows) != num_steps:
            raise ValueError(f"this model takes series of {num_steps:,} time steps, got {len(rows):,} lines of numbers")
        return rows, ""


def encode_sheet(tiles: NDArray[np.uint8]) -> bytes:
    """Arrange tiles (n, h, w, 3) row by row on one sheet and return it as a PNG."""
    count, height, width = tiles.shape[:3]
    columns = min(SHEET_COLUMNS, count)
    rows = -(-count // columns)
    padded = np.zeros((rows * columns, height, width, COLOURS), np.uint8)
    padded[:count] = tiles
    pixels = padded.reshape(rows, columns, height, width, COLOURS).swapaxes(1, 2)
    file = io.BytesIO()
    Image.fromarray(pixels.reshape(rows * height, columns * width, COLOURS)).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= MAX_NAMES else f"{text[:MAX_NAMES]}…"


class NumericText(NamedTuple):
    """A table of numbers."""

    names: list[str] | None  # of the columns, if the text names them
    rows: NDArray[np.float64]  # (n, columns), all finite


def parse_numbers(content: bytes, known: Collection[str]) -> NumericText:
    """Return the numbers in a text; names of columns that are ``known`` may be numbers themselves, such as "2019"."""
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
