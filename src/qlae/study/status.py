import contextlib
import math
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..observations import IMAGES, KINDS, SERIES, VECTORS, Observations
from ..presets import MODELS, training_preset
from .folder import STATES, RunState, StudyFolder, StudyState, read_state
from .jobs import Job, needs_scores_only, rerun_jobs, tune_jobs
from .plan import Plan
from .run import Engine, Show, checked_folder
from .tuning import describe_rule

MAX_ERRORS = 5  # shown per state
SHARES = {"waiting": 1.0, "running": 0.5}  # of its time that a run in a state still needs
FINISHED, TO_SCORE = "finished", "trained, not scored yet"

# Seconds per update of an autoencoder at the size's own batch size, on one CPU thread (small at 32×32, full at 64×64)
# or on a data-centre GPU. Each was measured on one machine (docs/performance.md): trust the order of magnitude only.
SECONDS_PER_UPDATE = {("small", "cpu"): 0.02, ("full", "cpu"): 4.4, ("small", "cuda"): 0.001, ("full", "cuda"): 0.0023}
# What these times are for, in pixels, and what else takes as long on a CPU: so many vectors of any width, which dense
# networks bring to their own width at once, or so many time steps of a series.
MEASURED = {
    ("small", IMAGES): 32 * 32,
    ("full", IMAGES): 64 * 64,
    ("small", VECTORS): 12,
    ("full", VECTORS): 300,
    ("small", SERIES): 50,
    ("full", SERIES): 2_000,
}
SCORING_SECONDS = {"infomec": 10.0, "dci": 40.0}  # on 10,000 samples, for both sets of weights
OTHER_SCORING_SECONDS = 5.0
OVERHEAD_SECONDS = 3.0  # loading, writing files, drawing pictures


def status(folder: StudyFolder) -> RenderableType:
    """Return the state of a study from its folder: the table, the progress of running runs, and errors."""
    plan = folder.plan
    state = read_state(plan, folder)
    running, is_driven = state.names("running"), folder.is_driven()
    parts: list[RenderableType] = [status_table(state, title=f"{plan.name} in {folder.path}")]
    parts += [Text(f"running {name}: {_progress(folder, state.runs[name].job)}") for name in running]
    for of_state, word in (("failed", "failed"), ("waiting", "will run again")):
        errors = [
            f"{word} {name}: {run.error}" for name, run in state.runs.items() if run.state == of_state and run.error
        ]
        more = [f"and {len(errors) - MAX_ERRORS} more {word}"] if len(errors) > MAX_ERRORS else []
        parts += [Text(line, style="red") for line in errors[:MAX_ERRORS] + more]
    parts.append(summary_line(state, len(running) or int(is_driven) or None, plan))
    command = resume_command(folder)
    if not is_driven and not running and state.names("waiting"):
        parts.append(Text(f"The study is not running. To resume it: {command}"))
    if not is_driven and state.names("failed"):
        parts.append(Text(f"To repeat failed runs: {command} --retry-failed"))
    return Group(*parts)


def status_table(state: StudyState, *, title: str) -> Table:
    """Return a table with one row per data set and model.

    A row has the finished runs of each stage, the selected value, and the numbers of running and failed runs.
    """
    table = Table(title=title, title_justify="left")
    for name in ("data", "model"):
        table.add_column(name)
    for name in ("tuned", "value", "rerun", "running", "failed"):
        table.add_column(name, justify="right")
    plan = next(iter(state.runs.values())).job.plan
    for pair in plan.pairs:
        runs = [run for run in state.runs.values() if run.job.pair == pair]
        done = {stage: [run.state == "done" for run in runs if run.job.stage == stage] for stage in ("tune", "rerun")}
        tuned, rerun = (f"{sum(of_stage)}/{len(of_stage)}" if of_stage else "·" for of_stage in done.values())
        value = next((f"{value:g}" for value in state.selected_values(*pair)), "·")
        running, failed = (sum(run.state == wanted for run in runs) for wanted in ("running", "failed"))
        style = "red" if failed else None
        table.add_row(*pair, tuned, value, rerun, str(running or "·"), str(failed or "·"), style=style)
    return table


def summary_line(state: StudyState, num_workers: int | None, plan: Plan) -> Text:
    """Return one line: the number of runs in each state, the reruns that wait for a selection, and the time left.

    If nobody is running the study (`num_workers` is None), this is the time that the runs take one after the other.
    """
    parts = [f"{len(state.names(name))} {name}" for name in STATES]
    left = [(run.job.model.label, SHARES[run.state]) for run in state.runs.values() if run.state in SHARES]
    tuning = {r.job.pair: r.job.model for r in state.runs.values() if r.job.stage == "tune" and r.state in SHARES}
    unselected = [(model.label, 1.0) for model in tuning.values() for _ in range(plan.rerun_seeds_of(model))]
    if unselected:
        parts.append(f"{len(unselected)} reruns not selected yet")
    if seconds := _seconds_left(state, left + unselected):
        parts.append(
            f"about {format_seconds(seconds / (num_workers or 1))} {'left' if num_workers else 'of work left'}"
        )
    return Text(", ".join(parts))


def _seconds_left(state: StudyState, left: Sequence[tuple[str, float]]) -> float:
    """Return the seconds of work in shares of runs of models, each as long as the finished runs of the same model."""
    done = [run for run in state.runs.values() if run.results]
    if not done:
        return 0.0
    seconds = pd.Series([(run.results or {}).get("seconds") or 0.0 for run in done]) + scoring_seconds(done[0].job.plan)
    means = seconds.groupby([run.job.model.label for run in done]).mean()
    return float(sum(means.get(model, seconds.mean()) * share for model, share in left))


def format_seconds(seconds: float) -> str:
    """Return a duration in a unit that suits it.

    >>> format_seconds(42), format_seconds(1_500), format_seconds(40_000), format_seconds(400_000)
    ('42 s', '25 min', '11 h', '5 days')
    """
    for limit, unit, name in ((100, 1, "s"), (6_000, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:,.0f} days"


def resume_command(folder: StudyFolder) -> str:
    """Return the command line that resumes a study."""
    imports = folder.imports if folder.plan_path.is_file() else ()
    return shlex.join(["qlae", "study", str(folder.path), *(part for name in imports for part in ("--import", name))])


def _progress(folder: StudyFolder, job: Job) -> str:
    """Describe the last logged update of a running run."""
    log = folder.run(job.name).log()
    if not log:
        return "no update logged yet"
    progress = f"update {log[-1]['step']:,} of {job.steps:,}"
    return f"{progress}, loss {log[-1]['loss']:.4f}" if "loss" in log[-1] else progress


@contextlib.contextmanager
def study_progress(folder: StudyFolder, plan: Plan, engine: Engine, *, show: bool = True) -> Iterator[Show]:
    """Yield a function that shows a state, for `run_study`.

    It draws a live table on a terminal, and elsewhere prints one line for each run that ends.
    """
    if not show:
        yield lambda state: None
        return
    if not sys.stderr.isatty():
        yield _line_printer(plan, engine)
        return
    title = f"{plan.name} in {folder.path}"
    with Live(console=Console(stderr=True), refresh_per_second=2) as live:
        yield lambda state: live.update(
            Group(summary_line(state, engine.num_workers, plan), status_table(state, title=title))
        )


def _line_printer(plan: Plan, engine: Engine) -> Show:
    last: dict[str, str] = {}
    started = time.monotonic()

    def show(state: StudyState) -> None:
        for name, run in state.runs.items():
            if last.get(name, run.state) != run.state and run.state in ("done", "failed"):
                reason = f": {run.error}" if run.error else ""
                line = summary_line(state, engine.num_workers, plan)
                print(f"[{time.monotonic() - started:5.0f} s] {run.state} {name}{reason} ({line})", file=sys.stderr)
            last[name] = run.state

    return show


def describe_study(plan: Plan, out: str | os.PathLike[str], engine: Engine) -> str:
    """Return the runs of a study as lines of text, and mark those that are finished. Nothing is written.

    Raises:
        ValueError: if `run_study` would reject the plan or the folder.
    """
    folder = checked_folder(plan, out)
    state = read_state(plan, folder)
    state.require_consistent()
    # The values for the reruns of tuned models are unknown until tuning is over; the first stands in for them.
    first = {(d.label, m.label): next(iter(m.grid), None) for d in plan.data for m in plan.models}
    tuning, reruns = tune_jobs(plan), rerun_jobs(plan, first | state.rerun_values(plan))
    observations = {data.label: data.spec.preview() for data in plan.data}
    progress = {name: _progress_in_plan(run, folder) for name, run in state.runs.items()}

    def seconds(jobs: Sequence[Job]) -> float:
        guesses = (_seconds_of(j, progress.get(j.name, ""), observations[j.data.label], engine) for j in jobs)
        return sum(guesses) / engine.num_workers

    def stage(title: str, jobs: Sequence[Job]) -> list[str]:
        time_left = f", roughly {format_seconds(seconds(jobs))}" if seconds(jobs) else ""
        lines = [f"{title}: {_count_runs(len(jobs))}{time_left}"]
        for job in jobs:
            name = job.name if job.name in progress else f"{'/'.join(job.pair)}/(selected value)-s{job.seed}"
            lines.append(f"   {name}  {job.steps:,} updates  {progress.get(job.name, '')}".rstrip())
        return [*lines, ""]

    fidelity = [KINDS[observed.kind].load("fidelity").key for observed in observations.values()]
    rule = describe_rule(plan.near_db, plan.scored_weights, fidelity)
    jobs = [*tuning, *reruns]
    lines = [
        *(f"{plan.name}: {plan.about}".rstrip(": "), ""),
        *stage("1. tune", tuning),
        *(f"2. select, for each data set and model: {rule}", ""),
        *stage("3. rerun", reruns),
        *(f"4. report: tables, figures and a page in {Path(out) / 'report'}", ""),
        f"{_count_runs(len(jobs))}, {len(state.names('done'))} known to be finished",
    ]
    if seconds(jobs):
        estimate = f"roughly {format_seconds(seconds(jobs))} with {engine.describe()}"
        lines.append(f"The others take {estimate}; trust the order of magnitude only")
    return "\n".join(lines)


def _progress_in_plan(run: RunState, folder: StudyFolder) -> str:
    """Return ``FINISHED``, ``TO_SCORE`` if only scores are missing, or an empty string."""
    if run.state == "done":
        return FINISHED
    return TO_SCORE if needs_scores_only(run.job, folder.run(run.job.name)) else ""


def _seconds_of(job: Job, progress: str, observations: Observations, engine: Engine) -> float:
    """Return a guess at the seconds that a run takes from here; on a CPU they grow with batch, pixels or time steps."""
    if progress:
        return 0.0 if progress == FINISHED else scoring_seconds(job.plan)
    size = job.model.options.get("size", "full")
    preset = MODELS[job.model.name].training_preset(size)
    update = SECONDS_PER_UPDATE[size, engine.device_type] * preset.relative_seconds[engine.device_type]
    if engine.device_type == "cpu":
        batch = (
            job.model.options.get("batch_size", preset.batch_size) / training_preset(size, "autoencoding").batch_size
        )
        work = math.prod(observations.shape[:-1]) / MEASURED[size, observations.kind] * batch
        update *= max(work, 0.2) if observations.kind == IMAGES else work
    return job.steps * update + OVERHEAD_SECONDS + scoring_seconds(job.plan)


def scoring_seconds(plan: Plan) -> float:
    """Return a guess at the seconds that scoring a run's sample takes."""
    full = sum(SCORING_SECONDS.get(metric, OTHER_SCORING_SECONDS) for metric in plan.metrics)
    return full * plan.num_samples / 10_000


def _count_runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
