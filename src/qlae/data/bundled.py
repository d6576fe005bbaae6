"""The handwritten digits of scikit-learn: 1,797 grey images of 8×8 pixels, with their class as the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._checks import require_known
from ..registry import DATA
from .dataset import Progress, SourceDataset
from .sources import BUNDLED_SETS
from .spec import DataSpec

INK = 16  # the brightest value of a pixel in scikit-learn's arrays


@DATA.register("bundled")
@dataclass(frozen=True, kw_only=True)
class BundledData(DataSpec):
    """The digits (Alpaydin and Kaynak, 1998): bytes (1797, 8, 8, 1) and the source ``digit`` from 0 to 9."""

    title: ClassVar[str] = "the data set of scikit-learn,"

    def __post_init__(self) -> None:
        require_known(self.name, BUNDLED_SETS, "data set of scikit-learn")

    def read(self, progress: Progress | None = None) -> SourceDataset:
        from sklearn.datasets import load_digits

        bunch = load_digits()
        images = np.rint(bunch.images * (255 / INK)).astype(np.uint8)[..., None]
        return SourceDataset(
            images, bunch.target.astype(np.int64), name=self.name, origin="real", source_names=["digit"]
        )
