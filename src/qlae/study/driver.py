"""Run a study: tune → select → rerun. The same call on the same folder goes on, and repeats no finished run."""

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from .engine import Engine, Event
from .folder import Entry, Index, StudyFolder
from .jobs import Job, lacks, other_data, require_possible, rerun_jobs, tune_jobs
from .plan import Plan
from .selection import select

Show = Callable[[Index], None]


def run_study(
    plan: Plan,
    out: str | os.PathLike[str],
    engine: Engine,
    *,
    retry_failed: bool = False,
    show: Show | None = None,
) -> Index:
    """Carry out what is left of a study.

    Args:
        plan: what to run; one that has grown since (further models, seeds, updates) goes on as well.
        out: the study's folder.
        engine: where the runs go.
        retry_failed: try runs again that failed before.
        show: called with the index now and then, and whenever it has changed.

    Returns:
        The index: what was done, what failed and why.
    """
    folder = StudyFolder(out)
    folder.require_free()
    require_possible(plan)
    with folder.locked(), _terminable():
        before = folder.index
        first = tune_jobs(plan)
        # With reruns of what was selected by an earlier sitting, so that the table shows them from the start.
        index = current(plan, folder, before, retry_failed=retry_failed)
        _tell_left_out(index, before, folder)
        folder.write_plan(plan)  # now that no run of the folder contradicts it
        _carry_out(first, index, folder, engine, show)
        index.selected = candidates(plan, first, folder, index)
        second = rerun_jobs(plan, index.values(plan))
        kept = {job.name for job in (*first, *second)}
        index.runs = {name: entry for name, entry in index.runs.items() if name in kept}
        _note_jobs(index, second, before, folder, retry_failed=retry_failed, strict=True)
        _carry_out(second, index, folder, engine, show)
    return index


def current(
    plan: Plan, folder: StudyFolder, before: Index, *, retry_failed: bool = False, strict: bool = True
) -> Index:
    """The state of a study as its run directories tell it, and the last index what they cannot.

    Args:
        plan, folder: of the study.
        before: the last index.
        retry_failed: whether runs that failed are to come again.
        strict: whether a directory that holds another run than the plan's is an error; else it is noted in its entry.
    """
    index = Index()
    tuned = tune_jobs(plan)
    _note_jobs(index, tuned, before, folder, retry_failed=retry_failed, strict=strict)
    index.selected = candidates(plan, tuned, folder, index)
    _note_jobs(index, rerun_jobs(plan, index.values(plan)), before, folder, retry_failed=retry_failed, strict=strict)
    _require_one_set(index, folder, strict=strict)
    return index


def _require_one_set(index: Index, folder: StudyFolder, *, strict: bool) -> None:
    """An error, or a warning and no part in the tables, for runs on other images than the first of their data set."""
    first: dict[str, str] = {}
    for name, entry in index.runs.items():
        if entry.state != "done":
            continue
        one = first.setdefault(entry.data, name)
        told = other_data(folder.run(name).config.data, folder.run(one))
        if told and strict:
            raise ValueError(f"{folder.run(name).path} {told}; move away what you do not mean, or choose another --out")
        if told:
            entry.state, entry.error = "waiting", told
            warnings.warn(f"{folder.run(name).path} is left out: it {told}", stacklevel=3)


def _note_jobs(
    index: Index, jobs: Sequence[Job], before: Index, folder: StudyFolder, *, retry_failed: bool, strict: bool
) -> None:
    for job in jobs:
        if job.name in index.runs:
            continue
        entry, last, run = Entry.of(job), before.runs.get(job.name), folder.run(job.name)
        try:
            missing = lacks(job, run)
        except ValueError as error:
            if strict:
                raise
            missing = str(error)
        if missing is None:
            entry.state, entry.seconds = "done", last.seconds if last else None
        elif last and last.state == "failed" and not retry_failed:
            entry.state, entry.error, entry.trace = "failed", last.error, last.trace
        elif run.results_path.is_file():
            entry.error = missing
        index.runs[job.name] = entry


def _tell_left_out(index: Index, before: Index, folder: StudyFolder) -> None:
    """Warn of finished runs that another plan left in the folder: those of models or data sets that this one lacks."""
    groups = {(entry.data, entry.model) for entry in index.runs.values()}
    left = {(e.data, e.model) for e in before.runs.values() if e.state == "done"} - groups
    if left:
        told = ", ".join(f"{data}/{model}" for data, model in sorted(left))
        warnings.warn(
            f"{folder.path} holds finished runs that the plan does not name, and the report will not have: {told}",
            stacklevel=2,
        )


def _carry_out(jobs: Sequence[Job], index: Index, folder: StudyFolder, engine: Engine, show: Show | None) -> None:
    folder.write_index(index)
    todo = [job for job in jobs if index.runs[job.name].state == "waiting"]
    if show is not None:
        show(index)
    if not todo:
        return
    with contextlib.closing(engine.run(todo, folder)) as events:
        for event in events:
            if event is not None:
                _take_down(event, index)
                folder.write_index(index)
            if show is not None:
                show(index)


def _take_down(event: Event, index: Index) -> None:
    entry = index.runs[event.job.name]
    entry.state, entry.error, entry.trace = event.state, event.error, event.trace
    entry.seconds = None if event.seconds is None else round(event.seconds, 1)


def candidates(
    plan: Plan, jobs: Sequence[Job], folder: StudyFolder, index: Index
) -> dict[str, list[dict[str, object]]]:
    """The values of each grid whose tuning is over, by ``data/model``, one of them selected.

    There are none where all runs failed.
    """
    told: dict[str, list[dict[str, object]]] = {}
    for data in plan.data:
        for model in plan.models:
            tried = [job for job in jobs if (job.data, job.model) == (data.label, model.label)]
            if not model.grid or any(index.runs[job.name].state not in ("done", "failed") for job in tried):
                continue
            done = [job for job in tried if index.runs[job.name].state == "done"]
            found = select([(job.value or 0.0, folder.run(job.name).results["averaged"]) for job in done], plan.near_db)
            told[f"{data.label}/{model.label}"] = [candidate.to_dict() for candidate in found]
    return told


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a study as Ctrl-C does: workers save their runs."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # only the main thread may set handlers
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
