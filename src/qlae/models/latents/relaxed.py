"""Scalars from one global codebook, relaxed by Gumbel noise: the latent space of QVAE and FactorQVAE.

Paper: Baykal, Kandemir and Unal, "Disentanglement with Factor Quantized Variational Autoencoders" (2024); code:
ituvisionlab/FactorQVAE. All latents share the values v_1, …, v_K. An entry x_j of the encoder's output chooses among
them with the probabilities

    p(k | x_j) ∝ exp(−(x_j − v_k)²).

In training, z_j = Σ_k w_jk v_k, where the weights w are a sample of the Gumbel-softmax distribution with these
probabilities and temperature τ = exp(−rate · updates made). In evaluation, z_j is the nearest value. The loss ``kl`` is
Σ_k p log(K p), the divergence from uniform probabilities, averaged over latents and images.

Deviations: the authors' temperature follows a counter of optimizer steps, of which there are two per update, so their
rate of 1e-5 is 2e-5 here. It needs the number of the update, which only objectives with a discriminator give
(``with_features``); elsewhere the temperature stays 1. The rate does not depend on the length of a run: over the 50,000
updates of the full size the temperature falls to 1/e, and the preset of small networks has a rate that does the same.
The authors train on 80% of the images; here all of them are used.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ...config import DiscreteLatentConfig
from ...registry import LATENTS
from .space import DiscreteLatent, LatentOutput, values_in_common

TINY = 1e-10  # in logarithms, as in the authors' code


@dataclass(frozen=True)
class RelaxedConfig(DiscreteLatentConfig):
    """The settings of ``RelaxedLatent``, see there; ``num_values`` is one number."""

    num_values: int | tuple[int, ...] = 64
    learned: bool = True
    temperature_decay: float = 2e-5


@LATENTS.register("relaxed", RelaxedConfig)
class RelaxedLatent(DiscreteLatent):
    """Every entry is a mixture of the values of one codebook in training, and the nearest value in evaluation.

    Args:
        num_latents: number of dimensions n_z.
        num_values: number of values K that all dimensions share.
        learned: whether the values are trained.
        temperature_decay: rate at which the temperature falls from 1, per update.
    """

    def __init__(
        self, num_latents: int, num_values: int = 64, *, learned: bool = True, temperature_decay: float = 2e-5
    ):
        super().__init__(values_in_common(num_latents, num_values))
        if not temperature_decay >= 0:
            raise ValueError(f"temperature_decay must not be negative, got {temperature_decay}")
        self.temperature_decay = temperature_decay
        self.values = nn.Parameter(torch.randn(num_values), requires_grad=learned)

    @property
    def num_features(self) -> int:
        return len(self.values)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        return self.with_features(x, generator)[0]

    def with_features(
        self, x: Tensor, generator: torch.Generator | None = None, number: Tensor | None = None
    ) -> tuple[LatentOutput, Tensor]:
        """Return the output of ``forward`` and the weights of the values, (b, num_latents, num_values)."""
        self.require_inputs(x)
        logits = -(x.unsqueeze(-1) - self.values).square()  # (b, n_z, K)
        posterior = logits.softmax(-1)
        kl = (posterior * (posterior * len(self.values) + TINY).log()).sum(-1).mean()
        if not self.training:
            codes = self.to_codes(x)
            weights = F.one_hot(codes, len(self.values)).to(x.dtype)
            return LatentOutput(self.look_up(codes), codes, {"kl": kl}), weights
        temperature = 1.0 if number is None else torch.exp(-self.temperature_decay * (number - 1))
        weights = ((logits + gumbel_like(logits, generator)) / temperature).softmax(-1)
        return LatentOutput(weights @ self.values, weights.argmax(-1), {"kl": kl}), weights

    def to_codes(self, x: Tensor) -> Tensor:
        self.require_inputs(x)
        return (x.detach().unsqueeze(-1) - self.values.detach()).abs().argmin(-1)

    def look_up(self, codes: Tensor) -> Tensor:
        return self.values[codes]

    def ordered_codes(self, latent: int, codes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the codes that occur in a sample, in the order of their values."""
        present = np.unique(codes)
        values = self.values.detach().cpu().numpy()[present]
        return np.asarray(present[np.argsort(values, kind="stable")])


def gumbel_like(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """Return independent samples of the standard Gumbel distribution, −log(−log(u)) of uniform u."""
    uniform = torch.rand(logits.shape, generator=generator, device=logits.device, dtype=logits.dtype)
    tiny = torch.finfo(logits.dtype).tiny
    return -(-uniform.clamp(min=tiny).log()).clamp(min=tiny).log()
