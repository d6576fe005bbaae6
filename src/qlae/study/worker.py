"""Run one job at a time: train, evaluate, answer. Both engines use it, in worker processes or in Ray tasks.

As a process, ``python -m qlae.study.worker STUDY`` reads jobs from standard input, one line of JSON per job, and
answers each with one line of JSON. It ends when its input ends and when a job has failed (the device may be broken). On
SIGTERM, or when its parent process is gone, it saves its run and ends.
"""

import argparse
import json
import math
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._imports import import_modules
from .._opening import read_regular
from ..runs.directory import Run
from .jobs import Job, data_difference, needs_scores_only

if TYPE_CHECKING:
    from ..config import DataConfig
    from ..data import SourceDataset

MAX_CACHE_BYTES = 2**28  # a worker renders data sets of up to this size once and keeps their images
LOCK_SECONDS = 60.0  # time to wait for a run whose last worker is still ending
PARENT_SECONDS = 1.0  # between two checks whether the parent process is alive
RETURNED_FILES = (
    *("config.json", "log.jsonl", "results.json", "sample.npz", "pictures.npz"),
    *("checkpoint.safetensors", "checkpoint.json", "fitted.safetensors"),
)
BACKUP_FILES = ("previous.safetensors", "previous.json")  # useless in a finished run, and half of its size

_data_cache: dict[str, "SourceDataset"] = {}  # the data of the last job


def run_job(job: Job, run: Run, *, device: str = "auto", threads: int = 1) -> dict[str, Any]:
    """Train and evaluate a job in a run directory, resuming from its last checkpoint if it has one.

    If a run is trained and only scores are missing, its sample is scored again.

    Returns:
        ``state`` (``"done"`` or ``"failed"``) and ``seconds``; for failures also ``error`` and ``trace``.
    """
    started = time.monotonic()
    try:
        _wait_until_free(run)
        scoring: dict[str, Any] = {"protocol": job.protocol, "metrics": job.metrics, "jobs": threads, "show": False}
        if needs_scores_only(job, run):
            from ..scoring.sample import rescore_run

            try:
                rescore_run(run, **scoring)
            except ValueError:  # the sample is damaged; the checkpoint may be intact
                _train_and_evaluate(job, run, scoring, device=device, threads=threads)
        else:
            _train_and_evaluate(job, run, scoring, device=device, threads=threads)
        for name in BACKUP_FILES:
            (run.path / name).unlink(missing_ok=True)
    except Exception as error:
        return _failure(error, time.monotonic() - started)
    return {"state": "done", "seconds": time.monotonic() - started}


def _failure(error: Exception, seconds: float) -> dict[str, Any]:
    """Return the outcome of a job that raised an exception."""
    return {
        "state": "failed",
        "error": f"{type(error).__name__}: {error}",
        "trace": "".join(traceback.format_exception(error)),
        "seconds": seconds,
    }


def _train_and_evaluate(job: Job, run: Run, scoring: dict[str, Any], *, device: str, threads: int) -> None:
    from ..components import MODEL, reuse_training
    from ..configuring import configure
    from ..data import data_config
    from ..pipeline import train
    from ..scoring.evaluation import evaluate_run
    from ..scoring.sample import require_scorable

    data = _load_data(job)
    if data.source_names:
        require_scorable(data, job.metrics)
    else:  # the PSNR is all that images alone give; the study compares such runs by their agreement
        scoring = scoring | {"metrics": ("infomec",)}
    _require_same_images(job, data_config(data), run)
    options = job.options | {"device": device, "threads": threads, "evaluate": False}
    if job.model_name == MODEL:
        siblings = [Run(path.parent) for path in sorted(run.path.parents[1].glob("*/*/results.json"))]
        reuse_training(run, configure(job.model_name, data, out=run.path, **options).config, siblings)
    train(job.model_name, data, out=run.path, show=False, **options)
    evaluate_run(run, data=data, device=device, num_samples=job.num_samples, **scoring)


def _require_same_images(job: Job, data: "DataConfig", run: Run) -> None:
    """Raise ``ValueError`` if finished runs on the same data set saw other images."""
    for path in sorted(run.path.parents[1].glob("*/*/results.json")):
        sibling = Run(path.parent)
        if sibling.path == run.path:
            continue
        try:
            difference = data_difference(data, sibling)
        except (ValueError, OSError):  # a damaged or missing config concerns that run only
            continue
        if difference:
            raise ValueError(f"{job.data} {difference}: its files have changed since")
        return  # the driver has checked that the other runs agree with this one


def run_job_on_node(
    content: dict[str, Any],
    study: str,
    token: str,
    device: str,
    threads: int,
    imports: tuple[str, ...] = (),
    directory: str | None = None,
) -> dict[str, Any]:
    """Run a job on any node: in the study's folder if the node sees it, otherwise in a temporary folder of the node.

    Args:
        content: the job, as `Job.to_dict` returns it.
        study: the study's folder.
        token: the content of the study's ``.token`` file, by which a node recognises the folder.
        device: the device to train on.
        threads: number of torch threads.
        imports: modules to import first.
        directory: the driver's current directory, where modules are looked for if the node sees it.

    Returns:
        The outcome of `run_job`; from a temporary folder also ``files``, the content of the run directory.
    """
    try:
        import_modules(imports, directory=directory)
    except ValueError as error:
        return _failure(error, 0.0)
    job = Job.from_dict(content)
    token_path = Path(study, ".token")
    if token_path.is_file() and read_regular(token_path) == token.encode():
        return run_job(job, Run(Path(study, "runs", job.name)), device=device, threads=threads)
    run = Run(Path(tempfile.gettempdir(), f"qlae-study-{token}", job.name))
    outcome = run_job(job, run, device=device, threads=threads)
    files = {path.name: read_regular(path) for path in map(run.path.joinpath, RETURNED_FILES) if path.is_file()}
    return outcome | {"files": files}


def _load_data(job: Job) -> "SourceDataset":
    """Return the data of a job; those of the last job are kept."""
    from ..data import RenderedImages, load_again

    key = json.dumps([job.data_name, job.resolution, job.recipe], sort_keys=True)
    if key not in _data_cache:
        _data_cache.clear()
        data = load_again(job.data_name, job.resolution, job.recipe)
        num_bytes = math.prod(data.images.shape) * data.images.dtype.itemsize
        if isinstance(data.images, RenderedImages):
            data.images.keeps = True  # the images stay on a GPU that has rendered them
        _data_cache[key] = data.in_memory() if num_bytes <= MAX_CACHE_BYTES else data
    return _data_cache[key]


def _wait_until_free(run: Run) -> None:
    """Wait for a run's lock, which a worker that lost its parent holds until it has saved."""
    deadline = time.monotonic() + LOCK_SECONDS
    while run.path.is_dir():
        try:
            with run.locked():
                return
        except ValueError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _watch_parent(parent: int) -> None:
    """Send this process SIGTERM when its parent is gone; a training then saves itself first."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _answer(line: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the outcome of the job that a line of JSON describes."""
    try:
        import_modules(arguments.imports)  # first, because a job's model may be one of these modules' presets
    except ValueError as error:
        return _failure(error, 0.0)
    job = Job.from_dict(json.loads(line))
    run = Run(arguments.study / "runs" / job.name)
    return run_job(job, run, device=arguments.device, threads=arguments.threads)


def main() -> int:
    """Answer jobs from standard input; return the exit code."""
    parser = argparse.ArgumentParser(description="A worker of a study; `qlae study` starts it.")
    parser.add_argument("study", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parent", type=int, default=os.getppid())
    parser.add_argument("--import", dest="imports", action="append", default=[])
    arguments = parser.parse_args()
    from .._device import keep_freed_memory

    keep_freed_memory()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # anything that prints goes to the log instead of between the answers
    threading.Thread(target=_watch_parent, args=(arguments.parent,), daemon=True).start()
    try:
        for line in sys.stdin:
            outcome = _answer(line, arguments)
            print(json.dumps(outcome), file=answers, flush=True)
            if outcome["state"] == "failed":
                return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
