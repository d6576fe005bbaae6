"""One update of a model: draw a batch, then for each player whose turn it is loss → gradients → step, then average.

Nothing is read back to the host: the loss terms are written into windows on the device, which the trainer reads at its
log points.
"""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ..config import RunConfig
from ..data.batches import Batches
from ..objectives import Player, Terms
from ..ops import dispatch
from ..ops.average import update_average
from ..ops.overlap import overlapped
from .optimizer import AdamW, FlatParameters, Rates, decay_groups


class Window:
    """The loss terms of a player's latest moves, (log_every, num_terms), on the device."""

    def __init__(self, terms: tuple[str, ...], length: int, device: torch.device):
        self.terms = terms
        self.values = torch.zeros(length, len(terms), device=device)
        self.filled = 0

    def add(self, terms: Terms) -> None:
        """Append the terms of one move."""
        torch.stack([terms[name].detach() for name in self.terms], out=self.values[self.filled])
        self.filled += 1

    def extend(self, rows: Tensor) -> None:
        """Append the terms of several moves, (moves, num_terms)."""
        self.values[self.filled : self.filled + len(rows)].copy_(rows)
        self.filled += len(rows)

    def send(self) -> Tensor:
        """Start copying the rows to the host; they have arrived once the device has reached this point."""
        return self.values[: self.filled].to("cpu", non_blocking=True, copy=True)


class Turn:
    """A player with its parameters, optimizer and window.

    In reduced precision the modules in ``player.decayed`` hold rounded copies of their weights. The weights that the
    optimizer moves, the codebook, gradients, moments and averages stay in float32.
    """

    def __init__(self, player: Player, config: RunConfig, device: torch.device):
        self.player = player
        training = config.training
        optimizer = player.optimizer or training.optimizer
        networks = [parameter for module in player.decayed for parameter in module.parameters()]
        self.flat = FlatParameters(
            decay_groups(player, optimizer),
            reduced=networks if training.precision == "bfloat16" else (),
        )
        self.rates = Rates(training if player.optimizer is None else None, device)
        self.optimizer = AdamW(self.flat, optimizer, self.rates)
        self.window = Window(player.terms, training.log_every, device)
        self._is_checked = False
        self._uses_weights_once: bool | None = None  # not verified yet

    def loss_and_gradients(
        self, images: Tensor, noise: torch.Generator, number: Tensor, targets: Tensor | None = None
    ) -> tuple[Terms, tuple[Tensor, ...]]:
        """Return the terms of the player's loss, and the gradients of the loss, one per parameter."""
        if not (self.player.uses_weights_once and dispatch.uses_kernels(self.flat.values)):
            terms = self._terms(images, noise, number, targets)
            return terms, self._gradients(terms)
        with overlapped(images.device, safe=self._uses_weights_once is not False) as overlap:
            terms = self._terms(images, noise, number, targets)
            if self._uses_weights_once is None:
                self._uses_weights_once = overlap.verify(terms["loss"])
            return terms, self._gradients(terms)

    def _terms(self, images: Tensor, noise: torch.Generator, number: Tensor, targets: Tensor | None) -> Terms:
        terms = self.player.loss(images, noise, number, *([targets] if self.player.takes_targets else []))
        if not self._is_checked:
            self.player.require_terms(terms)
            self._is_checked = True
        return terms

    def _gradients(self, terms: Terms) -> tuple[Tensor, ...]:
        return torch.autograd.grad(terms["loss"], self.flat.parameters, allow_unused=True, materialize_grads=True)


class Step:
    """Updates of a model, one operation after the other.

    Args:
        players: of the objective.
        batches: of observations, on a device.
        config: of the run.
        to_input: turns a batch into the inputs of the networks.

    Attributes:
        turns: the players with their optimizers.
        averages: the exponential averages of the weights, one flat buffer per player.
        noise: generator of the random numbers of the losses.
        number: of the update, from 1, a scalar on the device.
    """

    def __init__(
        self, players: list[Player], batches: Batches, config: RunConfig, to_input: Callable[[Tensor], Tensor]
    ):
        self.batches, self.to_input = batches, to_input
        self.turns = [Turn(player, config, batches.device) for player in players]
        self.averages = [turn.flat.values.clone() for turn in self.turns]
        self.average_decay = config.training.average_decay
        self.noise = torch.Generator(batches.device).manual_seed(config.training.seed + 1)
        self.number = torch.zeros((), device=batches.device)

    def __call__(self, step: int) -> None:
        """Make update number ``step`` (from 1)."""
        self.number.fill_(step)
        batch, targets = self.batches.draw_with_targets()
        self.update(batch, step, targets)

    def update(self, batch: Tensor, step: int, targets: Tensor | None = None) -> None:
        """Make the update whose number the device holds.

        Args:
            batch: observations, such as images (b, r, r, 3) uint8.
            step: a number with the same remainder by every player's period.
            targets: of the observations (b, k), for players that take them.
        """
        images = self.to_input(batch)
        for turn in self.turns:
            if step % turn.player.period == 0:
                with self.others_frozen(turn):
                    terms, gradients = turn.loss_and_gradients(images, self.noise, self.number, targets)
                turn.rates.update(self.number)
                turn.optimizer.step(gradients)
                turn.window.add(terms)
        for turn, average in zip(self.turns, self.averages, strict=True):
            update_average(average, turn.flat.values, self.number, self.average_decay)

    @contextlib.contextmanager
    def others_frozen(self, turn: Turn) -> Iterator[None]:
        """Compute no gradients for the parameters of the other players."""
        others = [parameter for other in self.turns if other is not turn for parameter in other.flat.parameters]
        for parameter in others:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in others:
                parameter.requires_grad_(True)


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
