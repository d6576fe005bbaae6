"""How observations enter and leave a model, for each kind: scaling, the error of a reconstruction, and random inputs.

A decoder's outputs are parameters of a distribution of the inputs. For images they are logits of values in [0, 1], and
the error is the binary cross entropy (the paper's). For vectors and series they are the means of normal distributions
of variance 1 over standardised values, and the error is their negative log-likelihood without the constant, half the
squared error. Both are averaged over the entries of an observation, so a weight on a divergence in nats means the same.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..observations import Observations
from ..ops.cross_entropy import cross_entropy

TYPES = {"uint8": torch.uint8, "float32": torch.float32, "float64": torch.float64}


class Form(nn.Module, ABC):
    """The passage between arrays (b, *shape) and networks. It has no weights; statistics move with the model.

    Args:
        observations: the description of the arrays.
    """

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
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input of the encoder, and of one output of the decoder."""

    @abstractmethod
    def to_input(self, batch: Tensor) -> Tensor:
        """Return arrays (b, *shape) as float32 inputs (b, *input_shape)."""

    @abstractmethod
    def to_mean(self, outputs: Tensor) -> Tensor:
        """Return the decoder's outputs as what they predict, in the space of the inputs."""

    @abstractmethod
    def to_array(self, outputs: Tensor) -> Tensor:
        """Return the decoder's outputs as arrays (b, *shape), in the type and the units of the data."""

    @abstractmethod
    def error(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return the error of reconstructions, averaged over observations and entries; a scalar."""

    @abstractmethod
    def nats(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return the error of each reconstruction (b,), summed over its entries, in float32."""

    @abstractmethod
    def random_inputs(self, count: int, generator: torch.Generator) -> Tensor:
        """Return inputs (count, *input_shape) of plausible size, on which networks can be tried."""

    def forward(self, batch: Any) -> Tensor:
        return self.to_input(batch)

    def _standardise(self, batch: Tensor) -> Tensor:
        return ((batch - self.offset) / self.scale).float()

    def _restore(self, values: Tensor) -> Tensor:
        restored = values.to(self.scale.dtype) * self.scale + self.offset
        return restored.to(TYPES[self.observations.dtype])


class ImageForm(Form):
    """Images (b, h, w, c), which networks see as (b, c, h, w) in [0, 1], channels last in memory."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        height, width, channels = self.observations.shape
        return channels, height, width

    def to_input(self, batch: Tensor) -> Tensor:
        scaled = torch.div(batch, 255) if self.observations.dtype == "uint8" else self._standardise(batch)
        return scaled.permute(0, 3, 1, 2)

    def to_mean(self, outputs: Tensor) -> Tensor:
        return outputs.sigmoid()

    def to_array(self, outputs: Tensor) -> Tensor:
        if self.observations.dtype == "uint8":
            return outputs.sigmoid().mul(255).round().to(torch.uint8).permute(0, 2, 3, 1)
        return self._restore(outputs.sigmoid().permute(0, 2, 3, 1))

    def error(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return cross_entropy(outputs, inputs)

    def nats(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs.float(), inputs, reduction="none").sum((1, 2, 3))

    def random_inputs(self, count: int, generator: torch.Generator) -> Tensor:
        noise = torch.rand(count, *self.input_shape, generator=generator)
        return noise.contiguous(memory_format=torch.channels_last)


class GaussianForm(Form):
    """Standardised values, reconstructed under a normal distribution of variance 1."""

    def to_mean(self, outputs: Tensor) -> Tensor:
        return outputs

    def error(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return 0.5 * (outputs - inputs).square().mean()

    def nats(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return 0.5 * (outputs.float() - inputs).square().flatten(1).sum(1)

    def random_inputs(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.randn(count, *self.input_shape, generator=generator)


class VectorForm(GaussianForm):
    """Vectors (b, d)."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.observations.shape

    def to_input(self, batch: Tensor) -> Tensor:
        return self._standardise(batch)

    def to_array(self, outputs: Tensor) -> Tensor:
        return self._restore(outputs)


class SeriesForm(GaussianForm):
    """Series (b, t, c), which networks see as (b, c, t)."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        length, channels = self.observations.shape
        return channels, length

    def to_input(self, batch: Tensor) -> Tensor:
        return self._standardise(batch).transpose(1, 2)

    def to_array(self, outputs: Tensor) -> Tensor:
        return self._restore(outputs.transpose(1, 2))
