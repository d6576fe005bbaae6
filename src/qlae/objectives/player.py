"""A player: one party to an objective, with parameters of its own to move. Autoencoders have one, GANs two."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .weighting import Terms


@dataclass(frozen=True)
class Player:
    """Who moves, by which loss, and how often.

    Attributes:
        name: of the player, in checkpoints.
        decayed: modules whose parameters take weight decay.
        undecayed: modules whose parameters take none (codebooks).
        loss: images (b, 3, r, r), a generator for what is random, and the number of the update (from 1; a scalar
            tensor) → scalar terms by name; ``"loss"`` is the one to descend.
        terms: the names that ``loss`` gives, in order.
        period: the player moves at every update whose number is a multiple of this.
    """

    name: str
    decayed: tuple[nn.Module, ...]
    undecayed: tuple[nn.Module, ...]
    loss: Callable[[Tensor, torch.Generator | None, Tensor], Terms]
    terms: tuple[str, ...]
    period: int = 1
