"""The Ray engine: the jobs of a study, or several seeds of a model, as tasks on a Ray cluster.

Only this file knows Ray, and it loads Ray on demand. Ray places the tasks, counts their CPUs and GPUs, and repeats
those of a lost node on another one. If the nodes see the folder of the runs (a shared file system), a task works in it
and resumes from the last checkpoint of a lost task. Otherwise it works in a temporary folder of the node and sends the
run directory back. qlae must be installed on the nodes.
"""

import os
import secrets
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .._imports import import_modules
from .._io import LOCK_FILE, read_regular, write_bytes
from ..config import RunConfig
from ..options import ExecutionOptions
from ..pipeline import resume
from ..runs.directory import Run
from .folder import FAILURE_FILE, StudyFolder, read_failure, write_failure
from .jobs import Job
from .run import TICK_SECONDS
from .worker import record_failure, run_named

TOKEN_FILE = ".token"
MAX_RETRIES = 3  # for a task whose node or worker was lost

Work = Callable[[Path], str]  # from the folder that the run directory lies in, to how the run ended


class RayEngine:
    """Run the jobs of a study, or train seeds, as tasks on a Ray cluster.

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

    @property
    def has_gpu(self) -> bool:
        """Whether tasks get a GPU."""
        return self.gpus_per_run > 0 and self.device != "cpu"

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[None, None, None]:
        """Run jobs until all have ended, and yield at least once per second."""
        options = {"device": self.device, "threads": self.threads, **self._shared, "plan": folder.plan.content}
        works = {folder.run(job.name): partial(run_named, job.name, **options) for job in jobs}
        for _ in self._run_tasks(works, folder.path / "runs"):
            yield

    def train(
        self, configs: Mapping[Run, RunConfig], execution: ExecutionOptions
    ) -> Generator[tuple[Run, str] | None, None, None]:
        """Train runs to their end, and yield each that has ended with its error, and None at least once per second.

        Args:
            configs: of runs in one folder. A run directory that has a config keeps it.
            execution: how each is trained. The device and the number of threads are those of the engine.
        """
        options = vars(execution) | {"device": self.device, "threads": self.threads}
        works = {
            run: partial(train_named, run.path.name, config=config.to_dict(), **options, **self._shared)
            for run, config in configs.items()
        }
        for run in self._run_tasks(works, next(iter(configs)).path.parent):
            yield None if run is None else (run, read_failure(run) or "")

    @property
    def _shared(self) -> dict[str, Any]:
        return {"imports": self.imports, "directory": os.getcwd()}

    def _run_tasks(self, works: Mapping[Run, Work], folder: Path) -> Generator[Run | None, None, None]:
        """Do the work of each run in a task; yield each run that has ended, and None at least once per second."""
        ray = self.ray
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, include_dashboard=None if self.address else False)
        resources = {"num_cpus": self.cpus_per_run, "num_gpus": self.gpus_per_run}
        task = ray.remote(max_retries=MAX_RETRIES, retry_exceptions=False, **resources)(work_on_node)
        place = str(folder.resolve()), _token(folder)
        pending = {
            task.remote(work, run.path.relative_to(folder).as_posix(), *place): run for run, work in works.items()
        }
        try:
            while pending:
                ended, _ = ray.wait(list(pending), num_returns=1, timeout=TICK_SECONDS)
                for reference in ended:
                    run = pending.pop(reference)
                    self._keep_files(run, reference)
                    yield run
                yield None
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)

    def _keep_files(self, run: Run, reference: Any) -> None:
        """Write the files that a task sent back, or that it was lost."""
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
            (run.path / name).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(run.path / name, content)


def work_on_node(work: Work, name: str, folder: str, token: str) -> tuple[str, dict[str, bytes]]:
    """Do the work of a run on any node: in the folder if the node sees it, otherwise in a temporary one of the node.

    A node recognises the folder by the token in its ``.token`` file.

    Args:
        work: what to do, given the folder that the run directory lies in.
        name: of the run directory in the folder.
        folder, token: the folder and its token.

    Returns:
        How the run ended; and from a temporary folder, the content of the run directory.
    """
    token_path = Path(folder, TOKEN_FILE)
    if token_path.is_file() and read_regular(token_path) == token.encode():
        return work(Path(folder)), {}
    with tempfile.TemporaryDirectory(prefix="qlae-runs-") as temporary:
        state, run = work(Path(temporary)), Path(temporary, name)
        paths = [path for path in run.rglob("*") if path.is_file() and path.name != LOCK_FILE]
        return state, {path.relative_to(run).as_posix(): read_regular(path) for path in paths}


def train_named(
    name: str,
    folder: Path,
    *,
    config: Mapping[str, Any],
    imports: Sequence[str] = (),
    directory: str | None = None,
    **options: Any,
) -> str:
    """Train a run in a folder of runs by its config, or resume it; return how it ended.

    Modules to import may lie in `directory`. Options are those of the execution.
    """
    run = Run(folder / name)
    try:
        import_modules(imports, directory=directory)  # they may register the parts of the config
        (run.path / FAILURE_FILE).unlink(missing_ok=True)
        wanted = RunConfig.from_dict(dict(config))
        if not run.is_begun:
            run.path.mkdir(parents=True, exist_ok=True)
            with run.locked():
                run.write_config(wanted)
        resume(run.path, steps=wanted.training.steps, show=False, **options)
    except Exception as error:
        record_failure(run, error)
        return "failed"
    return "done"


def _token(folder: Path) -> str:
    """Return the content of a file by which a node recognises a folder; write the file if it is missing."""
    path = folder / TOKEN_FILE
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, secrets.token_hex(8).encode())
    return read_regular(path).decode("ascii", errors="replace")
