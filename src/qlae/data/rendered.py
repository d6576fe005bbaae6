"""Rendered scenes: a grid of all combinations of sources, or a random sample, rendered on demand.

``RenderedImages`` behaves like a uint8 array (n, h, w, c). Each row is a combination of a scene's sources: a point of a
grid, or any other. Nothing is rendered until a row is indexed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..registry import DATA
from . import cache
from .dataset import LazyImages, Progress, SourceDataset
from .pictures import PictureSize
from .scenes import make_scene
from .scenes.scene import Scene
from .sources import CATEGORIES, CIRCULAR, SOURCES, grid_levels
from .spec import SampledData, SquareImages

#: Must be increased whenever a scene's pixels change, so that images in the cache are rendered again.
RENDERER_VERSION = 1
#: The default number of images in a random sample.
SAMPLE_SIZE = 100_000


@DATA.register("scene")
@dataclass(frozen=True, kw_only=True)
class SceneData(SampledData, SquareImages):
    """A rendered scene, such as shapes3d."""

    title: ClassVar[str] = "the rendered data set"
    known_names: ClassVar[Collection[str]] = SOURCES

    @property
    def source_sizes(self) -> Mapping[str, int]:
        return SOURCES[self.name]

    def read(self, progress: Progress | None = None) -> SourceDataset:
        levels: NDArray[Any] | None = None
        facts: dict[str, Any] = {}
        if self.num_images or self.continuous or self.correlated:
            categories, circular = CATEGORIES.get(self.name, ()), CIRCULAR.get(self.name, ())
            drawn, smooth, facts = self.draw(SAMPLE_SIZE, categories=categories, circular=circular)
            levels = drawn if smooth else drawn.astype(np.int64)
        data = SourceDataset(
            RenderedImages(self.name, self.size.shape, **self._rows(levels)),
            levels,
            name=self.name,
            origin="rendered",
            source_names=list(self.varying),
            source_sizes=list(self.varying.values()),
            fixed=self.fixed,
            details={"renderer": RENDERER_VERSION} | facts,
        )
        return find_rendered(data) or data

    def _rows(self, levels: NDArray[Any] | None) -> dict[str, Any]:
        """Return the grid or, from levels (n, number of varying sources), the points of `RenderedImages`."""
        if levels is None:
            whole = {name: range(size) for name, size in SOURCES[self.name].items()}
            return {"grid": list((whole | {name: [level] for name, level in self.fixed.items()}).values())}
        columns = dict(zip(self.varying, levels.T, strict=True))
        fixed = {name: np.full(len(levels), level, levels.dtype) for name, level in self.fixed.items()}
        return {"points": np.stack([(columns | fixed)[name] for name in SOURCES[self.name]], axis=1)}


class RenderedImages(LazyImages):
    """A lazy array of rendered images. Indexing renders; results are stored only if ``keeps`` is set.

    Attributes:
        keeps: whether `render_on` stores its tensors for the next call, for the lifetime of this object.

    Args:
        name: the scene's name.
        shape: of an image, (h, h, c).
        grid: for each source of the scene, the levels it takes (one level if it is fixed). There is one row for each
            combination.
        points: (n, n_s) levels of all sources of the scene, instead of a grid; floats lie between grid levels.
        device: the device that renders, such as ``"cpu"`` or ``"cuda"``.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        grid: Sequence[Sequence[int] | NDArray[np.int64]] = (),
        points: NDArray[Any] | None = None,
        device: str = "cpu",
    ) -> None:
        self.name = name
        self.device = device
        self.grid = [np.asarray(values, dtype=np.int64) for values in grid]
        self.points = points
        self.shape = (math.prod(map(len, grid)) if points is None else len(points), *shape)
        self.keeps = False
        self._rendered: dict[str, Tensor] = {}  # by device

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and other processes: without device tensors and the scene."""
        return {name: value for name, value in vars(self).items() if name != "scene"} | {"_rendered": {}}

    def __repr__(self) -> str:
        return f"RenderedImages({self.name}, shape={self.shape}, uint8)"

    def compute(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        if self.points is None:
            places = grid_levels([len(values) for values in self.grid], rows)
            levels = np.stack([values[places[:, i]] for i, values in enumerate(self.grid)], axis=1)
        else:
            levels = self.points[rows]
        return self.scene.render(levels).cpu().numpy()

    def fill(self, out: NDArray[np.uint8], *, progress: Progress | None = None) -> None:
        if self.points is None:
            self.scene.render_grid(self.grid, out=out, progress=progress)
        else:
            super().fill(out, progress=progress)

    def on(self, device: str) -> RenderedImages:
        """Return the same images, rendered on another device."""
        return RenderedImages(self.name, self.shape[1:], grid=self.grid, points=self.points, device=device)

    def render_on(self, device: str, *, progress: Progress | None = None) -> Tensor:
        """Render all images on a device.

        Returns:
            (n, h, w, c) uint8 on the device. If ``keeps`` is set, later calls return the same tensor, so do not modify
            it.
        """
        if self.is_kept_on(device):
            return self._rendered[device]
        if self.points is None:
            out = torch.empty(self.shape, dtype=torch.uint8, device=device)
            self.on(device).scene.render_grid(self.grid, out=out, progress=progress)
        else:
            out = torch.from_numpy(self.on(device).compute_all(progress=progress)).to(device)
        if self.keeps:
            self._rendered[device] = out
        return out

    def is_kept_on(self, device: str) -> bool:
        """Return whether `render_on` has stored the images of this device."""
        return device in self._rendered

    def rows_on(self, device: str, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return some images, rendered on a device or taken from the tensor that `render_on` has stored there."""
        if not self.is_kept_on(device):
            return self.on(device)[rows]
        return self._rendered[device][torch.from_numpy(rows).to(device)].cpu().numpy()

    @cached_property
    def scene(self) -> Scene:
        """The scene behind the images, loaded on first use."""
        return make_scene(self.name, self.shape[1], self.device)


def keep_on_disk(data: SourceDataset, *, progress: Progress | None = None) -> SourceDataset:
    """Render all images into the cache on disk and return the data that reads them from there.

    Later calls of `load_data` with the same arguments use the cache.

    Raises:
        ValueError: the images are not `RenderedImages`.
    """
    images = data.images
    if not isinstance(images, RenderedImages):
        raise ValueError(f"only rendered images without noise can be cached on disk, got {type(images).__name__}")
    facts = _cached_facts(data)

    def fill(out: NDArray[np.uint8]) -> cache.Content:
        images.fill(out, progress=progress)
        return cache.Content(facts, None if images.points is None else data.sources)

    cached = cache.build(facts, fill)
    cached.spec = data.spec
    return cached


def find_rendered(data: SourceDataset) -> SourceDataset | None:
    """Return the data that reads the same rendered images from the cache on disk; None if they are not there."""
    return cache.find(_cached_facts(data))


def _cached_facts(data: SourceDataset) -> dict[str, Any]:
    """Return the description that determines the entry of rendered images, with their size as the cache holds it."""
    facts = data.describe()
    facts.pop("observations", None)
    return facts | {"resolution": PictureSize(*data.observations.shape).plain}


def images_of(data: SourceDataset, rows: NDArray[np.int64], device: str = "cpu") -> NDArray[Any]:
    """Return the images of some rows in the fastest way.

    Args:
        data: any data set.
        rows: (k,) row numbers.
        device: where to render images that are rendered on demand. On a CPU, the cache on disk is used if it has them.

    Returns:
        (k, …) of the data's type, such as (k, h, w, 3) uint8.
    """
    images = data.images
    if isinstance(images, RenderedImages) and device.startswith("cuda"):
        return images.rows_on(device, rows)
    if isinstance(images, RenderedImages):
        entry = find_rendered(data)  # they may have been cached after `data` was loaded
        images = images if entry is None else entry.images
    return np.asarray(images[rows])
