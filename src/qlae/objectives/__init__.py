"""Objectives: what a model is trained to do. Each supplies its players, and one trainer runs them all."""

from .._checks import require_known
from ..config import RunConfig
from ..models.model import Model
from .adversarial import Adversarial
from .autoencoding import Autoencoding
from .player import Player

__all__ = ["Adversarial", "Autoencoding", "Player", "build_players"]

OBJECTIVES = ("autoencoding", "adversarial")


def build_players(config: RunConfig, model: Model) -> list[Player]:
    """The players of the objective that a config names."""
    if require_known(config.objective, OBJECTIVES, "objective") == "autoencoding":
        return Autoencoding(model, config.weights, warm_up=config.warm_up).players()
    return Adversarial(model, config.weights, period=config.generator_period, warm_up=config.warm_up).players()
