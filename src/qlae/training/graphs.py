"""Updates recorded as CUDA graphs.

One update is hundreds of small operations, and launching them one by one leaves a GPU waiting for the host most of the
time. ``GraphUpdates`` records a block of updates once and then launches it as a whole.
"""

import contextlib
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from ..data.batches import DeviceBatches
from ..ops import dispatch
from ..ops.kernels.launching import rehearsal
from .step import EagerUpdates, Step, Window

MAX_BLOCK = 25  # updates per block


def block_length(log_every: int, period: int) -> int:
    """Return the number of updates per block: all players have their turns in it, and log points fall between blocks.

    >>> block_length(100, 1), block_length(100, 5), block_length(7, 1), block_length(7, 5)
    (25, 25, 7, 1)
    """
    return max((n for n in range(1, MAX_BLOCK + 1) if log_every % n == 0 and n % period == 0), default=1)


class GraphUpdates:
    """Makes the same updates as ``EagerUpdates``, a block of them per launch.

    The first block runs operation by operation, during which libraries choose their kernels, and so does whatever is
    left between a block and a log point.

    Args:
        step: the update.
        log_every: updates between two log points.
        rehearse: whether to compile all kernels before the first update. A rehearsal runs the networks once, which
            changes networks that keep a state.
    """

    runs_ahead = True
    preparing = "compiling kernels"

    def __init__(self, step: Step, *, log_every: int, rehearse: bool = True):
        self.step = step
        self.block = block_length(log_every, max(turn.player.period for turn in step.turns))
        self._eager = EagerUpdates(step)
        self._to_rehearse = rehearse
        self._num_eager = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._terms: list[Tensor] = []  # the loss terms of a block, by player
        self._host_batches: Tensor | None = None  # the batches of a block, if they come from the host
        self._host_targets: Tensor | None = None  # and their targets, if there are any

    @property
    def is_recorded(self) -> bool:
        return self._graph is not None

    def advance(self, done: int, most: int) -> int:
        """Make at least one and at most ``most`` updates after the first ``done``; return the number made."""
        if self._to_rehearse:
            self._rehearse()
        if self.block == 1 or done % self.block or most < self.block or self._num_eager < self.block:
            self._num_eager += 1
            return self._eager.advance(done, most)
        if self._graph is None and not self._record():
            return self._eager.advance(done, most)
        self._replay(done)
        return self.block

    def _replay(self, done: int) -> None:
        assert self._graph is not None
        self.step.number.fill_(done)
        if self._host_batches is not None:
            for i, place in enumerate(self._host_batches):
                batch, targets = self.step.batches.draw_with_targets()
                place.copy_(batch, non_blocking=True)
                if self._host_targets is not None and targets is not None:
                    self._host_targets[i].copy_(targets)
        self._graph.replay()
        for turn, rows in zip(self.step.turns, self._terms, strict=True):
            turn.window.extend(rows)

    def _rehearse(self) -> None:
        """Compile kernels in parallel, and let libraries choose theirs, before the first update waits for each."""
        self._to_rehearse = False
        step = self.step
        if not dispatch.uses_kernels(step.turns[0].flat.values):
            return
        device = step.batches.device
        images = step.to_input(torch.zeros(step.batches.shape, dtype=step.batches.dtype, device=device))
        targets = self._empty_targets()
        with rehearsal():
            for turn in step.turns:
                with step.others_frozen(turn):
                    turn.loss_and_gradients(images, torch.Generator(device), step.number, targets)

    def _empty_targets(self, *block: int) -> Tensor | None:
        """Return targets (*block, b, k) of zeros; None if the batches have none."""
        targets, batch_size = self.step.batches.targets, self.step.batches.batch_size
        return None if targets is None else targets.new_zeros((*block, batch_size, targets.shape[1]))

    def _record(self) -> bool:
        """Record a block without running it; return False if something in it cannot be recorded."""
        graph = torch.cuda.CUDAGraph()
        step = self.step
        generators = [step.noise]
        if isinstance(step.batches, DeviceBatches):
            generators.append(step.batches.generator)
        else:
            shape = (self.block, *step.batches.shape)
            self._host_batches = torch.empty(shape, dtype=step.batches.dtype, device=step.batches.device)
            self._host_targets = self._empty_targets(self.block)
        before = [generator.clone_state() for generator in generators]
        for generator in generators:
            graph.register_generator_state(generator)
        # A recording that fails leaves its own stream as the current one; the outer context restores the caller's.
        callers = torch.cuda.stream(torch.cuda.current_stream(step.batches.device))
        try:
            with self._own_windows(), callers, torch.cuda.graph(graph):
                self._run_block()
        except RuntimeError as error:
            warnings.warn(f"an update cannot be recorded as a CUDA graph, so training is slower: {error}", stacklevel=2)
            for generator, state in zip(generators, before, strict=True):
                generator.graphsafe_set_state(state)  # the present state waits for the end of a recording
            self.block = 1
            return False
        self._graph = graph
        return True

    @contextlib.contextmanager
    def _own_windows(self) -> Iterator[None]:
        """Let players write into windows of a block's length, which stay at the same place."""
        turns = self.step.turns
        windows = [turn.window for turn in turns]
        for turn in turns:
            turn.window = Window(turn.player.terms, self.block // turn.player.period, self.step.batches.device)
        self._terms = [turn.window.values for turn in turns]
        try:
            yield
        finally:
            for turn, window in zip(turns, windows, strict=True):
                turn.window = window

    def _run_block(self) -> None:
        step = self.step
        for i in range(self.block):
            step.number += 1
            if self._host_batches is None:
                batch, targets = step.batches.draw_with_targets()
            else:
                batch = self._host_batches[i]
                targets = None if self._host_targets is None else self._host_targets[i]
            step.update(batch, i + 1, targets)
