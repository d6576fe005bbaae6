"""The local engine: worker processes on this machine, one per GPU, or one per core if there is no GPU.

Each worker is a process of its own and takes one job after another, so that torch is loaded only once. If a worker
dies, the others continue; a new worker is started and resumes the job from its last checkpoint.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, Any

from .._checks import require_known
from .._opening import open_own
from ..metrics.parallel import num_cores
from .engine import TICK_SECONDS, Event
from .folder import StudyFolder
from .jobs import Job

MAX_LOSSES = 3  # workers that may die of one job before it counts as failed
STOP_SECONDS = 60.0  # time for workers to save their runs when the study is stopped


class LocalEngine:
    """Run jobs in worker processes on this machine.

    Args:
        num_workers: the number of workers; by default one per GPU, or one per core if there is no GPU.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``. Worker i sees GPU i modulo the number of GPUs.
        threads: number of torch threads in each worker.
        imports: modules that each worker imports before it reads jobs (names, or paths of .py files).
    """

    def __init__(
        self,
        num_workers: int | None = None,
        *,
        device: str = "auto",
        threads: int = 1,
        imports: Sequence[str] = (),
    ):
        if num_workers is not None and num_workers < 1:
            raise ValueError(f"num_workers must be at least 1, got {num_workers}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        require_known(device, ("auto", "cpu", "cuda"), "device of a study")
        self.device, self.threads = device, threads
        self.gpus = [] if device == "cpu" else visible_gpus()
        self._num_workers = num_workers or len(self.gpus) or max(1, num_cores() // threads)
        self._imports = tuple(imports)

    @property
    def num_workers(self) -> int:
        return self._num_workers

    @property
    def device_type(self) -> str:
        return "cuda" if self.gpus else "cpu"

    @property
    def imports(self) -> tuple[str, ...]:
        return self._imports

    def describe(self) -> str:
        """Return the engine in words."""
        if self.gpus:
            return f"{_count(self.num_workers, 'worker')} on {_count(len(self.gpus), 'GPU')}"
        return f"{_count(self.num_workers, 'worker')}, {_count(self.threads, 'CPU thread')} each"

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[Event | None, None, None]:
        """Yield events until each job is done or failed, and None if nothing happens for a while."""
        job_queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            job_queue.put(job)
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        num_dispatchers = min(self.num_workers, len(jobs))
        dispatchers = [_Dispatcher(self._starter(n, folder), job_queue, events) for n in range(num_dispatchers)]
        try:
            num_left = len(jobs)
            while num_left:
                try:
                    event = events.get(timeout=TICK_SECONDS)
                except queue.Empty:
                    yield None
                    continue
                num_left -= event.state in ("done", "failed")
                yield event
        finally:
            for dispatcher in dispatchers:
                dispatcher.stop()
            for dispatcher in dispatchers:
                dispatcher.join()

    def _starter(self, number: int, folder: StudyFolder) -> "_Starter":
        command = [sys.executable, "-m", "qlae.study.worker", str(folder.path), "--device", self.device]
        command += ["--threads", str(self.threads), "--parent", str(os.getpid())]
        command += [f"--import={name}" for name in self.imports]
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads), "OMP_WAIT_POLICY": "PASSIVE"}
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpus[number % len(self.gpus)]
        return _Starter(command, environment, folder.path / f"worker-{number}.log")


class _Starter:
    """Start one of the workers, as often as necessary."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path):
        self.command, self.environment, self.log = command, environment, log

    def __call__(self) -> "subprocess.Popen[str]":
        with open_own(self.log, append=True) as errors:
            return subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C reaches the driver only, which then asks the workers to save
            )


class _Dispatcher:
    """A thread that hands jobs to one worker, and starts a new worker when that one dies."""

    def __init__(self, start: _Starter, job_queue: "queue.SimpleQueue[Job]", events: "queue.SimpleQueue[Event]"):
        self.start, self.job_queue, self.events = start, job_queue, events
        self.worker: subprocess.Popen[str] | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._dispatch, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Ask the worker to save its run and end."""
        self.stopping.set()
        if self.worker is not None and self.worker.poll() is None:
            self.worker.terminate()

    def join(self) -> None:
        """Wait until the worker has ended, and kill it if that takes too long."""
        self.thread.join(STOP_SECONDS)
        if self.worker is not None and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait()

    def _dispatch(self) -> None:
        while not self.stopping.is_set():
            try:
                job = self.job_queue.get_nowait()
            except queue.Empty:
                break
            outcome = self._run_job(job)
            if outcome is not None:
                details = {key: outcome.get(key) for key in ("seconds", "error", "trace")}
                self.events.put(Event(job, outcome["state"], **details))
        if self.worker is not None:
            _pipe(self.worker.stdin).close()
            self.worker.wait()

    def _run_job(self, job: Job) -> dict[str, Any] | None:
        """Return the outcome of a job; None if the study was stopped in between."""
        for _ in range(MAX_LOSSES):
            self.events.put(Event(job, "running"))
            answer = self._ask_worker(job)
            if answer or self.stopping.is_set():
                return answer
            self.events.put(Event(job, "waiting"))
        assert self.worker is not None
        return {
            "state": "failed",
            "error": f"{MAX_LOSSES} workers died during this run, the last with exit code {self.worker.returncode}; "
            f"see {self.start.log}",
        }

    def _ask_worker(self, job: Job) -> dict[str, Any] | None:
        """Return the worker's answer to a job; None if it died first."""
        if self.worker is None or self.worker.poll() is not None:
            self.worker = self.start()
        if self.stopping.is_set():  # `stop` was called while the worker was being started
            self.worker.terminate()
        try:
            _pipe(self.worker.stdin).write(json.dumps(job.to_dict()) + "\n")
            _pipe(self.worker.stdin).flush()
            line = _pipe(self.worker.stdout).readline()
        except BrokenPipeError:
            line = ""
        if not line.endswith("\n"):
            self.worker.wait()
            return None
        answer: dict[str, Any] = json.loads(line)
        if answer["state"] == "failed":  # the worker then ends by itself, because its device may be broken
            self.worker.wait()
        return answer


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    import torch

    count = torch.cuda.device_count()
    names = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return names[:count] if len(names) >= count else [str(number) for number in range(count)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
