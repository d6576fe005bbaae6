"""A player: one party to an objective, with parameters of its own to move. Autoencoders have one, GANs two."""

from dataclasses import dataclass

from torch import nn

from ..config import OptimizerConfig
from .weighting import LossFunction


@dataclass(frozen=True)
class Player:
    """Who moves, by which loss, how often, and with which optimizer.

    Attributes:
        name: of the player, in checkpoints and, for players after the first, before its terms in the log.
        decayed: modules whose parameters take weight decay. In reduced precision, these run in bfloat16.
        undecayed: modules whose parameters take none (codebooks). These always run in float32.
        loss: a function of images (b, 3, r, r), a generator for random numbers, and the number of the update (from 1; a
            scalar tensor), which returns scalar terms by name; ``"loss"`` is the one to descend.
        terms: the names that ``loss`` returns, in order.
        period: the player moves at every update whose number is a multiple of this.
        optimizer: settings of its own; None for those of the run, with the run's schedules.
        uses_weights_once: whether ``loss`` uses every weight exactly once and is differentiated once. Then a GPU
            computes weight gradients on a second stream. The claim is checked at the first update.
    """

    name: str
    decayed: tuple[nn.Module, ...]
    undecayed: tuple[nn.Module, ...]
    loss: LossFunction
    terms: tuple[str, ...]
    period: int = 1
    optimizer: OptimizerConfig | None = None
    uses_weights_once: bool = False
