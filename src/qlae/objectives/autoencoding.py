"""Data reconstruction (Equation 2, Algorithm 2): the objective of every autoencoder, variational ones included.

The latent space brings its own terms, so a variant is a latent space and a set of weights, never another objective.
Terms in nats an image (KL and its parts) are divided by the number of image entries, as the reconstruction is, so that
β means what it means with a summed likelihood.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from ..models.model import Model
from ..ops.cross_entropy import cross_entropy
from .player import Player
from .weighting import Terms, Weighting


class Autoencoding:
    """Binary cross entropy on logits, averaged over pixels and channels, plus the latent space's weighted terms.

    Args:
        model: what is trained.
        weights: of the terms by name: ``reconstruct``, and those of the latent space (``quantize``, ``kl``, …).
        warm_up: updates over which the latent space's own weights rise from 0.
    """

    def __init__(self, model: Model, weights: Mapping[str, float], *, warm_up: int = 0):
        self.model = model
        own = [name for name in weights if name != "reconstruct"]
        self.weigh = Weighting(weights, warmed_up=own, warm_up=warm_up)

    def players(self) -> list[Player]:
        """One player: encoder, decoder and codebook move together."""
        model = self.model
        return [
            Player(
                name="autoencoder",
                decayed=(model.encoder, model.decoder),
                undecayed=(model.latent,),
                loss=self.loss,
                terms=self.weigh.names,
            )
        ]

    def loss(self, images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
        """images (b, 3, r, r) in [0, 1] → the terms, unweighted, and their weighted sum ``loss``."""
        return self.weigh(self.terms(images, generator), number)

    def terms(self, images: Tensor, generator: torch.Generator | None = None) -> Terms:
        """images (b, 3, r, r) in [0, 1] → the terms, unweighted."""
        output = self.model(images, generator)
        terms = {"reconstruct": cross_entropy(output.logits, images), **output.latent.losses}
        for name in self.model.latent.nats:
            if name in terms:
                terms[name] = terms[name] / images[0].numel()
        return terms
