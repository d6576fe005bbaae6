"""The exponential average of weights: ``average ← decay · average + (1 − decay) · weights``.

At a constant learning rate the raw weights wander; the average is steadier. During the first updates the decay is
lower, (1 + t) / (10 + t), so that the average forgets the initial weights.
"""

import torch
from torch import Tensor

from . import dispatch


@torch.no_grad()
def update_average(average: Tensor, weights: Tensor, number: Tensor, decay: float) -> None:
    """Update an average, in place.

    Args:
        average, weights: flat buffers (n,).
        number: of the update, from 1, a scalar on the device.
        decay: in the long run.
    """
    if dispatch.uses_kernels(average):
        from .kernels import average as kernel

        kernel.update(average, weights, number, decay)
        return
    average.lerp_(weights, 1 - ((1 + number) / (10 + number)).clamp(max=decay))
