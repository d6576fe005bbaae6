"""Continuous latent spaces: of the plain autoencoder, the variational ones, and InfoWGAN-GP."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._checks import whole_number
from ...config import LatentConfig
from ...ops.divergences import decomposed_kl, gaussian_kl
from ...registry import LATENTS
from .space import LatentOutput, LatentSpace


@dataclass(frozen=True)
class ContinuousConfig(LatentConfig):
    """The settings of ``ContinuousLatent``."""


@LATENTS.register("continuous", ContinuousConfig)
class ContinuousLatent(LatentSpace):
    """The plain autoencoder's latent space: ``z`` is the encoder's output.

    It offers BioAE's two penalties (Whittington et al. 2023), to which ``ae`` gives no weight: ``nonnegative``, the
    mean of relu(−z), and ``activity``, the mean of z².
    """

    has_prior = False

    def __init__(self, num_latents: int):
        super().__init__()
        self.num_latents = self.num_inputs = self.num_outputs = whole_number("num_latents", num_latents)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        self.require_inputs(x)
        return LatentOutput(x, None, {"nonnegative": F.relu(-x).mean(), "activity": x.square().mean()})


@dataclass(frozen=True)
class GaussianConfig(LatentConfig):
    """The settings of ``GaussianLatent``.

    Attributes:
        decomposed: whether the KL term comes in its three parts.
    """

    decomposed: bool = False


@LATENTS.register("gaussian", GaussianConfig)
class GaussianLatent(LatentSpace):
    """The variational autoencoder's latent space: a diagonal Gaussian q(z | x), σ = softplus, and the prior N(0, I).

    In training ``z`` is drawn from q, in evaluation it is the mean. The loss is ``kl``, D_KL(q(z | x) ‖ p(z)) in nats
    per image, or with ``num_images`` its decomposition (Chen et al. 2018) by minibatch-weighted sampling:
    ``mutual_information`` + ``total_correlation`` + ``dimension_kl``, which sum to a one-sample estimate of ``kl``.

    Args:
        num_latents: number of dimensions n_z; the encoder returns twice as many numbers, means and pre-softplus
            deviations.
        num_images: size of the data set, for the decomposition; None for the KL term as a whole.
    """

    nats = ("kl", "mutual_information", "total_correlation", "dimension_kl")
    least_range = 0.1  # of the means; the noise of a latent that carries nothing has deviation 1

    def __init__(self, num_latents: int, num_images: int | None = None):
        super().__init__()
        self.num_latents = self.num_outputs = whole_number("num_latents", num_latents)
        self.num_inputs = 2 * num_latents
        self.num_images = None if num_images is None else whole_number("num_images", num_images)

    @classmethod
    def from_config(cls, config: Any, *, num_images: int) -> "GaussianLatent":
        return cls(config.num_latents, num_images if config.decomposed else None)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        self.require_inputs(x)
        mean, deviation = x.chunk(2, dim=-1)
        deviation = F.softplus(deviation)
        if not self.training:
            return LatentOutput(mean, None, {"kl": gaussian_kl(mean, deviation)})
        noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        z = mean + deviation * noise
        if self.num_images is None:
            return LatentOutput(z, None, {"kl": gaussian_kl(mean, deviation)})
        samples, means, deviations = (t.flatten(0, -2) for t in (z, mean, deviation))  # all rows are the batch
        return LatentOutput(z, None, decomposed_kl(samples, means, deviations, self.num_images))

    def unrounded(self, x: Tensor) -> Tensor:
        return x.chunk(2, dim=-1)[0]

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        device = None if generator is None else generator.device
        return torch.randn(num_samples, self.num_latents, generator=generator, device=device)


@dataclass(frozen=True)
class UniformConfig(LatentConfig):
    """The settings of ``UniformLatent``."""


@LATENTS.register("uniform", UniformConfig)
class UniformLatent(ContinuousLatent):
    """InfoWGAN-GP's latent space: the prior is uniform on [0, 1), and ``z`` is the encoder's output."""

    has_prior = True

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        self.require_inputs(x)
        return LatentOutput(x, None, {})

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        device = None if generator is None else generator.device
        return torch.rand(num_samples, self.num_latents, generator=generator, device=device)
