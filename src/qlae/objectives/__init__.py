"""Objectives: what a model is trained to do. Each supplies its players, and one trainer runs them all."""

from .autoencoding import Autoencoding
from .player import Player

__all__ = ["Autoencoding", "Player"]
