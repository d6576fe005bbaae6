"""The Ray engine: the jobs of a study as tasks on a Ray cluster. Only this file knows Ray, and it loads Ray on demand.

Ray places the tasks, counts their CPUs and GPUs, and repeats those of a lost node on another one. If the nodes see the
study's folder (a shared file system), a task works in it and resumes from the last checkpoint of a lost task. Otherwise
it works in a temporary folder of the node and sends the run directory back. qlae must be installed on the nodes.
"""

import os
import secrets
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from .._io import LOCK_FILE, read_regular, write_bytes
from .folder import FAILURE_FILE, StudyFolder, write_failure
from .jobs import Job
from .run import TICK_SECONDS
from .worker import run_named

MAX_RETRIES = 3  # for a task whose node or worker was lost


class RayEngine:
    """Run jobs as tasks on a Ray cluster.

    Args:
        address: the cluster, ``"auto"`` for one on this machine; None takes ``RAY_ADDRESS`` or starts a cluster here.
        cpus_per_run: for Ray's scheduling.
        gpus_per_run: for Ray's scheduling; with a fraction, runs share a GPU.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        threads: number of torch threads in each task.
        imports: modules that each task imports before it reads its job (names, or paths of .py files). They must be
            installed on the nodes, or lie in a current directory that the nodes see.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus_per_run: float = 1.0,
        gpus_per_run: float = 0.0,
        device: str = "auto",
        threads: int = 1,
        imports: Sequence[str] = (),
    ):
        for name, value in (("cpus_per_run", cpus_per_run), ("gpus_per_run", gpus_per_run)):
            if not 0 <= value < 1e6:
                raise ValueError(f"{name} must not be negative, got {value}")
        try:
            import ray
        except ImportError:
            raise ValueError(
                "RayEngine needs Ray, which is not installed: pip install 'qlae[ray]', or use the local engine"
            ) from None
        self.ray: Any = ray
        self.address, self.cpus_per_run, self.gpus_per_run = address, cpus_per_run, gpus_per_run
        self.device, self.threads, self.imports = device, threads, tuple(imports)

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[None, None, None]:
        """Run jobs until all have ended, and yield at least once per second."""
        pending = self._submit(jobs, folder)
        try:
            while pending:
                ended, _ = self.ray.wait(list(pending), num_returns=1, timeout=TICK_SECONDS)
                for reference in ended:
                    self._keep_files(pending.pop(reference), reference, folder)
                yield
        finally:
            for reference in pending:
                self.ray.cancel(reference, force=True)

    def _submit(self, jobs: Sequence[Job], folder: StudyFolder) -> dict[Any, Job]:
        """Connect to the cluster and submit the jobs; return them by their references."""
        ray = self.ray
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, include_dashboard=None if self.address else False)
        resources = {"num_cpus": self.cpus_per_run, "num_gpus": self.gpus_per_run}
        task = ray.remote(max_retries=MAX_RETRIES, retry_exceptions=False, **resources)(run_job_on_node)
        options = {"device": self.device, "threads": self.threads, "imports": self.imports, "directory": os.getcwd()}
        options |= {"plan": folder.plan.content}
        return {task.remote(job.name, str(folder.path.resolve()), _token(folder), **options): job for job in jobs}

    def _keep_files(self, job: Job, reference: Any, folder: StudyFolder) -> None:
        """Write the files that a task sent back, or that it was lost."""
        run = folder.run(job.name)
        try:
            state, files = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            write_failure(run, f"Ray lost the task: {type(error).__name__}", str(error))
            return
        run.path.mkdir(parents=True, exist_ok=True)
        if state == "done":
            (run.path / FAILURE_FILE).unlink(missing_ok=True)  # of an earlier attempt
        # results.json comes last, because it marks the run as finished.
        for name, content in sorted(files.items(), key=lambda item: item[0] == "results.json"):
            write_bytes(run.path / name, content)


def run_job_on_node(name: str, study: str, token: str, **options: Any) -> tuple[str, dict[str, bytes]]:
    """Run a job on any node: in the study's folder if the node sees it, otherwise in a temporary folder of the node.

    A node recognises the folder by the token in its ``.token`` file. Options are those of `run_named`.

    Returns:
        How the job ended, as `run_job` says; and from a temporary folder, the content of the run directory.
    """
    token_path = Path(study, ".token")
    if token_path.is_file() and read_regular(token_path) == token.encode():
        return run_named(name, Path(study, "runs"), **options), {}
    with tempfile.TemporaryDirectory(prefix="qlae-study-") as folder:
        state = run_named(name, Path(folder), **options)
        paths = [path for path in Path(folder, name).iterdir() if path.is_file() and path.name != LOCK_FILE]
        return state, {path.name: read_regular(path) for path in paths}


def _token(folder: StudyFolder) -> str:
    """Return the content of a file by which a node recognises the study's folder; write the file if it is missing."""
    path = folder.path / ".token"
    if not path.is_file():
        write_bytes(path, secrets.token_hex(8).encode())
    return read_regular(path).decode("ascii", errors="replace")
