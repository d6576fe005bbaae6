"""Latent quantization, the paper's contribution (Section 3, Equation 4, Algorithm 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._checks import require_known, values_per_latent
from ...config import DiscreteLatentConfig
from ...ops import dispatch
from ...ops.quantization import look_up, quantize_by_kernels
from ...registry import LATENTS
from .space import REDUCTIONS, DiscreteLatent, LatentOutput, quantize_to_nearest, soft_assignments

LOW, HIGH = -0.5, 0.5  # ends of the initial, evenly spaced values


@dataclass(frozen=True)
class QuantizedConfig(DiscreteLatentConfig):
    """The settings of ``QuantizedLatent``, see there."""

    shared: bool = False
    learned: bool = True
    reduction: str = "sum"


@LATENTS.register("quantized", QuantizedConfig)
class QuantizedLatent(DiscreteLatent):
    """Latent quantization: a learnable scalar codebook per dimension.

    Every entry ``x_j`` is replaced by the nearest of the values ``V_j`` of its dimension. The set of all codes is
    the product of the codebooks (10^12 for 12 latents of 10 values), but it is never enumerated: distances cost
    ``b · num_latents · num_values``.

    Gradients, as in the paper:

    - ``quantize = ‖stop(x) − z‖²`` moves the codebook only,
    - ``commit   = ‖x − stop(z)‖²`` moves the encoder only,
    - the gradient of anything computed from the returned ``z`` reaches the encoder straight through, and never the
      codebook.

    The latent space can be differentiated once. A penalty on gradients that pass through it is not possible.

    Args:
        num_latents: number of dimensions n_z.
        num_values: values per codebook, one number for all dimensions or one per dimension.
        shared: one codebook for all dimensions (the paper's "global codebook" ablation).
        reduction: how the two losses treat latents: ``"sum"`` (the paper's squared norm) or ``"mean"`` (the
            authors' code). Both average over the batch.
        learned: whether values are trained; ``False`` keeps the initial grid.

    Example:
        >>> import torch
        >>> latent = QuantizedLatent(num_latents=2, num_values=[3, 5])
        >>> out = latent(torch.tensor([[0.4, -0.3]]))
        >>> out.codes.tolist(), out.z.tolist()
        ([[2, 1]], [[0.5, -0.25]])
    """

    has_scalar_codes = True
    mask: Tensor

    def __init__(
        self,
        num_latents: int,
        num_values: int | Sequence[int] = 10,
        *,
        shared: bool = False,
        reduction: str = "sum",
        learned: bool = True,
    ):
        super().__init__(values_per_latent(num_latents, num_values))
        if shared and len(set(self.num_values)) > 1:
            raise ValueError(f"a shared codebook has one size, got num_values={list(self.num_values)}")
        self.shared = shared
        self.reduction = require_known(reduction, REDUCTIONS, "reduction")

        # One row per codebook, padded to the longest; padding is masked out of every distance.
        sizes = self.num_values[:1] if shared else self.num_values
        values = torch.full((len(sizes), max(sizes)), HIGH)
        mask = torch.zeros(values.shape, dtype=torch.bool)
        for row, size in enumerate(sizes):
            values[row, :size] = torch.linspace(LOW, HIGH, size) if size > 1 else (LOW + HIGH) / 2
            mask[row, :size] = True
        self.values = nn.Parameter(values, requires_grad=learned)
        self.register_buffer("mask", mask, persistent=False)

    def codebook(self) -> Tensor:
        """Return the values of every dimension, (num_latents, max_values); entries beyond a dimension's size are
        padding."""
        return self.values.expand(self.num_latents, -1)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        self.require_inputs(x)
        if x.dim() == 2 and dispatch.uses_kernels(x):
            z, quantize, commit, codes = quantize_by_kernels(x, self.codebook(), self.sizes, self.reduction)
            return LatentOutput(z, codes, {"quantize": quantize, "commit": commit})
        return quantize_to_nearest(self, x, self.reduction)

    def value_distances(self) -> Tensor:
        values = self.values.detach()
        highest = values.masked_fill(~self.mask, -torch.inf).amax(-1)
        lowest = values.masked_fill(~self.mask, torch.inf).amin(-1)
        return (highest - lowest).expand(self.num_latents) / (self.sizes - 1).clamp(min=1)

    def soft_codes(self, x: Tensor) -> Tensor:
        return soft_assignments(x, self.codebook().detach(), self.value_distances(), self.mask)

    def to_codes(self, x: Tensor) -> Tensor:
        self.require_inputs(x)
        distance = (x.detach().unsqueeze(-1) - self.codebook().detach()).abs()  # (..., n_z, n_v)
        if len(set(self.num_values)) > 1:
            distance = distance.masked_fill(~self.mask, torch.inf)
        return distance.argmin(-1)

    def look_up(self, codes: Tensor) -> Tensor:
        return look_up(self.codebook(), codes)

    def ordered_codes(self, latent: int, codes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the codes whose values lie in the range of a sample, in the order of the values."""
        values = self.codebook()[latent, : self.num_values[latent]].detach().cpu().numpy()
        order = np.argsort(values, kind="stable")
        in_range = (values[order] >= values[codes].min()) & (values[order] <= values[codes].max())
        return np.asarray(order[in_range])
