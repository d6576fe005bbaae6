"""Train a config in a run directory, from its last checkpoint if it has one.

``run_updates`` is the training loop, top to bottom on one page. It makes updates, logs every ``log_every`` of them,
saves a checkpoint from time to time, and stops early only for a loss that is not finite or for a signal. Either way
only the updates since the last checkpoint can be lost.
"""

import contextlib
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._process import evaluation_process, pick_device, training_process
from .._progress import progress_bar
from ..config import RunConfig
from ..data import SourceDataset
from ..data.batches import Batches
from ..models.building import ROLES, Networks
from ..models.model import Model, run_in_own_precision
from ..objectives import players_of
from ..objectives.code_penalties import ENTROPY
from ..options import CHECKPOINT_SECONDS
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.targets import read_targets
from .callbacks import Callback
from .state import TrainingState, build_state, initial_model

SHOW_SECONDS = 0.2  # between refreshes of the progress bar


class TrainingDiverged(RuntimeError):
    """The loss is NaN or infinite."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGHUP, after the run was saved."""

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.signal = number


class Watch(NamedTuple):
    """Scores while a run trains: every so many updates, a multiple of the config's ``log_every``."""

    every: int
    score: Callable[[checkpoint.Checkpoint], dict[str, float]]


def train_run(
    run: Run,
    config: RunConfig,
    data: SourceDataset,
    *,
    networks: Networks | None = None,
    device: str = "auto",
    compile: bool = True,
    threads: int | None = None,
    show: bool = True,
    **options: Any,
) -> None:
    """Train a config in the directory of a run, from its last checkpoint if it has one.

    The settings of the process are restored afterwards. ``options`` are those of ``run_updates``.
    """
    place_on = pick_device(device)
    with training_process(place_on, compile=compile, threads=threads):
        config.require_restorable()
        model = initial_model(config, networks, place_on)
        players_of(config, model)  # which raises an error for parts that do not fit, before anything is written
        if networks is not None:
            _warn_of_idle_networks(networks)
        run.require_free(config)
        with run.locked():
            snapshot, steps = checkpoint.load(run.path), config.training.steps
            done = 0 if snapshot is None else int(snapshot.state["step"])
            if done > steps:
                raise ValueError(
                    f"{run.path} has made {done:,} updates already, more than steps={steps:,}; "
                    "ask for as many or more, or choose another folder"
                )
            run.write_config(config)
            run.write_left_out(data.left_out)
            if snapshot is not None and done == steps:
                return
            targets = read_targets(run.path, config.objective, len(data))
            state = build_state(config, data, place_on, model=model, targets=targets, compile=compile, show=show)
            torch.manual_seed(config.training.seed + 2)  # for parts that draw from torch's global generators
            if snapshot is not None:
                state.from_checkpoint(snapshot)
            run.trim_log(done)
            run_updates(run, config, state, show=show, **options)


def run_updates(
    run: Run,
    config: RunConfig,
    state: TrainingState,
    *,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    watch: Watch | None = None,
    callbacks: Sequence[Callback] = (),
    show: bool = True,
) -> None:
    """Make updates until ``config.training.steps`` of them are done; checkpoints do not change the result."""
    steps, log_every = config.training.steps, config.training.log_every
    start_time = save_time = show_time = time.monotonic()
    seconds_before, first = state.seconds, state.step
    check = CollapseCheck(state.model, state.update.batches, config)
    with caught_signals() as stop, progress_bar("training", steps, start=first, show=show) as report:
        note = state.updates.preparing
        report(first, note=note)
        unread: deque[_Terms] = deque()  # of log points
        while state.step < steps:
            to_log = log_every - state.step % log_every
            state.step += state.updates.advance(state.step, min(to_log, steps - state.step))

            is_last = state.step == steps
            to_score = watch is not None and state.step % watch.every == 0
            to_stop = bool(stop)
            to_save = time.monotonic() - save_time >= checkpoint_seconds or is_last or to_stop
            if state.step % log_every == 0 or is_last:
                unread.append(_Terms(state))
                for turn in state.update.turns:
                    turn.window.filled = 0
                check.look(state.step)
            # Reading waits for the device, so the device is given more to do first.
            at_once = to_score or to_save or not state.updates.runs_ahead
            while unread and (at_once or unread[0].step < state.step):
                row = unread.popleft().row(run)
                state.seconds = seconds_before + time.monotonic() - start_time
                row["seconds"] = round(state.seconds, 3)
                if watch is not None and row["step"] % watch.every == 0:
                    report(state.step, note="scoring")
                    scoring_start = time.monotonic()
                    row |= watch.score(state.to_checkpoint())
                    start_time += time.monotonic() - scoring_start  # which is no time spent training
                run.append_log(row)
                for callback in callbacks:
                    callback.on_log(int(row["step"]), dict(row))
                note = f"loss {row['loss']:.4f}"
                if "infom" in row:
                    note += f"  InfoM {row['infom']:.2f} ({row['informative']} informative)"
            now = time.monotonic()
            if now - show_time >= SHOW_SECONDS or is_last:
                rate = (state.step - first) / max(now - start_time, 1e-9)
                report(state.step, note=f"{note}  {rate:.1f} updates/s")
                show_time = now
            if to_save:
                _Terms(state).require_finite(run)
                state.seconds = seconds_before + time.monotonic() - start_time
                checkpoint.save(run.path, state.to_checkpoint())
                save_time = time.monotonic()
                for callback in callbacks:
                    callback.on_checkpoint(state.step, run.path)
            if to_stop and not is_last:
                raise TrainingInterrupted(
                    f"stopped after update {state.step:,} of {steps:,}; saved in {run.path}", stop[0]
                )


def _warn_of_idle_networks(networks: Networks) -> None:
    """Warn about settings that keep networks from learning, as networks from `qlae.load` have."""
    for role, module in zip(ROLES, networks, strict=True):
        parameters = [] if module is None else list(module.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            warnings.warn(
                f"no parameter of the {role} has requires_grad, so it is not trained; call .requires_grad_(True)",
                stacklevel=5,
            )
        if module is not None and not module.training:
            warnings.warn(
                f"the {role} is in evaluation mode and is trained in it (batch norm, dropout); call .train()",
                stacklevel=5,
            )


class _Terms:
    """The loss terms since the last row, (moves, terms) for each player, on their way to the host."""

    def __init__(self, state: TrainingState):
        self.step = state.step
        self._turns = state.update.turns
        self._copies = [turn.window.send() for turn in self._turns]
        device = state.update.batches.device
        self._arrived = torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None

    def row(self, run: Run) -> dict[str, float]:
        """Return a row of the log: the means; players after the first put their name before their terms."""
        row: dict[str, float] = {"step": self.step, "seconds": 0.0}
        for turn, values in zip(self._turns, self.require_finite(run), strict=True):
            prefix = "" if turn is self._turns[0] else f"{turn.player.name}_"
            if len(values):
                means = values.double().mean(0).tolist()
                row |= {prefix + term: mean for term, mean in zip(turn.window.terms, means, strict=True)}
        return row

    def require_finite(self, run: Run) -> list[torch.Tensor]:
        """Wait for the terms and return them; raise an error unless all are finite."""
        if self._arrived is not None:
            self._arrived.synchronize()
        for turn, values in zip(self._turns, self._copies, strict=True):
            bad = (~torch.isfinite(values)).any(1).nonzero()
            if len(bad):
                period = turn.player.period
                step = self.step - self.step % period - period * (len(values) - 1 - int(bad[0]))
                raise TrainingDiverged(
                    f"the loss is not finite at update {step:,}; {_last_checkpoint(run)} in {run.path}. "
                    "A lower learning rate is the usual remedy"
                )
        return self._copies


def _last_checkpoint(run: Run) -> str:
    try:
        last = checkpoint.load(run.path)
    except ValueError:
        last = None
    return f"the last good checkpoint is update {last.state['step']:,}" if last else "no checkpoint was saved yet"


@contextlib.contextmanager
def caught_signals() -> Iterator[list[int]]:
    """Yield a list that fills when Ctrl-C or SIGTERM arrives, or the terminal closes; a second Ctrl-C stops at once.

    Under ``nohup``, which ignores the closing of the terminal, it stays ignored.
    """
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield signals
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: a handler that was not set from Python, which Python cannot set again
                signal.signal(number, handler)


LOOKS = 10  # in a run
NUM_IMAGES = 64
TOLERANCE = 1e-5  # a range below this share of the largest value is rounding


class CollapseCheck:
    """Notice a run whose latents have stopped carrying anything, while it trains.

    Strong weight decay, a high learning rate, very small codebooks or a penalty on the entropy of codes can push all
    inputs to the same code. The decoder then draws the mean image, and the loss stays flat without any error. Ten times
    in a run the encoder is applied to the same few images; if no latent varies over them twice in a row, a warning says
    so.
    """

    def __init__(self, model: Model, batches: Batches, config: RunConfig):
        self._model, self._batches, self._config = model, batches, config
        self._steps = config.training.steps
        self._times = 0  # looks in a row at which no latent varied
        self._next = self._mark(0)

    def look(self, step: int) -> None:
        """Warn if it is time to look, and no latent varies now nor did at the last look."""
        if step < self._next:
            return
        self._next = self._mark(step)
        if num_varying(self._model, self._batches):
            self._times = 0
            return
        self._times += 1
        if self._times == 2:
            warnings.warn(
                f"after update {step:,} of {self._steps:,} no latent varies: all observations have the same code, and "
                f"their reconstructions are the same. {_remedy(self._config)}",
                stacklevel=2,
            )

    def _mark(self, step: int) -> float:
        """Return the first update after a given one at which to look."""
        return (step * LOOKS // self._steps + 1) * self._steps / LOOKS


def _remedy(config: RunConfig) -> str:
    """Return what to change so that latents vary."""
    penalty = " or the weight of entropy" if ENTROPY in config.objective.weights else ""
    values = "" if getattr(config.latent, "num_values", None) is None else ", or give latents more values by num_values"
    return f"Lower weight_decay or learning_rate{penalty}{values}"


def num_varying(model: Model, batches: Batches) -> int:
    """Return how many of a model's latents vary over a few images, without any effect on the training."""
    rows = np.unique(np.linspace(0, len(batches.images) - 1, NUM_IMAGES).astype(np.int64))
    if isinstance(batches.images, Tensor):
        images = batches.images[torch.from_numpy(rows).to(batches.images.device)]
    else:
        images = torch.from_numpy(np.array(batches.images[rows])).to(batches.device)
    modes = {module: module.training for module in model.modules()}
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    with torch.random.fork_rng(devices=devices), torch.no_grad(), evaluation_process():
        model.eval()
        try:
            z = model.latent(run_in_own_precision(model.encoder, model.form.to_input(images))).z
        finally:
            for module, mode in modes.items():
                module.training = mode
    spread = z.amax(0) - z.amin(0)
    return int((spread > torch.clamp(TOLERANCE * z.abs().max(), min=model.latent.least_range)).sum())
