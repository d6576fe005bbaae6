"""Run a study: tune → select → rerun. The same call on the same folder resumes it and repeats no finished run.

A study is a list of jobs, and an engine runs lists: in worker processes (`local`), on a Ray cluster (`ray_engine`), or
by hand (`qlae study PLAN --list`). The driver reads what happened from the run directories.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from .._progress import print_note
from .folder import FAILURE_FILE, StudyFolder, StudyState, is_study, read_run_state, read_state
from .jobs import Job, planned_jobs, require_runnable
from .plan import Plan

TICK_SECONDS = 1.0  # longest time between two yields of `Engine.run`
UNFINISHED = ("waiting", "running")  # a run whose last worker is still ending is running, too

Show = Callable[[StudyState], None]


class Engine(Protocol):
    """Run jobs, several at a time."""

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that each worker imports before it reads a job, as `import_modules` takes them."""

    @property
    def has_gpu(self) -> bool:
        """Whether jobs run on a GPU, on which models are full-size unless the plan says their size."""

    def run(self, jobs: Sequence[Job], folder: StudyFolder) -> Generator[None, None, None]:
        """Run jobs, each until its directory says how it ended; yield at least once per ``TICK_SECONDS``."""


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
    plan = sized_plan(plan, out, has_gpu=engine.has_gpu, show=show is not None)
    folder = checked_folder(plan, out)
    with folder.locked():
        state = _start(plan, folder, engine.imports, retry_failed=retry_failed)
        _run_stage("tune", state, folder, engine, show)
        state = read_state(plan, folder)  # with the reruns of the values that are selected now
        state.require_consistent()
        _run_stage("rerun", state, folder, engine, show)
    return state


def list_study(
    plan: Plan, out: str | os.PathLike[str], imports: Sequence[str] = (), *, retry_failed: bool = False
) -> StudyState:
    """Make a folder the study of a plan without running anything; return the state, whose waiting runs can run now.

    Reruns of tuned models are in the list once their tuning runs are finished.
    """
    folder = checked_folder(plan, out)
    with folder.locked():
        return _start(plan, folder, imports, retry_failed=retry_failed)


def sized_plan(plan: Plan, out: str | os.PathLike[str], *, has_gpu: bool, show: bool) -> Plan:
    """Return a plan with a size for the models that have none: small ones if there is no GPU, and print a line then.

    A study that has begun keeps the size that it began with.
    """
    if not plan.has_unsized_models:
        return plan
    begun = StudyFolder(out).plan if is_study(out) else None
    if begun is not None and begun.has_unsized_models:
        return plan  # of a time when models without a size were full
    size = (begun.content.get("size") if begun is not None else None) or ("full" if has_gpu else "small")
    if size == "small" and begun is None:
        print_note('models without a size are small, since there is no GPU; size = "full" in the plan', show=show)
    return plan.with_options(size=size)


def checked_folder(plan: Plan, out: str | os.PathLike[str]) -> StudyFolder:
    """Return the folder of a study; raise ``ValueError`` if the plan cannot succeed or other files lie there."""
    folder = StudyFolder(out)
    folder.require_free()
    require_runnable(plan)
    return folder


def _start(plan: Plan, folder: StudyFolder, imports: Sequence[str], *, retry_failed: bool) -> StudyState:
    """Write the plan into the folder, and forget failures, if no run there contradicts it; return the state."""
    state = read_state(plan, folder)
    state.require_consistent()
    _warn_about_unplanned_runs(plan, folder)
    folder.write_plan(plan, imports)
    if retry_failed:
        for job in planned_jobs(plan):
            (folder.run(job.name).path / FAILURE_FILE).unlink(missing_ok=True)
        state = read_state(plan, folder)
    return state


def _warn_about_unplanned_runs(plan: Plan, folder: StudyFolder) -> None:
    """Warn about finished runs of an earlier plan whose model or data set is not in this one."""
    planned = {"/".join(pair) for pair in plan.pairs}
    finished = {"/".join(path.parts[-4:-2]) for path in folder.path.glob("runs/*/*/*/results.json")}
    if unplanned := ", ".join(sorted(finished - planned)):
        message = "holds finished runs that the plan does not name; the report will not include them"
        warnings.warn(f"{folder.path} {message}: {unplanned}", stacklevel=2)


def _run_stage(stage: str, state: StudyState, folder: StudyFolder, engine: Engine, show: Show | None) -> None:
    """Run the unfinished jobs of a stage, and keep the state up to date with their directories."""
    jobs = [run.job for run in state.runs.values() if run.job.stage == stage and run.state in UNFINISHED]

    def update() -> None:
        for job in jobs:
            if state.runs[job.name].state in UNFINISHED:
                state.runs[job.name] = read_run_state(job, folder.run(job.name))
        if show is not None:
            show(state)

    update()
    if jobs:
        with contextlib.closing(engine.run(jobs, folder)) as ticks:
            for _ in ticks:
                update()
        update()
