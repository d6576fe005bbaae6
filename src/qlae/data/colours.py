"""Images of any type and number of channels as they are shown: bytes in three colours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..observations import COLOURS, Observations


def to_colours(images: NDArray[Any], observations: Observations) -> NDArray[np.uint8]:
    """Return images (…, h, w, c) as they are shown, (…, h, w, 3) bytes.

    Floats are shown over the range that the data have. One channel is grey, two are red and green, and of more than
    three channels the first three are shown.
    """
    if observations.dtype != "uint8":
        shares = (images - np.asarray(observations.offset)) / np.asarray(observations.scale)
        images = np.rint(255 * shares.clip(0, 1)).astype(np.uint8)
    num_channels = images.shape[-1]
    if num_channels == 1:
        return np.repeat(images, COLOURS, axis=-1)
    if num_channels < COLOURS:
        return np.concatenate([images, np.zeros_like(images[..., :1])], axis=-1)
    return images[..., :COLOURS]
