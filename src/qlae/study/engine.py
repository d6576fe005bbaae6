"""What an engine is: it takes jobs and tells what becomes of them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from .folder import StudyFolder
from .jobs import Job

TICK_SECONDS = 1.0  # at most so long without an event


@dataclass(frozen=True)
class Event:
    """A job that is now ``"waiting"`` (again), ``"running"``, ``"done"`` or ``"failed"``."""

    job: Job
    state: str
    seconds: float | None = None
    error: str | None = None
    trace: str | None = None


class Engine(Protocol):
    """Carries out jobs, several at a time."""

    @property
    def num_workers(self) -> int:
        """How many jobs go on at once; a guess where the engine cannot know."""
        ...

    @property
    def kind(self) -> str:
        """What runs train on, ``"cpu"`` or ``"cuda"``; a guess where the engine cannot know."""
        ...

    def told(self) -> str:
        """The engine in words."""
        ...

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[Event | None, None, None]:
        """Events until each job is done or failed; None when nothing happened for a while."""
        ...
