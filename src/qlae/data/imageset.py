"""``ImageSet``: images that come from files as a stream, what is known of them, and their way into the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import cache
from .dataset import Progress, SourceDataset


@dataclass(frozen=True)
class ImageSet:
    """Images in files.

    Attributes:
        name: the data set's name.
        num_images: how many there are.
        source_names, source_sizes: of the sources, if any are known.
        sources: (n, n_s); ``None`` if the images are the full grid in row-major order.
        batches: ``batches(resolution, first)`` yields uint8 (k, resolution, resolution, 3) from row `first` on, where k
            is `batch_size` but for the last.
        made_from: what tells these files from others (path, size, time), JSON-able.
        details: further facts for `SourceDataset.describe`.
        file_names: of each image, where each is a file.
        origin: ``"rendered"`` where the file says so, as those of `qlae data render` do.
    """

    name: str
    num_images: int
    source_names: Sequence[str]
    source_sizes: Sequence[int]
    sources: NDArray[Any] | None
    batches: Callable[[int, int], Iterator[NDArray[np.uint8]]]
    batch_size: int
    made_from: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    file_names: Sequence[str] | None = None
    origin: str = "real"

    def describe(self, resolution: int) -> dict[str, Any]:
        """As `SourceDataset.describe`."""
        return {
            "name": self.name,
            "origin": self.origin,
            "resolution": resolution,
            "num_images": self.num_images,
            "source_names": list(self.source_names),
            "source_sizes": [int(size) for size in self.source_sizes],
            "files": dict(self.made_from),
        } | dict(self.details)

    def prepare(self, resolution: int, *, progress: Progress | None = None) -> SourceDataset:
        """Resample all images into the cache in one pass, or find them there."""
        data = cache.find(self.describe(resolution)) or self._build(resolution, progress)
        data.file_names = None if self.file_names is None else tuple(self.file_names)
        return data

    def _build(self, resolution: int, progress: Progress | None) -> SourceDataset:

        def fill(images: NDArray[np.uint8], first_job: int, job_done: Callable[[int, int], None]) -> None:
            done = min(first_job * self.batch_size, self.num_images)
            num_jobs = math.ceil(self.num_images / self.batch_size)
            for job, batch in enumerate(self.batches(resolution, done), start=first_job + 1):
                if len(batch) != min(self.batch_size, self.num_images - done):
                    raise ValueError(f"{self.name}: more or fewer images came than the {self.num_images:,} announced")
                images[done : done + len(batch)] = batch
                done += len(batch)
                job_done(job, num_jobs)
                if progress is not None:
                    progress(done, self.num_images)
            if done != self.num_images:
                raise ValueError(f"{self.name}: {done:,} images came where {self.num_images:,} were announced")

        described = self.describe(resolution)
        return cache.build(described, fill, made_with={}, sources=self.sources, file_names=self.file_names)
