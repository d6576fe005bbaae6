"""Imitation of given codes: the objective of an autoencoder whose first latents encode what the latents of others do.

`selection/distill.py` makes one model of the consensus of several runs in this way. The targets are the codes that the
chosen latents have for each training observation: whole numbers 0, 1, …, in the order of the values that they stand
for. A code is imitated as the value of the same number on the even grid from which codebooks start:

    imitate = mean over observations and imitated latents of (x_j − v_j)²,   v_j = −½ + code_j / (num_values_j − 1),

where x_j are outputs of the encoder before they are rounded. Neighbouring codes have neighbouring values, so an
observation between two codes costs little. The grid does not move while codebooks learn; the latter follow the encoder
as always. All other terms are those of an autoencoder, and the latents after the imitated ones are *free*: they learn
what the reconstruction needs and no imitated latent has.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .._checks import whole_number
from ..models.latents import LatentSpace
from ..models.latents.quantized import HIGH, LOW
from ..models.model import Model
from ..registry import OBJECTIVES
from .autoencoding import Autoencoding, AutoencodingConfig, autoencoder_player, output_terms
from .code_penalties import PENALTIES, require_scalar_codes
from .objective import Player, Terms

IMITATE = "imitate"


@dataclass(frozen=True)
class Imitated:
    """A latent of a run that a latent of the model imitates.

    Attributes:
        run: name of the run's folder.
        latent: its column there.
        num_found: number of runs that found the factor, that run included.
        num_runs: number of runs that were compared.
        is_confirmed: whether the consensus confirms the factor.
    """

    run: str
    latent: int
    num_found: int
    num_runs: int
    is_confirmed: bool


@dataclass(frozen=True)
class ImitationConfig(AutoencodingConfig):
    """The settings of ``Imitation``.

    Attributes:
        imitated: the latents of runs that the first latents of the model imitate, in order.
        targets: checksum of the codes that they have for the training observations (``runs/targets.py``).
    """

    imitated: tuple[Imitated, ...] = ()
    targets: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("the number of imitated latents", len(self.imitated))


@OBJECTIVES.register("imitation", ImitationConfig)
class Imitation(Autoencoding):
    """The terms of an autoencoder, and the squared distance of its first latents from given codes."""

    terms = ("reconstruct", IMITATE)

    @property
    def num_targets(self) -> int:
        return len(self.config.imitated)

    def unconfirmed_latents(self, num_latents: int) -> list[int]:
        imitated = [j for j, one in enumerate(self.config.imitated) if not one.is_confirmed]
        return [*imitated, *range(self.num_targets, num_latents)]

    def describe_support(self, num_latents: int) -> list[str]:
        texts = [
            f"found in {one.num_found} of {one.num_runs} runs{'' if one.is_confirmed else ', not confirmed'}"
            for one in self.config.imitated
        ]
        return [*texts, *["free, not confirmed"] * (num_latents - len(texts))]

    def players(self, model: Model) -> list[Player]:
        """Return one player: encoder, decoder and codebook move together."""
        penalties = [name for name in PENALTIES if name in self.config.weights]
        require_scalar_codes(model.latent, [IMITATE, *penalties])
        if model.latent.num_latents < self.num_targets:
            raise ValueError(f"{self.num_targets} latents are imitated by {model.latent.num_latents}; add latents")

        def terms_of(images: Tensor, generator: torch.Generator | None, number: Tensor, targets: Tensor) -> Terms:
            output = model(images, generator)
            terms = output_terms(model, output, images, penalties=penalties)
            return terms | {IMITATE: imitation_error(model.latent, output.encoded, targets)}

        return [autoencoder_player(model, self.weighting(), terms_of, takes_targets=True)]


def imitation_error(latent: LatentSpace, x: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared distance of encoder outputs (b, num_latents) from the values of codes (b, k)."""
    count = targets.shape[1]
    steps = (latent.sizes[:count] - 1).clamp(min=1)  # type: ignore[index]
    values = LOW + (HIGH - LOW) * targets.to(x.dtype) / steps
    return (x[:, :count] - values).square().mean()
