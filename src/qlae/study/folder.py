"""A study on disk: ``study.json`` (the plan), ``index.json`` (the state of every run), ``runs/`` (the run directories).

What is finished is decided by the run directories (`driver.current`); the index adds what they cannot tell: the error
of a failed run, what is running, how long runs took. Reading a study needs no torch.
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

from .._files import write_json
from .._locks import try_lock
from .._version import __version__
from ..runs.directory import LOCK, Run
from .jobs import Job
from .plan import Plan

STATES = ("done", "running", "failed", "waiting")


@dataclass
class Entry:
    """A run of the study, as the index has it."""

    stage: str
    data: str
    model: str
    value: float | None
    seed: int
    state: str = "waiting"
    seconds: float | None = None  # that the run took, evaluation included
    error: str | None = None
    trace: str | None = None

    @staticmethod
    def of(job: Job) -> "Entry":
        return Entry(job.stage, job.data, job.model, job.value, job.seed)


@dataclass
class Index:
    """The state of a study: its runs by name, and the candidates behind each selection by ``data/model``."""

    runs: dict[str, Entry] = field(default_factory=dict)
    selected: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def chosen(self, data: str, model: str) -> list[float]:
        """The value that was selected for a model on a data set; none before it is tuned, or where nothing is."""
        return [found["value"] for found in self.selected.get(f"{data}/{model}", []) if found["selected"]]

    def values(self, plan: Plan) -> dict[tuple[str, str], float | None]:
        """What reruns take, by data set and model: the value that was selected, None where nothing is tuned."""
        known: dict[tuple[str, str], float | None] = {}
        for data in plan.data:
            for model in plan.models:
                for value in self.chosen(data.label, model.label) if model.grid else [None]:
                    known[data.label, model.label] = value
        return known

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": {name: dataclasses.asdict(entry) for name, entry in self.runs.items()},
            "selected": self.selected,
        }

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Index":
        return Index({name: Entry(**entry) for name, entry in content["runs"].items()}, content["selected"])


class StudyFolder:
    """A study's folder, by its path.

    Args:
        path: the folder; it need not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"StudyFolder({str(self.path)!r})"

    @staticmethod
    def open(path: str | os.PathLike[str]) -> "StudyFolder":
        """A study that exists; an error says what is missing."""
        folder = StudyFolder(path)
        if not is_study(path):
            what = "has no study.json" if folder.path.is_dir() else "does not exist"
            raise ValueError(
                f"{folder.path} is not a study: it {what}; `qlae study PLAN --out {folder.path}` makes one"
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
        content = self._read(self.plan_path)
        try:
            return Plan.from_content(content["plan"], name=content["name"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.plan_path}: {error}") from None

    @property
    def index(self) -> Index:
        """What was written last; an empty index if there is none, or it is damaged, as the runs tell most of it."""
        if not self.index_path.is_file():
            return Index()
        try:
            return Index.from_dict(self._read(self.index_path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            warnings.warn(f"{self.index_path} cannot be read ({error}); going by the run directories", stacklevel=2)
            return Index()

    def run(self, name: str) -> Run:
        """The run directory of that name, there or not."""
        return Run(self.path / "runs" / name)

    def require_free(self) -> None:
        """An error if the folder is there, holds something and is no study."""
        known = {LOCK, "study.json", "index.json"}
        if (
            self.path.is_dir()
            and not self.plan_path.is_file()
            and any(p.name not in known for p in self.path.iterdir())
        ):
            raise ValueError(f"{self.path} is not empty and not a study; choose another --out")

    def write_plan(self, plan: Plan) -> None:
        """Keep the plan; the folder is then a study."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.plan_path, {"qlae": __version__, "name": plan.name, "plan": plan.content})

    def write_index(self, index: Index) -> None:
        write_json(self.index_path, index.to_dict())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study against a second driver; the system lets go of it however the process ends."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(Run(self.path).locked())
            except ValueError as error:
                raise ValueError(str(error).replace("is being trained by", "is being run by")) from None
            yield

    def is_driven(self) -> bool:
        """Whether some process on this machine is running the study now."""
        try:
            with open(self.path / LOCK) as file:
                return not try_lock(file, shared=True)
        except FileNotFoundError:
            return False

    def _read(self, path: Path) -> Any:
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None


def is_study(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a study."""
    return (Path(path) / "study.json").is_file()
