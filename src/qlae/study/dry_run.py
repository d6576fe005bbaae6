"""What a study would do: every run, the order, and an estimate of the time."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from .estimate import run_seconds, told
from .folder import StudyFolder
from .jobs import Job, is_finished, num_updates, rerun_jobs, tune_jobs
from .local import LocalEngine
from .plan import Plan


def told_plan(plan: Plan, out: str | os.PathLike[str], num_workers: int | None = None, device: str = "auto") -> str:
    """The plan in plain lines; runs that are finished already are marked, and nothing is written."""
    engine = LocalEngine(num_workers, device=device)
    kind, where = ("cuda", "a GPU each") if engine.gpus else ("cpu", "one CPU thread each")
    folder = StudyFolder(out)
    tuned = tune_jobs(plan)
    # Which values the reruns of tuned models will take is known only then; the presets' stand in for them.
    rerun = rerun_jobs(plan, {(data.label, model.label): None for data in plan.data for model in plan.models})
    unknown = {model.label for model in plan.models if model.grid}
    known = [*tuned, *(job for job in rerun if job.model not in unknown)]
    finished = {job.name for job in known if is_finished(job, folder.run(job.name))}
    left = [job for job in (*tuned, *rerun) if job.name not in finished]
    seconds = sum(run_seconds(job, kind) for job in left) / engine.num_workers
    lines = [
        f"{plan.name}: {plan.about}".rstrip(": "),
        "",
        *_tell_stage("1. tune", tuned, finished),
        "",
        "2. select, for every data set and model, the value with the best InfoM among those whose PSNR is at most "
        f"{plan.near_db:g} dB below the best",
        "",
        *_tell_stage("3. rerun", rerun, finished, unknown),
        "",
        f"4. aggregate: tables, figures and a page in {Path(out) / 'report'}",
        "",
        f"{len(tuned) + len(rerun)} runs, {len(finished)} of them known to be finished; roughly {told(seconds)} for "
        f"the others with {engine.num_workers} worker(s), {where}. A guess: trust the order of magnitude",
    ]
    return "\n".join(lines)


def _tell_stage(title: str, jobs: Sequence[Job], finished: Collection[str], unknown: Collection[str] = ()) -> list[str]:
    lines = [f"{title}: {len(jobs)} runs"]
    for job in jobs:
        value = "(selected value)-" if job.model in unknown else ""
        name = job.name.replace(f"/s{job.seed}", f"/{value}s{job.seed}")
        lines.append(f"   {name}  {num_updates(job):,} updates{'  finished' if job.name in finished else ''}")
    return lines
