"""The local engine: worker processes on this machine, one per GPU, or one per core if there is no GPU.

A worker process takes one job after another, so that torch is loaded only once. If a worker dies, the others continue;
a new worker is started and resumes the job from its last checkpoint.
"""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from typing import IO

import torch

from .._checks import require_known
from .._io import open_own
from ..metrics.parallel import num_cores
from .folder import StudyFolder, write_failure
from .jobs import Job
from .run import TICK_SECONDS

MAX_LOSSES = 3  # workers that may die of one job before it counts as failed
STOP_SECONDS = 60.0  # time for workers to save their runs when the study is stopped

Worker = subprocess.Popen[str]


class LocalEngine:
    """Run jobs in worker processes on this machine.

    Args:
        workers: the number of workers; by default one per GPU, or one per core if there is no GPU.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``. Worker i sees GPU i modulo the number of GPUs.
        threads: number of torch threads in each worker.
        imports: modules that each worker imports before it reads jobs (names, or paths of .py files).
    """

    def __init__(
        self, workers: int | None = None, *, device: str = "auto", threads: int = 1, imports: Sequence[str] = ()
    ):
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        require_known(device, ("auto", "cpu", "cuda"), "device of a study")
        self.device, self.threads, self.imports = device, threads, tuple(imports)
        self.gpus = [] if device == "cpu" else visible_gpus()
        self.num_workers = workers or len(self.gpus) or max(1, num_cores() // threads)

    @property
    def device_type(self) -> str:
        return "cuda" if self.gpus else "cpu"

    def describe(self) -> str:
        """Describe the number of workers and their devices."""
        if self.gpus:
            return f"{_count(self.num_workers, 'worker')} on {_count(len(self.gpus), 'GPU')}"
        return f"{_count(self.num_workers, 'worker')}, {_count(self.threads, 'CPU thread')} each"

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[None, None, None]:
        """Run jobs until all have ended, and yield about once per second."""
        job_queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            job_queue.put(job)
        dispatchers = [_Dispatcher(self, n, folder, job_queue) for n in range(min(self.num_workers, len(jobs)))]
        try:
            while not all(dispatcher.ended.wait(TICK_SECONDS) for dispatcher in dispatchers):
                yield  # a signal may not interrupt `Thread.join`, which would take the thread for ended
        finally:
            for dispatcher in dispatchers:
                dispatcher.stop()
            for dispatcher in dispatchers:
                dispatcher.join()

    def start_worker(self, number: int, folder: StudyFolder) -> Worker:
        """Start the process of a worker, whose errors go to ``worker-NUMBER.log``."""
        command = [sys.executable, "-m", "qlae.study.worker", str(folder.path), "--device", self.device]
        command += ["--threads", str(self.threads), "--parent", str(os.getpid())]
        command += [f"--import={name}" for name in self.imports]
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads), "OMP_WAIT_POLICY": "PASSIVE"}
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpus[number % len(self.gpus)]
        with open_own(folder.path / f"worker-{number}.log", append=True) as errors:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C reaches the driver only, which then asks the workers to save
            )


class _Dispatcher:
    """A thread that hands jobs to one worker, and starts a new worker when that one dies."""

    def __init__(self, engine: LocalEngine, number: int, folder: StudyFolder, job_queue: "queue.SimpleQueue[Job]"):
        self.engine, self.number, self.folder, self.job_queue = engine, number, folder, job_queue
        self.worker: Worker | None = None
        self.stopping, self.ended = threading.Event(), threading.Event()
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
        try:
            while not self.stopping.is_set():
                self._run_job(self.job_queue.get_nowait())
        except queue.Empty:
            pass
        finally:
            self.ended.set()
            if self.worker is not None:
                _pipe(self.worker.stdin).close()
                self.worker.wait()

    def _run_job(self, job: Job) -> None:
        """Let the worker run a job, and replace it if it dies."""
        for _ in range(MAX_LOSSES):
            if self._ask_worker(job) or self.stopping.is_set():
                return
        assert self.worker is not None
        error = f"{MAX_LOSSES} workers died during this run, the last with exit code {self.worker.returncode}"
        write_failure(self.folder.run(job.name), f"{error}; see the logs of the workers in {self.folder.path}")

    def _ask_worker(self, job: Job) -> str:
        """Return how the worker says that a job ended; an empty string if the worker died first."""
        if self.worker is None or self.worker.poll() is not None:
            self.worker = self.engine.start_worker(self.number, self.folder)
        if self.stopping.is_set():  # `stop` was called while the worker was being started
            self.worker.terminate()
        try:
            _pipe(self.worker.stdin).write(f"{job.name}\n")
            _pipe(self.worker.stdin).flush()
            state = _pipe(self.worker.stdout).readline().strip()
        except BrokenPipeError:
            state = ""
        if state in ("", "failed"):  # a worker ends after a failure, because its device may be broken
            self.worker.wait()
        return state


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    count = torch.cuda.device_count()
    names = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return names[:count] if len(names) >= count else [str(number) for number in range(count)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
