"""Finite scalar quantization (Mentzer et al. 2023): a fixed grid that needs neither a codebook nor losses.

Not in the paper; a neighbour of latent quantization to compare with. The grid here spans [low, high] for even and odd
numbers of values alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..._checks import values_per_latent
from ...config import DiscreteLatentConfig
from ...ops.quantization import straight_through
from ...registry import LATENTS
from .space import DiscreteLatent, LatentOutput, soft_assignments


@dataclass(frozen=True)
class FiniteScalarConfig(DiscreteLatentConfig):
    """The settings of ``FiniteScalarLatent``, see there."""

    low: float = -0.5
    high: float = 0.5


@LATENTS.register("finite-scalar", FiniteScalarConfig)
class FiniteScalarLatent(DiscreteLatent):
    """Every entry is bounded by tanh and rounded to the nearest of evenly spaced values, straight through.

    Args:
        num_latents: number of dimensions n_z.
        num_values: values per dimension, one number for all or one per dimension.
        low, high: ends of the grid.

    Example:
        >>> import torch
        >>> latent = FiniteScalarLatent(num_latents=3, num_values=5)
        >>> out = latent(torch.tensor([[-9.0, 0.1, 9.0]]))
        >>> out.codes.tolist(), out.z.tolist()
        ([[0, 2, 4]], [[-0.5, 0.0, 0.5]])
    """

    has_scalar_codes = True

    def __init__(self, num_latents: int, num_values: int | Sequence[int] = 10, *, low: float = -0.5, high: float = 0.5):
        super().__init__(values_per_latent(num_latents, num_values))
        if min(self.num_values) < 2:
            raise ValueError(f"a grid needs at least 2 values per dimension, got num_values={list(self.num_values)}")
        if not low < high:
            raise ValueError(f"low must be below high, got low={low}, high={high}")
        self.low, self.high = low, high

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        bounded = self.unrounded(x)
        codes = self._round(bounded)
        return LatentOutput(straight_through(bounded, self.look_up(codes).to(x.dtype)), codes, {})

    def unrounded(self, x: Tensor) -> Tensor:
        """Return the bounded entries (b, num_latents), which are rounded."""
        self.require_inputs(x)
        return self.low + (self.high - self.low) * (x.tanh() + 1) / 2

    def to_codes(self, x: Tensor) -> Tensor:
        return self._round(self.unrounded(x))

    def soft_codes(self, x: Tensor) -> Tensor:
        codes = torch.arange(max(self.num_values), device=x.device).unsqueeze(-1)  # (max_values, 1)
        mask = (codes < self.sizes).T
        return soft_assignments(self.unrounded(x), self.look_up(codes).T, self.value_distances(), mask)

    def value_distances(self) -> Tensor:
        return (self.high - self.low) / (self.sizes - 1)

    def look_up(self, codes: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * codes / (self.sizes - 1)

    def _round(self, bounded: Tensor) -> Tensor:
        share = (bounded.detach() - self.low) / (self.high - self.low)
        return (share * (self.sizes - 1)).round().long()
