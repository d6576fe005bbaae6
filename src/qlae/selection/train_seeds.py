"""Train a model with several seeds, then choose among the runs without labels.

The runs are directories ``s0``, ``s1``, … in one folder. The same call continues where it was interrupted: finished
runs are kept, and an unfinished one is resumed from its checkpoint.
"""

import copy
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from .._checks import whole_number
from .._io import write_json
from .._process import pick_device, usual_errors
from .._progress import progress_bar
from ..config import RunConfig
from ..configuring import configure, prepare_data
from ..data import RenderedImages, SourceDataset, data_config
from ..metrics.parallel import num_cores
from ..models.building import Networks
from ..options import ExecutionOptions
from ..pipeline import train
from ..presets import ModelSpec
from ..runs.directory import SELECTION_FILE, Run
from ..training import TrainingDiverged, TrainingInterrupted
from ..training.callbacks import Callback
from ..training.state import SLOW_SCENES
from ..training.trainer import caught_signals
from .display import plot_selection
from .ranking import Selection, select

MOST_SEEDS = 1_000
PICTURE_FILE = "agreement.png"
TICK_SECONDS = 0.2

Ended = Generator[tuple[Run, str] | None, None, None]


class Engine(Protocol):
    """Train runs elsewhere than in this process, several at a time."""

    def train(self, configs: Mapping[Run, RunConfig], execution: ExecutionOptions) -> Ended:
        """Train runs to their end, and yield each that has ended with its error, and None at least once per second.

        The error of a run that finished is empty. The run directories exist, with their configs.
        """


@usual_errors()
def train_seeds(
    model: str | ModelSpec,
    data: Any,
    *,
    out: str | os.PathLike[str],
    seeds: int,
    networks: Networks | str | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int = 1,
    imports: Sequence[str] = (),
    engine: Engine | None = None,
    show: bool = True,
    **options: Any,
) -> Selection:
    """Train a model with the seeds ``seed``, ``seed + 1``, … and rank the runs without labels.

    A run whose training diverges is left out with a warning.

    Args:
        model, data, networks, callbacks, show, options: as for ``qlae.train``; ``seed`` is the first seed.
        out: the folder of the runs. ``selection.json`` and ``agreement.png`` are written into it.
        seeds: number of seeds, at least 2.
        workers: number of processes that train at the same time. More than one needs data that can be loaded by name or
            path, no callbacks, and no modules as ``networks``. The processes share the cores, and the number of threads
            decides the last bits of a run.
        imports: modules that the processes import first, which register your parts.
        engine: trains the runs instead, such as ``qlae.study.ray_engine.RayEngine`` as tasks on a Ray cluster, which
            has its own device, number of threads and imports.

    Returns:
        The runs in order, and ``.best``.
    """
    whole_number("seeds", seeds, at_least=2, at_most=MOST_SEEDS)
    whole_number("workers", workers, at_most=MOST_SEEDS)
    if options.get("evaluate") is False:
        raise ValueError("runs are compared by their evaluation samples, so seeds=… does not go with evaluate=False")
    first = whole_number("seed", options.get("seed", 0), at_least=0)
    folder = Path(out)
    if Run(folder).config_path.is_file():
        raise ValueError(
            f"{folder} is itself a run directory, and the runs of several seeds need a separate folder; choose one "
            "with out=…"
        )
    data = copy.copy(prepare_data(model, data, out=folder / f"s{first}", networks=networks, show=show, **options))
    data.checksum = data_config(data).checksum  # computed once for all seeds
    jobs = [(seed, Run(folder / f"s{seed}")) for seed in range(first, first + seeds)]
    configs = {}
    for seed, run in jobs:  # before anything is trained
        configuration = configure(model, data, out=run.path, networks=networks, **options | {"seed": seed})
        configs[seed], execution = configuration.config, configuration.execution
        run.require_free(configs[seed])
        if options.get("size") is None:
            configuration.note_size(run, show=show)
            options["size"] = configs[seed].networks.size
        options["num_latents"] = configs[seed].latent.num_latents  # so that a warning names their number once
    waiting = [seed for seed, run in jobs if not _is_finished(run, configs[seed])]
    if engine is None and workers > 1 and len(waiting) > 1:
        engine = ProcessEngine(workers, imports)
    trained: list[Run] = []
    if engine is not None and waiting:
        _require_portable(configs[first], networks, callbacks)
        trained = train_with(engine, {run: configs[seed] for seed, run in jobs if seed in waiting}, execution, show)
        jobs = [(seed, run) for seed, run in jobs if seed not in waiting or run in trained]
        waiting = []
    images = _rendered_once(data, execution.device, show=show) if len(waiting) > 1 else data
    finished = []
    for number, (seed, run) in enumerate(jobs, start=1):
        if show and run not in trained:
            state = "" if seed in waiting else ", finished before"
            print(f"qlae: seed {seed} ({number} of {seeds}){state}", file=sys.stderr, flush=True)
        if seed in waiting:
            try:
                options["seed"] = seed
                train(model, images, out=run.path, networks=networks, callbacks=callbacks, show=show, **options)
            except TrainingDiverged as error:
                warnings.warn(f"{run.path} is left out: {error}", stacklevel=2)
                continue
        finished.append(run)
    if len(finished) < 2:
        raise ValueError(f"{len(finished)} of {seeds} runs in {folder} finished; agreement needs at least two")
    selection = select(finished, data=images, device=execution.device, show=show)
    write_json(folder / SELECTION_FILE, selection.to_dict())
    plot_selection(selection, folder / PICTURE_FILE)
    return selection


def _require_portable(config: RunConfig, networks: Networks | str | None, callbacks: Sequence[Callback]) -> None:
    """Raise an error unless other processes can train the runs from their directories."""
    what = "callbacks" if callbacks else "modules as networks" if networks and not isinstance(networks, str) else None
    if config.data.spec is None:
        what = "data in memory, which have no name or path to load them by"
    if what:
        raise ValueError(f"{what} cannot be passed to other processes; train the seeds one by one with workers=1")


def _is_finished(run: Run, config: RunConfig) -> bool:
    """Return whether a run has all its updates, and the sample and scores of the last of them."""
    results = run.results_so_far
    return results is not None and results["steps"] == config.training.steps and run.sample_path.is_file()


def _rendered_once(data: SourceDataset, device: str, *, show: bool) -> SourceDataset:
    """Return the data with their images in memory where each training on a CPU would render them again."""
    images = data.images
    if not isinstance(images, RenderedImages) or images.name in SLOW_SCENES or pick_device(device).type != "cpu":
        return data
    with progress_bar("rendering", len(data), show=show) as report:
        return data.in_memory(progress=report)


def train_with(
    engine: Engine, configs: Mapping[Run, RunConfig], execution: ExecutionOptions, show: bool = True
) -> list[Run]:
    """Train runs to their end with an engine, and return those that finished.

    A run that fails is left out with a warning. The config of each run is written first, so that an engine needs
    nothing but the run directory. Ctrl-C ends the engine, which ends its runs.

    Args:
        engine: trains the runs.
        configs: of runs whose data can be loaded by their descriptions. A run that has begun keeps its config.
        execution: how each is trained.
        show: whether to print a line when a run ends.
    """
    for run, config in configs.items():
        run.path.mkdir(parents=True, exist_ok=True)
        if not run.is_begun:
            with run.locked():
                run.write_config(config)
    finished: list[Run] = []
    with caught_signals() as stop, closing(engine.train(configs, execution)) as training:
        for ended in training:
            if ended is not None:
                run, error = ended
                finished += [run] if not error else []
                if error:
                    warnings.warn(f"{run.path} is left out: {error}", stacklevel=3)
                elif show:
                    print(f"qlae: {run.path} is trained ({len(finished)} of {len(configs)})", file=sys.stderr)
            if stop:
                break
    if stop:
        raise TrainingInterrupted(f"stopped; {len(finished)} of {len(configs)} runs are finished", stop[0])
    return finished


class ProcessEngine:
    """Train runs in processes on this machine.

    Args:
        workers: number of processes at the same time.
        imports: modules that each process imports first.
    """

    def __init__(self, workers: int, imports: Sequence[str] = ()):
        self.workers, self.imports = workers, tuple(imports)

    def train(self, configs: Mapping[Run, RunConfig], execution: ExecutionOptions) -> Ended:
        """Train each run in a separate process; see `Engine`. Processes that are stopped save their runs.

        Without a number of threads, the processes share the cores.
        """
        threads = execution.threads or max(1, num_cores() // self.workers)
        waiting = list(configs)
        running: dict[Run, subprocess.Popen[bytes]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    run = waiting.pop(0)
                    running[run] = _start(run, configs[run].training.steps, execution, threads, self.imports)
                for run, code in _ended(running):
                    yield run, f"its process ended with code {code}" if code else ""
                time.sleep(TICK_SECONDS)
                yield None
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()


def _start(
    run: Run, steps: int, execution: ExecutionOptions, threads: int, imports: Sequence[str]
) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "qlae", "train", "--resume", str(run.path), "--steps", str(steps), "--quiet"]
    command += ["--threads", str(threads), "--device", execution.device, "--score-every", str(execution.score_every)]
    command += ["--checkpoint-seconds", str(execution.checkpoint_seconds), *(f"--import={name}" for name in imports)]
    command += ["--no-compile"] * (not execution.compile) + ["--tensorboard"] * execution.tensorboard
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    # Ctrl-C reaches this process only, which then asks the others to save.
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def _ended(running: "dict[Run, subprocess.Popen[bytes]]") -> Iterator[tuple[Run, int]]:
    """Remove the runs whose process has ended, and yield them with its exit code."""
    for run, process in list(running.items()):
        if (code := process.poll()) is not None:
            del running[run]
            yield run, code
