"""Random batches of observations on a device; images stay bytes, and the cast to float happens inside the update.

Rows are drawn independently with replacement, as in the paper's x ~ D. If all images fit on the device, they stay there
(``DeviceBatches``). Otherwise, or if they are memory-mapped, each batch is copied from the host (``HostBatches``).
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from .dataset import ImageArray

SHARE = 0.6  # the fraction of a GPU's free memory that images may take; the rest is for training


class Batches(ABC):
    """Random batches of observations on a device, such as uint8 images (b, r, r, 3).

    Attributes:
        images: the population, one observation per row.
        targets: whole numbers (n, k) on the device that belong to the observations, which the loss needs; mostly None.
        rows: numbers (m,) of the rows to draw from, where the generator is; None for all.
        batch_size: b.
        generator: the source of randomness. Its state is the whole state of the sampler.
        device: the device of the batches.
    """

    def __init__(
        self,
        images: Tensor | ImageArray,
        batch_size: int,
        generator: torch.Generator,
        device: torch.device,
        targets: Tensor | None = None,
    ) -> None:
        self.rows: Tensor | None = None
        self.images = images
        self.targets = targets
        self.batch_size = batch_size
        self.generator = generator
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a batch."""
        return self.batch_size, *self.images.shape[1:]

    @property
    def dtype(self) -> torch.dtype:
        """The type of a batch."""
        if isinstance(self.images, Tensor):
            return self.images.dtype
        return torch.from_numpy(np.empty(0, self.images.dtype)).dtype

    def draw(self) -> Tensor:
        """Return the next batch."""
        return self.draw_with_targets()[0]

    def draw_with_targets(self) -> tuple[Tensor, Tensor | None]:
        """Return the next batch, and the targets (b, k) of its observations, if there are any."""
        shape, where = (self.batch_size,), self.generator.device
        count = len(self.images if self.rows is None else self.rows)
        rows = torch.randint(count, shape, generator=self.generator, device=where)
        rows = rows if self.rows is None else self.rows.index_select(0, rows)
        targets = None if self.targets is None else self.targets.index_select(0, rows.to(self.device))
        return self.observations(rows), targets

    @abstractmethod
    def observations(self, rows: Tensor) -> Tensor:
        """Return the observations of row numbers (b,), which are where the generator is."""


class DeviceBatches(Batches):
    """Batches of images that are all on the device, where the generator is too."""

    images: Tensor

    def __init__(
        self, images: Tensor, batch_size: int, generator: torch.Generator, targets: Tensor | None = None
    ) -> None:
        super().__init__(images, batch_size, generator, images.device, targets)

    def observations(self, rows: Tensor) -> Tensor:
        return self.images.index_select(0, rows)


class HostBatches(Batches):
    """Batches of images that stay on the host, possibly memory-mapped, where the generator is too.

    Each is copied to the device, for a GPU through pinned memory.
    """

    images: ImageArray

    def observations(self, rows: Tensor) -> Tensor:
        batch = torch.from_numpy(np.ascontiguousarray(self.images[rows.numpy()]))
        if self.device.type == "cuda":
            return batch.pin_memory().to(self.device, non_blocking=True)
        return batch.to(self.device)


def fits(num_bytes: int, device: torch.device) -> bool:
    """Return whether images of this size leave room for training on a device; always true for a CPU."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return num_bytes <= SHARE * free
