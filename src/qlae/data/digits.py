"""The handwritten digits of scikit-learn: 1,797 grey images of 8×8 pixels, with their class as the source."""

from __future__ import annotations

import numpy as np

from .dataset import SourceDataset

INK = 16  # the brightest value of a pixel in scikit-learn's arrays


def load_digits() -> SourceDataset:
    """Return the digits (Alpaydin and Kaynak, 1998): bytes (1797, 8, 8, 1) and the source ``digit`` from 0 to 9."""
    from sklearn.datasets import load_digits as load

    bunch = load()
    images = np.rint(bunch.images * (255 / INK)).astype(np.uint8)[..., None]
    return SourceDataset(images, bunch.target.astype(np.int64), name="digits", origin="real", source_names=["digit"])
