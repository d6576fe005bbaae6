"""Tripod: an autoencoder with quantized latents, low multi-information, and a decoder without interactions.

Paper: Hsu, Hamid, Burns, Finn and Wu, "Tripod: Three Complementary Inductive Biases for Disentangled Representation
Learning" (2024, arXiv:2404.10282); code: kylehkhsu/tripod. The objective is

    reconstruct + λ_m · multi_information + λ_h · hessian,

the binary cross entropy averaged over pixels and channels, the kernel-based multi-information of the latents and the
normalized Hessian penalty on the decoder's activations. The third bias is the latent space: tanh and rounding to 12
evenly spaced values in [−1, 1] (``finite-scalar``). Gradients pass straight through the rounding. The networks are
residual (``models/networks/residual.py``).

**Multi-information** (Section 3.2). With the Gaussian kernel density estimates q of the joint and q_k of each marginal
distribution of a batch,

    multi_information = mean over z of  log q(z) − Σ_k log q_k(z_k).

Both estimates include the point at which they are evaluated. The bandwidth in dimension k is a factor times the
deviation of the latent: Silverman's factor (4 / (n + 2))^(1 / (n + 4)) · b^(−1 / (n + 4)) for the joint of n latents
over b images, and 1 for the marginals, as in the authors' code. Marginals are therefore smoother than the joint, and
independent latents do not have the value 0. With equal factors the value is exactly 0 on any grid that holds all
combinations of values.

**The normalized Hessian penalty** (Section 3.3). For a function f of latents z with Hessian H, scaled by the deviations
of the latents, the variance of vᵀHv is 2 Σ_{i≠j} H_ij² over random signs v (Rademacher; Peebles et al. 2020) and
2 Σ_ij H_ij² over Gaussian v. Their ratio is the share of interactions between latents in the curvature, whatever the
scale of f:

    hessian = Σ over layers of  mean over images of  mean_f Var_signs(vᵀHv) / (mean_f Var_Gaussian(vᵀHv) + 1e-10),

where mean_f is over the activations of a layer. The second derivatives are central differences of step ε = 0.1,

    vᵀHv ≈ (f(z + εv) − 2 f(z) + f(z − εv)) / ε².

f(z) is the same for all draws, so it drops out of the variances: with two draws of each kind, an update needs the
activations at eight points around z. ``points_around`` returns them as one batch, and ``hessian_penalty`` takes the
activations of that batch. The differences are small next to f: in bfloat16 they would be lost to rounding, so the
networks train in float32.

The objective works with any latent space in which a latent is one number, and with any decoder that has
``activations(z)`` and ``finish(activations)``, of which ``forward`` is composed; the paper's decoder has them too. So
``hessian`` and ``multi_information`` can be added to QLAE by a ``ModelSpec`` with this objective and its latent space.

Deviations from the authors' code:

- The deviation of the latents, which sets bandwidths and perturbations, is √(variance + 1e-12) instead of standard
  deviation + 1e-6; the latter has no gradient for a latent that is constant over a batch.
- The perturbed points and the unperturbed ones are one batch, which runs through the decoder up to its last stage.
  The last stage, whose output is not penalised, runs on the unperturbed ones only.
- The averaged weights are evaluated, as for all models here, alongside the raw ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._checks import require_not_negative, whole_number
from ..config import ObjectiveConfig
from ..models.model import Model, run_in_own_precision
from ..registry import OBJECTIVES
from .autoencoding import autoencoder_player
from .objective import L1, Objective, Player, Terms, latent_losses

MIN_VARIANCE = 1e-12  # added to the variance of a latent


@dataclass(frozen=True)
class TripodConfig(ObjectiveConfig):
    """The settings of ``Tripod``.

    Attributes:
        num_draws: random directions of each kind per image, for the Hessian penalty.
        epsilon: length of a perturbation, as a share of a latent's deviation.
    """

    num_draws: int = 2
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("num_draws", self.num_draws, at_least=2)
        if not require_not_negative("epsilon", self.epsilon):
            raise ValueError(f"epsilon must be above 0, got {self.epsilon}")


@OBJECTIVES.register("tripod", TripodConfig)
class Tripod(Objective):
    """Reconstruction, multi-information of the latents, and the normalized Hessian penalty on the decoder."""

    terms = ("reconstruct", "multi_information", "hessian")
    optional_terms = (L1,)
    trains_in_bfloat16 = False  # second differences of activations would be lost to rounding

    def players(self, model: Model) -> list[Player]:
        """Return one player: encoder, decoder and codebook move together."""
        if model.latent.num_outputs != model.latent.num_latents:
            raise ValueError(
                f"Tripod's penalties need latents of one number each, and those of {type(model.latent).__name__} have "
                f"{model.latent.num_outputs // model.latent.num_latents}"
            )
        stages = [getattr(model.decoder, name, None) for name in ("activations", "finish")]
        if "hessian" in self.config.weights and not all(callable(stage) for stage in stages):
            raise ValueError(
                "the Hessian penalty is on the activations of the decoder: the decoder needs activations(z) → tuple of "
                "(b, …) tensors and finish(activations) → logits, of which forward(z) is composed; "
                f"{type(model.decoder).__name__} does not have them. Without the weight of hessian, any decoder will do"
            )

        def terms_of(images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
            return tripod_terms(model, images, generator, self.config)

        return [autoencoder_player(model, self.weighting(), terms_of)]


def tripod_terms(
    model: Model, images: Tensor, generator: torch.Generator | None = None, config: TripodConfig | None = None
) -> Terms:
    """Return the unweighted terms on images (b, 3, r, r) in [0, 1]; penalties without a weight are not computed."""
    config = config or TripodConfig({"reconstruct": 1.0, "multi_information": 1.0, "hessian": 1.0})
    x = run_in_own_precision(model.encoder, images)
    latent = model.latent(x, generator)
    variance = model.latent.unrounded(x).var(0, correction=0)
    deviation = (variance + MIN_VARIANCE).sqrt()
    terms = latent_losses(model, latent.losses, model.form.num_terms)
    if "multi_information" in config.weights:
        terms["multi_information"] = multi_information(latent.z, deviation)
    if "hessian" in config.weights:
        draws: dict[str, Any] = {"num_draws": config.num_draws, "epsilon": config.epsilon}
        points = points_around(latent.z, deviation, generator=generator, **draws)
        decoder: Any = model.decoder
        rows = decoder.activations(torch.cat((latent.z, points)).to(next(decoder.parameters()).dtype))
        at_z, around = zip(*(layer.split((len(images), len(points))) for layer in rows), strict=True)
        logits = decoder.finish(at_z).to(images.dtype)
        terms["hessian"] = hessian_penalty(around, **draws)
    else:
        logits = run_in_own_precision(model.decoder, latent.z)
    return {"reconstruct": model.form.error(logits, images), **terms}


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
    """Return the multi-information of latents (b, n) of the given deviations (n,) in nats, a scalar.

    The factors on the deviations set the bandwidths; that of the joint estimate is Silverman's by default.
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


TINY = 1e-10  # added to the denominator


def points_around(
    z: Tensor, deviation: Tensor, *, num_draws: int, epsilon: float, generator: torch.Generator | None = None
) -> Tensor:
    """Return the perturbed latents as one batch (4 · num_draws · b, n): z + εv, signs first, then z − εv.

    ``z`` are latents (b, n), ``deviation`` that of each latent (n,), and ``epsilon`` the size of a perturbation as a
    share of it. There are ``num_draws`` of random signs, and of Gaussian vectors, per image.
    """
    shape = (num_draws, *z.shape)
    uniform = torch.rand(shape, generator=generator, device=z.device, dtype=z.dtype)
    normal = torch.randn(shape, generator=generator, device=z.device, dtype=z.dtype)
    signs = torch.where(uniform < 0.5, -torch.ones_like(uniform), torch.ones_like(uniform))
    steps = torch.cat((signs, normal)) * (epsilon * deviation)
    return torch.cat((z + steps, z - steps)).flatten(0, 1)


def hessian_penalty(activations: Sequence[Tensor], *, num_draws: int, epsilon: float) -> Tensor:
    """Return the penalty on the activations of layers, (4 · num_draws · b, …) each, for ``points_around``; a scalar."""
    return torch.stack([_layer_penalty(rows, num_draws, epsilon) for rows in activations]).sum()


def _layer_penalty(rows: Tensor, num_draws: int, epsilon: float) -> Tensor:
    exact = rows.to(torch.promote_types(rows.dtype, torch.float32))
    above, below = exact.unflatten(0, (4 * num_draws, -1)).flatten(2).chunk(2)  # (2 · num_draws, b, entries) each
    sums = (above + below).unflatten(0, (2, num_draws))  # vᵀHv · ε² + 2 f(z)
    signs, gaussian = (sums - sums.mean(1, keepdim=True)).square().mean((1, 3))  # (b,) each
    penalty: Tensor = (signs / (gaussian + TINY * epsilon**4)).mean()
    return penalty
