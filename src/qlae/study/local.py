"""The local engine: worker processes on this machine, one a GPU, or one a core.

A worker is a process of its own and takes one job after another, so that torch loads once. A worker that dies takes no
other with it: another is started, and its job goes on from the last checkpoint.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from typing import IO, Any

from .._checks import require_known
from .engine import TICK_SECONDS, Event
from .folder import StudyFolder
from .jobs import Job

MAX_LOSSES = 3  # workers that one job may lose before it counts as failed
STOP_SECONDS = 60.0  # for workers to save their runs when the study is stopped


class LocalEngine:
    """Worker processes on this machine.

    Args:
        num_workers: how many; by default one a GPU, or one a core where there is none.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``; with GPUs, worker i sees GPU i modulo their number.
        threads: of torch in each worker.
    """

    def __init__(self, num_workers: int | None = None, *, device: str = "auto", threads: int = 1):
        if num_workers is not None and num_workers < 1:
            raise ValueError(f"workers must be at least 1, got {num_workers}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        require_known(device, ("auto", "cpu", "cuda"), "device of a study")
        self.device, self.threads = device, threads
        self.gpus = [] if device == "cpu" else visible_gpus()
        self._num_workers = num_workers or len(self.gpus) or max(1, num_cores() // threads)

    @property
    def num_workers(self) -> int:
        return self._num_workers

    @property
    def kind(self) -> str:
        return "cuda" if self.gpus else "cpu"

    def told(self) -> str:
        if self.gpus:
            return f"{_counted(self.num_workers, 'worker')} on {_counted(len(self.gpus), 'GPU')}"
        return f"{_counted(self.num_workers, 'worker')}, {_counted(self.threads, 'CPU thread')} each"

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[Event | None, None, None]:
        todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            todo.put(job)
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        servers = [
            _Server(self._start(number, folder), todo, events) for number in range(min(self.num_workers, len(jobs)))
        ]
        try:
            left = len(jobs)
            while left:
                try:
                    event = events.get(timeout=TICK_SECONDS)
                except queue.Empty:
                    yield None
                    continue
                left -= event.state in ("done", "failed")
                yield event
        finally:
            for server in servers:
                server.stop()
            for server in servers:
                server.join()

    def _start(self, number: int, folder: StudyFolder) -> "_Starter":
        command = [sys.executable, "-m", "qlae.study.worker", str(folder.path), "--device", self.device]
        command += ["--threads", str(self.threads), "--parent", str(os.getpid())]
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads), "OMP_WAIT_POLICY": "PASSIVE"}
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpus[number % len(self.gpus)]
        return _Starter(command, environment, folder.path / f"worker-{number}.log")


class _Starter:
    """How to start one of the workers, again and again if need be."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Any):
        self.command, self.environment, self.log = command, environment, log

    def __call__(self) -> "subprocess.Popen[str]":
        with open(self.log, "a") as errors:
            return subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C goes to the driver alone, which asks the workers to save
            )


class _Server:
    """A thread that hands jobs to one worker and starts another where it dies."""

    def __init__(self, start: _Starter, todo: "queue.SimpleQueue[Job]", events: "queue.SimpleQueue[Event]"):
        self.start, self.todo, self.events = start, todo, events
        self.worker: subprocess.Popen[str] | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Ask the worker to save its run and end."""
        self.stopping.set()
        if self.worker is not None and self.worker.poll() is None:
            self.worker.terminate()

    def join(self) -> None:
        self.thread.join(STOP_SECONDS)
        if self.worker is not None and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait()

    def _serve(self) -> None:
        while not self.stopping.is_set():
            try:
                job = self.todo.get_nowait()
            except queue.Empty:
                break
            outcome = self._carry_out(job)
            if outcome is not None:
                told = {key: outcome.get(key) for key in ("seconds", "error", "trace")}
                self.events.put(Event(job, outcome["state"], **told))
        if self.worker is not None:
            _pipe(self.worker.stdin).close()
            self.worker.wait()

    def _carry_out(self, job: Job) -> dict[str, Any] | None:
        """What came of a job; None where the study was stopped meanwhile."""
        for _ in range(MAX_LOSSES):
            self.events.put(Event(job, "running"))
            answer = self._ask(job)
            if answer or self.stopping.is_set():
                return answer
            self.events.put(Event(job, "waiting"))
        assert self.worker is not None
        return {
            "state": "failed",
            "error": f"{MAX_LOSSES} workers died of it, the last with exit code {self.worker.returncode}; "
            f"see {self.start.log}",
        }

    def _ask(self, job: Job) -> dict[str, Any] | None:
        """The worker's answer; None where it died first."""
        if self.worker is None or self.worker.poll() is not None:
            self.worker = self.start()
        if self.stopping.is_set():  # asked to stop while a worker was being started
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
        if answer["state"] == "failed":  # it ends itself, as its device may be broken
            self.worker.wait()
        return answer


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def num_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    import torch

    count = torch.cuda.device_count()
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return named[:count] if len(named) >= count else [str(number) for number in range(count)]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
