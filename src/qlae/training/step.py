"""One update of a model: draw a batch, descend each player's loss, take in the average.

Nothing is read back to the host: the loss terms are written into a window on the device, which the trainer reads at
its log points.
"""

import torch
from torch import Tensor, nn

from ..config import RunConfig
from ..data.batches import Batches
from ..model import to_float
from ..objectives import Player
from .average import WeightAverage
from .optim import build_optimizer, decay_groups


class Window:
    """The loss terms of the latest updates, (log_every, num_terms), on the device."""

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


class EagerStep:
    """Updates run operation by operation: the reference that every faster way is measured against."""

    def __init__(
        self,
        model: nn.Module,
        players: list[Player],
        batches: Batches,
        config: RunConfig,
    ):
        self.players = players
        self.batches = batches
        self.optimizers = [build_optimizer(player, config.optimizer) for player in players]
        self.average = WeightAverage(model, config.average_decay)
        self.window = Window(_all_terms(players), config.log_every, batches.device)
        self.noise = torch.Generator(batches.device).manual_seed(config.seed + 1)
        self.clip = config.optimizer.clip
        self.clipped = [decay_groups(player, config.optimizer)[0] for player in players]

    def __call__(self, step: int) -> None:
        """Make update number ``step`` (from 1)."""
        terms: dict[str, Tensor] = {}
        for player, optimizer, clipped in zip(self.players, self.optimizers, self.clipped, strict=True):
            if step % player.period:
                continue
            optimizer.zero_grad(set_to_none=True)
            losses = player.loss(to_float(self.batches.draw()), self.noise)
            losses["loss"].backward()
            if self.clip is not None:
                nn.utils.clip_grad_value_(clipped, self.clip)
            optimizer.step()
            terms |= losses
        self.average.update(step)
        self.window.add(terms)


def _all_terms(players: list[Player]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for player in players for term in player.terms))
