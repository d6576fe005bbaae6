"""Run a study: tune → select → rerun. The same call on the same folder resumes it and repeats no finished run.

A study is a list of jobs, and an engine runs lists: in worker processes (`local`), on a Ray cluster (`ray_engine`), or
by hand (`qlae study PLAN --list`). Each job ends in a run directory, where the driver reads what happened.
"""

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from .folder import RunState, StudyFolder, StudyState, add_reruns, read_run_state, read_state, select_values
from .jobs import Job, require_runnable
from .plan import Plan

TICK_SECONDS = 1.0  # longest time between two yields of `Engine.run`

Show = Callable[[StudyState], None]


@dataclass(frozen=True)
class Event:
    """A job has started (``"running"``), was lost and will start again (``"waiting"``), or ended.

    A job ends as ``"done"``, as ``"failed"``, or as ``"busy"`` because a process outside this study is running it.
    """

    job: Job
    state: str

    @property
    def is_end(self) -> bool:
        return self.state in ("done", "failed", "busy")


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
        """Describe the engine, as in ``"2 workers, 1 CPU thread each"``."""
        ...

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[Event | None, None, None]:
        """Yield events until each job has ended, and None if nothing happens for ``TICK_SECONDS``."""
        ...


def run_study(
    plan: Plan,
    out: str | os.PathLike[str],
    engine: Engine,
    *,
    retry_failed: bool = False,
    show: Show | None = None,
) -> StudyState:
    """Run those parts of a study that are not finished.

    Args:
        plan: what to run. It may have grown since the last call (more models, seeds or updates).
        out: the study's folder.
        engine: where the runs are executed.
        retry_failed: whether to repeat runs that failed before.
        show: called with the state about once per second, and whenever it has changed.

    Returns:
        The state: which runs are done, which failed and why.

    Raises:
        ValueError: if the plan cannot succeed or contradicts a run in the folder, or if another process is running the
            study.
    """
    with _opened(plan, out) as folder, _sigterm_as_interrupt():
        state = _start(plan, folder, engine.imports, retry_failed=retry_failed)
        _run_stage("tune", state, folder, engine, show)
        select_values(plan, folder, state)
        add_reruns(plan, folder, state, retry_failed=retry_failed)
        _run_stage("rerun", state, folder, engine, show)
    return state


def list_study(
    plan: Plan, out: str | os.PathLike[str], imports: Sequence[str] = (), *, retry_failed: bool = False
) -> StudyState:
    """Make a folder the study of a plan without running anything; return the state, whose waiting runs can run now.

    Reruns of tuned models are in the list once their tuning runs are finished.
    """
    with _opened(plan, out) as folder:
        return _start(plan, folder, imports, retry_failed=retry_failed)


@contextlib.contextmanager
def _opened(plan: Plan, out: str | os.PathLike[str]) -> Iterator[StudyFolder]:
    """Hold the folder of a study for the length of a ``with`` block, after checking the plan and the folder."""
    folder = StudyFolder(out)
    folder.require_free()
    require_runnable(plan)
    with folder.locked():
        yield folder


def _start(plan: Plan, folder: StudyFolder, imports: Sequence[str], *, retry_failed: bool) -> StudyState:
    """Write the plan into the folder if no run there contradicts it; return the state."""
    state = read_state(plan, folder, retry_failed=retry_failed)
    _warn_about_unplanned_runs(plan, folder)
    folder.write_plan(plan, imports)
    return state


def _warn_about_unplanned_runs(plan: Plan, folder: StudyFolder) -> None:
    """Warn about finished runs of an earlier plan whose model or data set is not in this one."""
    planned = {f"{data.label}/{model.label}" for data in plan.data for model in plan.models}
    finished = {"/".join(path.parts[-4:-2]) for path in folder.path.glob("runs/*/*/*/results.json")}
    if finished - planned:
        warnings.warn(
            f"{folder.path} holds finished runs that the plan does not name; the report will not include them: "
            f"{', '.join(sorted(finished - planned))}",
            stacklevel=2,
        )


def _run_stage(stage: str, state: StudyState, folder: StudyFolder, engine: Engine, show: Show | None) -> None:
    """Run the waiting jobs of a stage, and keep the state up to date."""
    jobs = [run.job for run in state.runs.values() if run.state == "waiting" and run.job.stage == stage]
    if show is not None:
        show(state)
    if not jobs:
        return
    with contextlib.closing(engine.run(jobs, folder)) as events:
        for event in events:
            if event is not None:
                state.runs[event.job.name] = _state_after(event, folder)
            if show is not None:
                show(state)


def _state_after(event: Event, folder: StudyFolder) -> RunState:
    """Return the state of a run after an event; the directory of a run that has ended says how."""
    if event.state in ("running", "waiting"):
        return RunState(event.job, event.state)
    if event.state == "busy":
        return RunState(event.job, "waiting", "another process is running it")
    return read_run_state(event.job, folder.run(event.job.name), strict=False)


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end a study as Ctrl-C does, so that workers save their runs."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # only the main thread may set signal handlers
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
