"""A player's turn: its parameters, its optimizer and the window of its latest loss terms."""

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from ..config import RunConfig
from ..objectives import Player, Terms, require_terms
from ..ops import dispatch
from ..ops.overlap import overlapped
from .flat import FlatParameters
from .optim import AdamW, Rates, decay_groups


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
            precision=torch.bfloat16,
        )
        self.rates = Rates(training if player.optimizer is None else None, device)
        self.optimizer = AdamW(self.flat, optimizer, self.rates)
        self.window = Window(player.terms, training.log_every, device)
        self._is_checked = False
        self._uses_weights_once: bool | None = None  # not verified yet

    def loss_and_gradients(
        self, images: Tensor, noise: torch.Generator, number: Tensor
    ) -> tuple[Terms, tuple[Tensor, ...]]:
        """Return the terms of the player's loss, and the gradients of the loss, one per parameter."""
        if not (self.player.uses_weights_once and dispatch.uses_kernels(self.flat.values)):
            terms = self._terms(images, noise, number)
            return terms, self._gradients(terms)
        with overlapped(images.device, safe=self._uses_weights_once is not False) as overlap:
            terms = self._terms(images, noise, number)
            if self._uses_weights_once is None:
                self._uses_weights_once = overlap.verify(terms["loss"])
            gradients = self._gradients(terms)
        return terms, gradients

    def _terms(self, images: Tensor, noise: torch.Generator, number: Tensor) -> Terms:
        terms = self.player.loss(images, noise, number)
        if not self._is_checked:
            require_terms(self.player, terms)
            self._is_checked = True
        return terms

    def _gradients(self, terms: Terms) -> tuple[Tensor, ...]:
        return torch.autograd.grad(terms["loss"], self.flat.parameters, allow_unused=True, materialize_grads=True)


@contextlib.contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Compute no gradients of these parameters inside the block."""
    frozen_ones = list(parameters)
    for parameter in frozen_ones:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in frozen_ones:
            parameter.requires_grad_(True)
