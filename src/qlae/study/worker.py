"""One job at a time: train, evaluate, answer. A worker process of the local engine, or a task of Ray's.

As a process, ``python -m qlae.study.worker STUDY`` reads jobs from standard input, a line of JSON each, and answers
each with a line of JSON. It ends when its input does, when a job has failed (the device may be broken), and, with its
run saved, when it is asked to (SIGTERM) or its parent is gone.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runs.directory import Run
from .jobs import Job, lacks_scores_only, other_data

if TYPE_CHECKING:
    from ..config import DataConfig
    from ..data import SourceDataset

IN_MEMORY = 2**28  # bytes of images up to which a worker renders a data set once and keeps it
LOCK_SECONDS = 60.0  # to wait for a run whose last worker has not quite gone
PARENT_SECONDS = 1.0  # between looks at the parent
COLLECTED = (
    *("config.json", "log.jsonl", "results.json", "sample.npz", "pictures.npz"),
    *("checkpoint.safetensors", "checkpoint.json"),
)
SPARE = ("previous.safetensors", "previous.json")  # of no use to a finished run, and half of its size

_kept: dict[str, "SourceDataset"] = {}  # the data of the last job


def carry_out(job: Job, run: Run, *, device: str = "auto", threads: int = 1) -> dict[str, Any]:
    """Train and evaluate a job in a run directory, from its last checkpoint if it has one; what came of it.

    Of a run that is trained and lacks scores, its sample is scored again.
    """
    started = time.monotonic()
    try:
        _wait_until_free(run)
        how: dict[str, Any] = {"protocol": job.protocol, "metrics": job.metrics, "jobs": threads, "show": False}
        if lacks_scores_only(job, run):
            from ..scoring.sample import rescore_run

            try:
                rescore_run(run, **how)
            except ValueError:  # of a damaged sample; the checkpoint may be whole
                _train_and_evaluate(job, run, how, device=device, threads=threads)
        else:
            _train_and_evaluate(job, run, how, device=device, threads=threads)
        for name in SPARE:
            (run.path / name).unlink(missing_ok=True)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        return {
            "state": "failed",
            "error": told,
            "trace": traceback.format_exc(),
            "seconds": time.monotonic() - started,
        }
    return {"state": "done", "seconds": time.monotonic() - started}


def _train_and_evaluate(job: Job, run: Run, how: dict[str, Any], *, device: str, threads: int) -> None:
    from ..data import data_config
    from ..pipeline import train
    from ..scoring.evaluation import evaluate_run
    from ..scoring.sample import require_scorable

    data = _data(job)
    if not data.source_names:
        raise ValueError(f"{job.data} has no sources, so a study has nothing to score; give them: source_file = …")
    require_scorable(data, job.metrics)
    _require_unchanged(job, data_config(data), run)
    train(job.model_name, data, out=run.path, evaluate=False, show=False, device=device, threads=threads, **job.options)
    evaluate_run(run, data=data, device=device, num_samples=job.num_samples, **how)


def _require_unchanged(job: Job, data: "DataConfig", run: Run) -> None:
    """An error if images are not those of the finished runs on the same data set beside this one."""
    for path in sorted(run.path.parents[1].glob("*/*/results.json")):
        sibling = Run(path.parent)
        if sibling.path == run.path:
            continue
        try:
            told = other_data(data, sibling)
        except (ValueError, OSError):  # of a damaged or missing config, which is that run's own matter
            continue
        if told:
            raise ValueError(f"{job.data} {told}: its files have changed since")
        return  # the others agree with it, as the driver has seen


def carry_out_anywhere(job: dict[str, Any], study: str, token: str, device: str, threads: int) -> dict[str, Any]:
    """`carry_out` on any node: in the study's folder where the node sees it, else in a folder of the node's own.

    Args:
        job: as `Job.to_dict` gives it.
        study: the study's folder.
        token: the content of the study's ``.token`` file, by which a node knows that it sees the same folder.

    Returns:
        What `carry_out` does; from a folder of the node's own also ``files``, the bytes of the run directory.
    """
    todo = Job.from_dict(job)
    seen = Path(study, ".token")
    if seen.is_file() and seen.read_text() == token:
        return carry_out(todo, Run(Path(study, "runs", todo.name)), device=device, threads=threads)
    run = Run(Path(tempfile.gettempdir(), f"qlae-study-{token}", todo.name))
    outcome = carry_out(todo, run, device=device, threads=threads)
    files = {path.name: path.read_bytes() for path in map(run.path.joinpath, COLLECTED) if path.is_file()}
    return outcome | {"files": files}


def _data(job: Job) -> "SourceDataset":
    from ..data import RenderedImages, load_again

    key = json.dumps([job.data_name, job.resolution, job.recipe], sort_keys=True)
    if key not in _kept:
        _kept.clear()
        data = load_again(job.data_name, job.resolution, job.recipe)
        num_bytes = len(data) * job.resolution**2 * 3
        if isinstance(data.images, RenderedImages):
            data.images.keeps = True  # on a GPU that has rendered them
        _kept[key] = data.in_memory() if num_bytes <= IN_MEMORY else data
    return _kept[key]


def _wait_until_free(run: Run) -> None:
    """Wait for a run's lock: a worker that lost its parent holds it until it has saved."""
    until = time.monotonic() + LOCK_SECONDS
    while run.path.is_dir():
        try:
            with run.locked():
                return
        except ValueError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def _watch_parent(parent: int) -> None:
    """End with the parent: SIGTERM lets a training save itself first."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    parser = argparse.ArgumentParser(description="A worker of a study; `qlae study` starts it.")
    parser.add_argument("study", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parent", type=int, default=os.getppid())
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever prints goes to the log, not between the answers
    threading.Thread(target=_watch_parent, args=(arguments.parent,), daemon=True).start()
    try:
        for line in sys.stdin:
            job = Job.from_dict(json.loads(line))
            run = Run(arguments.study / "runs" / job.name)
            outcome = carry_out(job, run, device=arguments.device, threads=arguments.threads)
            print(json.dumps(outcome), file=answers, flush=True)
            if outcome["state"] == "failed":
                return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
