"""``ImageSet``: a stream of images from files with their metadata, which can be written to the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import cache
from .dataset import Progress, SourceDataset
from .picture_size import PictureSize, picture_size

#: ``batches(size, first)`` yields uint8 images (k, h, w, c) of a size from row `first` on.
Batches = Callable[[PictureSize, int], Iterator[NDArray[np.uint8]]]


@dataclass(frozen=True)
class ImageSet:
    """Images in files.

    Attributes:
        name: the data set's name.
        num_images: n.
        source_names, source_sizes: names and numbers of values of the n_s known sources.
        sources: (n, n_s); ``None`` if the images are the full grid in row-major order.
        batches: reads the images in batches of `batch_size`; the last may be smaller.
        batch_size: images per batch.
        fingerprint: what distinguishes these files from others (path, size, time), fit for JSON.
        details: further facts for `SourceDataset.describe`.
        file_names: the name of each image, where each is a file.
        left_out: files that are no images that can be read, and why.
        origin: ``"rendered"`` if the file says so, as those of `qlae data render` do.
    """

    name: str
    num_images: int
    source_names: Sequence[str]
    source_sizes: Sequence[int]
    sources: NDArray[Any] | None
    batches: Batches
    batch_size: int
    fingerprint: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    file_names: Sequence[str] | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    origin: str = "real"

    def describe(self, size: PictureSize) -> dict[str, Any]:
        """Return the description by which the cache knows the images in a size."""
        return {
            "name": self.name,
            "origin": self.origin,
            "resolution": size.plain,
            "num_images": self.num_images,
            "source_names": list(self.source_names),
            "source_sizes": [int(size) for size in self.source_sizes],
            "files": dict(self.fingerprint),
        } | dict(self.details)

    def prepare(self, size: int | PictureSize, *, progress: Progress | None = None) -> SourceDataset:
        """Resample all images into the cache in one pass, or find them there."""
        size = picture_size(size)
        data = cache.find(self.describe(size)) or self._build(size, progress)
        data.file_names = None if self.file_names is None else tuple(self.file_names)
        data.left_out = dict(self.left_out)
        return data

    def _build(self, size: PictureSize, progress: Progress | None) -> SourceDataset:

        def fill(images: NDArray[np.uint8], first_job: int, job_done: Callable[[int, int], None]) -> None:
            done = min(first_job * self.batch_size, self.num_images)
            num_jobs = math.ceil(self.num_images / self.batch_size)
            for job, batch in enumerate(self.batches(size, done), start=first_job + 1):
                if len(batch) != min(self.batch_size, self.num_images - done):
                    raise ValueError(f"{self.name}: the files do not hold the {self.num_images:,} images announced")
                images[done : done + len(batch)] = batch
                done += len(batch)
                job_done(job, num_jobs)
                if progress is not None:
                    progress(done, self.num_images)
            if done != self.num_images:
                raise ValueError(f"{self.name}: the files hold {done:,} of the {self.num_images:,} images announced")

        description = self.describe(size)
        return cache.build(
            description, fill, made_with={}, sources=self.sources, file_names=self.file_names, left_out=self.left_out
        )
