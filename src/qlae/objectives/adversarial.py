"""Latent reconstruction (Equation 3, Algorithm 3): InfoWGAN-GP over any latent space that can be sampled.

The generator turns latents drawn from the prior into images; the encoder finds the latents again; a critic, a linear
head on the encoder's features, holds generated images against real ones (Wasserstein GAN with gradient penalty,
Gulrajani et al. 2017). Encoder and critic move at every update, generator and codebook at every fifth.

The latents that the generator is fed are values of the codebook, so the generator's loss also reaches the codebook
through them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..models.model import Model, in_its_precision
from ..ops.convolutions import penalised
from .player import Player
from .weighting import Terms, Weighting

GAME = ("reconstruct_latent", "value", "gradient_penalty")  # the terms that are not the latent space's


class Adversarial:
    """The Wasserstein value, the gradient penalty, the latents found again, and the latent space's own terms.

    Args:
        model: what is trained; it has a critic.
        weights: of the terms by name: ``reconstruct_latent``, ``value``, ``gradient_penalty``, and those of the latent
            space (``quantize``, ``commit``).
        period: encoder and critic updates to one of the generator.
        warm_up: updates over which the latent space's own weights rise from 0.
    """

    def __init__(self, model: Model, weights: Mapping[str, float], *, period: int = 5, warm_up: int = 0):
        assert model.critic is not None
        self.model = model
        self.encoder: Any = model.encoder  # which has features(images) and head(features)
        self.critic: Any = model.critic
        self.weights = dict(weights)
        self.period = period
        self.warm_up = warm_up

    def players(self) -> list[Player]:
        """Encoder and critic, and against them generator and codebook."""
        model = self.model
        generator_weights = {name: weight for name, weight in self.weights.items() if name != "gradient_penalty"}
        return [
            self._player("encoder", (model.encoder, self.critic), (), self.encoder_terms, self.weights, 1),
            self._player(
                "generator", (model.decoder,), (model.latent,), self.generator_terms, generator_weights, self.period
            ),
        ]

    def _player(
        self,
        name: str,
        decayed: tuple[nn.Module, ...],
        undecayed: tuple[nn.Module, ...],
        terms_of: Callable[[Tensor, torch.Generator | None], Terms],
        weights: Mapping[str, float],
        period: int,
    ) -> Player:
        own = [term for term in weights if term not in GAME]
        weigh = Weighting(weights, warmed_up=own, warm_up=self.warm_up)

        def loss(images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
            return weigh(terms_of(images, generator), number)

        return Player(name, decayed, undecayed, loss, weigh.names, period)

    def encoder_terms(self, images: Tensor, generator: torch.Generator | None = None) -> Terms:
        """What encoder and critic descend, unweighted, on real images (b, 3, r, r) and as many generated ones."""
        with torch.no_grad():
            z, fake = self._generate(len(images), generator)
            share = torch.rand(len(images), 1, 1, 1, generator=generator, device=images.device)
        features = self._features(torch.cat((fake, images)))
        fake_value, real_value = self._value(features).chunk(2)
        terms = self._latent_terms(features[: len(images)], z, generator)
        terms["value"] = fake_value.mean() - real_value.mean()
        terms["gradient_penalty"] = self.gradient_penalty(torch.lerp(fake, images, share))
        return terms

    def generator_terms(self, images: Tensor, generator: torch.Generator | None = None) -> Terms:
        """What generator and codebook descend, unweighted, on as many generated images as there are real ones."""
        z, fake = self._generate(len(images), generator)
        features = self._features(fake)
        terms = self._latent_terms(features, z, generator)
        terms["value"] = -self._value(features).mean()
        return terms

    def gradient_penalty(self, images: Tensor) -> Tensor:
        """The mean of (‖∇ critic‖ − 1)², the gradient being that of the value in the image: (b, 3, r, r) → scalar."""
        images = images.detach().requires_grad_()
        with penalised():
            value = self._value(self._features(images)).sum()
            (gradient,) = torch.autograd.grad(value, images, create_graph=True)
        norm: Tensor = gradient.flatten(1).norm(dim=1)
        return (norm - 1).square().mean()

    def _generate(self, num_images: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        z = self.model.latent.sample(num_images, generator)
        return z, in_its_precision(self.model.decoder, z).sigmoid()

    def _features(self, images: Tensor) -> Tensor:
        features: Tensor = self.encoder.features(images.to(self.critic.weight.dtype))
        return features

    def _value(self, features: Tensor) -> Tensor:
        """What the critic thinks, in float32 at least: it is averaged and differentiated twice."""
        value: Tensor = self.critic(features)
        return value.to(torch.promote_types(value.dtype, torch.float32))

    def _latent_terms(self, features: Tensor, z: Tensor, generator: torch.Generator | None) -> Terms:
        found = self.model.latent(self.encoder.head(features).to(z.dtype), generator)
        return {"reconstruct_latent": F.mse_loss(found.z, z), **found.losses}
