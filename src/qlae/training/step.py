"""One update of a model: draw a batch, then for each player whose turn it is loss → gradients → step, then average.

Nothing is read back to the host: the loss terms are written into windows on the device, which the trainer reads at its
log points.
"""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor

from ..config import RunConfig
from ..data.batches import Batches
from ..models.model import to_float
from ..objectives import Player
from ..ops.average import update_average
from .turn import Turn, frozen


class Step:
    """Updates of a model, one operation after the other.

    Args:
        players: of the objective.
        batches: of observations, on a device.
        config: of the run.
        to_input: turns a batch into the inputs of the networks; by default, for the paper's images.

    Attributes:
        turns: the players with their optimizers.
        averages: the exponential averages of the weights, one flat buffer per player.
        noise: generator of the random numbers of the losses.
        number: of the update, from 1, a scalar on the device.
    """

    def __init__(
        self,
        players: list[Player],
        batches: Batches,
        config: RunConfig,
        to_input: Callable[[Tensor], Tensor] = to_float,
    ):
        self.batches = batches
        self.to_input = to_input
        self.turns = [Turn(player, config, batches.device) for player in players]
        self.averages = [turn.flat.values.clone() for turn in self.turns]
        self.average_decay = config.training.average_decay
        self.noise = torch.Generator(batches.device).manual_seed(config.training.seed + 1)
        self.number = torch.zeros((), device=batches.device)

    def __call__(self, step: int) -> None:
        """Make update number ``step`` (from 1)."""
        self.number.fill_(step)
        self.update(self.batches.draw(), step)

    def update(self, batch: Tensor, step: int) -> None:
        """Make the update whose number the device holds.

        Args:
            batch: observations, such as images (b, r, r, 3) uint8.
            step: a number with the same remainder by every player's period.
        """
        images = self.to_input(batch)
        for turn in self.turns:
            if step % turn.player.period == 0:
                with self.others_frozen(turn):
                    terms, gradients = turn.loss_and_gradients(images, self.noise, self.number)
                turn.rates.update(self.number)
                turn.optimizer.step(gradients)
                turn.window.add(terms)
        for turn, average in zip(self.turns, self.averages, strict=True):
            update_average(average, turn.flat.values, self.number, self.average_decay)

    def others_frozen(self, turn: Turn) -> contextlib.AbstractContextManager[None]:
        """Compute no gradients for the parameters of the other players."""
        return frozen(p for other in self.turns if other is not turn for p in other.flat.parameters)


class EagerUpdates:
    """Makes updates one by one: the reference that every faster way is measured against."""

    runs_ahead = False  # whether the device still has work when ``advance`` returns
    preparing = ""  # what the first updates are slow for

    def __init__(self, step: Step):
        self.step = step

    def advance(self, done: int, most: int) -> int:
        """Make at least one and at most ``most`` updates after the first ``done``; return the number made."""
        self.step(done + 1)
        return 1
