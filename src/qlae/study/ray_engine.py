"""The Ray engine: the jobs of a study as tasks on a Ray cluster. Only this file knows Ray, and it loads Ray on demand.

Ray places the tasks, counts their CPUs and GPUs, and repeats those of a lost node on another one. If the nodes see the
study's folder (a shared file system), a task works in it and resumes from the last checkpoint of a lost task. Otherwise
it works in a temporary folder of the node and sends the run directory back. qlae must be installed on the nodes.
"""

import os
import secrets
from collections.abc import Generator, Sequence
from typing import Any

from .._files import write_bytes
from .._opening import read_regular
from .engine import TICK_SECONDS, Event
from .folder import StudyFolder
from .jobs import Job
from .worker import run_job_on_node

MAX_RETRIES = 3  # for a task whose node or worker was lost


class RayEngine:
    """Run jobs as tasks on a Ray cluster.

    Args:
        address: the cluster, ``"auto"`` for one on this machine; None takes ``RAY_ADDRESS`` or starts a cluster here.
        num_cpus: CPUs per run, for Ray's scheduling.
        num_gpus: GPUs per run, for Ray's scheduling; with a fraction, runs share a GPU.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        threads: number of torch threads in each task.
        imports: modules that each task imports before it reads its job (names, or paths of .py files). They must be
            installed on the nodes, or lie in a current directory that the nodes see.
        in_place: False to send run directories back even if the nodes see the study's folder.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        num_cpus: float = 1.0,
        num_gpus: float = 0.0,
        device: str = "auto",
        threads: int = 1,
        imports: Sequence[str] = (),
        in_place: bool = True,
    ):
        for name, value in (("num_cpus", num_cpus), ("num_gpus", num_gpus)):
            if not 0 <= value < 1e6:
                raise ValueError(f"{name} must not be negative, got {value}")
        self.ray = _load_ray()
        self.address, self.num_cpus, self.num_gpus = address, num_cpus, num_gpus
        self.device, self.threads, self.in_place = device, threads, in_place
        self._imports = tuple(imports)

    @property
    def num_workers(self) -> int:
        """The number of runs that the cluster has room for; 1 before it is connected."""
        if not self.ray.is_initialized():
            return 1
        resources = self.ray.cluster_resources()
        limits = [resources.get("CPU", 0) / self.num_cpus] if self.num_cpus else []
        limits += [resources.get("GPU", 0) / self.num_gpus] if self.num_gpus else []
        return max(1, int(min(limits, default=1)))

    @property
    def device_type(self) -> str:
        return "cuda" if self.num_gpus or self.device == "cuda" else "cpu"

    @property
    def imports(self) -> tuple[str, ...]:
        return self._imports

    def describe(self) -> str:
        """Return the engine in words."""
        return f"{self.num_workers} runs at a time on Ray" if self.ray.is_initialized() else "one run at a time on Ray"

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[Event | None, None, None]:
        """Yield events until each job is done or failed, and None if nothing happens for a while."""
        ray = self.ray
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, include_dashboard=None if self.address else False)
        task = ray.remote(
            num_cpus=self.num_cpus, num_gpus=self.num_gpus, max_retries=MAX_RETRIES, retry_exceptions=False
        )(run_job_on_node)
        token = _token(folder) if self.in_place else secrets.token_hex(8)
        arguments = (str(folder.path.resolve()), token, self.device, self.threads, self.imports, os.getcwd())
        pending = {task.remote(job.to_dict(), *arguments): job for job in jobs}
        started: set[str] = set()
        try:
            while pending:
                ended, _ = ray.wait(list(pending), num_returns=1, timeout=TICK_SECONDS)
                for reference in ended:
                    yield self._outcome(pending.pop(reference), reference, folder)
                # Ray does not say which tasks have started; in a shared folder their run directories show it.
                new = [job for job in pending.values() if job.name not in started and _has_started(job, folder)]
                for job in new:
                    started.add(job.name)
                    yield Event(job, "running")
                if not ended and not new:
                    yield None
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)

    def _outcome(self, job: Job, reference: Any, folder: StudyFolder) -> Event:
        """Return the last event of a task, after writing the files that it sent back."""
        try:
            outcome: dict[str, Any] = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            return Event(job, "failed", error=f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
        run = folder.run(job.name)
        files = outcome.pop("files", {})
        run.path.mkdir(parents=True, exist_ok=True)
        # results.json comes last, because it marks the run as finished.
        for name, content in sorted(files.items(), key=lambda item: item[0] == "results.json"):
            write_bytes(run.path / name, content)
        return Event(job, **outcome)


def _has_started(job: Job, folder: StudyFolder) -> bool:
    return folder.run(job.name).config_path.is_file()


def _token(folder: StudyFolder) -> str:
    """Return the content of a file by which a node recognises the study's folder; write the file if it is missing."""
    path = folder.path / ".token"
    if not path.is_file():
        write_bytes(path, secrets.token_hex(8).encode())
    return read_regular(path).decode("ascii", errors="replace")


def _load_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError(
            "RayEngine needs Ray, which is not installed: pip install 'qlae[ray]', or use the local engine"
        ) from None
    return ray
