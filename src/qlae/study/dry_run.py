"""Describe what a study would do: each run, the order, and an estimate of the time."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ..observations import KINDS
from .driver import current_index
from .engine import Engine
from .estimate import format_seconds, run_seconds, scoring_seconds
from .folder import Index, StudyFolder
from .job_data import kind_and_shape
from .jobs import Job, make_job, needs_scores_only, num_updates, require_runnable, rerun_jobs, tune_jobs
from .plan import Plan
from .selection import describe_rule

FINISHED, TO_SCORE = "finished", "trained, not scored yet"


def describe_study(plan: Plan, out: str | os.PathLike[str], engine: Engine) -> str:
    """Return the runs of a study as lines of text, and mark those that are finished. Nothing is written.

    Raises:
        ValueError: if `run_study` would reject the plan or the folder.
    """
    folder = StudyFolder(out)
    folder.require_free()
    require_runnable(plan)
    tuning = tune_jobs(plan)
    index = current_index(plan, folder, folder.index)
    values = index.rerun_values(plan)
    # The values for the reruns of tuned models are unknown until tuning is over; the presets' values stand in for them.
    pairs = [(data.label, model.label) for data in plan.data for model in plan.models]
    unselected = [pair for pair in pairs if pair not in values]
    reruns = rerun_jobs(plan, {pair: values.get(pair) for pair in pairs})
    known = [*tuning, *(job for job in reruns if (job.data, job.model) not in unselected)]
    states = {job.name: _state_of(job, index, folder) for job in known}
    num_finished = sum(state == FINISHED for state in states.values())

    def seconds(jobs: Sequence[Job]) -> float:
        total = sum(_seconds_left(job, states.get(job.name, ""), engine.device_type) for job in jobs)
        return total / engine.num_workers

    lines = [
        f"{plan.name}: {plan.about}".rstrip(": "),
        "",
        *_describe_stage("1. tune", tuning, states, seconds(tuning)),
        "",
        f"2. select, for each data set and model: "
        f"{describe_rule(plan.near_db, plan.scored_weights, _fidelity_scores(plan))}",
        "",
        *_describe_stage("3. rerun", reruns, states, seconds(reruns), unselected),
        "",
        f"4. report: tables, figures and a page in {Path(out) / 'report'}",
        "",
        f"{_count_runs(len(tuning) + len(reruns))}, {num_finished} known to be finished",
    ]
    total_seconds = seconds([*tuning, *reruns])
    if total_seconds:
        estimate = f"roughly {format_seconds(total_seconds)} with {engine.describe()}"
        lines.append(f"The others take {estimate}; trust the order of magnitude only")
    return "\n".join(lines)


def _fidelity_scores(plan: Plan) -> list[str]:
    """Return the keys of the scores that measure reconstructions of the plan's data."""
    jobs = [make_job(plan, "rerun", data, plan.models[0], None, 0) for data in plan.data]
    return list(dict.fromkeys(KINDS[kind_and_shape(job)[0]].load_fidelity().key for job in jobs))


def _seconds_left(job: Job, state: str, device_type: str) -> float:
    if state == FINISHED:
        return 0.0
    return scoring_seconds(job) if state == TO_SCORE else run_seconds(job, device_type)


def _state_of(job: Job, index: Index, folder: StudyFolder) -> str:
    """Return ``FINISHED``, ``TO_SCORE`` if only scores are missing, or an empty string."""
    if index.runs[job.name].state == "done":
        return FINISHED
    return TO_SCORE if needs_scores_only(job, folder.run(job.name)) else ""


def _describe_stage(
    title: str,
    jobs: Sequence[Job],
    states: Mapping[str, str],
    seconds: float,
    unselected: Collection[tuple[str, str]] = (),
) -> list[str]:
    """Return the lines of a stage; runs of ``unselected`` (data, model) pairs have a placeholder for their value."""
    lines = [f"{title}: {_count_runs(len(jobs))}" + (f", roughly {format_seconds(seconds)}" if seconds else "")]
    for job in jobs:
        value = "(selected value)-" if (job.data, job.model) in unselected else ""
        name = job.name.replace(f"/s{job.seed}", f"/{value}s{job.seed}")
        lines.append(f"   {name}  {num_updates(job):,} updates  {states.get(job.name, '')}".rstrip())
    return lines


def _count_runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
