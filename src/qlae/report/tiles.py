"""Images arranged on one sheet, and faded images."""

import numpy as np
from numpy.typing import NDArray

GAP = 2  # pixels between tiles
FADED = 0.6  # share of white in the tiles of uninformative latents


def tile(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return images arranged on one sheet, with white gaps between them.

    Args:
        images: Images (rows, columns, h, w, 3).

    Returns:
        The sheet (height, width, 3).
    """
    rows, columns, height, width = images.shape[:4]
    sheet = np.full((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, 3), 255, np.uint8)
    for i in range(rows):
        for j in range(columns):
            y, x = i * (height + GAP), j * (width + GAP)
            sheet[y : y + height, x : x + width] = images[i, j]
    return sheet


def fade(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return images, of any shape, mixed with white.

    >>> fade(np.array([0, 255], np.uint8)).tolist()
    [153, 255]
    """
    mixed: NDArray[np.uint8] = (FADED * 255 + (1 - FADED) * images).round().astype(np.uint8)
    return mixed
