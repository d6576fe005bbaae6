"""Data reconstruction (Equation 2, Algorithm 2): the objective of every autoencoder, variational ones included.

The latent space brings its own terms, so a variant is a latent space and a set of weights, never another objective.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..config import ObjectiveConfig
from ..models.model import Model, ModelOutput
from ..registry import OBJECTIVES
from .code_penalties import PENALTIES, penalty_terms, require_scalar_codes
from .objective import L1, LossFunction, Objective, Player, Terms, Weighting, latent_losses


@dataclass(frozen=True)
class AutoencodingConfig(ObjectiveConfig):
    """The settings of ``Autoencoding``: its terms are ``reconstruct`` and those of the latent space."""


@OBJECTIVES.register("autoencoding", AutoencodingConfig)
class Autoencoding(Objective):
    """The error of reconstructions, averaged over their entries, plus the latent space's weighted terms.

    The error of images is the binary cross entropy on logits; of vectors and series it is half the squared error of
    standardised values (``models/forms.py``).
    """

    terms: ClassVar[tuple[str, ...]] = ("reconstruct",)
    optional_terms = (L1, *PENALTIES)
    code_terms = PENALTIES

    def players(self, model: Model) -> list[Player]:
        """Return one player: encoder, decoder and codebook move together."""
        penalties = [name for name in PENALTIES if name in self.config.weights]
        require_scalar_codes(model.latent, penalties)

        def terms_of(images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
            return reconstruction_terms(model, images, generator, penalties=penalties)

        return [autoencoder_player(model, self.weighting(), terms_of)]


def autoencoder_player(
    model: Model, weighting: Weighting, terms_of: LossFunction, *, takes_targets: bool = False
) -> Player:
    """Return the player that moves encoder, decoder and codebook together; ``terms_of`` uses each weight once."""
    networks = (model.encoder, model.decoder)
    return Player(
        name="autoencoder",
        decayed=networks,
        undecayed=(model.latent,),
        loss=weighting.loss(terms_of, networks),
        terms=weighting.names,
        uses_weights_once=L1 not in weighting.names,
        takes_targets=takes_targets,
    )


def reconstruction_terms(
    model: Model, images: Tensor, generator: torch.Generator | None = None, *, penalties: Collection[str] = ()
) -> Terms:
    """Return the unweighted terms of an autoencoder on inputs, such as images (b, c, h, w) in [0, 1].

    Args:
        model: the autoencoder.
        images: the inputs.
        generator: of random numbers.
        penalties: names of penalties on the use of codes to compute as well (``code_penalties.py``).
    """
    return output_terms(model, model(images, generator), images, penalties=penalties)


def output_terms(model: Model, output: ModelOutput, images: Tensor, *, penalties: Collection[str] = ()) -> Terms:
    """Return ``reconstruction_terms`` from the output of the model for these inputs."""
    losses = latent_losses(model, output.latent.losses, model.form.num_terms)
    more = penalty_terms(penalties, model.latent, output.encoded, output.latent, images)
    return {"reconstruct": model.form.error(output.logits, images), **losses, **more}
