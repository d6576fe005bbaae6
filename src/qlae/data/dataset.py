"""``SourceDataset``: images, vectors or series together with the sources that generated them.

Images may be in memory, in a memory-mapped file, or rendered on demand. In each case they are indexed like a NumPy
array along the first axis. Training, evaluation and pictures use data through this class only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..observations import Observations
from .observing import as_array, observe
from .sources import grid_levels

ORIGINS = ("rendered", "generated", "real")
#: Called with (images done, number of images) during long work, for example to update a progress bar.
Progress = Callable[[int, int], None]


@runtime_checkable
class ImageArray(Protocol):
    """The interface of observations: a shape (n, …), a dtype, and indexing by row. ``np.ndarray`` has it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any: ...

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]: ...


def default_source_names(num_sources: int) -> list[str]:
    """Return names for sources that have none."""
    return [f"source {i + 1}" for i in range(num_sources)]


class SourceDataset:
    """Images, vectors or series, and their sources.

    Attributes:
        name: the data set's name, such as ``shapes3d``.
        origin: ``"rendered"`` (images), ``"generated"`` (vectors and series) or ``"real"``.
        images: one observation per row: images (n, h, w, c), vectors (n, d) or series (n, t, c). Images may be rendered
            on demand; ``np.asarray(data.images)`` returns all of them.
        observations: the description of the rows: their kind, shape, type, feature names and statistics.
        sources: (n, n_s) int64 levels (float64 if continuous), in row-major grid order for a full grid.
        source_names, source_sizes: name and number of values for each column of `sources`.
        fixed: the levels of the scene's sources that do not vary here.
        recipe: the arguments of `load_data` that recreate this data, fit for JSON; ``None`` if it cannot be recreated,
            as for arrays from elsewhere.
        file_names: the name of each image, if each was a file in a folder or an archive; else ``None``.
        left_out: names of files that could not be read or have other formats, and why.
        checksum: SHA-256 of all images, if they were read from files; else ``None``. `data_config` computes that of
            arrays.
    """

    def __init__(
        self,
        images: ImageArray,
        sources: NDArray[Any] | None = None,
        *,
        name: str,
        origin: str,
        source_names: Sequence[str] = (),
        source_sizes: Sequence[int] = (),
        fixed: Mapping[str, int] | None = None,
        details: Mapping[str, Any] | None = None,
        kind: str | None = None,
        feature_names: Sequence[str] = (),
        observations: Observations | None = None,
    ) -> None:
        """Combine observations and sources.

        Args:
            images: images (n, h, w, c) of bytes or floats, grey images (n, h, w) of bytes, vectors (n, d), or series
                (n, t, c) of floats; arrays, tensors or lists.
            sources: (n, n_s), or (n,) for one source. ``None`` stands for the full grid of `source_sizes`, which is
                built on first use, or for no sources if `source_sizes` is empty too.
            source_names, source_sizes: see the class; by default "source 1", … and the number of distinct values.
            name, origin, fixed: see the class.
            details: further facts for `describe`, fit for JSON, such as how sources were drawn.
            kind: ``"images"``, ``"vectors"`` or ``"series"``, if the shape does not tell it.
            feature_names: names of the last axis.
            observations: the description, if it is known already; values are then not looked at.

        Raises:
            ValueError: shapes or types are wrong, or do not fit each other.
        """
        if origin not in ORIGINS:
            raise ValueError(f'origin must be "rendered", "generated" or "real", got {origin!r}')
        if observations is None:
            images, kind = as_array(images, kind=kind, name=name)
            observations = observe(images, kind, feature_names, name=name)
        if isinstance(images, np.ndarray) and min(images.strides) < 0:  # a reversed view, which torch does not accept
            images = images.copy()
        num_images = int(images.shape[0])
        if sources is None and not source_sizes:
            sources = np.zeros((num_images, 0), dtype=np.int64)
        if sources is not None:
            sources = np.asarray(sources)
            sources = sources[:, None] if sources.ndim == 1 else sources
            if sources.ndim != 2:
                raise ValueError(f"sources must have the shape (n, number of sources), got {sources.shape}")
            source_names = source_names or default_source_names(sources.shape[1])
            source_sizes = source_sizes or [len(np.unique(column)) for column in sources.T]
        if len(set(source_names)) < len(source_names):
            raise ValueError(f"source_names must be distinct, got {', '.join(map(str, source_names))}")
        if len(source_names) != len(source_sizes):
            raise ValueError(f"{len(source_names)} source names but {len(source_sizes)} sizes: give one size per name")
        rows, columns = (math.prod(source_sizes), len(source_sizes)) if sources is None else sources.shape
        if rows != num_images or columns != len(source_names):
            raise ValueError(
                f"sources of shape {(rows, columns)} do not fit {num_images} {observations.traits.many} "
                f"and {len(source_names)} source names"
            )
        self.name = name
        self.origin = origin
        self.images = images
        self.observations = observations
        self.source_names = tuple(source_names)
        self.source_sizes = tuple(int(size) for size in source_sizes)
        self.fixed = dict(fixed or {})
        self.details = dict(details or {})
        self.recipe: dict[str, Any] | None = None
        self.file_names: tuple[str, ...] | None = None
        self.left_out: dict[str, str] = {}
        self.checksum: str | None = None
        self._sources = sources

    @property
    def resolution(self) -> int:
        """Height and width in pixels of square RGB images of bytes; 0 for other observations."""
        return self.observations.shape[0] if self.observations.is_standard else 0

    @property
    def sources(self) -> NDArray[Any]:
        """(n, n_s) levels of the sources, one row per image."""
        if self._sources is None:
            self._sources = grid_levels(self.source_sizes)
        return self._sources

    def __len__(self) -> int:
        return int(self.images.shape[0])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {size}" for name, size in zip(self.source_names, self.source_sizes, strict=True))
        fixed = ", ".join(f"{name} = {level}" for name, level in self.fixed.items())
        return (
            f"SourceDataset({self.name}, {self.origin}: {len(self):,} {self.observations.traits.many} of "
            f"{self.observations.size}; "
            f"sources: {sizes or 'none'}{f'; fixed: {fixed}' if fixed else ''})"
        )

    def describe(self) -> dict[str, Any]:
        """Return the facts about this data that a results file holds, fit for JSON."""
        facts: dict[str, Any] = {
            "name": self.name,
            "origin": self.origin,
            **self._describe_rows(),
            "num_images": len(self),
            "source_names": list(self.source_names),
            "source_sizes": list(self.source_sizes),
        }
        if self.fixed:
            facts["fixed"] = dict(self.fixed)
        return facts | self.details

    def _describe_rows(self) -> dict[str, Any]:
        if self.observations.is_standard:
            return {"resolution": self.resolution}
        return {"observations": self.observations.describe()}

    def in_memory(self, *, progress: Progress | None = None) -> SourceDataset:
        """Return the same data with all images in one NumPy array, rendering those that are rendered on demand."""
        if isinstance(self.images, np.ndarray):
            return self
        render_all = getattr(self.images, "render_all", None)
        images = np.asarray(self.images) if render_all is None else render_all(progress=progress)
        return self.with_images(images)

    def with_images(self, images: ImageArray, details: Mapping[str, Any] | None = None) -> SourceDataset:
        """Return a data set with the same sources and other images, adding `details` to its description."""
        data = SourceDataset(
            images,
            self._sources,
            name=self.name,
            origin=self.origin,
            source_names=self.source_names,
            source_sizes=self.source_sizes,
            fixed=self.fixed,
            details=self.details | dict(details or {}),
            observations=self.observations,
        )
        data.recipe, data.file_names, data.left_out = self.recipe, self.file_names, self.left_out
        return data
