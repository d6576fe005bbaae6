"""Latent quantization, the paper's contribution (Section 3, Equation 4, Algorithm 1)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..._checks import values_per_latent
from ...ops import kernels
from .space import DiscreteLatent, LatentOutput, num_averaged, quantized, require_reduction


class _LookUp(torch.autograd.Function):
    """The values (..., n_z) behind codes, from codebooks (n_z, n_v).

    The gradient of a value is a sum over the places where it was used. It is taken in a fixed order; torch's own adds
    up in whatever order a GPU comes by.
    """

    @staticmethod
    def forward(ctx: Any, codebook: Tensor, codes: Tensor) -> Tensor:
        ctx.save_for_backward(codes)
        ctx.num_values = codebook.shape[1]
        ctx.set_materialize_grads(False)
        return codebook.expand(*codes.shape, -1).gather(-1, codes.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, None]:
        if gradient is None:
            return None, None
        (codes,) = ctx.saved_tensors
        used = codes.unsqueeze(-1) == torch.arange(ctx.num_values, device=codes.device)
        return (used * gradient.unsqueeze(-1)).reshape(-1, *used.shape[-2:]).sum(0), None


class _QuantizedByKernels(torch.autograd.Function):
    """All of ``space.quantized`` by kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, codebook: Tensor, sizes: Tensor, share: float) -> tuple[Tensor, ...]:
        from ...ops.kernels import quantized as kernel

        x = x.contiguous()
        z, codes, distance = kernel.forward(x, codebook, sizes, share)
        ctx.save_for_backward(x, z, codes)
        ctx.num_values, ctx.share = codebook.shape[1], share
        ctx.mark_non_differentiable(codes)
        return z, distance, distance.clone(), codes

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, of_z: Tensor, of_quantize: Tensor, of_commit: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        from ...ops.kernels import quantized as kernel

        x, z, codes = ctx.saved_tensors
        found = kernel.backward(x, z, codes, of_z, of_quantize, of_commit, ctx.num_values, ctx.share)
        return *found, None, None


class QuantizedLatent(DiscreteLatent):
    """Latent quantization: a learnable scalar codebook per dimension.

    Every entry ``x_j`` goes to the nearest of the values ``V_j`` of its own dimension. The set of all codes is the
    product of the codebooks (10^12 for 12 latents of 10 values), but it is never enumerated: distances cost
    ``b · num_latents · num_values``.

    Gradients, as in the paper:

    - ``quantize = ‖stop(x) − z‖²`` moves the codebook only,
    - ``commit   = ‖x − stop(z)‖²`` moves the encoder only,
    - whatever is computed from the returned ``z`` reaches the encoder straight through, never the codebook.

    It can be differentiated once: a penalty on gradients that go through it cannot be.

    Args:
        num_latents: dimensions n_z.
        num_values: values a codebook, one number for all dimensions or one a dimension.
        shared: one codebook for all dimensions (the paper's "global codebook" ablation).
        reduction: how the two losses treat latents: ``"sum"`` (the paper's squared norm) or ``"mean"`` (the
            authors' code). Both average over the batch.
        learned: whether values move; ``False`` keeps the initial grid.
        low, high: ends of the initial, evenly spaced values.

    Example:
        >>> import torch
        >>> latent = QuantizedLatent(num_latents=2, num_values=[3, 5])
        >>> out = latent(torch.tensor([[0.4, -0.3]]))
        >>> out.codes.tolist(), out.z.tolist()
        ([[2, 1]], [[0.5, -0.25]])
    """

    mask: Tensor

    def __init__(
        self,
        num_latents: int,
        num_values: int | Sequence[int] = 10,
        *,
        shared: bool = False,
        reduction: str = "sum",
        learned: bool = True,
        low: float = -0.5,
        high: float = 0.5,
    ):
        super().__init__(values_per_latent(num_latents, num_values))
        self.num_latents = self.num_inputs = self.num_outputs = num_latents
        if shared and len(set(self.num_values)) > 1:
            raise ValueError(f"a shared codebook has one size, got num_values={list(self.num_values)}")
        if not low < high:
            raise ValueError(f"low must be below high, got low={low}, high={high}")
        self.shared = shared
        self.reduction = require_reduction(reduction)

        # One row a codebook, padded to the longest; padding is masked out of every distance.
        sizes = self.num_values[:1] if shared else self.num_values
        values = torch.full((len(sizes), max(sizes)), high)
        mask = torch.zeros(values.shape, dtype=torch.bool)
        for row, size in enumerate(sizes):
            values[row, :size] = torch.linspace(low, high, size) if size > 1 else (low + high) / 2
            mask[row, :size] = True
        self.values = nn.Parameter(values, requires_grad=learned)
        self.register_buffer("mask", mask, persistent=False)

    def codebook(self) -> Tensor:
        """The values of every dimension, (num_latents, max_values); entries beyond a dimension's size mean nothing."""
        return self.values.expand(self.num_latents, -1)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        self.require_inputs(x)
        if x.dim() == 2 and kernels.usable(x):
            share = 1 / num_averaged(x, self.reduction)
            z, quantize, commit, codes = _QuantizedByKernels.apply(x, self.codebook(), self.sizes, share)  # type: ignore[no-untyped-call]
            return LatentOutput(z, codes, {"quantize": quantize, "commit": commit})
        return quantized(self, x, self.reduction)

    def to_codes(self, x: Tensor) -> Tensor:
        """The index of the nearest value in each dimension: (..., num_latents) floats → int64."""
        self.require_inputs(x)
        distance = (x.detach().unsqueeze(-1) - self.codebook().detach()).abs()  # (..., n_z, n_v)
        if len(set(self.num_values)) > 1:
            distance = distance.masked_fill(~self.mask, torch.inf)
        return distance.argmin(-1)

    def look_up(self, codes: Tensor) -> Tensor:
        """The values behind codes: (..., num_latents) int64 → floats; differentiable in the codebook."""
        values: Tensor = _LookUp.apply(self.codebook(), codes)  # type: ignore[no-untyped-call]
        return values

    def extra_repr(self) -> str:
        sizes = self.num_values[0] if len(set(self.num_values)) == 1 else list(self.num_values)
        return f"num_latents={self.num_latents}, num_values={sizes}, shared={self.shared}"
