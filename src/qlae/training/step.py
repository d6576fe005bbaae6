"""One update of a model: draw a batch, descend the loss of each player whose turn it is, take in the average.

Nothing is read back to the host: the loss terms are written into windows on the device, which the trainer reads at its
log points.
"""

import torch
from torch import Tensor, nn

from ..config import OptimizerConfig, RunConfig
from ..data.batches import Batches
from ..model import to_float
from ..objectives import Player
from .average import WeightAverage
from .optim import build_optimizer, decay_groups


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
    """A player with what it moves by: its parameters, optimizer and window."""

    def __init__(self, player: Player, config: OptimizerConfig, log_every: int, device: torch.device):
        self.player = player
        self.optimizer = build_optimizer(player, config)
        self.window = Window(player.terms, log_every, device)
        self.clip = config.clip
        self.decayed, undecayed = decay_groups(player, config)
        self.parameters = self.decayed + undecayed

    def take(self, images: Tensor, noise: torch.Generator, number: Tensor) -> None:
        """Descend the player's loss by one step; no other player's parameters are touched, nor are their gradients."""
        self.optimizer.zero_grad(set_to_none=True)
        terms = self.player.loss(images, noise, number)
        terms["loss"].backward(inputs=self.parameters)
        if self.clip is not None:
            nn.utils.clip_grad_value_(self.decayed, self.clip)
        self.optimizer.step()
        self.window.add(terms)


class EagerStep:
    """Updates run operation by operation: the reference that every faster way is measured against."""

    def __init__(self, model: nn.Module, players: list[Player], batches: Batches, config: RunConfig):
        self.batches = batches
        self.turns = [Turn(player, config.optimizer, config.log_every, batches.device) for player in players]
        self.average = WeightAverage(model, config.average_decay)
        self.noise = torch.Generator(batches.device).manual_seed(config.seed + 1)
        self.number = torch.zeros((), device=batches.device)

    def __call__(self, step: int) -> None:
        """Make update number ``step`` (from 1)."""
        self.number.fill_(step)
        images = to_float(self.batches.draw())
        for turn in self.turns:
            if step % turn.player.period == 0:
                turn.take(images, self.noise, self.number)
        self.average.update(step)
