"""Quantization with a straight-through gradient and the two losses of a codebook (Section 3, Equation 4).

For encoder outputs ``x`` and the codebook values ``v`` nearest to them,

    z        = v, with the gradient of x
    quantize = ‖stop(x) − v‖²   (moves the codebook only)
    commit   = ‖x − stop(v)‖²   (moves the encoder only)

Both losses are averaged over the batch. ``reduction`` says whether they are summed over latents, as in the paper, or
averaged, as in the authors' code.
"""

from typing import Any

import torch
from torch import Tensor

from . import dispatch


def straight_through(x: Tensor, z: Tensor) -> Tensor:
    """Return ``z`` with the gradient of ``x``.

    ``x − stop(x)`` is exactly zero, so the value is that of ``z`` to the last bit, where the usual ``x + stop(z − x)``
    is off by a rounding error.
    """
    return z.detach() + (x - x.detach())


def quantization_terms(x: Tensor, values: Tensor, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``z``, ``quantize`` and ``commit`` for encoder outputs and their nearest values, both (..., n_z)."""
    if dispatch.is_plain():
        return (
            straight_through(x, values),
            _reduce((x.detach() - values).square(), reduction),
            _reduce((x - values.detach()).square(), reduction),
        )
    z, quantize, commit = _QuantizationTerms.apply(x, values, reduction)  # type: ignore[no-untyped-call]
    return z, quantize, commit


def look_up(codebook: Tensor, codes: Tensor) -> Tensor:
    """Return the values (..., n_z) of codes (..., n_z) in codebooks (n_z, n_v); differentiable in the codebooks."""
    if dispatch.is_plain():
        return _gather(codebook, codes)
    values: Tensor = _LookUp.apply(codebook, codes)  # type: ignore[no-untyped-call]
    return values


def quantize_by_kernels(
    x: Tensor, codebook: Tensor, sizes: Tensor, reduction: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``z``, ``quantize``, ``commit`` and the codes (b, n_z) of encoder outputs (b, n_z).

    Args:
        x: encoder outputs.
        codebook: values (n_z, n_v) of every latent.
        sizes: number of values of each latent, (n_z,) floats.
        reduction: ``"sum"`` or ``"mean"``.
    """
    scale = 1 / _num_averaged(x, reduction)
    z, quantize, commit, codes = _QuantizeByKernels.apply(x, codebook, sizes, scale)  # type: ignore[no-untyped-call]
    return z, quantize, commit, codes


def _reduce(squares: Tensor, reduction: str) -> Tensor:
    return squares.mean() if reduction == "mean" else squares.sum(-1).mean()


def _num_averaged(x: Tensor, reduction: str) -> int:
    """Return the divisor of a sum of squares over x (..., n_z): the entries, or the rows if latents are summed."""
    return max(x.numel() if reduction == "mean" else x.numel() // x.shape[-1], 1)


def _gather(codebook: Tensor, codes: Tensor) -> Tensor:
    return codebook.expand(*codes.shape, -1).gather(-1, codes.unsqueeze(-1)).squeeze(-1)


class _QuantizationTerms(torch.autograd.Function):
    """The values with the gradient of x, and the squared distance twice: one moves the values, one x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
        difference = x - values
        ctx.save_for_backward(difference)
        ctx.reduction = reduction
        ctx.set_materialize_grads(False)
        distance = _reduce(difference.square(), reduction)
        return values.clone(), distance, distance.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, z_grad: Tensor | None, quantize_grad: Tensor | None, commit_grad: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        (difference,) = ctx.saved_tensors
        slope = difference * (2 / _num_averaged(difference, ctx.reduction))
        x_grad = None if commit_grad is None else slope * commit_grad
        if z_grad is not None:
            x_grad = z_grad if x_grad is None else x_grad + z_grad
        return x_grad, None if quantize_grad is None else -slope * quantize_grad, None


class _LookUp(torch.autograd.Function):
    """``look_up`` with a reproducible gradient.

    The gradient of a value is a sum over the places where it was used. It is taken in a fixed order; PyTorch's own
    gradient of ``gather`` adds up in whatever order a GPU happens to run.
    """

    @staticmethod
    def forward(ctx: Any, codebook: Tensor, codes: Tensor) -> Tensor:
        ctx.save_for_backward(codes)
        ctx.num_values = codebook.shape[1]
        ctx.set_materialize_grads(False)
        return _gather(codebook, codes)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, None]:
        if gradient is None:
            return None, None
        (codes,) = ctx.saved_tensors
        matches = codes.unsqueeze(-1) == torch.arange(ctx.num_values, device=codes.device)
        return (matches * gradient.unsqueeze(-1)).reshape(-1, *matches.shape[-2:]).sum(0), None


class _QuantizeByKernels(torch.autograd.Function):
    """Nearest values, both losses and all gradients in two kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, codebook: Tensor, sizes: Tensor, scale: float) -> tuple[Tensor, ...]:
        from .kernels import quantized as kernel

        x = x.contiguous()
        z, codes, distance = kernel.forward(x, codebook, sizes, scale)
        ctx.save_for_backward(x, z, codes)
        ctx.num_values, ctx.scale = codebook.shape[1], scale
        ctx.mark_non_differentiable(codes)
        return z, distance, distance.clone(), codes

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, z_grad: Tensor, quantize_grad: Tensor, commit_grad: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        from .kernels import quantized as kernel

        x, z, codes = ctx.saved_tensors
        gradients = kernel.backward(x, z, codes, z_grad, quantize_grad, commit_grad, ctx.num_values, ctx.scale)
        return *gradients, None, None
