"""Batches: all images on the device once, as uint8, and rows drawn there.

The cast to float happens on what was drawn, inside the update. Rows are independent draws with replacement, as in the
paper's x ~ D.
"""

import torch
from torch import Tensor


class Batches:
    """Draws batches of uint8 images (b, r, r, 3).

    Args:
        images: (n, r, r, 3) uint8, on the device.
        batch_size: b.
        generator: on the same device; its state is all there is to the sampler.
    """

    def __init__(self, images: Tensor, batch_size: int, generator: torch.Generator):
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[-1] != 3 or not len(images):
            raise ValueError(f"images must be uint8 (n, r, r, 3), got {images.dtype} of shape {tuple(images.shape)}")
        self.images = images
        self.batch_size = batch_size
        self.generator = generator

    def draw(self) -> Tensor:
        """The next batch."""
        rows = torch.randint(len(self.images), (self.batch_size,), generator=self.generator, device=self.images.device)
        return self.images.index_select(0, rows)
