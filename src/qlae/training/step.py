"""One update of a model: draw a batch, descend the loss of each player whose turn it is, take in the average.

Nothing is read back to the host: the loss terms are written into windows on the device, which the trainer reads at its
log points.
"""

import torch
from torch import Tensor

from ..config import RunConfig
from ..data.batches import Batches
from ..model import to_float
from ..objectives import Player
from .average import WeightAverage
from .flat import FlatParameters
from .optim import AdamW, decay_groups


class Window:
    """The loss terms of a player's latest moves, (log_every, num_terms), on the device."""

    def __init__(self, terms: tuple[str, ...], length: int, device: torch.device):
        self.terms = terms
        self.values = torch.zeros(length, len(terms), device=device)
        self.filled = 0

    def add(self, terms: dict[str, Tensor]) -> None:
        torch.stack([terms[name].detach() for name in self.terms], out=self.values[self.filled])
        self.filled += 1

    def read(self) -> Tensor:
        """The rows so far, on the host."""
        return self.values[: self.filled].cpu()


class Turn:
    """A player with what it moves by: its parameters, its optimizer and its window.

    In reduced precision it is the networks that hold rounded copies of their weights. What the optimizer moves, and the
    codebook, gradients, moments and averages, stay in float32.
    """

    def __init__(self, player: Player, config: RunConfig, device: torch.device):
        self.player = player
        networks = [parameter for module in player.decayed for parameter in module.parameters()]
        self.flat = FlatParameters(
            decay_groups(player, config.optimizer),
            reduced=networks if config.precision == "bfloat16" else (),
            precision=torch.bfloat16,
        )
        self.optimizer = AdamW(self.flat, config.optimizer)
        self.window = Window(player.terms, config.log_every, device)
        self._gradients = self.flat.views(self.optimizer.gradients)

    def take(self, images: Tensor, noise: torch.Generator, number: Tensor) -> None:
        """Descend the player's loss by one step; nothing of another player's is touched."""
        terms = self.player.loss(images, noise, number)
        gradients = torch.autograd.grad(terms["loss"], self.flat.parameters, allow_unused=True, materialize_grads=True)
        torch._foreach_copy_(self._gradients, gradients)
        self.optimizer.step()
        self.window.add(terms)


class EagerStep:
    """Updates run operation by operation: the reference that every faster way is measured against."""

    def __init__(self, players: list[Player], batches: Batches, config: RunConfig):
        self.batches = batches
        self.turns = [Turn(player, config, batches.device) for player in players]
        self.average = WeightAverage([turn.flat.values for turn in self.turns], config.average_decay)
        self.noise = torch.Generator(batches.device).manual_seed(config.seed + 1)
        self.number = torch.zeros((), device=batches.device)

    def __call__(self, step: int) -> None:
        """Make update number ``step`` (from 1)."""
        self.number.fill_(step)
        images = to_float(self.batches.draw())
        for turn in self.turns:
            if step % turn.player.period == 0:
                turn.take(images, self.noise, self.number)
        self.average.update(self.number)
