"""The interface of objectives: the modules that they add to a model, and the players that train it.

To add one, subclass ``Objective`` and register it with a config (``registry.OBJECTIVES``); see ``docs/extending.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import nn

from .._checks import require_known
from ..config import check_weights
from ..models.model import Model
from ..schedules import Curve, check_curve
from .player import Player
from .weighting import Weighting


@dataclass(frozen=True)
class ObjectiveConfig:
    """The settings that every objective has; an objective's own config subclasses this.

    Attributes:
        weights: of the loss terms, those of the objective and those of the latent space.
        schedules: factors on single weights by update.
    """

    weights: dict[str, float]
    schedules: dict[str, Curve] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_weights(self.weights)
        for name, curve in self.schedules.items():
            require_known(name, self.weights, "loss term with a schedule")
            check_curve(f"the schedule of {name}", curve)


class Objective(ABC):
    """What a model is trained to do.

    Attributes:
        terms: names of the loss terms that the objective computes itself; all others come from the latent space.
        optional_terms: names of terms that it computes as well if they have a weight, which no model gives them.
        code_terms: those of them that need a latent space of scalar codes.
        reconstructs: whether the model learns to reconstruct images, as an autoencoder does and a GAN does not.
        networks_in_patches: whether small networks may work on patches of several pixels.
        trains_in_bfloat16: whether networks run in bfloat16 on a GPU unless float32 is asked for.
    """

    terms: ClassVar[tuple[str, ...]] = ()
    optional_terms: ClassVar[tuple[str, ...]] = ()
    code_terms: ClassVar[tuple[str, ...]] = ()
    reconstructs: ClassVar[bool] = True
    networks_in_patches: ClassVar[bool] = True
    trains_in_bfloat16: ClassVar[bool] = True

    def __init__(self, config: Any):
        self.config = config

    @classmethod
    def from_config(cls, config: Any) -> "Objective":
        """Build the objective that a config describes."""
        return cls(config)

    def build_parts(self, model: Model) -> dict[str, nn.Module]:
        """Return the modules that the objective adds to a model, such as a critic; they become ``model.parts``."""
        return {}

    @abstractmethod
    def players(self, model: Model) -> list[Player]:
        """Return the players: which modules are updated, with which loss, how often, and with which optimizer."""

    def weighting(self, *, without: Collection[str] = ()) -> Weighting:
        """Return the weighted sum of the config's terms, possibly without some of them."""
        weights = {name: weight for name, weight in self.config.weights.items() if name not in without}
        return Weighting(weights, self.config.schedules)


def latent_losses(model: Model, losses: dict[str, Any], num_entries: int) -> dict[str, Any]:
    """Return the losses of a latent space, those in nats per image divided by the number of image entries.

    The reconstruction is averaged over pixels and channels. Dividing the others by their number gives β the meaning
    that it has with a summed likelihood.
    """
    return {name: loss / num_entries if name in model.latent.nats else loss for name, loss in losses.items()}
