"""The normalized Hessian penalty on a decoder, as Tripod has it (Hsu et al. 2024, Section 3.3).

For a function f of latents z with Hessian H, scaled by the deviations of the latents, the variance of vᵀHv is
2 Σ_{i≠j} H_ij² over random signs v (Rademacher; Peebles et al. 2020) and 2 Σ_ij H_ij² over Gaussian v. Their ratio is
the share of interactions between latents in the curvature, whatever the scale of f:

    hessian = Σ over layers of  mean over images of  mean_f Var_signs(vᵀHv) / (mean_f Var_Gaussian(vᵀHv) + 1e-10),

where mean_f is over the activations of a layer. The second derivatives are central differences of step ε = 0.1,

    vᵀHv ≈ (f(z + εv) − 2 f(z) + f(z − εv)) / ε².

f(z) is the same for all draws, so it drops out of the variances: with two draws of each kind, an update needs the
activations at eight points around z. ``points_around`` returns them as one batch, and ``hessian_penalty`` takes the
activations of that batch.

The differences are small next to f: in bfloat16 they would be lost to rounding, so the networks train in float32.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

TINY = 1e-10  # added to the denominator


def points_around(
    z: Tensor, deviation: Tensor, *, num_draws: int, epsilon: float, generator: torch.Generator | None = None
) -> Tensor:
    """Return the perturbed latents as one batch.

    Args:
        z: latents (b, n).
        deviation: of each latent, (n,).
        num_draws: of random signs, and of Gaussian vectors, per image.
        epsilon: size of a perturbation, as a share of the deviation.
        generator: of the random numbers.

    Returns:
        (4 · num_draws · b, n): z + εv for all draws, signs first, then z − εv.
    """
    shape = (num_draws, *z.shape)
    uniform = torch.rand(shape, generator=generator, device=z.device, dtype=z.dtype)
    normal = torch.randn(shape, generator=generator, device=z.device, dtype=z.dtype)
    signs = torch.where(uniform < 0.5, -torch.ones_like(uniform), torch.ones_like(uniform))
    steps = torch.cat((signs, normal)) * (epsilon * deviation)
    return torch.cat((z + steps, z - steps)).flatten(0, 1)


def hessian_penalty(activations: Sequence[Tensor], *, num_draws: int, epsilon: float) -> Tensor:
    """Return the penalty, a scalar.

    Args:
        activations: of layers, (4 · num_draws · b, …) each, for the rows of ``points_around``.
        num_draws, epsilon: as for ``points_around``.
    """
    return torch.stack([_layer_penalty(rows, num_draws, epsilon) for rows in activations]).sum()


def _layer_penalty(rows: Tensor, num_draws: int, epsilon: float) -> Tensor:
    exact = rows.to(torch.promote_types(rows.dtype, torch.float32))
    above, below = exact.unflatten(0, (4 * num_draws, -1)).flatten(2).chunk(2)  # (2 · num_draws, b, entries) each
    sums = (above + below).unflatten(0, (2, num_draws))  # vᵀHv · ε² + 2 f(z)
    signs, gaussian = (sums - sums.mean(1, keepdim=True)).square().mean((1, 3))  # (b,) each
    penalty: Tensor = (signs / (gaussian + TINY * epsilon**4)).mean()
    return penalty
