"""An exponential average of the weights, kept beside the raw ones.

At constant learning rate the raw weights wander; the average is steadier. While few updates have been made the decay
is lower, (1 + t) / (10 + t), so that the average does not remember the initialisation.
"""

import torch
from torch import Tensor, nn


class WeightAverage:
    """Keeps ``average ← decay · average + (1 − decay) · weights`` for every parameter of a model."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.names = [name for name, _ in model.named_parameters()]
        self.weights = [parameter.detach() for parameter in model.parameters()]
        self.averages = [weight.clone() for weight in self.weights]

    def update(self, step: int) -> None:
        """Take in the weights after update number ``step`` (from 1)."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.averages, self.weights, 1 - decay)

    def tensors(self) -> dict[str, Tensor]:
        """The averages by parameter name."""
        return dict(zip(self.names, self.averages, strict=True))
