"""The Ray engine: the jobs of a study as tasks of a Ray cluster. The one file that knows Ray, and loads it when asked.

Ray places the tasks, counts their CPUs and GPUs, and runs those of a lost node again on another. Where the nodes see
the study's folder (a shared file system) a task works in it, and goes on from the last checkpoint of the lost one.
Where they do not, it works in a folder of the node and sends the run directory back. Nodes need qlae installed.
"""

import secrets
from collections.abc import Generator, Sequence
from typing import Any

from .._files import write_bytes
from .engine import TICK_SECONDS, Event
from .folder import StudyFolder
from .jobs import Job
from .worker import carry_out_anywhere

MAX_RETRIES = 3  # of a task whose node or worker was lost


class RayEngine:
    """Tasks on a Ray cluster.

    Args:
        address: of the cluster, ``"auto"`` for one on this machine; None takes ``RAY_ADDRESS`` or starts one here.
        num_cpus, num_gpus: that a run takes, for Ray's scheduling; a fraction lets runs share a GPU.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        threads: of torch in each task.
        in_place: False to send run directories back even where the nodes see the study's folder.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        num_cpus: float = 1.0,
        num_gpus: float = 0.0,
        device: str = "auto",
        threads: int = 1,
        in_place: bool = True,
    ):
        for name, value in (("cpus per run", num_cpus), ("gpus per run", num_gpus)):
            if not 0 <= value < 1e6:
                raise ValueError(f"{name} must not be negative, got {value}")
        self.ray = _load_ray()
        self.address, self.num_cpus, self.num_gpus = address, num_cpus, num_gpus
        self.device, self.threads, self.in_place = device, threads, in_place

    @property
    def num_workers(self) -> int:
        """How many runs the cluster has room for, now that it is known."""
        if not self.ray.is_initialized():
            return 1
        there = self.ray.cluster_resources()
        rooms = [there.get("CPU", 0) / self.num_cpus] if self.num_cpus else []
        rooms += [there.get("GPU", 0) / self.num_gpus] if self.num_gpus else []
        return max(1, int(min(rooms, default=1)))

    @property
    def kind(self) -> str:
        return "cuda" if self.num_gpus or self.device == "cuda" else "cpu"

    def told(self) -> str:
        return f"room for {self.num_workers} at a time on Ray" if self.ray.is_initialized() else "one at a time on Ray"

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[Event | None, None, None]:
        ray = self.ray
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, include_dashboard=None if self.address else False)
        task = ray.remote(
            num_cpus=self.num_cpus, num_gpus=self.num_gpus, max_retries=MAX_RETRIES, retry_exceptions=False
        )(carry_out_anywhere)
        token = _token(folder) if self.in_place else secrets.token_hex(8)
        study = str(folder.path.resolve())
        asked = {task.remote(job.to_dict(), study, token, self.device, self.threads): job for job in jobs}
        begun: set[str] = set()
        try:
            while asked:
                ended, _ = ray.wait(list(asked), num_returns=1, timeout=TICK_SECONDS)
                for reference in ended:
                    yield self._outcome(asked.pop(reference), reference, folder)
                # Ray keeps to itself which tasks it has begun; in a shared folder their run directories tell.
                seen = [job for job in asked.values() if job.name not in begun and _has_begun(job, folder)]
                for job in seen:
                    begun.add(job.name)
                    yield Event(job, "running")
                if not ended and not seen:
                    yield None
        finally:
            for reference in asked:
                ray.cancel(reference, force=True)

    def _outcome(self, job: Job, reference: Any, folder: StudyFolder) -> Event:
        try:
            outcome: dict[str, Any] = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            return Event(job, "failed", error=f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
        run = folder.run(job.name)
        files = outcome.pop("files", {})
        run.path.mkdir(parents=True, exist_ok=True)
        for name, content in sorted(files.items(), key=lambda item: item[0] == "results.json"):  # which says: finished
            write_bytes(run.path / name, content)
        return Event(job, **outcome)


def _has_begun(job: Job, folder: StudyFolder) -> bool:
    return folder.run(job.name).config_path.is_file()


def _token(folder: StudyFolder) -> str:
    """A file by which a node knows that it sees the study's own folder."""
    path = folder.path / ".token"
    if not path.is_file():
        write_bytes(path, secrets.token_hex(8).encode())
    return path.read_text()


def _load_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError(
            "the engine 'ray' needs Ray, which is not installed: pip install 'qlae[ray]', or use --engine local"
        ) from None
    return ray
