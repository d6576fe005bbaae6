"""What a study would do: every run, the order, and an estimate of the time."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from .driver import current
from .engine import Engine
from .estimate import run_seconds, scoring_seconds, told
from .folder import Index, StudyFolder
from .jobs import Job, lacks_scores_only, num_updates, require_possible, rerun_jobs, tune_jobs
from .plan import Plan

FINISHED, TO_SCORE = "finished", "trained, to be scored"


def told_plan(plan: Plan, out: str | os.PathLike[str], engine: Engine) -> str:
    """The plan in plain lines; runs that are finished already are marked, and nothing is written."""
    folder = StudyFolder(out)
    folder.require_free()
    require_possible(plan)
    tuned = tune_jobs(plan)
    index = current(plan, folder, folder.index)
    selected = index.values(plan)
    # Which values the reruns of tuned models will take is known only when these are; the presets' stand in for them.
    pairs = [(data.label, model.label) for data in plan.data for model in plan.models]
    unknown = [pair for pair in pairs if pair not in selected]
    rerun = rerun_jobs(plan, {pair: selected.get(pair) for pair in pairs})
    known = [*tuned, *(job for job in rerun if (job.data, job.model) not in unknown)]
    states = {job.name: _state_of(job, index, folder) for job in known}
    num_finished = sum(state == FINISHED for state in states.values())

    def seconds(jobs: Sequence[Job]) -> float:
        return sum(_seconds_left(job, states.get(job.name, ""), engine.kind) for job in jobs) / engine.num_workers

    lines = [
        f"{plan.name}: {plan.about}".rstrip(": "),
        "",
        *_tell_stage("1. tune", tuned, states, seconds(tuned)),
        "",
        "2. select, for every data set and model, the value with the best InfoM among those whose PSNR is at most "
        f"{plan.near_db:g} dB below the best",
        "",
        *_tell_stage("3. rerun", rerun, states, seconds(rerun), unknown),
        "",
        f"4. aggregate: tables, figures and a page in {Path(out) / 'report'}",
        "",
        f"{len(tuned) + len(rerun)} runs, {num_finished} of them known to be finished",
    ]
    left = seconds([*tuned, *rerun])
    if left:
        guess = "a guess, of which to trust the order of magnitude"
        lines.append(f"Roughly {told(left)} for the others with {engine.told()}: {guess}")
    return "\n".join(lines)


def _seconds_left(job: Job, state: str, kind: str) -> float:
    if state == FINISHED:
        return 0.0
    return scoring_seconds(job) if state == TO_SCORE else run_seconds(job, kind)


def _state_of(job: Job, index: Index, folder: StudyFolder) -> str:
    """What there is of a run: ``FINISHED``, ``TO_SCORE`` where nothing but scores is missing, or nothing to tell."""
    if index.runs[job.name].state == "done":
        return FINISHED
    return TO_SCORE if lacks_scores_only(job, folder.run(job.name)) else ""


def _tell_stage(
    title: str,
    jobs: Sequence[Job],
    states: Mapping[str, str],
    seconds: float,
    unknown: Collection[tuple[str, str]] = (),
) -> list[str]:
    lines = [f"{title}: {len(jobs)} runs" + (f", roughly {told(seconds)}" if seconds else "")]
    for job in jobs:
        value = "(selected value)-" if (job.data, job.model) in unknown else ""
        name = job.name.replace(f"/s{job.seed}", f"/{value}s{job.seed}")
        lines.append(f"   {name}  {num_updates(job):,} updates  {states.get(job.name, '')}".rstrip())
    return lines
