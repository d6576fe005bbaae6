"""What a study would do: every run, the order, and an estimate of the time."""

import os
from pathlib import Path

from .estimate import run_seconds, told
from .folder import StudyFolder
from .jobs import Job, is_finished, num_updates, rerun_jobs, tune_jobs
from .local import LocalEngine
from .plan import Plan


def told_plan(plan: Plan, out: str | os.PathLike[str], num_workers: int | None = None, device: str = "auto") -> str:
    """The plan in plain lines; runs that are finished already are marked, and nothing is written."""
    engine = LocalEngine(num_workers, device=device)
    kind = "cuda" if engine.gpus else "cpu"
    folder = StudyFolder(out)
    tuned = tune_jobs(plan)
    # Which values the reruns will take is known only then; the presets' stand in for them.
    unknown = rerun_jobs(plan, {(data.label, model.label): None for data in plan.data for model in plan.models})
    lines = [f"{plan.name}: {plan.about}".rstrip(": "), "", *_tell_stage("1. tune", tuned, folder)]
    lines += [
        "",
        "2. select, for every data set and model, the value with the best InfoM among those whose PSNR is at most "
        f"{plan.near_db:g} dB below the best",
        "",
        *_tell_stage("3. rerun", unknown, None, {model.label for model in plan.models if model.grid}),
        "",
        f"4. aggregate: tables, figures and a page in {Path(out) / 'report'}",
        "",
    ]
    left = [job for job in tuned if not is_finished(job, folder.run(job.name))]
    seconds = sum(run_seconds(job, kind) for job in (*left, *unknown)) / engine.num_workers
    where = "one GPU each" if engine.gpus else "one CPU thread each"
    lines.append(
        f"{len(tuned) + len(unknown)} runs, {len(tuned) - len(left)} of the tuning finished; roughly {told(seconds)} "
        f"with {engine.num_workers} worker(s), {where}. A guess from other machines: trust the order of magnitude"
    )
    return "\n".join(lines)


def _tell_stage(title: str, jobs: list[Job], folder: StudyFolder | None, tuned: set[str] | None = None) -> list[str]:
    lines = [f"{title}: {len(jobs)} runs"]
    for job in jobs:
        name = job.name
        if tuned and job.model in tuned:
            name = name.replace(f"/s{job.seed}", f"/(selected value)-s{job.seed}")
        done = "  finished" if folder is not None and is_finished(job, folder.run(job.name)) else ""
        lines.append(f"   {name}  {num_updates(job):,} updates{done}")
    return lines
