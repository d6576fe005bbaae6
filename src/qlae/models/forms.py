"""How observations enter and leave a model, for each kind: scaling, and the error of a reconstruction.

A decoder's outputs are parameters of a distribution of the inputs. For images they are logits of values in [0, 1], and
the error is the binary cross entropy (the paper's). For vectors and series they are the means of normal distributions
of variance 1 over standardised values, and the error is their negative log-likelihood without the constant, half the
squared error. Both are averaged over the entries of an observation, so a weight on a divergence in nats means the same.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..observations import Observations
from ..ops.cross_entropy import cross_entropy

TYPES = {"float32": torch.float32, "float64": torch.float64}
WHITE = 255  # of images of bytes


class Form(nn.Module, ABC):
    """The passage between arrays (b, *shape) and networks. It has no weights; statistics move with the model.

    Args:
        observations: the description of the arrays.

    Attributes:
        order: the axes of arrays in the order in which networks take them, channels second.
    """

    order: ClassVar[tuple[int, ...]]
    offset: Tensor
    scale: Tensor

    def __init__(self, observations: Observations):
        super().__init__()
        self.observations = observations
        exact = torch.float64 if observations.dtype == "float64" else torch.float32
        # The run's config holds these numbers, so no checkpoint does.
        self.register_buffer("offset", torch.tensor(observations.offset, dtype=exact), persistent=False)
        self.register_buffer("scale", torch.tensor(observations.scale, dtype=exact), persistent=False)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input of the encoder, and of one output of the decoder."""
        return tuple(self.observations.shape[axis - 1] for axis in self.order[1:])

    @property
    def num_terms(self) -> int:
        """The number of terms whose mean is the error of an observation: its entries."""
        return self.observations.num_entries

    def to_input(self, batch: Tensor) -> Tensor:
        """Return arrays (b, *shape) as float32 inputs (b, *input_shape)."""
        is_bytes = self.observations.dtype == "uint8"
        scaled = torch.div(batch, WHITE) if is_bytes else ((batch - self.offset) / self.scale).float()
        return scaled.permute(self.order)

    def to_array(self, outputs: Tensor) -> Tensor:
        """Return the decoder's outputs as arrays (b, *shape), in the type and the units of the data."""
        mean = self.to_mean(outputs).permute([self.order.index(axis) for axis in range(len(self.order))])
        if self.observations.dtype == "uint8":
            return mean.mul(WHITE).round().to(torch.uint8)
        return (mean.to(self.scale.dtype) * self.scale + self.offset).to(TYPES[self.observations.dtype])

    @abstractmethod
    def to_mean(self, outputs: Tensor) -> Tensor:
        """Return the predictions that the decoder's outputs stand for, in the space of the inputs."""

    @abstractmethod
    def error(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return the error of reconstructions, averaged over observations and entries; a scalar."""

    @abstractmethod
    def nats(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return the error of each reconstruction (b,), summed over its entries, in float32."""


class ImageForm(Form):
    """Images (b, h, w, c), which networks see as (b, c, h, w) in [0, 1], channels last in memory."""

    order = (0, 3, 1, 2)

    def to_mean(self, outputs: Tensor) -> Tensor:
        return outputs.sigmoid()

    def error(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return cross_entropy(outputs, inputs)

    def nats(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs.float(), inputs, reduction="none").sum((1, 2, 3))


class VectorForm(Form):
    """Vectors (b, d) of standardised values, reconstructed under a normal distribution of variance 1."""

    order: ClassVar[tuple[int, ...]] = (0, 1)

    def to_mean(self, outputs: Tensor) -> Tensor:
        return outputs

    def error(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return 0.5 * (outputs - inputs).square().mean()

    def nats(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return 0.5 * (outputs.float() - inputs).square().flatten(1).sum(1)


class SeriesForm(VectorForm):
    """Series (b, t, c), which networks see as (b, c, t)."""

    order = (0, 2, 1)
