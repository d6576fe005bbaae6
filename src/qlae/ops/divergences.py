"""Divergences of diagonal Gaussians, in nats: the KL term of β-VAE and its decomposition in β-TCVAE.

Chen et al. (2018), "Isolating Sources of Disentanglement in Variational Autoencoders". With q(z) = E_x q(z | x),

    E_x D_KL(q(z | x) ‖ p(z)) = I(x; z) + D_KL(q(z) ‖ Π_j q(z_j)) + Σ_j D_KL(q(z_j) ‖ p(z_j)).

q(z) and q(z_j) are estimated from the batch by minibatch-weighted sampling (their Appendix C.1): for a batch of M
images out of N, log q(z) ≈ log 1/(N M) Σ_m q(z | x_m).
"""

import math
from typing import Any

import torch
from torch import Tensor

from . import dispatch


def gaussian_kl(mean: Tensor, deviation: Tensor) -> Tensor:
    """Return D_KL(N(mean, deviation²) ‖ N(0, I)), summed over latents, averaged over the batch: (b, n_z) → scalar."""
    return 0.5 * (mean.square() + deviation.square() - 1 - 2 * deviation.log()).sum(-1).mean()


def log_normal(z: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return log N(z; mean, deviation²), elementwise."""
    return -0.5 * (((z - mean) / deviation).square() + math.log(2 * math.pi)) - deviation.log()


PARTS = ("mutual_information", "total_correlation", "dimension_kl")


def decomposed_kl(z: Tensor, mean: Tensor, deviation: Tensor, num_images: int) -> dict[str, Tensor]:
    """Return the three parts of the KL term for samples z ~ q(z | x), averaged over the batch: (b, n_z) → scalars."""
    if dispatch.uses_kernels(z):
        parts: Tensor = _DecomposedKL.apply(z, mean, deviation, num_images)  # type: ignore[no-untyped-call]
        return dict(zip(PARTS, parts.unbind(), strict=True))
    batch_size = z.shape[0]
    conditional = log_normal(z, mean, deviation).sum(-1)  # (b,) log q(z_i | x_i)
    prior = log_normal(z, torch.zeros_like(z), torch.ones_like(z)).sum(-1)  # (b,) log p(z_i)
    pairs = log_normal(z[:, None], mean[None], deviation[None])  # (b, b, n_z) log q(z_ij | x_m)
    weight = math.log(num_images * batch_size)
    joint = torch.logsumexp(pairs.sum(-1), dim=1) - weight  # (b,) log q(z_i)
    product = (torch.logsumexp(pairs, dim=1) - weight).sum(-1)  # (b,) Σ_j log q(z_ij)
    return dict(
        zip(PARTS, ((conditional - joint).mean(), (joint - product).mean(), (product - prior).mean()), strict=True)
    )


class _DecomposedKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, mean: Tensor, deviation: Tensor, num_images: int) -> Tensor:
        from .kernels import decomposed_kl as kernel

        z, mean, deviation = z.contiguous(), mean.contiguous(), deviation.contiguous()
        parts, joint, single = kernel.forward(z, mean, deviation, num_images)
        ctx.save_for_backward(z, mean, deviation, joint, single)
        return parts.mean(0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from .kernels import decomposed_kl as kernel

        return *kernel.backward(gradient.contiguous(), *ctx.saved_tensors), None
