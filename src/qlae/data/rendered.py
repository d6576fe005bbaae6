"""Images that are drawn when they are asked for.

``RenderedImages`` looks like a uint8 array (n, h, w, 3) whose rows are the grid of a scene's sources. It costs nothing
until a row is indexed; only then are torch and the scene loaded.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .dataset import Progress
from .sources import grid_rows

if TYPE_CHECKING:
    from .scenes.scene import Scene


class RenderedImages:
    """A lazy array of rendered images, a row a point of the grid `levels`.

    Args:
        name: the scene's name.
        resolution: height and width in pixels.
        levels: for each source of the scene, the levels it takes; a fixed source takes one.
        device: where to render, such as ``"cpu"`` or ``"cuda"``.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, name: str, resolution: int, levels: Sequence[Sequence[int]], device: str = "cpu") -> None:
        self.name = name
        self.levels = [np.asarray(values, dtype=np.int64) for values in levels]
        self.device = device
        self.shape = (math.prod(len(values) for values in levels), resolution, resolution, 3)
        self._scene: Scene | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"RenderedImages({self.name}, shape={self.shape}, uint8)"

    def __getitem__(self, rows: Any, /) -> NDArray[np.uint8]:
        """Row or rows by integer, slice, or one-dimensional array of integers or booleans."""
        indices = _row_indices(rows, len(self))
        images = self.scene.render_levels(self._levels_of(indices.reshape(-1)))
        return images[0] if indices.ndim == 0 else images

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("rendered images are made anew: they cannot become an array without a copy")
        images = self.render_all()
        return images if dtype is None else images.astype(dtype)

    def render_all(
        self, *, out: NDArray[np.uint8] | None = None, progress: Progress | None = None
    ) -> NDArray[np.uint8]:
        """All images, into `out` (n, h, w, 3) if given."""
        if out is None:
            out = np.empty(self.shape, dtype=np.uint8)
        self.scene.render_grid(self.levels, out=out, progress=progress)
        return out

    @property
    def scene(self) -> Scene:
        """The scene behind the images, loaded on first use."""
        with self._lock:
            if self._scene is None:
                from .scenes import make_scene

                self._scene = make_scene(self.name, self.shape[1], self.device)
            return self._scene

    def _levels_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(k,) row numbers → (k, all sources of the scene) levels."""
        places = grid_rows([len(values) for values in self.levels], rows)
        return np.stack([values[places[:, i]] for i, values in enumerate(self.levels)], axis=1)


def _row_indices(rows: Any, count: int) -> NDArray[np.int64]:
    """Any row index as non-negative integers: 0-d for one row, else 1-d."""
    if isinstance(rows, slice):
        return np.arange(*rows.indices(count), dtype=np.int64)
    index = np.asarray(rows)
    if index.size == 0 and index.ndim == 1 and not isinstance(rows, np.ndarray):
        index = index.astype(np.int64)  # an empty list comes as float
    if isinstance(rows, tuple) or index.ndim > 1 or index.dtype.kind not in "iub":
        raise IndexError(f"images take an integer, a slice or a 1-d array of integers or booleans, got {rows!r}")
    if index.dtype.kind == "b":
        if index.shape != (count,):
            raise IndexError(f"a boolean index must have shape ({count},), got {index.shape}")
        return np.flatnonzero(index)
    index = index.astype(np.int64)
    wrapped = np.where(index < 0, index + count, index)
    if ((wrapped < 0) | (wrapped >= count)).any():
        worst = index.reshape(-1)[np.argmax((wrapped < 0) | (wrapped >= count))]
        raise IndexError(f"row {worst} is out of range for {count} images")
    return wrapped
