"""Run one job at a time: train and evaluate it in its run directory. Every engine ends here.

As a process, ``python -m qlae.study.worker STUDY --parent PID`` reads names of runs from standard input, one per line,
and answers each with a line that says how the run ended. The process ends when its input ends and when a run has failed
(the device may be broken). On SIGTERM, or when its parent process is gone, it saves its run and ends.
"""

import argparse
import contextlib
import json
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._imports import import_modules
from .._io import is_locked
from .._process import keep_freed_memory
from ..config import DataConfig
from ..configuring import configure
from ..data import DATA, RenderedImages, SourceDataset, data_config
from ..pipeline import COMPONENTS_MODEL, reuse_training, train
from ..runs.directory import Run
from ..scoring.evaluation import evaluate_run
from ..scoring.sample import require_scorable, rescore_run
from .folder import FAILURE_FILE, StudyFolder, write_failure
from .jobs import Job, find_job, missing_work
from .plan import Plan

MAX_CACHE_BYTES = 2**28  # a worker renders data sets of up to this size once and keeps their images
LOCK_SECONDS = 120.0  # time to wait for a run whose last worker is still ending
GRACE_SECONDS = 2.0  # `is_locked`, which the driver asks every second, holds the lock for an instant
PARENT_SECONDS = 1.0  # between two checks whether the parent process is alive
BACKUP_FILES = ("previous.safetensors", "previous.json")  # useless in a finished run, and half of its size

_data_cache: dict[str, SourceDataset] = {}  # the data of the last job


def run_job(job: Job, run: Run, *, device: str = "auto", threads: int = 1) -> str:
    """Train and evaluate a job in a run directory, resuming from its last checkpoint if it has one.

    If a run is trained and only scores are missing, its sample is scored again. Nothing is done if it is finished.

    Returns:
        ``"done"``; ``"failed"`` after writing the error into the directory; ``"busy"`` if another process is running
        the job.
    """
    if not _wait_until_free(run, LOCK_SECONDS):
        return "busy"
    try:
        (run.path / FAILURE_FILE).unlink(missing_ok=True)
        if missing_work(job, run) is not None:
            _complete(job, run, device=device, threads=threads)
        for name in BACKUP_FILES:
            (run.path / name).unlink(missing_ok=True)
    except Exception as error:
        if not _wait_until_free(run, GRACE_SECONDS):  # another process was faster
            return "busy"
        record_failure(run, error)
        return "failed"
    return "done"


def record_failure(run: Run, error: Exception) -> None:
    """Write an exception into a run directory."""
    write_failure(run, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


def _wait_until_free(run: Run, seconds: float) -> bool:
    """Wait for a worker that lost its driver to save the run and release it; return whether the run is free."""
    deadline = time.monotonic() + seconds
    while is_locked(run.path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def _complete(job: Job, run: Run, *, device: str, threads: int) -> None:
    """Do the missing work of a run directory."""
    scoring: dict[str, Any] = {"protocol": job.plan.protocol, "jobs": threads, "show": False}
    if run.sample_path.is_file() and missing_work(job, run, scores=False) is None:
        with contextlib.suppress(ValueError):  # the sample is damaged; the checkpoint may be intact
            rescore_run(run, metrics=job.metrics, **scoring)
            return
    data = _load_data(job)
    if data.source_names:
        require_scorable(data, job.metrics)
    siblings = [Run(path.parent) for path in sorted(run.path.parents[1].glob("*/*/results.json"))]
    _require_same_images(job, data_config(data), [sibling for sibling in siblings if sibling.path != run.path])
    options = job.options | {"device": device, "threads": threads, "evaluate": False}
    if job.model.name == COMPONENTS_MODEL:
        reuse_training(run, configure(job.model.name, data, out=run.path, **options).config, siblings)
    train(job.model.name, data, out=run.path, show=False, **options)
    metrics = job.metrics if data.source_names else ("infomec",)  # without sources, this is the PSNR alone
    evaluate_run(run, data=data, device=device, num_samples=job.plan.num_samples, metrics=metrics, **scoring)


def _require_same_images(job: Job, data: DataConfig, siblings: Sequence[Run]) -> None:
    """Raise ``ValueError`` if the first readable run on the same data set saw other images."""
    for sibling in siblings:
        try:
            difference = data.difference(sibling.config.data)
        except (ValueError, OSError):  # a damaged or missing config concerns that run only
            continue
        if difference:
            raise ValueError(
                f"{job.data.label} differs from the data of {sibling.path}: {difference}; files have changed since"
            )
        return  # the driver has checked that the other runs agree with this one


def _load_data(job: Job) -> SourceDataset:
    """Return the data of a job; those of the last job are kept."""
    key = json.dumps(DATA.to_dict(job.data.spec), sort_keys=True)
    if key not in _data_cache:
        _data_cache.clear()
        data = job.data.spec.load()
        num_bytes = math.prod(data.images.shape) * data.images.dtype.itemsize
        if isinstance(data.images, RenderedImages):
            data.images.keeps = True  # the images stay on a GPU that has rendered them
        _data_cache[key] = data.in_memory() if num_bytes <= MAX_CACHE_BYTES else data
    return _data_cache[key]


def run_named(
    name: str,
    runs: Path,
    *,
    plan: Mapping[str, Any] | None = None,
    imports: Sequence[str] = (),
    directory: str | None = None,
    **options: Any,
) -> str:
    """Run a job by its name in a folder of runs; return how it ended.

    Modules to import may lie in `directory`. Without a plan, that of the study is read. Options are those of `run_job`.
    """
    run = Run(runs / name)
    try:
        import_modules(imports, directory=directory)  # they may register the model of the job
        job = find_job(StudyFolder(runs.parent).plan if plan is None else Plan.from_content(dict(plan)), name)
    except ValueError as error:
        record_failure(run, error)
        return "failed"
    return run_job(job, run, **options)


def _watch_parent(parent: int) -> None:
    """Send this process SIGTERM when its parent is gone; a training then saves itself first."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run the jobs that standard input names; return the exit code."""
    parser = argparse.ArgumentParser(description="A worker of a study; `qlae study` starts it.")
    parser.add_argument("study", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--import", dest="imports", action="append", default=[])
    arguments = parser.parse_args()
    options = {name: getattr(arguments, name) for name in ("device", "threads", "imports")}
    keep_freed_memory()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # anything that prints goes to the log instead of between the answers
    threading.Thread(target=_watch_parent, args=(arguments.parent,), daemon=True).start()
    try:
        for line in sys.stdin:
            state = run_named(line.strip(), arguments.study / "runs", **options)
            print(state, file=answers, flush=True)
            if state == "failed":
                return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
