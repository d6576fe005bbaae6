"""Multi-information of latents by kernel density estimates, as Tripod penalises it (Hsu et al. 2024, Section 3.2).

With the Gaussian kernel density estimates q of the joint and q_k of each marginal distribution of a batch,

    multi_information = mean over z of  log q(z) − Σ_k log q_k(z_k).

Both estimates include the point at which they are evaluated. The bandwidth in dimension k is a factor times the
deviation of the latent: Silverman's factor (4 / (n + 2))^(1 / (n + 4)) · b^(−1 / (n + 4)) for the joint of n latents
over b images, and 1 for the marginals, as in the authors' code. Marginals are therefore smoother than the joint, and
independent latents do not have the value 0. With equal factors the value is exactly 0 on any grid that holds all
combinations of values.
"""

import math

import torch
from torch import Tensor


def silverman_factor(num_latents: int, num_images: int) -> float:
    """Return Silverman's bandwidth for data of deviation 1.

    >>> round(silverman_factor(12, 64), 4)
    0.713
    """
    power = 1 / (num_latents + 4)
    return float((4 / (num_latents + 2)) ** power * num_images**-power)


def multi_information(
    z: Tensor, deviation: Tensor, *, joint_factor: float | None = None, marginal_factor: float = 1.0
) -> Tensor:
    """Return the multi-information of latents in nats, a scalar.

    Args:
        z: latents (b, n).
        deviation: of each latent, (n,).
        joint_factor: on the deviation, for the bandwidths of the joint estimate; Silverman's by default.
        marginal_factor: for those of the marginal estimates.
    """
    num_images, num_latents = z.shape
    joint_factor = silverman_factor(num_latents, num_images) if joint_factor is None else joint_factor
    exact = torch.promote_types(z.dtype, torch.float32)
    scaled = z.to(exact) / deviation.to(exact)
    distances = (scaled[:, None] - scaled).square() / 2  # (b, b, n)
    # Normalising constants of joint and marginals cancel but for the factors.
    joint = (-distances.sum(-1) / joint_factor**2).logsumexp(1)  # (b,)
    marginals = (-distances / marginal_factor**2).logsumexp(1).sum(-1)  # (b,)
    constant = (num_latents - 1) * math.log(num_images) + num_latents * math.log(marginal_factor / joint_factor)
    return (joint - marginals).mean() + constant
