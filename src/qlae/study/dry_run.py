"""What a study would do: every run, the order, and an estimate of the time."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ..run import Run
from .driver import note_jobs, selected_values
from .estimate import run_seconds, scoring_seconds, told
from .folder import Index, StudyFolder
from .jobs import Job, is_finished, lacks_scores_only, num_updates, rerun_jobs, tune_jobs
from .local import LocalEngine
from .plan import Plan

FINISHED, TO_SCORE = "finished", "trained, to be scored"


def told_plan(plan: Plan, out: str | os.PathLike[str], num_workers: int | None = None, device: str = "auto") -> str:
    """The plan in plain lines; runs that are finished already are marked, and nothing is written."""
    engine = LocalEngine(num_workers, device=device)
    kind, where = ("cuda", "a GPU each") if engine.gpus else ("cpu", "one CPU thread each")
    folder = StudyFolder(out)
    tuned = tune_jobs(plan)
    index = Index()
    note_jobs(index, tuned, folder.index, folder, retry_failed=False)
    selected, _ = selected_values(plan, tuned, folder, index)
    # Which values the reruns of tuned models will take is known only when these are; the presets' stand in for them.
    pairs = [(data.label, model.label) for data in plan.data for model in plan.models]
    unknown = [pair for pair in pairs if pair not in selected]
    rerun = rerun_jobs(plan, {pair: selected.get(pair) for pair in pairs})
    known = [*tuned, *(job for job in rerun if (job.data, job.model) not in unknown)]
    states = {job.name: state_of(job, folder.run(job.name)) for job in known}
    left = [job for job in (*tuned, *rerun) if states.get(job.name) != FINISHED]
    seconds = sum(scoring_seconds(job) if states.get(job.name) == TO_SCORE else run_seconds(job, kind) for job in left)
    num_finished = len(tuned) + len(rerun) - len(left)
    lines = [
        f"{plan.name}: {plan.about}".rstrip(": "),
        "",
        *_tell_stage("1. tune", tuned, states),
        "",
        "2. select, for every data set and model, the value with the best InfoM among those whose PSNR is at most "
        f"{plan.near_db:g} dB below the best",
        "",
        *_tell_stage("3. rerun", rerun, states, unknown),
        "",
        f"4. aggregate: tables, figures and a page in {Path(out) / 'report'}",
        "",
        f"{len(tuned) + len(rerun)} runs, {num_finished} of them known to be finished",
    ]
    if left:
        how = f"{engine.num_workers} worker(s), {where}"
        guess = told(seconds / engine.num_workers)
        lines.append(f"Roughly {guess} for the others with {how}: a guess, of which to trust the order of magnitude")
    return "\n".join(lines)


def state_of(job: Job, run: Run) -> str:
    """What there is of a run: ``FINISHED``, ``TO_SCORE`` where nothing but scores is missing, or nothing to tell."""
    if is_finished(job, run):
        return FINISHED
    return TO_SCORE if lacks_scores_only(job, run) else ""


def _tell_stage(
    title: str, jobs: Sequence[Job], states: Mapping[str, str], unknown: Collection[tuple[str, str]] = ()
) -> list[str]:
    lines = [f"{title}: {len(jobs)} runs"]
    for job in jobs:
        value = "(selected value)-" if (job.data, job.model) in unknown else ""
        name = job.name.replace(f"/s{job.seed}", f"/{value}s{job.seed}")
        lines.append(f"   {name}  {num_updates(job):,} updates  {states.get(job.name, '')}".rstrip())
    return lines
