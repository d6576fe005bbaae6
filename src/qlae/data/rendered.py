"""Rendered scenes: a grid of all combinations of sources, or a random sample, rendered on demand.

``RenderedImages`` behaves like a uint8 array (n, h, w, c). Each row is a combination of a scene's sources: a point of a
grid, or any other. Nothing is rendered until a row is indexed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._checks import require_known
from ..observations import IMAGES, Observations
from ..registry import DATA
from . import cache
from .dataset import Progress, SourceDataset, row_indices
from .pictures import DEFAULT_RESOLUTION, PictureSize, square_resolution
from .sampling import draw_levels, smooth_sources
from .scenes import make_scene
from .scenes.scene import Scene
from .sources import CATEGORIES, SOURCES, grid_levels, num_channels, split_sources
from .spec import NoisyData, SampledData

#: Must be increased whenever a scene's pixels change, so that images in the cache are rendered again.
RENDERER_VERSION = 1
#: Images per job, where they are not a grid.
POINTS_AT_ONCE = 1000
#: The default number of images in a random sample.
SAMPLE_SIZE = 100_000


@DATA.register("scene")
@dataclass(frozen=True, kw_only=True)
class SceneData(SampledData, NoisyData):
    """A rendered scene, such as shapes3d."""

    title: ClassVar[str] = "the rendered data set"

    resolution: int | tuple[int, int] | str = DEFAULT_RESOLUTION

    def __post_init__(self) -> None:
        require_known(self.name, SOURCES, "scene")
        super().__post_init__()
        self._set(resolution=self.side)

    @property
    def side(self) -> int:
        """Height and width in pixels."""
        return square_resolution(self.name, self.resolution)

    @property
    def source_sizes(self) -> Mapping[str, int]:
        return SOURCES[self.name]

    def preview(self) -> Observations:
        return Observations(IMAGES, (self.side, self.side, num_channels(self.name)))

    def read(self, progress: Progress | None = None) -> SourceDataset:
        varying, constant = split_sources(self.source_sizes, self.sources or None, self.fixed)
        levels, details = self._draw(varying)
        data = SourceDataset(
            _lazy_images(self.name, self.side, constant, levels),
            levels,
            name=self.name,
            origin="rendered",
            source_names=varying,
            source_sizes=[self.source_sizes[source] for source in varying],
            fixed=constant,
            details={"renderer": RENDERER_VERSION} | details,
        )
        return find_rendered(data) or data

    def _draw(self, varying: Sequence[str]) -> tuple[NDArray[Any] | None, dict[str, Any]]:
        """Return random levels (n, number of varying sources) and a description of the draw; None for a grid."""
        if not (self.num_images or self.continuous or self.correlated):
            return None, {}
        options: dict[str, Any] = {"continuous": self.continuous, "correlated": self.correlations, "seed": self.seed}
        levels = draw_levels(self.name, varying, self.num_images or SAMPLE_SIZE, **options)
        smooth = smooth_sources(varying, self.continuous, CATEGORIES.get(self.name, ()))
        drawn = {"continuous": smooth, "correlated": [list(entry) for entry in self.correlated], "seed": self.seed}
        return (levels if smooth else levels.astype(np.int64)), {"drawn": drawn}


def _lazy_images(
    name: str, resolution: int, constant: Mapping[str, int], levels: NDArray[Any] | None
) -> RenderedImages:
    """Return the images of a grid or, if given, of levels (n, number of varying sources)."""
    table = SOURCES[name]
    if levels is None:
        grid = [[constant[n]] if n in constant else range(size) for n, size in table.items()]
        return RenderedImages(name, resolution, grid=grid)
    columns = iter(levels.T)
    points = np.stack(
        [np.full(len(levels), constant[n], levels.dtype) if n in constant else next(columns) for n in table], axis=1
    )
    return RenderedImages(name, resolution, points=points)


class RenderedImages:
    """A lazy array of rendered images. Indexing renders; results are stored only if ``keeps`` is set.

    Attributes:
        keeps: whether `render_on` stores its tensors for the next call, for the lifetime of this object.

    Args:
        name: the scene's name.
        resolution: height and width in pixels.
        grid: for each source of the scene, the levels it takes (one level if it is fixed). There is one row for each
            combination.
        points: (n, n_s) levels of all sources of the scene, instead of a grid; floats lie between grid levels.
        device: the device that renders, such as ``"cpu"`` or ``"cuda"``.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(
        self,
        name: str,
        resolution: int,
        *,
        grid: Sequence[Sequence[int] | NDArray[np.int64]] | None = None,
        points: NDArray[Any] | None = None,
        device: str = "cpu",
    ) -> None:
        self.name = name
        self.device = device
        self.grid = None if grid is None else [np.asarray(values, dtype=np.int64) for values in grid]
        self.points = points
        num = len(points) if points is not None else math.prod(len(values) for values in grid or ())
        self.shape = (num, resolution, resolution, num_channels(name))
        self.keeps = False
        self._rendered: dict[str, Tensor] = {}  # by device
        self._scene: Scene | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and other processes: without the lock, device tensors and the scene."""
        return self.__dict__ | {"_lock": None, "_scene": None, "_rendered": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"RenderedImages({self.name}, shape={self.shape}, uint8)"

    def __getitem__(self, rows: Any, /) -> NDArray[np.uint8]:
        """Render rows, given by an integer, a slice, or a one-dimensional array of integers or booleans."""
        indices = row_indices(rows, len(self))
        images = self.scene.render_levels(self._levels_of(indices.reshape(-1)))
        return images[0] if indices.ndim == 0 else images

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("rendered images cannot become an array without a copy: leave out copy=False")
        images = self.render_all()
        return images if dtype is None else images.astype(dtype)

    def render_all(
        self, *, out: NDArray[np.uint8] | None = None, progress: Progress | None = None
    ) -> NDArray[np.uint8]:
        """Render all images, into `out` (n, h, w, c) if it is given."""
        if out is None:
            out = np.empty(self.shape, dtype=np.uint8)
        self.fill(out, progress=progress)
        return out

    def fill(
        self,
        out: NDArray[np.uint8] | Tensor,
        first_job: int = 0,
        job_done: Callable[[int, int], None] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Render all images into `out`, starting at job `first_job`. See `Scene.render_grid` for the arguments."""
        if self.grid is not None:
            self.scene.render_grid(self.grid, out=out, progress=progress, first_job=first_job, job_done=job_done)
            return
        starts = range(0, len(self), POINTS_AT_ONCE)
        for job, start in enumerate(starts[first_job:], start=first_job + 1):
            rows = slice(start, min(start + POINTS_AT_ONCE, len(self)))
            images = self.scene.render(self._levels_of(np.arange(rows.start, rows.stop)))
            if isinstance(out, np.ndarray):
                out[rows] = images.cpu().numpy()
            else:
                out[rows] = images
            if job_done is not None:
                job_done(job, len(starts))
            if progress is not None:
                progress(rows.stop, len(self))

    def on(self, device: str) -> RenderedImages:
        """Return the same images, rendered on another device."""
        return RenderedImages(self.name, self.shape[1], grid=self.grid, points=self.points, device=device)

    def render_on(self, device: str, *, progress: Progress | None = None) -> Tensor:
        """Render all images on a device, without a copy through the host.

        Returns:
            (n, h, w, c) uint8 on the device. If ``keeps`` is set, later calls return the same tensor, so do not modify
            it.
        """
        if self.is_kept_on(device):
            return self._rendered[device]
        out = torch.empty(self.shape, dtype=torch.uint8, device=device)
        self.on(device).fill(out, progress=progress)
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

    @property
    def scene(self) -> Scene:
        """The scene behind the images, loaded on first use."""
        with self._lock:
            if self._scene is None:
                self._scene = make_scene(self.name, self.shape[1], self.device)
            return self._scene

    def _levels_of(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the levels (k, all sources of the scene) of rows (k,)."""
        if self.points is not None:
            return self.points[rows]
        assert self.grid is not None
        places = grid_levels([len(values) for values in self.grid], rows)
        return np.stack([values[places[:, i]] for i, values in enumerate(self.grid)], axis=1)


def keep_on_disk(data: SourceDataset, *, progress: Progress | None = None) -> SourceDataset:
    """Render all images into the cache on disk and return the data that reads them from there.

    An interrupted call resumes where it stopped. Later calls of `load_data` with the same arguments use the cache.

    Raises:
        ValueError: the images are not `RenderedImages`.
    """
    images = data.images
    if data.origin == "generated":
        raise ValueError(f"{data.name} is generated whenever it is loaded, so there is nothing to cache on disk")
    if not isinstance(images, RenderedImages):
        raise ValueError(f"only rendered images without noise can be cached on disk, got {type(images).__name__}")
    cached = cache.build(
        _cached_description(data),
        lambda out, first_job, job_done: images.fill(out, first_job, job_done, progress),
        made_with={"renderer": RENDERER_VERSION, "device": images.device.partition(":")[0]},
        sources=None if images.points is None else data.sources,
    )
    cached.spec = data.spec
    return cached


def find_rendered(data: SourceDataset) -> SourceDataset | None:
    """Return the data that reads the same rendered images from the cache on disk; None if they are not there."""
    return cache.find(_cached_description(data))


def _cached_description(data: SourceDataset) -> dict[str, Any]:
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
