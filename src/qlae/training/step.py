"""One update of a model: draw a batch, descend the loss of each player whose turn it is, take in the average.

Nothing is read back to the host: the loss terms are written into windows on the device, which the trainer reads at its
log points.

``EagerStep`` launches one operation after the other. On a GPU that leaves the chip waiting for the host most of the
time, so ``GraphStep`` records a stretch of updates once and launches it as a whole.
"""

import contextlib
import warnings
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from ..config import RunConfig
from ..data.batches import Batches, DeviceBatches
from ..models.model import to_float
from ..objectives import Player
from ..ops import kernels
from ..ops.convolutions import all_at_once
from ..ops.kernels.launching import rehearsal
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

    def extend(self, rows: Tensor) -> None:
        self.values[self.filled : self.filled + len(rows)].copy_(rows)
        self.filled += len(rows)

    def sent(self) -> Tensor:
        """The rows so far, on their way to the host: they are there once the device has come to this point."""
        return self.values[: self.filled].to("cpu", non_blocking=True, copy=True)


class Turn:
    """A player with what it moves by: its parameters, its optimizer and its window.

    In reduced precision it is the networks that hold rounded copies of their weights. What the optimizer moves, and the
    codebook, gradients, moments and averages, stay in float32.
    """

    def __init__(self, player: Player, config: RunConfig, device: torch.device, *, alone: bool):
        self.player = player
        self.alone = alone
        networks = [parameter for module in player.decayed for parameter in module.parameters()]
        self.flat = FlatParameters(
            decay_groups(player, config.optimizer),
            reduced=networks if config.precision == "bfloat16" else (),
            precision=torch.bfloat16,
        )
        self.optimizer = AdamW(self.flat, config.optimizer)
        self.window = Window(player.terms, config.log_every, device)

    def take(self, images: Tensor, noise: torch.Generator, number: Tensor) -> None:
        """Descend the player's loss by one step; nothing of another player's is touched."""
        terms, gradients = self.look(images, noise, number)
        self.optimizer.step(gradients)
        self.window.add(terms)

    def look(
        self, images: Tensor, noise: torch.Generator, number: Tensor
    ) -> tuple[dict[str, Tensor], tuple[Tensor, ...]]:
        """The terms of the player's loss, and the gradient of the loss."""
        with all_at_once(images.device) if self.alone else contextlib.nullcontext():
            terms = self.player.loss(images, noise, number)
            gradients = torch.autograd.grad(
                terms["loss"], self.flat.parameters, allow_unused=True, materialize_grads=True
            )
        return terms, gradients


@contextlib.contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Parameters whose gradients nobody wants for a while, so that none are computed."""
    held = list(parameters)
    for parameter in held:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in held:
            parameter.requires_grad_(True)


class EagerStep:
    """Updates run operation by operation: the reference that every faster way is measured against."""

    preparing = ""  # what the first updates are slow for
    runs_ahead = False  # of the device, which then has work left when ``advance`` returns

    def __init__(self, players: list[Player], batches: Batches, config: RunConfig):
        self.batches = batches
        self.turns = [Turn(player, config, batches.device, alone=len(players) == 1) for player in players]
        self.average = WeightAverage([turn.flat.values for turn in self.turns], config.average_decay)
        self.noise = torch.Generator(batches.device).manual_seed(config.seed + 1)
        self.number = torch.zeros((), device=batches.device)

    def advance(self, done: int, most: int) -> int:
        """Make at least one and at most so many updates after ``done`` of them; how many it were."""
        self(done + 1)
        return 1

    def __call__(self, step: int) -> None:
        """Make update number ``step`` (from 1)."""
        self.number.fill_(step)
        self._update(self.batches.draw(), step)

    def _update(self, batch: Tensor, step: int) -> None:
        images = to_float(batch)
        for turn in self.turns:
            if step % turn.player.period == 0:
                with self._others_frozen(turn):
                    turn.take(images, self.noise, self.number)
        self.average.update(self.number)

    def _others_frozen(self, turn: Turn) -> contextlib.AbstractContextManager[None]:
        return frozen(p for other in self.turns if other is not turn for p in other.flat.parameters)


class GraphStep(EagerStep):
    """The same updates, as many as ``stretch_of`` says recorded as one CUDA graph and launched at once.

    The first stretch runs operation by operation, in which libraries choose their kernels, and so does whatever is left
    between a stretch and a log point.
    """

    preparing = "compiling kernels"
    runs_ahead = True

    def __init__(self, players: list[Player], batches: Batches, config: RunConfig):
        super().__init__(players, batches, config)
        self.stretch = stretch_of(config.log_every, max(player.period for player in players))
        self._rehearsed = config.network.own  # networks of the caller's may have a state, which a rehearsal would move
        self._eager_ones = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._staged: list[Tensor] = []  # the loss terms of a stretch, by player
        self._drawn: Tensor | None = None  # the batches of a stretch, where they come from the host

    def advance(self, done: int, most: int) -> int:
        if not self._rehearsed:
            self._rehearse()
        if self.stretch == 1 or done % self.stretch or most < self.stretch or self._eager_ones < self.stretch:
            self._eager_ones += 1
            return super().advance(done, most)
        if self._graph is None and not self._record():
            return super().advance(done, most)
        assert self._graph is not None
        self.number.fill_(done)
        if self._drawn is not None:
            for place in self._drawn:
                place.copy_(self.batches.draw(), non_blocking=True)
        self._graph.replay()
        for turn, rows in zip(self.turns, self._staged, strict=True):
            turn.window.extend(rows)
        return self.stretch

    def _rehearse(self) -> None:
        """Let kernels be compiled all at once, and libraries choose theirs, before the first update waits for each."""
        self._rehearsed = True
        if not kernels.usable(self.turns[0].flat.values):
            return
        device = self.batches.device
        images = to_float(torch.zeros(self.batches.shape, dtype=torch.uint8, device=device))
        with rehearsal():
            for turn in self.turns:
                with self._others_frozen(turn):
                    turn.look(images, torch.Generator(device), self.number)

    def _record(self) -> bool:
        """Record a stretch, which runs nothing; False if something in it cannot be recorded."""
        graph = torch.cuda.CUDAGraph()
        generators = [self.noise]
        if isinstance(self.batches, DeviceBatches):
            generators.append(self.batches.generator)
        else:
            shape = (self.stretch, *self.batches.shape)
            self._drawn = torch.empty(shape, dtype=torch.uint8, device=self.batches.device)
        before = [generator.clone_state() for generator in generators]
        for generator in generators:
            graph.register_generator_state(generator)
        try:
            with self._staging(), torch.cuda.graph(graph):
                self._run_stretch()
        except RuntimeError as error:
            warnings.warn(f"an update cannot be recorded as a CUDA graph, so training is slower: {error}", stacklevel=2)
            for generator, state in zip(generators, before, strict=True):
                generator.graphsafe_set_state(state)  # the old one waits for the end of a recording
            self.stretch = 1
            return False
        self._graph = graph
        return True

    @contextlib.contextmanager
    def _staging(self) -> Iterator[None]:
        """Let players write into rows of their own for a stretch, which are then always the same."""
        windows = [turn.window for turn in self.turns]
        for turn in self.turns:
            turn.window = Window(turn.player.terms, self.stretch // turn.player.period, self.batches.device)
        self._staged = [turn.window.values for turn in self.turns]
        try:
            yield
        finally:
            for turn, window in zip(self.turns, windows, strict=True):
                turn.window = window

    def _run_stretch(self) -> None:
        for i in range(self.stretch):
            self.number += 1
            self._update(self.batches.draw() if self._drawn is None else self._drawn[i], i + 1)


LONGEST = 25  # updates a stretch


def stretch_of(log_every: int, period: int) -> int:
    """The updates of a stretch: all players have their turns in it, and log points fall between two of them.

    >>> stretch_of(100, 1), stretch_of(100, 5), stretch_of(7, 1), stretch_of(7, 5)
    (25, 25, 7, 1)
    """
    return max((n for n in range(1, LONGEST + 1) if log_every % n == 0 and n % period == 0), default=1)
