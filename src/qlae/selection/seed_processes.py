"""Train runs in parallel processes on this machine, each by `qlae train --resume RUN`.

The config of each run is written first, so that a process needs nothing but the run directory. Stopping this process
stops them: each saves its run before it ends, and the next call resumes it.
"""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence

from ..config import RunConfig
from ..metrics.parallel import num_cores
from ..options import ExecutionOptions
from ..runs.directory import Run
from ..training import TrainingInterrupted
from ..training.trainer import caught_signals

TICK_SECONDS = 0.2


def train_in_processes(
    configs: Mapping[Run, RunConfig],
    execution: ExecutionOptions,
    *,
    workers: int,
    imports: Sequence[str] = (),
    show: bool = True,
) -> list[Run]:
    """Train runs to their end, ``workers`` at a time, and return those that finished.

    A run whose process fails is left out with a warning.

    Args:
        configs: of runs whose data can be loaded by their descriptions. A run that has begun keeps its config.
        execution: where and how each is trained. Without a number of threads, the processes share the cores.
        workers: number of processes.
        imports: modules that each process imports first.
        show: whether to print a line when a run ends.
    """
    for run, config in configs.items():
        run.path.mkdir(parents=True, exist_ok=True)
        if not run.is_begun:
            with run.locked():
                run.write_config(config)
    threads = execution.threads or max(1, num_cores() // workers)
    waiting, finished = list(configs), []
    running: dict[Run, subprocess.Popen[bytes]] = {}
    with caught_signals() as stop:
        try:
            while (waiting or running) and not stop:
                while waiting and len(running) < workers:
                    run = waiting.pop(0)
                    running[run] = _start(run, configs[run].training.steps, execution, threads, imports)
                for run, code in _ended(running):
                    finished += [run] if code == 0 else []
                    if code:
                        warnings.warn(f"{run.path} is left out: its process ended with code {code}", stacklevel=3)
                    elif show:
                        print(f"qlae: {run.path} is trained ({len(finished)} of {len(configs)})", file=sys.stderr)
                time.sleep(TICK_SECONDS)
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()
    if stop:
        raise TrainingInterrupted(f"stopped; {len(finished)} of {len(configs)} runs are finished", stop[0])
    return finished


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
