"""``Scene``: images from sources, factored into geometry and colour.

Light is additive. For fixed surfaces, camera and lamps, an image is therefore linear in the colours:

    image = develop(exposure · (base + Σ layer · colour))

where `base` is the part whose colour never changes, and a layer is the shade of everything that one source colours.
Geometry (`base` and layers, traced with four rays per pixel and averaged) is slow to compute, but there is little of
it: 480 geometries for the 480,000 images of Shapes3D. Each is traced once and then coloured in all ways, with a few
multiply-adds per pixel.

Sources are levels: level i of a source is the i-th value of the paper's grid, and a level between two integers lies
between two grid values. A scene converts levels to lengths, angles and colours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...metrics.parallel import num_cores
from ..sources import GREY_SETS, SOURCES
from .tracing import SUBSAMPLES

#: Rays traced at once: few enough to stay in a core's cache, enough to hide the cost of a call.
RAYS_AT_ONCE = {"cpu": 2**18, "cuda": 2**24}
#: The geometries of a scene are cached in memory if all of them fit into this many bytes.
CACHE_BYTES = 2**29
#: Images of one geometry that are coloured at once.
COLOURED_AT_ONCE = 16

Levels = dict[str, Tensor]


class Scene(ABC):
    """A scene at one resolution on one device.

    A subclass names its sources and defines their appearance: `trace`, `colour`, `exposures`, `develop`.

    Attributes:
        name: the data set's name in `SOURCES`.
        layers: the sources that set the colour of a surface, one for each layer.
        exposure: the source that scales all light, if there is one.
        geometry: all other sources, in an order in which neighbours share most of their geometry.
        shared: the first sources of `geometry`, whose levels are the same for all geometries that are traced at once:
            they select the solids, or determine the parts of the picture that the others do not change.
    """

    name: ClassVar[str]
    layers: ClassVar[tuple[str, ...]]
    exposure: ClassVar[str | None] = None
    geometry: ClassVar[tuple[str, ...]]
    shared: ClassVar[tuple[str, ...]]

    def __init__(self, resolution: int, device: str = "cpu") -> None:
        self.resolution = resolution
        self.device = torch.device(device)
        self.sizes = SOURCES[self.name]
        self.channels = 1 if self.name in GREY_SETS else 3
        self.image_shape = (resolution, resolution, self.channels)
        self._num_values = math.prod(self.image_shape)
        self._colours = [source for source in self.sizes if source not in self.geometry]
        self._cache: dict[tuple[float, ...], Tensor] = {}
        num_bytes = 4 * (1 + len(self.layers)) * self._num_values * math.prod(self.sizes[s] for s in self.geometry)
        # A geometry without colours makes one image only, so there is nothing to reuse.
        self._caches = bool(self._colours) and num_bytes <= CACHE_BYTES

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of the sources, in the order of the data set."""
        return tuple(self.sizes)

    @property
    def source_sizes(self) -> tuple[int, ...]:
        """The number of grid levels of each source."""
        return tuple(self.sizes.values())

    # What a subclass defines.

    @abstractmethod
    def trace(self, shared: Mapping[str, float], levels: Levels) -> Tensor:
        """Trace g geometries.

        Args:
            shared: the common level of each source in the class attribute `shared`.
            levels: the levels (g,) of each of the other geometry sources, in double precision on the host.

        Returns:
            (g, channels + number of layers, pixels) float32 on the device: the channels of the base, then the layers.
        """

    def colour(self, source: str, levels: Tensor) -> Tensor:
        """Return the colours (k, channels) of a layer's source at levels (k,), in double precision on the host."""
        raise NotImplementedError

    def exposures(self, levels: Tensor) -> Tensor:
        """Return the factors (k,) by which the exposure source scales all light at levels (k,)."""
        raise NotImplementedError

    @abstractmethod
    def develop(self, light: Tensor) -> Tensor:
        """Map linear light to [0, 1], elementwise; it may modify its input.

        It must not use transcendental functions: see `vectors`.
        """

    # Rendering.

    def render(self, levels: Tensor | NDArray[Any]) -> Tensor:
        """Render images.

        Args:
            levels: (b, n_s) integers, or floats for sources between grid levels.

        Returns:
            (b, h, w, channels) uint8 on the scene's device.
        """
        points = np.asarray(levels, dtype=np.float64)
        out = torch.empty((len(points), self._num_values), dtype=torch.uint8, device=self.device)
        geometries, which = np.unique(points[:, self._columns(self.geometry)], axis=0, return_inverse=True)
        order = np.argsort(which.reshape(-1), kind="stable")
        ends = np.searchsorted(which.reshape(-1)[order], np.arange(len(geometries) + 1))
        factors = self._factors(dict(zip(self._colours, points[:, self._columns(self._colours)].T, strict=True)))

        def work(part: slice) -> None:
            if not factors:
                counts = torch.from_numpy(np.diff(ends[part.start : part.stop + 1])).to(self.device)
                images = self._develop_plain(geometries[part]).repeat_interleave(counts, dim=0)
                _store(out, images, order[ends[part.start] : ends[part.stop]])
                return
            for i, light in enumerate(self._trace_or_recall(geometries[part]), start=part.start):
                for start in range(ends[i], ends[i + 1], COLOURED_AT_ONCE):
                    rows = order[start : min(start + COLOURED_AT_ONCE, ends[i + 1])]
                    indices = torch.from_numpy(rows).to(self.device)
                    _store(out, self._colour_images(light, {s: f[indices] for s, f in factors.items()}), rows)

        for _ in in_order(work, self._parts(len(geometries)), self._num_workers()):
            pass
        return out.view(-1, *self.image_shape)

    def render_grid(
        self,
        grid: Sequence[Sequence[int] | NDArray[np.int64]],
        *,
        out: NDArray[np.uint8] | Tensor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.uint8] | Tensor:
        """Render all combinations of levels in row-major order.

        Args:
            grid: the integer levels of each source.
            out: uint8 (n, h, w, channels), an array (possibly memory-mapped) or a tensor to be filled; a new array by
                default.
            progress: called with (images done, number of images).

        Returns:
            `out`.
        """
        sizes = [len(values) for values in grid]
        out = np.empty((math.prod(sizes), *self.image_shape), dtype=np.uint8) if out is None else out
        target = (out if isinstance(out, Tensor) else torch.from_numpy(out)).view(*sizes, self._num_values)
        geometry = self._columns(self.geometry)
        # A view: (geometry..., colours..., values).
        target = target.permute(*geometry, *self._columns(self._colours), len(sizes))
        combinations = [sizes[i] for i in geometry]
        palettes = self._factors({s: np.asarray(grid[self.source_names.index(s)]) for s in self._colours})
        # Colours are repeated for every pixel once, so that colouring reads contiguous values.
        palettes = {s: p if s == self.exposure else p.repeat(1, self.resolution**2) for s, p in palettes.items()}

        def work(part: slice) -> int:
            places = np.stack(np.unravel_index(np.arange(part.start, part.stop), combinations), axis=1)
            levels = np.stack([np.asarray(grid[i])[places[:, k]] for k, i in enumerate(geometry)], axis=1)
            if palettes:
                for light, place in zip(self._trace_or_recall(levels.astype(np.float64)), places, strict=True):
                    self._fill(target[tuple(place.tolist())], light, palettes)
            else:
                _store(target, self._develop_plain(levels.astype(np.float64)), *places.T)
            return len(places)

        num_geometries = math.prod(combinations)
        done = 0
        for count in in_order(work, self._parts(num_geometries), self._num_workers()):
            done += count
            if progress is not None:
                progress(done * (len(out) // num_geometries), len(out))
        return out

    # Colouring. A geometry's light is (1 + layers, values): values are pixels × channels, as in the image.

    def _trace_or_recall(self, geometries: NDArray[np.float64]) -> list[Tensor]:
        """Return the light of g geometries, each (1 + layers, values), from the cache where possible."""
        keys = [tuple(row) for row in geometries.tolist()]
        missing = [i for i, key in enumerate(keys) if key not in self._cache]
        lights = {i: self._cache[key] for i, key in enumerate(keys) if key in self._cache}
        if missing:
            for i, light in zip(missing, self._trace_groups(geometries[missing]), strict=True):
                lights[i] = light
                if self._caches and geometries[i].tolist() == np.floor(geometries[i]).tolist():
                    self._cache[keys[i]] = light.clone()
        return [lights[i] for i in range(len(keys))]

    def _trace_groups(self, geometries: NDArray[np.float64]) -> Tensor:
        """Trace levels (g, geometry sources), group by group, to light (g, 1 + layers, values)."""
        num_shared = len(self.shared)
        groups, which = np.unique(geometries[:, :num_shared], axis=0, return_inverse=True)
        lights = torch.empty(len(geometries), 1 + len(self.layers), self._num_values, device=self.device)
        for i, group in enumerate(groups):
            members = np.flatnonzero(which.reshape(-1) == i)
            shared = dict(zip(self.shared, group.tolist(), strict=True))
            others = torch.from_numpy(geometries[members][:, num_shared:])
            planes = self.trace(shared, {s: others[:, k] for k, s in enumerate(self.geometry[num_shared:])})
            base = planes[:, : self.channels].transpose(1, 2).flatten(1)
            layers = planes[:, self.channels :, :, None].expand(-1, -1, -1, self.channels).flatten(2)
            lights[torch.from_numpy(members).to(self.device)] = torch.cat([base[:, None], layers], dim=1)
        return lights

    def _develop_plain(self, geometries: NDArray[np.float64]) -> Tensor:
        """Return the images (g, values) from 0 to 255.5 of a scene without colours, where a geometry is an image."""
        return self._to_byte_range(self._trace_groups(geometries)[:, 0])

    def _colour_images(self, light: Tensor, factors: Mapping[str, Tensor]) -> Tensor:
        """Colour light (1 + layers, values) with the factors of k images: (k, values) from 0 to 255.5."""
        image = light[0]
        for layer, source in enumerate(self.layers, start=1):
            image = image + (light[layer].view(-1, self.channels) * factors[source][:, None, :]).flatten(1)
        if self.exposure is not None:
            image = image * factors[self.exposure]
        return self._to_byte_range(image)

    def _fill(self, target: Tensor, light: Tensor, palettes: Mapping[str, Tensor]) -> None:
        """Write a geometry in all colours to `target` (colours..., values), in the order of the sources."""
        colours = self._colours
        # One level of the first layer at a time, which fits into a core's cache.
        axis = colours.index(self.layers[0]) if self.layers else 0
        step = 1 if self.layers else target.shape[axis]
        for i in range(0, target.shape[axis], step):
            part = {s: p[i : i + step] if s == colours[axis] else p for s, p in palettes.items()}
            image = light[0].expand(*[1] * len(colours), -1)
            for layer, source in enumerate(self.layers, start=1):
                image = image + _along(light[layer] * part[source], colours.index(source), len(colours))
            if self.exposure is not None:
                image = image * _along(part[self.exposure], colours.index(self.exposure), len(colours))
            _store(target.narrow(axis, i, step), self._to_byte_range(image))

    def _factors(self, levels: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
        """Return the factors on light at levels (k,) of the colour sources: colours (k, channels), exposures (k, 1)."""
        at = {source: torch.from_numpy(values.astype(np.float64)) for source, values in levels.items()}
        return {
            s: (self.exposures(at[s])[:, None] if s == self.exposure else self.colour(s, at[s])).float().to(self.device)
            for s in at
        }

    def _to_byte_range(self, image: Tensor) -> Tensor:
        return self.develop(image).mul_(255).add_(0.5)

    # Sizes.

    def _columns(self, sources: Sequence[str]) -> list[int]:
        return [self.source_names.index(source) for source in sources]

    def _parts(self, num_geometries: int) -> list[slice]:
        """Return the geometries that are traced at once."""
        num_rays = RAYS_AT_ONCE["cpu" if self.device.type == "cpu" else "cuda"]
        size = max(1, num_rays // (SUBSAMPLES * self.resolution**2))
        return [slice(start, min(start + size, num_geometries)) for start in range(0, num_geometries, size)]

    def _num_workers(self) -> int:
        return num_cores() if self.device.type == "cpu" else 1


def in_order(work: Callable[[slice], Any], parts: Sequence[slice], num_workers: int) -> Iterator[Any]:
    """Yield ``work(part)`` for every part, computed several at a time, in the order of the parts.

    There is one Python thread per worker, with one torch thread inside each. Small kernels that torch splits over
    several threads become very slow when another process uses a core; whole parts on Python threads do not.

    If the caller stops early or a part fails, parts that have not begun are dropped. One worker is the caller's own
    thread, where work on a GPU stays on the caller's stream.
    """
    if num_workers == 1:
        yield from map(work, parts)
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(max(1, min(num_workers, len(parts))), initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(work, parts)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(before)  # a thread's setting becomes the default of later threads


def _along(factors: Tensor, axis: int, num_axes: int) -> Tensor:
    """Reshape (k, values) to (1, ..., k, ..., 1, values) with k at `axis`."""
    return factors.view(*[len(factors) if i == axis else 1 for i in range(num_axes)], -1)


def _store(target: Tensor, images: Tensor, *index: NDArray[np.int64]) -> None:
    """Write images from 0 to 255.5, rounded down. On a CPU, NumPy casts five times as fast as torch."""
    if target.device.type == "cpu" and images.device.type == "cpu":
        target.numpy()[index or ...] = images.numpy()
    else:
        rows = tuple(torch.from_numpy(part).to(target.device) for part in index)
        target[rows or ...] = images.to(torch.uint8).to(target.device)
