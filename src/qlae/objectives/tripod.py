"""Tripod: an autoencoder with quantized latents, low multi-information, and a decoder without interactions.

Paper: Hsu, Hamid, Burns, Finn and Wu, "Tripod: Three Complementary Inductive Biases for Disentangled Representation
Learning" (2024, arXiv:2404.10282); code: kylehkhsu/tripod. The objective is

    reconstruct + λ_m · multi_information + λ_h · hessian,

the binary cross entropy averaged over pixels and channels, the kernel-based multi-information of the latents
(``multi_information.py``) and the normalized Hessian penalty on the decoder's activations (``hessian_penalty.py``). The
third bias is the latent space: tanh and rounding to 12 evenly spaced values in [−1, 1] (``finite-scalar``). Gradients
pass straight through the rounding. The networks are residual (``models/networks/tripod.py``).

The objective works with any latent space in which a latent is one number, and with any decoder that has
``activations(z)`` and ``finish(activations)``, of which ``forward`` is composed; the paper's decoder has them too. So
``hessian`` and ``multi_information`` can be added to QLAE by a ``ModelSpec`` with this objective and its latent space.

Deviations from the authors' code:

- The deviation of the latents, which sets bandwidths and perturbations, is √(variance + 1e-12) instead of standard
  deviation + 1e-6; the latter has no gradient for a latent that is constant over a batch.
- The perturbed points and the unperturbed ones are one batch, which runs through the decoder up to its last stage.
  The last stage, whose output is not penalised, runs on the unperturbed ones only.
- The averaged weights are evaluated, as for all models here, beside the raw ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._checks import whole_number
from ..config import require_number
from ..models.model import Model, run_in_own_precision
from ..registry import OBJECTIVES
from .autoencoding import autoencoder_player
from .hessian_penalty import hessian_penalty, points_around
from .multi_information import multi_information
from .objective import Objective, ObjectiveConfig, latent_losses
from .player import Player
from .regularization import L1
from .weighting import Terms

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
        require_number("epsilon", self.epsilon)
        if not self.epsilon > 0:
            raise ValueError(f"epsilon must be above 0, got {self.epsilon}")


@OBJECTIVES.register("tripod", TripodConfig)
class Tripod(Objective):
    """Reconstruction, multi-information of the latents, and the normalized Hessian penalty on the decoder."""

    terms = ("reconstruct", "multi_information", "hessian")
    optional_terms = (L1,)
    trains_in_bfloat16 = False  # second differences of activations would be lost to rounding

    def players(self, model: Model) -> list[Player]:
        """Return one player: encoder, decoder and codebook move together."""
        _require_scalars(model)
        if "hessian" in self.config.weights:
            _require_stages(model)

        def terms_of(images: Tensor, generator: torch.Generator | None) -> Terms:
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
    terms = latent_losses(model, latent.losses, images[0].numel())
    if "multi_information" in config.weights:
        terms["multi_information"] = multi_information(latent.z, deviation)
    if "hessian" in config.weights:
        draws: dict[str, Any] = {"num_draws": config.num_draws, "epsilon": config.epsilon}
        points = points_around(latent.z, deviation, generator=generator, **draws)
        rows = _activations(model, torch.cat((latent.z, points)))
        at_z, around = zip(*(layer.split((len(images), len(points))) for layer in rows), strict=True)
        logits = _finish(model, at_z).to(images.dtype)
        terms["hessian"] = hessian_penalty(around, **draws)
    else:
        logits = run_in_own_precision(model.decoder, latent.z)
    return {"reconstruct": model.form.error(logits, images), **terms}


def _activations(model: Model, z: Tensor) -> Sequence[Tensor]:
    decoder: Any = model.decoder
    activations: Sequence[Tensor] = decoder.activations(z.to(next(decoder.parameters()).dtype))
    return activations


def _finish(model: Model, activations: Sequence[Tensor]) -> Tensor:
    decoder: Any = model.decoder
    logits: Tensor = decoder.finish(activations)
    return logits


def _require_scalars(model: Model) -> None:
    if model.latent.num_outputs != model.latent.num_latents:
        raise ValueError(
            f"Tripod's penalties need latents of one number each, and those of {type(model.latent).__name__} have "
            f"{model.latent.num_outputs // model.latent.num_latents}"
        )


def _require_stages(model: Model) -> None:
    decoder: Any = model.decoder
    if not callable(getattr(decoder, "activations", None)) or not callable(getattr(decoder, "finish", None)):
        raise ValueError(
            "the Hessian penalty is on the activations of the decoder: the decoder needs activations(z) → tuple of "
            "(b, …) tensors and finish(activations) → logits, of which forward(z) is composed; "
            f"{type(decoder).__name__} does not have them. Without the weight of hessian, any decoder will do"
        )
