"""The training loop, top to bottom on one page.

It makes updates, logs every ``log_every`` of them, saves a checkpoint now and then, and stops early only for a loss
that is no longer finite or for a signal; either way nothing but the updates since the last checkpoint is lost.
"""

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NamedTuple

import torch

from .._progress import progress_bar
from ..config import RunConfig
from ..runs import checkpoint
from ..runs.directory import Run
from .state import TrainingState

CHECKPOINT_SECONDS = 60.0  # between checkpoints; how often they are made changes nothing in the result
SHOW_SECONDS = 0.2  # between refreshes of the bar


class TrainingDiverged(RuntimeError):
    """The loss is NaN or infinite."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, after the run was saved."""

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.signal = number


class Watch(NamedTuple):
    """What is scored while a run trains: every so many updates, a multiple of the config's ``log_every``."""

    every: int
    score: Callable[[checkpoint.Checkpoint], dict[str, float]]


def run_updates(
    run: Run,
    config: RunConfig,
    state: TrainingState,
    *,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    watch: Watch | None = None,
    show: bool = True,
) -> None:
    """Make updates until ``config.steps`` are done."""
    started = saved = shown = time.monotonic()
    seconds_before, first = state.seconds, state.step
    with _signals() as stop, progress_bar("training", config.steps, start=first, show=show) as report:
        note = state.update.preparing
        report(first, note=note)
        unread: deque[_Terms] = deque()  # of log points
        while state.step < config.steps:
            to_log = config.log_every - state.step % config.log_every
            state.step += state.update.advance(state.step, min(to_log, config.steps - state.step))

            done = state.step == config.steps
            to_score = watch is not None and state.step % watch.every == 0
            to_stop = bool(stop)
            to_save = time.monotonic() - saved >= checkpoint_seconds or done or to_stop
            if state.step % config.log_every == 0 or done:
                unread.append(_Terms(state))
                for turn in state.update.turns:
                    turn.window.filled = 0
            # Reading waits for the device, so it is given more to do before.
            at_once = to_score or to_save or not state.update.runs_ahead
            while unread and (at_once or unread[0].step < state.step):
                row = unread.popleft().row(run)
                state.seconds = seconds_before + time.monotonic() - started
                row["seconds"] = round(state.seconds, 3)
                if watch is not None and row["step"] % watch.every == 0:
                    report(state.step, note="scoring")
                    begun = time.monotonic()
                    row |= watch.score(state.to_checkpoint())
                    started += time.monotonic() - begun  # which is no time spent training
                run.append_log(row)
                note = f"loss {row['loss']:.4f}" + (f"  InfoM {row['infom']:.2f}" if "infom" in row else "")
            now = time.monotonic()
            if now - shown >= SHOW_SECONDS or done:
                rate = (state.step - first) / max(now - started, 1e-9)
                report(state.step, note=f"{note}  {rate:.1f} updates/s")
                shown = now
            if to_save:
                _Terms(state).require_finite(run)
                state.seconds = seconds_before + time.monotonic() - started
                checkpoint.save(run.path, state.to_checkpoint())
                saved = time.monotonic()
            if to_stop and not done:
                raise TrainingInterrupted(
                    f"stopped after update {state.step:,} of {config.steps:,}; saved in {run.path}", stop[0]
                )


class _Terms:
    """The loss terms since the last row, (moves, terms) for each player, on their way to the host."""

    def __init__(self, state: TrainingState):
        self.step = state.step
        self._turns = state.update.turns
        self._sent = [turn.window.sent() for turn in self._turns]
        device = state.update.batches.device
        self._there = torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None

    def row(self, run: Run) -> dict[str, float]:
        """A row of the log: their means; a player after the first puts its name before its terms."""
        row: dict[str, float] = {"step": self.step, "seconds": 0.0}
        for turn, values in zip(self._turns, self.require_finite(run), strict=True):
            prefix = "" if turn is self._turns[0] else f"{turn.player.name}_"
            if len(values):
                means = values.double().mean(0).tolist()
                row |= {prefix + term: mean for term, mean in zip(turn.window.terms, means, strict=True)}
        return row

    def require_finite(self, run: Run) -> list[torch.Tensor]:
        """Wait for them; an error unless all are finite."""
        if self._there is not None:
            self._there.synchronize()
        for turn, values in zip(self._turns, self._sent, strict=True):
            bad = (~torch.isfinite(values)).any(1).nonzero()
            if len(bad):
                period = turn.player.period
                step = self.step - self.step % period - period * (len(values) - 1 - int(bad[0]))
                raise TrainingDiverged(
                    f"the loss is no longer finite at update {step:,}; {_last_good(run)} in {run.path}. "
                    "A lower learning rate is the usual remedy"
                )
        return self._sent


def _last_good(run: Run) -> str:
    try:
        last = checkpoint.load(run.path)
    except ValueError:
        last = None
    return f"the last good checkpoint is update {last.state['step']:,}" if last else "no checkpoint was saved yet"


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Yield a list that fills when Ctrl-C or SIGTERM comes; a second Ctrl-C stops at once."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield received
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
