"""Configure a training before it starts: every value with its origin, and the parameters, memory and time it takes.

    print(qlae.configure("qlae", "shapes3d", size="small"))

`qlae train … --dry-run` prints the same table. ``resolving.py`` decides the values.
"""

import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.filesize import decimal

from ._checks import whole_number
from ._process import describe_device, pick_device, size_for, training_process, usual_errors
from ._progress import print_note, progress_bar
from .config import DataConfig, RunConfig
from .data import DataSpec, SourceDataset, data_config, data_spec, unread_config
from .data.batches import DeviceBatches
from .data.image_files import ImageFiles
from .data.loading import is_in_memory
from .models.building import Networks, own_roles
from .options import ExecutionOptions, split_options
from .presets import ModelSpec, find_model
from .registry import OBJECTIVES
from .resolving import Origin, network_pair, resolve_values
from .runs.directory import Run
from .runs.load_model import require_memory
from .training.callbacks import require_tensorboard
from .training.state import TrainingState, initial_model, require_trainable, state_on

MOST_THREADS = 256  # or four per core, if that is more
FEW_ENTRIES = 1024  # of an observation, up to which one thread trains small networks fastest
SHORT_UPDATE = 3.0  # seconds; longer updates are timed on a part of a batch
PART = 16  # of a batch, that many times fewer observations
TIMED_SECONDS = 1.0
LONGEST_TEXT = 44  # of a value in the table


@dataclass(frozen=True)
class Requirements:
    """What a training takes on this machine.

    Attributes:
        num_parameters: of all modules of the model.
        memory: bytes of the weights, the optimizer's state and the tensors that an update keeps for its gradients.
        data_memory: bytes of all observations.
        seconds_per_update: timed on random observations.
        num_rows: observations per timed update; with fewer than a batch, the time is scaled to a batch.
        device: where the model trains.
    """

    num_parameters: int
    memory: int
    data_memory: int
    seconds_per_update: float
    num_rows: int
    device: str


@dataclass(frozen=True)
class Configuration:
    """A training that has not started: its config and where each value comes from. Printed, it is a table.

    Attributes:
        config: every number that the training depends on.
        origins: the origin of each value, by its dotted name in the config.
        execution: where and how the training is carried out.
        networks: the caller's encoder and decoder, if there are any.
    """

    config: RunConfig
    origins: Mapping[str, Origin]
    execution: ExecutionOptions
    networks: Networks | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The values of the config by their dotted names, such as ``"training.optimizer.learning_rate"``."""
        return self.config.values()

    @cached_property
    def requirements(self) -> Requirements:
        """The parameters, memory and time of the training, from a few updates on random observations."""
        return _measure(self)

    def require_trainable(self) -> None:
        """Raise an error if this machine cannot train the config, or the parts of the model do not fit."""
        self.require_executable()
        require_trainable(self.config, self.networks)

    def require_executable(self) -> None:
        """Raise an error if this machine cannot train the config, or not in this way."""
        execution, config = self.execution, self.config
        if not execution.checkpoint_seconds >= 0:
            raise ValueError(f"checkpoint_seconds must not be negative, got {execution.checkpoint_seconds}")
        if execution.threads is not None:
            whole_number("threads", execution.threads, at_most=max(MOST_THREADS, 4 * (os.cpu_count() or 1)))
        every, log_every = execution.score_every, config.training.log_every
        if every < 0 or every % log_every:
            raise ValueError(
                f"score_every must be a multiple of {log_every}, at which losses are logged, or 0 for no scores before "
                f"the end, got {every}"
            )
        if execution.tensorboard:
            require_tensorboard()
        require_memory(config, config.training.batch_size, execution.device, draws_pictures=execution.evaluate)

    def note_size(self, run: Run, *, show: bool) -> None:
        """Print a line if a run begins with small networks because there is no GPU."""
        is_by_default = self.origins["networks.size"].layer == "default" and not run.is_begun
        if is_by_default and self.config.networks.size == "small":
            print_note("training small networks, since there is no GPU; size='full' trains the paper's", show=show)

    @property
    def threads(self) -> int | None:
        """The number of CPU threads; None for one per core.

        Updates of small networks on few numbers are so short that threads mostly wait for each other. The paper's
        images keep one thread per core at every size, on which the last bits of sums depend.
        """
        observed, size = self.config.data.observations, self.config.networks.size
        is_short = observed.num_entries <= FEW_ENTRIES and size == "small" and not observed.is_standard
        if self.execution.threads is None and is_short:
            return 1 if pick_device(self.execution.device).type == "cpu" else None
        return self.execution.threads

    def describe(self, name_option: Callable[[str], str] = str) -> str:
        """Return a table of all values with their origins, and what the training takes.

        Args:
            name_option: turns the name of an option into the way in which the reader sets it.
        """
        rows = []
        for name, value in self.values.items():
            origin = self.origins[name]
            if origin.layer == "option":
                origin = origin._replace(name=name_option(origin.name))
            text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
            rows.append((name, text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…", str(origin)))
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = [f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}" for name, value, origin in rows]
        return "\n".join([*lines, "", *_describe_requirements(self)])

    def __str__(self) -> str:
        return self.describe()

    __repr__ = __str__


@usual_errors()
def configure(
    model: str | ModelSpec,
    data: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    networks: Networks | str | None = None,
    **options: Any,
) -> Configuration:
    """Return the configuration of a training, without training or writing anything; ``print`` shows it as a table.

    Args:
        model, data, networks, options: as for ``qlae.train``.
        out: the run directory, if there is one; a run that has begun keeps its size and precision.

    Example:
        >>> configuration = configure("qlae", "shapes3d", size="small", learning_rate=0.001)
        >>> optimizer = configuration.config.training.optimizer
        >>> optimizer.learning_rate, optimizer.weight_decay
        (0.001, 0.3)
        >>> print(configuration.origins["training.optimizer.learning_rate"])
        your option learning_rate
        >>> print(configuration.origins["training.optimizer.weight_decay"])
        model qlae, times 3 for size small
    """
    return _configure(model, data_config(require_data(data)), out, networks=networks, **options)


def prepare_data(
    model: str | ModelSpec, data: Any, *, out: str | os.PathLike[str], show: bool = False, **options: Any
) -> SourceDataset:
    """Load the data of a training; arguments as for ``qlae.train``.

    Errors that do not depend on the images are raised before thousands of image files are read.
    """
    spec = data_spec(data) if isinstance(data, str | Path) else data
    if isinstance(spec, ImageFiles):
        run = Run(out)
        described = run.config.data if run.is_begun and run.config_path.is_file() else unread_config(spec)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the training warns about the same
            configuration = _configure(model, described, out, **options)
            configuration.require_trainable()
        run.require_free(configuration.config)
    return require_data(spec, show=show)


def require_data(data: Any, *, show: bool = False) -> SourceDataset:
    """Return a data set as it is, or load it from its description, its name or path, or an array."""
    if isinstance(data, SourceDataset):
        return data
    if isinstance(data, str | Path) or is_in_memory(data):
        data = data_spec(data)
    if not isinstance(data, DataSpec):
        raise ValueError(
            f"data must be a data set, its name or path, or an array, got {type(data).__name__}; "
            "qlae.load_data(array, sources=…) combines an array with sources"
        )
    with progress_bar("reading", show=show) as report:
        return data.load(progress=report)


def _configure(
    model: str | ModelSpec,
    described: DataConfig,
    out: str | os.PathLike[str] | None,
    *,
    networks: Networks | str | None = None,
    **options: Any,
) -> Configuration:
    training, execution = split_options(options)
    spec = find_model(model)
    if isinstance(networks, str):
        training, networks = dataclasses.replace(training, networks=networks), None
    own = own_roles(networks)
    trusted = not own and network_pair(spec, described, training).is_ours
    trusted = trusted and OBJECTIVES[spec.objective].part.trains_in_bfloat16
    precision = "float32"
    if training.precision == "auto":
        precision = _choose_precision(out, execution.device, trusted=trusted)
    config, origins = resolve_values(
        spec,
        described,
        len(described.source_names),
        training,
        own_networks=own,
        auto_precision=precision,
        default_size=_default_size(out, execution.device),
    )
    return Configuration(config, origins, execution, networks)


def _default_size(out: str | os.PathLike[str] | None, device: str) -> str:
    """Return the size of the networks of a training that does not choose one; a run that has begun keeps its own."""
    if out is not None and Run(out).config_path.is_file():
        return Run(out).config.networks.size
    return size_for(device)


def _choose_precision(out: str | os.PathLike[str] | None, device: str, *, trusted: bool) -> str:
    """Return the precision that ``"auto"`` means; custom networks, and some losses, may need float32."""
    if out is not None and Run(out).config_path.is_file():
        return str(Run(out).config.training.precision)
    reduced = trusted and pick_device(device).type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if reduced else "float32"


def _measure(configuration: Configuration) -> Requirements:
    """Make a few updates of a fresh model on random observations, and note their time and memory."""
    config, device = configuration.config, pick_device(configuration.execution.device)
    batch_size, compile = config.training.batch_size, configuration.execution.compile
    with training_process(device, compile=compile, threads=configuration.threads):
        model = initial_model(config, configuration.networks, device)
        rows = max(2, batch_size // PART) if device.type == "cpu" else batch_size
        state = state_on(config, model, _random_batches(config, rows, device), compile=compile)
        kept = _kept_bytes(state) * batch_size // rows
        _time_updates(state)  # the first updates are slow
        if rows < batch_size and _time_updates(state) * batch_size / rows < SHORT_UPDATE:
            rows = batch_size
            state.update.batches = _random_batches(config, rows, device)
            _time_updates(state)
        seconds = _time_updates(state, TIMED_SECONDS)
    for flat in (turn.flat for turn in state.update.turns):  # weights, gradients, moments and averages
        kept += 5 * flat.values.nbytes + (0 if flat.copies is None else 2 * flat.copies.nbytes)
    observed = config.data.observations
    return Requirements(
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        memory=kept,
        data_memory=config.data.num_images * observed.num_entries * np.dtype(observed.dtype).itemsize,
        seconds_per_update=seconds * batch_size / rows,
        num_rows=rows,
        device=describe_device(device),
    )


def _random_batches(config: RunConfig, num_rows: int, device: torch.device) -> DeviceBatches:
    """Return batches of random observations, bytes or numbers from 0 to 1."""
    observed, generator = config.data.observations, torch.Generator(device).manual_seed(0)
    rows = torch.rand((num_rows, *observed.shape), generator=generator, device=device)
    rows = (255 * rows if observed.dtype == "uint8" else rows).to(getattr(torch, observed.dtype))
    num_targets = OBJECTIVES.build(config.objective).num_targets
    targets = torch.zeros((num_rows, num_targets), dtype=torch.uint8, device=device) if num_targets else None
    return DeviceBatches(rows, num_rows, generator, targets)


def _kept_bytes(state: TrainingState) -> int:
    """Return the bytes that the largest of the players' losses keeps for its gradients."""
    step, most = state.update, 0
    for turn in step.turns:
        storages: dict[int, int] = {}

        def keep(tensor: torch.Tensor, storages: dict[int, int] = storages) -> torch.Tensor:
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        batch, targets = step.batches.draw_with_targets()
        images = step.to_input(batch)
        with step.others_frozen(turn), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            turn.loss_and_gradients(images, step.noise, step.number + 1, targets)
        most = max(most, sum(storages.values()))
    return most


def _time_updates(state: TrainingState, seconds: float = 0.0) -> float:
    """Return the seconds per update of whole cycles of the players, over a time."""
    device, cycle = state.update.batches.device, max(turn.player.period for turn in state.update.turns)
    cycle = max(cycle, 50 if device.type == "cuda" else 1)  # blocks that are recorded and launched as a whole
    start, done, elapsed = time.perf_counter(), 0, 0.0
    while not done or elapsed < seconds:
        for turn in state.update.turns:
            turn.window.filled = 0
        target = state.step + cycle
        while state.step < target:
            state.step += state.updates.advance(state.step, target - state.step)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        done, elapsed = done + cycle, time.perf_counter() - start
    return elapsed / done


def _describe_requirements(configuration: Configuration) -> list[str]:
    needs, training = configuration.requirements, configuration.config.training
    many, count = configuration.config.data.observations.traits.many, configuration.config.data.num_images
    scaled = "" if needs.num_rows == training.batch_size else f" of {needs.num_rows} {many}, scaled to a batch"
    seconds = needs.seconds_per_update * training.steps
    return [
        f"Parameters: {needs.num_parameters:,}",
        f"Memory: about {decimal(needs.memory)} for training, and {decimal(needs.data_memory)} of {count:,} {many}",
        f"Time: about {describe_duration(seconds)} for {training.steps:,} updates on {needs.device}, estimated from "
        f"timed updates{scaled} ({needs.seconds_per_update:.2g} s per update), without scoring",
    ]


def describe_duration(seconds: float) -> str:
    """Return a duration in a unit that suits it.

    >>> describe_duration(1800), describe_duration(10_000), describe_duration(864_000)
    ('30 minutes', '3 hours', '10 days')
    """
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return "a minute"
