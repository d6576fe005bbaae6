"""How observations of each kind travel to the page, and how an upload becomes an observation.

Images travel as bytes in three colours; uploads are files such as PNG and JPEG. Vectors and series travel as numbers in
the units of the data; uploads are text: one row of a table for a vector, one line per time step for a series.
"""

import base64
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..data.pictures import PictureSize, decode, to_colours
from ..observations import COLOURS, Observations
from .parse_numbers import NumericText, parse_numbers

MAX_UPLOAD_BYTES = 2**24
SHEET_COLUMNS = 16  # tiles per row of a sheet
BLACK_TO_WHITE = 255
MIN_TEXT_BYTES = 2**22  # that can be uploaded, whatever the model
BYTES_PER_NUMBER = 40
NUM_NAMED = 5  # features that a message names
MAX_NAME = 40  # characters of each
MAX_POINTS = 1024  # of a curve, which is more than the page has pixels for

#: Returns observations (n, *shape) that are spread over the evaluation sample.
Examples = Callable[[], NDArray[Any]]


class Upload(NamedTuple):
    """What a user uploaded."""

    observation: NDArray[Any]  # (*shape), in the type and the units of the data
    note: str  # a message for the user, such as which row of a table was taken; may be empty


class View(ABC):
    """Shows observations of one kind. The page has a class of the same kind that draws them.

    Args:
        observations: their description.
    """

    def __init__(self, observations: Observations):
        self.observations = observations

    @property
    def max_upload_bytes(self) -> int:
        """The size of the largest upload that is read."""
        return MAX_UPLOAD_BYTES

    @abstractmethod
    def describe(self, examples: Examples) -> dict[str, Any]:
        """Return everything that the page needs to draw observations, ready for JSON.

        Args:
            examples: observations from which ranges can be measured.
        """

    @abstractmethod
    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return observations (n, *shape) as the page draws them, one per row of the first axis."""

    @abstractmethod
    def read(self, content: bytes) -> Upload:
        """Return the observation in an uploaded file or text.

        Raises:
            ValueError: The content cannot be read, or is no observation of this model.
        """

    def save(self, drawn: NDArray[Any]) -> dict[str, Any]:
        """Return the result of ``to_page`` in a form for the script of a saved page."""
        return {"numbers": base64.b64encode(drawn.tobytes()).decode()}

    def _describe_kind(self) -> dict[str, Any]:
        traits = self.observations.traits
        return {"kind": traits.name, "one": traits.one, "many": traits.many, "size": self.observations.size}


class ImageView(View):
    """Shows images."""

    def describe(self, examples: Examples) -> dict[str, Any]:
        height, width, channels = self.observations.shape
        return self._describe_kind() | {"width": width, "height": height, "channels": channels}

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return images (n, h, w, c) as tiles (n, h, w, 3) of bytes."""
        return to_colours(arrays, self.observations)

    def read(self, content: bytes) -> Upload:
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
        return Upload(self._in_units(pixels), "")

    def _in_units(self, pixels: NDArray[np.uint8]) -> NDArray[Any]:
        """Return bytes in the type of the data; black and white become the ends of the range that the data have."""
        if self.observations.dtype == "uint8":
            return pixels
        offset, scale = np.asarray(self.observations.offset), np.asarray(self.observations.scale)
        scaled: NDArray[np.float64] = offset + scale * (pixels / BLACK_TO_WHITE)
        return scaled.astype(self.observations.dtype)

    def save(self, drawn: NDArray[Any]) -> dict[str, Any]:
        return {"sheet": "data:image/png;base64," + base64.b64encode(encode_sheet(drawn)).decode()}


class NumberView(View):
    """Shows observations whose last axis has named features."""

    def describe(self, examples: Examples) -> dict[str, Any]:
        """Return the features: their names, mean and standard deviation, and their range over the examples."""
        rows = examples().reshape(-1, self.observations.num_features).astype(np.float64)
        return self._describe_kind() | {
            "type": self.observations.dtype,
            "names": list(self.observations.names),
            "mean": list(self.observations.offset),
            "deviation": list(self.observations.scale),
            "low": _finite(rows.min(0)),
            "high": _finite(rows.max(0)),
        }

    @property
    def max_upload_bytes(self) -> int:
        return min(MAX_UPLOAD_BYTES, max(MIN_TEXT_BYTES, BYTES_PER_NUMBER * self.observations.num_entries))

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(arrays, dtype=np.dtype(self.observations.dtype).newbyteorder("<"))

    def read(self, content: bytes) -> Upload:
        text = parse_numbers(content, self.observations.names)
        rows, note = self._pick(text)
        with np.errstate(over="ignore"):
            observation = rows.astype(self.observations.dtype).reshape(self.observations.shape)
        if not np.isfinite(observation).all():
            raise ValueError(f"a number is too large for {self.observations.dtype}")
        return Upload(observation, note)

    def _pick(self, text: NumericText) -> tuple[NDArray[np.float64], str]:
        """Return the numbers of one observation, and a note for the user."""
        raise NotImplementedError

    def _columns(self, text: NumericText) -> NDArray[np.float64]:
        """Return the columns of the features (n, num_features), by their names if the text has names."""
        names, many = self.observations.names, self._feature_word
        if text.names is None:
            if text.rows.shape[1] != len(names):
                raise ValueError(
                    f"this model takes {len(names):,} {many} ({self._some(names)}), got {text.rows.shape[1]:,}; give "
                    "one number for each, in this order, or a first line that names the columns"
                )
            return text.rows
        missing = [name for name in names if name not in text.names]
        if missing:
            raise ValueError(
                f"this model takes {len(names):,} {many}, and {self._some(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing among the columns {self._some(text.names)}"
            )
        return text.rows[:, [text.names.index(name) for name in names]]

    @property
    def _feature_word(self) -> str:
        return "feature" if self.observations.num_features == 1 else "features"

    @staticmethod
    def _some(names: Any) -> str:
        """Return the first names, and how many there are."""
        shown = [name.encode(errors="backslashreplace").decode() for name in list(names)[:NUM_NAMED]]
        few = ", ".join(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in shown)
        return few if len(names) <= NUM_NAMED else f"{few}, … ({len(names):,} in all)"


class VectorView(NumberView):
    """Shows vectors."""

    def _pick(self, text: NumericText) -> tuple[NDArray[np.float64], str]:
        if text.names is None and text.rows.shape[1] == 1 and len(text.rows) > 1:  # one number per line
            text = NumericText(None, text.rows.T)
        rows = self._columns(text)
        return rows[0], "" if len(rows) == 1 else f"The first of {len(rows):,} rows is shown."


class SeriesView(NumberView):
    """Shows series."""

    @property
    def stride(self) -> int:
        """The page draws every step of a short series, and every ``stride``-th of a long one."""
        return math.ceil(self.observations.shape[0] / MAX_POINTS)

    def describe(self, examples: Examples) -> dict[str, Any]:
        num_steps = self.observations.shape[0]
        points = {"num_steps": num_steps, "stride": self.stride, "num_points": len(range(0, num_steps, self.stride))}
        return super().describe(examples) | points

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return series (n, t, c) as curves (n, points, c)."""
        return super().to_page(arrays[:, :: self.stride])

    def _pick(self, text: NumericText) -> tuple[NDArray[np.float64], str]:
        num_steps, num_channels = self.observations.shape
        if text.names is None and num_channels == 1 and len(text.rows) == 1:  # all steps on one line
            text = NumericText(None, text.rows.T)
        if text.names is None and text.rows.shape == (num_channels, num_steps) and num_steps != num_channels:
            raise ValueError(
                f"a series must have one line per time step ({num_steps:,} lines of {num_channels:,} channels), got "
                f"one line per channel; transpose it"
            )
        rows = self._columns(text)
        if len(rows) != num_steps:
            raise ValueError(f"this model takes series of {num_steps:,} time steps, got {len(rows):,} lines of numbers")
        return rows, ""

    @property
    def _feature_word(self) -> str:
        return "channel" if self.observations.num_features == 1 else "channels"


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


def _finite(numbers: NDArray[np.float64]) -> list[float]:
    """Return plain numbers; reconstructions may be infinite where a model has diverged."""
    most = float(np.finfo(np.float32).max)
    return [float(number) for number in np.nan_to_num(numbers, posinf=most, neginf=-most)]
