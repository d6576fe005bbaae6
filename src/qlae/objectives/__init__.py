"""Objectives: what a model is trained to do. Each supplies its players, and one trainer runs them all."""

from ..config import ObjectiveConfig
from .adversarial import Adversarial
from .autoencoding import Autoencoding, reconstruction_terms
from .imitation import Imitation
from .objective import Objective, Player, Terms, Weighting, players_of
from .total_correlation import TotalCorrelation
from .tripod import Tripod

__all__ = [
    "Adversarial",
    "Autoencoding",
    "Imitation",
    "Objective",
    "ObjectiveConfig",
    "Player",
    "Terms",
    "TotalCorrelation",
    "Tripod",
    "Weighting",
    "players_of",
    "reconstruction_terms",
]
