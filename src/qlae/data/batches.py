"""Batches of uint8 images, drawn where they are needed; the cast to float happens inside the update.

Rows are independent draws with replacement, as in the paper's x ~ D. Where the images fit, all of them lie on the
device (``DeviceBatches``); where they do not, or are memory-mapped, only what was drawn travels (``HostBatches``).
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from .dataset import ImageArray

SHARE = 0.6  # of a GPU's free memory that images may take; the rest is for training


class Batches(ABC):
    """Draws batches (b, r, r, 3) of uint8 images to a device.

    Attributes:
        images: (n, r, r, 3), what is drawn from.
        batch_size: b.
        device: where batches arrive.
        generator: its state is all there is to the sampler.
    """

    images: Tensor | ImageArray
    batch_size: int
    device: torch.device
    generator: torch.Generator

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a batch."""
        return self.batch_size, *self.images.shape[1:]

    @abstractmethod
    def draw(self) -> Tensor:
        """The next batch."""


class DeviceBatches(Batches):
    """All images on the device once, rows drawn there.

    Args:
        images: (n, r, r, 3) uint8.
        batch_size: b.
        generator: on the device of the images.
    """

    images: Tensor

    def __init__(self, images: Tensor, batch_size: int, generator: torch.Generator):
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[-1] != 3 or not len(images):
            raise ValueError(f"images must be uint8 (n, r, r, 3), got {images.dtype} of shape {tuple(images.shape)}")
        self.images = images
        self.batch_size = batch_size
        self.generator = generator
        self.device = images.device

    def draw(self) -> Tensor:
        rows = torch.randint(len(self.images), (self.batch_size,), generator=self.generator, device=self.device)
        return self.images.index_select(0, rows)


class HostBatches(Batches):
    """Images stay on the host; the rows drawn are copied to the device, through pinned memory where it is a GPU.

    Args:
        images: (n, r, r, 3) uint8, perhaps memory-mapped.
        batch_size: b.
        generator: on the host.
        device: where batches go.
    """

    def __init__(self, images: ImageArray, batch_size: int, generator: torch.Generator, device: torch.device):
        self.images = images
        self.batch_size = batch_size
        self.generator = generator
        self.device = device

    def draw(self) -> Tensor:
        rows = torch.randint(len(self.images), (self.batch_size,), generator=self.generator).numpy()
        batch = torch.from_numpy(np.ascontiguousarray(self.images[rows]))
        if self.device.type == "cuda":
            return batch.pin_memory().to(self.device, non_blocking=True)
        return batch.to(self.device)


def fits(num_bytes: int, device: torch.device) -> bool:
    """Whether images of so many bytes leave room to train on a device; a CPU's memory is left to its system."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return num_bytes <= SHARE * free
