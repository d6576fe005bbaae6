"""The training loop, top to bottom on one page.

It makes updates, logs every ``log_every`` of them, saves a checkpoint now and then, and stops early only for a loss
that is no longer finite or for a signal; either way nothing but the updates since the last checkpoint is lost.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NamedTuple

import torch

from ..config import RunConfig
from ..progress import progress_bar
from ..run import Run
from . import checkpoint
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
        while state.step < config.steps:
            to_log = config.log_every - state.step % config.log_every
            state.step += state.update.advance(state.step, min(to_log, config.steps - state.step))

            done = state.step == config.steps
            if state.step % config.log_every == 0 or done:
                windows = _require_finite(run, state)
                state.seconds = seconds_before + time.monotonic() - started
                row = _log_row(state, windows)
                if watch is not None and state.step % watch.every == 0:
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
            if now - saved >= checkpoint_seconds or done or stop:
                state.seconds = seconds_before + now - started
                _require_finite(run, state)
                checkpoint.save(run.path, state.to_checkpoint())
                saved = time.monotonic()
            if stop and not done:
                raise TrainingInterrupted(
                    f"stopped after update {state.step:,} of {config.steps:,}; saved in {run.path}", stop[0]
                )


def _log_row(state: TrainingState, windows: list[torch.Tensor]) -> dict[str, float]:
    """The means of the loss terms since the last row; a player after the first puts its name before its terms."""
    row: dict[str, float] = {"step": state.step, "seconds": round(state.seconds, 3)}
    for turn, values in zip(state.update.turns, windows, strict=True):
        prefix = "" if turn is state.update.turns[0] else f"{turn.player.name}_"
        if len(values):
            means = values.double().mean(0).tolist()
            row |= {prefix + term: mean for term, mean in zip(turn.window.terms, means, strict=True)}
        turn.window.filled = 0
    return row


def _require_finite(run: Run, state: TrainingState) -> list[torch.Tensor]:
    """The loss terms since the last row, (moves, terms) on the host for each player, if all are finite."""
    windows = []
    for turn in state.update.turns:
        values = turn.window.read()
        bad = (~torch.isfinite(values)).any(1).nonzero()
        if len(bad):
            period = turn.player.period
            step = state.step - state.step % period - period * (len(values) - 1 - int(bad[0]))
            raise TrainingDiverged(
                f"the loss is no longer finite at update {step:,}; {_last_good(run)} in {run.path}. "
                "A lower learning rate is the usual remedy"
            )
        windows.append(values)
    return windows


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
