"""The local engine: worker processes on this machine, one per GPU, or one per core if there is no GPU.

A worker process takes one job after another, so that torch is loaded only once. If a worker dies, the others continue;
a new worker is started and resumes the job from its last checkpoint.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
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
    def has_gpu(self) -> bool:
        """Whether workers train on a GPU."""
        return bool(self.gpus)

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[None, None, None]:
        """Run jobs until all have ended, and yield about once per second."""
        waiting = iter(jobs)  # of which each dispatcher takes the next
        dispatchers = [_Dispatcher(self, number, folder) for number in range(min(self.num_workers, len(jobs)))]
        with ThreadPoolExecutor(len(dispatchers)) as pool:
            futures = [pool.submit(dispatcher.run_jobs, waiting) for dispatcher in dispatchers]
            try:
                while wait(futures, TICK_SECONDS).not_done:
                    yield
            finally:
                for dispatcher in dispatchers:
                    dispatcher.stop()
                wait(futures, STOP_SECONDS)
                for dispatcher in dispatchers:
                    dispatcher.kill()
            for future in futures:
                future.result()  # raises what a dispatcher raised

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
    """Hand jobs to one worker, and start a new worker when that one dies."""

    def __init__(self, engine: LocalEngine, number: int, folder: StudyFolder):
        self.engine, self.number, self.folder = engine, number, folder
        self.worker: Worker | None = None
        self.is_stopping = False

    def stop(self) -> None:
        """Ask the worker to save its run and end."""
        self.is_stopping = True
        if self.worker is not None and self.worker.poll() is None:
            self.worker.terminate()

    def kill(self) -> None:
        """Kill the worker if it has not ended."""
        if self.worker is not None and self.worker.poll() is None:
            self.worker.kill()

    def run_jobs(self, jobs: Iterator[Job]) -> None:
        """Run jobs, one after another, until there are no more; other dispatchers take jobs as well."""
        while not self.is_stopping and (job := next(jobs, None)):
            self._run_job(job)
        if self.worker is not None:
            _pipe(self.worker.stdin).close()
            self.worker.wait()

    def _run_job(self, job: Job) -> None:
        """Let the worker run a job, and replace it if it dies."""
        for _ in range(MAX_LOSSES):
            if self._ask_worker(job) or self.is_stopping:
                return
        assert self.worker is not None
        error = f"{MAX_LOSSES} workers died during this run, the last with exit code {self.worker.returncode}"
        write_failure(self.folder.run(job.name), f"{error}; see the logs of the workers in {self.folder.path}")

    def _ask_worker(self, job: Job) -> str:
        """Return how the worker says that a job ended; an empty string if the worker died first."""
        if self.worker is None or self.worker.poll() is not None:
            self.worker = self.engine.start_worker(self.number, self.folder)
        if self.is_stopping:  # `stop` was called while the worker was being started
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
