"""Data reconstruction (Equation 2, Algorithm 2): the objective of ``ae`` and of every quantized autoencoder.

The latent space brings its own terms, so a variant is a set of weights, never another objective.
"""

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from ..model import Model
from .player import Player


class Autoencoding:
    """Binary cross entropy on logits, averaged over pixels and channels, plus the latent space's weighted terms.

    Args:
        model: what is trained.
        weights: of the terms by name: ``reconstruct``, and those of the latent space (``quantize``, ``commit``).
    """

    def __init__(self, model: Model, weights: Mapping[str, float]):
        self.model = model
        self.weights = dict(weights)

    def players(self) -> list[Player]:
        """One player: encoder, decoder and codebook move together."""
        model = self.model
        return [
            Player(
                name="autoencoder",
                decayed=(model.encoder, model.decoder),
                undecayed=(model.latent,),
                loss=self.loss,
                terms=("loss", *self.weights),
            )
        ]

    def loss(self, images: Tensor) -> dict[str, Tensor]:
        """images (b, 3, r, r) in [0, 1] → the terms, unweighted, and their weighted sum ``loss``."""
        output = self.model(images)
        terms = {"reconstruct": F.binary_cross_entropy_with_logits(output.logits, images), **output.latent.losses}
        total = sum((weight * terms[name] for name, weight in self.weights.items()), images.new_zeros(()))
        return {"loss": total} | {name: terms[name] for name in self.weights}
