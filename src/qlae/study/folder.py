"""A study on disk: ``study.json`` (the plan), ``index.json`` (the state of each run), ``runs/`` (the run directories).

The run directories decide which runs are finished (`driver.current_index`). The index adds what they do not hold: the
errors of failed runs, which runs are running, and how long runs took. Reading a study does not need torch.
"""

import contextlib
import dataclasses
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._checks import require_known
from .._directory_lock import LOCK_FILE, is_locked, locked_directory
from .._files import write_json
from .._opening import read_regular
from .._parsing import parse_dataclass
from .._version import __version__
from ..runs.directory import Run
from .jobs import Job
from .plan import Plan
from .selection import Candidate

STATES = ("done", "running", "failed", "waiting")


@dataclass
class Entry:
    """A run of the study in the index."""

    stage: str
    data: str
    model: str
    value: float | None
    seed: int
    state: str = "waiting"
    seconds: float | None = None  # duration of the run, evaluation included
    error: str | None = None
    trace: str | None = None

    @staticmethod
    def from_job(job: Job) -> "Entry":
        """Return the entry of a job that has not run yet."""
        return Entry(job.stage, job.data, job.model, job.value, job.seed)


@dataclass
class Index:
    """The state of a study.

    Attributes:
        runs: the entries by name of the run.
        selected: the candidates of each tuned model by ``data/model``, as `Candidate.to_dict` returns them.
    """

    runs: dict[str, Entry] = field(default_factory=dict)
    selected: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def selected_values(self, data: str, model: str) -> list[float]:
        """Return the selected value of a model on a data set as a list; it is empty if nothing is tuned (yet)."""
        candidates = self.selected.get(f"{data}/{model}", [])
        return [candidate["value"] for candidate in candidates if candidate["selected"]]

    def rerun_values(self, plan: Plan) -> dict[tuple[str, str], float | None]:
        """Return the values for the reruns by (data, model): the selected one, or None if nothing is tuned.

        Pairs whose selection is not made yet are absent.
        """
        values: dict[tuple[str, str], float | None] = {}
        for data in plan.data:
            for model in plan.models:
                for value in self.selected_values(data.label, model.label) if model.grid else [None]:
                    values[data.label, model.label] = value
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return the index as JSON can hold it."""
        return {
            "runs": {name: dataclasses.asdict(entry) for name, entry in self.runs.items()},
            "selected": self.selected,
        }

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Index":
        """Return the index that `to_dict` described; raise a ``ValueError`` if a field is wrong."""
        index = parse_dataclass(Index, content, "the index")
        for name, entry in index.runs.items():
            require_known(entry.state, STATES, f"state of {name}")
        for pair, candidates in index.selected.items():
            for candidate in candidates:
                parse_dataclass(Candidate, candidate, f"the selection of {pair}")
        return index


class StudyFolder:
    """The folder of a study.

    Args:
        path: the folder; it need not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"StudyFolder({str(self.path)!r})"

    @staticmethod
    def open(path: str | os.PathLike[str]) -> "StudyFolder":
        """Return the folder of an existing study; raise ``ValueError`` if there is none at ``path``."""
        folder = StudyFolder(path)
        if not is_study(path):
            problem = "has no study.json" if folder.path.is_dir() else "does not exist"
            raise ValueError(
                f"{folder.path} is not a study: it {problem}; `qlae study PLAN --out {folder.path}` starts one there"
            )
        return folder

    @property
    def plan_path(self) -> Path:
        return self.path / "study.json"

    @property
    def index_path(self) -> Path:
        return self.path / "index.json"

    @property
    def report_path(self) -> Path:
        return self.path / "report"

    @property
    def plan(self) -> Plan:
        """The plan; a ``ValueError`` names the modules that the study imported if the plan cannot be read."""
        content = self._read(self.plan_path)
        try:
            return Plan.from_content(content["plan"], name=content["name"])
        except (KeyError, TypeError, ValueError) as error:
            modules = " ".join(f"--import {name}" for name in self.imports)
            hint = f"; the study was run with {modules}, which this command may need as well" if modules else ""
            raise ValueError(f"{self.plan_path}: {error}{hint}") from None

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that the study's last driver imported. Reading them executes nothing."""
        content = self._read(self.plan_path)
        names = content.get("imports", []) if isinstance(content, dict) else []
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def index(self) -> Index:
        """The index that was written last; an empty one if there is none or it is damaged."""
        if not self.index_path.is_file():
            return Index()
        try:
            return Index.from_dict(self._read(self.index_path))
        except ValueError as error:
            warnings.warn(
                f"{self.index_path} cannot be read ({error}); using the run directories instead", stacklevel=2
            )
            return Index()

    def run(self, name: str) -> Run:
        """Return the run directory of a run, whether it exists or not."""
        return Run(self.path / "runs" / name)

    def require_free(self) -> None:
        """Raise ``ValueError`` if the folder holds files but no study."""
        own_files = {LOCK_FILE, "study.json", "index.json"}
        if (
            self.path.is_dir()
            and not self.plan_path.is_file()
            and any(file.name not in own_files for file in self.path.iterdir())
        ):
            raise ValueError(f"{self.path} is not empty and is not a study; choose another out=…")

    def write_plan(self, plan: Plan, imports: tuple[str, ...] = ()) -> None:
        """Write the plan, which makes the folder a study.

        Args:
            plan: the plan.
            imports: the modules that the plan's models come from. They are recorded so that errors can name them; they
                are never imported because they stand in this file.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        content = {"qlae": __version__, "name": plan.name, "plan": plan.content}
        write_json(self.plan_path, content | ({"imports": list(imports)} if imports else {}))

    def write_index(self, index: Index) -> None:
        """Write the index."""
        write_json(self.index_path, index.to_dict())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study for the length of a ``with`` block; raise ``ValueError`` if another process is running it."""
        message = f"{self.path} is being run by another process ({{holder}}); wait for it, stop it, or choose another"
        with locked_directory(self.path, f"{message} out=…"):
            yield

    def is_driven(self) -> bool:
        """Return whether a process on this machine is running the study now."""
        return is_locked(self.path)

    def _read(self, path: Path) -> Any:
        try:
            return json.loads(read_regular(path))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None


def is_study(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a study."""
    return (Path(path) / "study.json").is_file()
