"""Latent reconstruction (Equation 3, Algorithm 3): InfoWGAN-GP over any latent space that can be sampled.

The generator maps latents drawn from the prior to images, and the encoder recovers the latents. A critic, a linear head
on the encoder's features, compares generated images with real ones (Wasserstein GAN with gradient penalty, Gulrajani et
al. 2017). Encoder and critic move at every update, generator and codebook at every fifth.

The generator's inputs are values of the codebook, so the generator's loss reaches the codebook through them as well.
With ``codebook_player="encoder"`` (Appendix "Negative Results") the codebook moves with the encoder and the critic
instead, by the gradient of their whole loss. It too reaches the codebook through the generated images.
"""

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._checks import require_known, whole_number
from ..config import ObjectiveConfig
from ..models.building import output_shape
from ..models.model import Model, run_in_own_precision
from ..ops.convolutions import penalized
from ..registry import OBJECTIVES
from .objective import L1, Objective, Player, Terms


@dataclass(frozen=True)
class AdversarialConfig(ObjectiveConfig):
    """The settings of ``Adversarial``.

    Attributes:
        generator_period: number of encoder and critic updates per update of the generator.
        codebook_player: ``"generator"`` or ``"encoder"``, with which the codebook moves.
    """

    generator_period: int = 5
    codebook_player: str = "generator"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known(self.codebook_player, ("generator", "encoder"), "codebook_player")
        whole_number("generator_period", self.generator_period)


@OBJECTIVES.register("adversarial", AdversarialConfig)
class Adversarial(Objective):
    """The Wasserstein value, the gradient penalty, the recovered latents, and the latent space's own terms."""

    terms = ("reconstruct_latent", "value", "gradient_penalty")
    optional_terms = (L1,)
    reconstructs = False
    networks_in_patches = False  # a critic sees the seams between patches, and a generator of patches never closes them

    def build_parts(self, model: Model) -> dict[str, nn.Module]:
        """Return the critic: a linear head on the encoder's last feature layer."""
        features, head = getattr(model.encoder, "features", None), getattr(model.encoder, "head", None)
        if not callable(features) or not callable(head):
            raise ValueError(
                "a GAN's critic is a second head on the encoder's features: the encoder needs features(images) → "
                "(b, width) and head(features), of which forward(images) is composed"
            )
        shape = output_shape(model.encoder, features, *model.form.input_shape)
        output_shape(model.encoder, head, *shape)
        return {"critic": nn.Linear(shape[-1], 1)}

    def players(self, model: Model) -> list[Player]:
        """Return encoder and critic, and against them the generator. The codebook moves with one of the two."""
        with_encoder = self.config.codebook_player == "encoder"
        game = Game(model, moves_codebook_with_encoder=with_encoder)
        encoder, generator = self.weighting(), self.weighting(without=("gradient_penalty",))
        critics, generators = (model.encoder, model.parts["critic"]), (model.decoder,)
        return [
            Player(
                name="encoder",
                decayed=critics,
                undecayed=(model.latent,) if with_encoder else (),
                loss=encoder.loss(game.encoder_terms, critics),
                terms=encoder.names,
            ),
            Player(
                name="generator",
                decayed=generators,
                undecayed=() if with_encoder else (model.latent,),
                loss=generator.loss(game.generator_terms, generators),
                terms=generator.names,
                period=self.config.generator_period,
            ),
        ]


class Game:
    """The loss terms of both players, unweighted.

    Args:
        model: with a critic among its parts.
        moves_codebook_with_encoder: whether gradients of the encoder's terms must reach the codebook through the
            generated images.
    """

    def __init__(self, model: Model, *, moves_codebook_with_encoder: bool = False):
        self.model = model
        self.moves_codebook_with_encoder = moves_codebook_with_encoder
        self.encoder: Any = model.encoder  # has features(images) and head(features)
        self.critic: Any = model.parts["critic"]

    def encoder_terms(
        self, images: Tensor, generator: torch.Generator | None = None, number: Tensor | None = None
    ) -> Terms:
        """Return the terms of encoder and critic on real images (b, 3, r, r) and as many generated ones."""
        with contextlib.nullcontext() if self.moves_codebook_with_encoder else torch.no_grad():
            z, fake = self._generate(len(images), generator)
            one_each = len(images), *(1,) * (images.dim() - 1)
            share = torch.rand(one_each, generator=generator, device=images.device)
        features = self._features(torch.cat((fake, images)))
        fake_value, real_value = self._value(features).chunk(2)
        terms = self._latent_terms(features[: len(images)], z, generator)
        terms["value"] = fake_value.mean() - real_value.mean()
        terms["gradient_penalty"] = self.gradient_penalty(torch.lerp(fake, images, share))
        return terms

    def generator_terms(
        self, images: Tensor, generator: torch.Generator | None = None, number: Tensor | None = None
    ) -> Terms:
        """Return the terms of generator and codebook on as many generated images as there are real ones."""
        z, fake = self._generate(len(images), generator)
        features = self._features(fake)
        terms = self._latent_terms(features, z, generator)
        terms["value"] = -self._value(features).mean()
        return terms

    def gradient_penalty(self, images: Tensor) -> Tensor:
        """Return the mean of (‖∇ critic‖ − 1)² over images (b, 3, r, r), the gradient being that of the critic's value
        with respect to the image."""
        if not images.requires_grad:
            images = images.detach().requires_grad_()
        with penalized():
            value = self._value(self._features(images)).sum()
            (gradient,) = torch.autograd.grad(value, images, create_graph=True)
        norm: Tensor = gradient.flatten(1).norm(dim=1)
        return (norm - 1).square().mean()

    def _generate(self, num_images: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        z = self.model.latent.sample(num_images, generator)
        return z, self.model.form.to_mean(run_in_own_precision(self.model.decoder, z))

    def _features(self, images: Tensor) -> Tensor:
        features: Tensor = self.encoder.features(images.to(self.critic.weight.dtype))
        return features

    def _value(self, features: Tensor) -> Tensor:
        """Return the critic's value in float32 at least, since it is averaged and differentiated twice."""
        value: Tensor = self.critic(features)
        return value.to(torch.promote_types(value.dtype, torch.float32))

    def _latent_terms(self, features: Tensor, z: Tensor, generator: torch.Generator | None) -> Terms:
        recovered = self.model.latent(self.encoder.head(features).to(z.dtype), generator)
        return {"reconstruct_latent": F.mse_loss(recovered.z, z), **recovered.losses}
