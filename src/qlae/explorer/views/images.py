"""Images travel as bytes in three colours; uploads are files such as PNG and JPEG."""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...data.colours import to_colours
from ...data.picture_size import PictureSize
from ...data.pictures import decode
from ...observations import COLOURS
from .view import Examples, Upload, View

SHEET_COLUMNS = 16  # tiles per row of a sheet
BLACK_TO_WHITE = 255


class ImageView(View):
    """Shows images."""

    def describe(self, examples: Examples) -> dict[str, Any]:
        height, width, channels = self.observations.shape
        return self._words() | {"width": width, "height": height, "channels": channels}

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
