"""Run a study: tune → select → rerun. The same call on the same folder resumes it and repeats no finished run."""

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from ..runs.directory import Run
from .agreements import KEY, has_sources, run_agreements
from .engine import Engine, Event
from .folder import Entry, Index, StudyFolder
from .jobs import Job, data_difference, missing_work, require_runnable, rerun_jobs, tune_jobs
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
    """Run those parts of a study that are not finished.

    Args:
        plan: what to run. It may have grown since the last call (more models, seeds or updates).
        out: the study's folder.
        engine: where the runs are executed.
        retry_failed: whether to repeat runs that failed before.
        show: called with the index about once per second, and whenever it has changed.

    Returns:
        The index: which runs are done, which failed and why.

    Raises:
        ValueError: if the plan cannot succeed or contradicts a run in the folder, or if another process is running the
            study.
    """
    folder = StudyFolder(out)
    folder.require_free()
    require_runnable(plan)
    with folder.locked(), _sigterm_as_interrupt():
        last_index = folder.index
        tuning = tune_jobs(plan)
        # This includes the reruns of values that an earlier call selected, so that the table shows them from the start.
        index = current_index(plan, folder, last_index, retry_failed=retry_failed)
        _warn_about_unplanned_runs(index, last_index, folder)
        folder.write_plan(plan, engine.imports)  # now that no run of the folder contradicts it
        _run_jobs(tuning, index, folder, engine, show)
        index.selected = collect_candidates(plan, tuning, folder, index)
        reruns = rerun_jobs(plan, index.rerun_values(plan))
        names = {job.name for job in (*tuning, *reruns)}
        index.runs = {name: entry for name, entry in index.runs.items() if name in names}
        _add_entries(index, reruns, last_index, folder, retry_failed=retry_failed, strict=True)
        _run_jobs(reruns, index, folder, engine, show)
    return index


def current_index(
    plan: Plan, folder: StudyFolder, last_index: Index, *, retry_failed: bool = False, strict: bool = True
) -> Index:
    """Return the state of a study from its run directories, and from the last index what they do not hold.

    Args:
        plan: the plan of the study.
        folder: the folder of the study.
        last_index: the index that was written last.
        retry_failed: whether failed runs count as waiting.
        strict: whether a run directory that contradicts the plan is an error; otherwise its entry notes the reason.

    Raises:
        ValueError: if ``strict`` and a run directory contradicts the plan.
    """
    index = Index()
    tuning = tune_jobs(plan)
    _add_entries(index, tuning, last_index, folder, retry_failed=retry_failed, strict=strict)
    index.selected = collect_candidates(plan, tuning, folder, index)
    reruns = rerun_jobs(plan, index.rerun_values(plan))
    _add_entries(index, reruns, last_index, folder, retry_failed=retry_failed, strict=strict)
    _require_same_images(index, folder, strict=strict)
    return index


def _require_same_images(index: Index, folder: StudyFolder, *, strict: bool) -> None:
    """Raise an error, or warn and exclude the run, if a run saw other images than the first run on its data set."""
    first_run: dict[str, str] = {}
    for name, entry in index.runs.items():
        if entry.state != "done":
            continue
        run, first = folder.run(name), folder.run(first_run.setdefault(entry.data, name))
        difference = data_difference(run.config.data, first)
        if difference and strict:
            raise ValueError(f"{run.path} {difference}; move the wrong one out of the study, or choose another out=…")
        if difference:
            entry.state, entry.error = "waiting", difference
            warnings.warn(f"{run.path} is left out: it {difference}", stacklevel=3)


def _add_entries(
    index: Index, jobs: Sequence[Job], last_index: Index, folder: StudyFolder, *, retry_failed: bool, strict: bool
) -> None:
    """Add an entry for each job that the index does not have yet, in the state that its run directory shows."""
    for job in jobs:
        if job.name in index.runs:
            continue
        entry, last, run = Entry.from_job(job), last_index.runs.get(job.name), folder.run(job.name)
        try:
            missing = missing_work(job, run)
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


def _warn_about_unplanned_runs(index: Index, last_index: Index, folder: StudyFolder) -> None:
    """Warn about finished runs of an earlier plan whose model or data set is not in this one."""
    pairs = {(entry.data, entry.model) for entry in index.runs.values()}
    unplanned = {(e.data, e.model) for e in last_index.runs.values() if e.state == "done"} - pairs
    if unplanned:
        names = ", ".join(f"{data}/{model}" for data, model in sorted(unplanned))
        warnings.warn(
            f"{folder.path} holds finished runs that the plan does not name; the report will not include them: {names}",
            stacklevel=2,
        )


def _run_jobs(jobs: Sequence[Job], index: Index, folder: StudyFolder, engine: Engine, show: Show | None) -> None:
    """Run those jobs that are waiting, and keep the index up to date in memory and on disk."""
    folder.write_index(index)
    queue = [job for job in jobs if index.runs[job.name].state == "waiting"]
    if show is not None:
        show(index)
    if not queue:
        return
    with contextlib.closing(engine.run(queue, folder)) as events:
        for event in events:
            if event is not None:
                _record_event(event, index)
                folder.write_index(index)
            if show is not None:
                show(index)


def _record_event(event: Event, index: Index) -> None:
    entry = index.runs[event.job.name]
    entry.state, entry.error, entry.trace = event.state, event.error, event.trace
    entry.seconds = None if event.seconds is None else round(event.seconds, 1)


def collect_candidates(
    plan: Plan, jobs: Sequence[Job], folder: StudyFolder, index: Index
) -> dict[str, list[dict[str, object]]]:
    """Return the candidates of each grid whose tuning is over, one of them selected.

    Args:
        plan: the plan of the study.
        jobs: its tuning jobs.
        folder: the folder of the study.
        index: the state of the jobs.

    Returns:
        Lists of `Candidate.to_dict` by ``data/model``; a list is empty if all runs of the grid failed.
    """
    candidates: dict[str, list[dict[str, object]]] = {}
    for data in plan.data:
        for model in plan.models:
            tuning = [job for job in jobs if (job.data, job.model) == (data.label, model.label)]
            if not model.grid or any(index.runs[job.name].state not in ("done", "failed") for job in tuning):
                continue
            finished_jobs = [job for job in tuning if index.runs[job.name].state == "done"]
            scores = _grid_scores(finished_jobs, folder, plan)
            near_db = plan.near_db if model.reconstructs else None
            candidates[f"{data.label}/{model.label}"] = [c.to_dict() for c in select(scores, near_db)]
    return candidates


def _grid_scores(jobs: Sequence[Job], folder: StudyFolder, plan: Plan) -> list[tuple[float, dict[str, Any]]]:
    """Return value and scores of the finished runs of a grid; on data without sources, with their agreement."""
    runs = [folder.run(job.name) for job in jobs]
    scores = [_selection_scores(run, plan) for run in runs]
    if not all(has_sources(run.results) for run in runs):
        agreements = run_agreements(runs, plan.scored_weights)
        scores = [own | {KEY: agreements.get(run.path, 0.0)} for own, run in zip(scores, runs, strict=True)]
    return [(job.value or 0.0, own) for job, own in zip(jobs, scores, strict=True)]


def _selection_scores(run: Run, plan: Plan) -> dict[str, Any]:
    """Return the scores of a run that selection uses; raise ``ValueError`` if it has none of these weights."""
    scores: dict[str, Any] | None = run.results.get(plan.scored_weights)
    if scores is None:
        raise ValueError(
            f"{run.path} has no scores of the {plan.scored_weights} weights, by which the plan selects; "
            f"`qlae evaluate {run.path}` computes them"
        )
    return scores


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
