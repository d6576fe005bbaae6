"""An exponential average of the weights, kept beside the raw ones.

At constant learning rate the raw weights wander; the average is steadier. While few updates have been made the decay
is lower, (1 + t) / (10 + t), so that the average does not remember the initialisation.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..ops import kernels


class WeightAverage:
    """Keeps ``average ← decay · average + (1 − decay) · weights``.

    Args:
        weights: flat buffers of them.
        decay: in the long run.
    """

    def __init__(self, weights: Sequence[Tensor], decay: float):
        self.decay = decay
        self.weights = list(weights)
        self.values = [buffer.clone() for buffer in weights]

    @torch.no_grad()
    def update(self, number: Tensor) -> None:
        """Take in the weights after update ``number`` (from 1; a scalar tensor)."""
        if kernels.usable(self.values[0]):
            from ..ops.kernels import average

            for values, weights in zip(self.values, self.weights, strict=True):
                average.update(values, weights, number, self.decay)
            return
        share = 1 - ((1 + number) / (10 + number)).clamp(max=self.decay)
        for values, weights in zip(self.values, self.weights, strict=True):
            values.lerp_(weights, share)
