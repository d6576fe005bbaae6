"""The interface of an engine: it runs jobs and reports what happens to them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from .folder import StudyFolder
from .jobs import Job

TICK_SECONDS = 1.0  # longest time between two yields of `Engine.run`


@dataclass(frozen=True)
class Event:
    """A change of a job's state to ``"running"``, ``"done"``, ``"failed"`` or (again) ``"waiting"``."""

    job: Job
    state: str
    seconds: float | None = None
    error: str | None = None
    trace: str | None = None


class Engine(Protocol):
    """Run jobs, several at a time."""

    @property
    def num_workers(self) -> int:
        """The number of jobs that run at the same time; a guess if the engine cannot know it."""
        ...

    @property
    def device_type(self) -> str:
        """The device that runs train on, ``"cpu"`` or ``"cuda"``; a guess if the engine cannot know it."""
        ...

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that each worker imports before it reads a job, as `import_modules` takes them."""
        ...

    def describe(self) -> str:
        """Return the engine in words, such as ``"2 workers, 1 CPU thread each"``."""
        ...

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[Event | None, None, None]:
        """Yield events until each job is done or failed, and None if nothing happens for ``TICK_SECONDS``."""
        ...
