import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..configuring import describe_duration
from .folder import STATES, StudyFolder, StudyState, read_state
from .jobs import Job, rerun_jobs, tune_jobs
from .plan import Plan
from .run import Show, checked_folder
from .tuning import describe_rule

MAX_ERRORS = 5  # shown per state
SHARES = {"waiting": 1.0, "running": 0.5}  # of its time that a run in a state still needs


def status(folder: StudyFolder) -> RenderableType:
    """Return the state of a study from its folder: the table, the progress of running runs, and errors."""
    state = read_state(folder.plan, folder)
    running, is_driven = state.names("running"), folder.is_driven()
    parts: list[RenderableType] = [status_table(state, folder)]
    parts += [Text(f"running {name}: {_progress(folder, state.runs[name].job)}") for name in running]
    for of_state, word in (("failed", "failed"), ("waiting", "will run again")):
        errors = [
            f"{word} {name}: {run.error}" for name, run in state.runs.items() if run.state == of_state and run.error
        ]
        more = [f"and {len(errors) - MAX_ERRORS} more {word}"] if len(errors) > MAX_ERRORS else []
        parts += [Text(line, style="red") for line in errors[:MAX_ERRORS] + more]
    parts.append(summary_line(state))
    command = resume_command(folder)
    if not is_driven and not running and state.names("waiting"):
        parts.append(Text(f"The study is not running. To resume it: {command}"))
    if not is_driven and state.names("failed"):
        parts.append(Text(f"To repeat failed runs: {command} --retry-failed"))
    return Group(*parts)


def status_table(state: StudyState, folder: StudyFolder) -> Table:
    """Return a table with one row per data set and model.

    A row has the finished runs of each stage, the selected value, and the numbers of running and failed runs.
    """
    table = Table(title=f"{state.plan.name} in {folder.path}", title_justify="left")
    for name in ("data", "model"):
        table.add_column(name)
    for name in ("tuned", "value", "rerun", "running", "failed"):
        table.add_column(name, justify="right")
    for pair in state.plan.pairs:
        runs = [run for run in state.runs.values() if run.job.pair == pair]
        done = {stage: [run.state == "done" for run in runs if run.job.stage == stage] for stage in ("tune", "rerun")}
        tuned, rerun = (f"{sum(of_stage)}/{len(of_stage)}" if of_stage else "·" for of_stage in done.values())
        value = next((f"{value:g}" for value in state.selected_values(*pair)), "·")
        running, failed = (sum(run.state == wanted for run in runs) for wanted in ("running", "failed"))
        style = "red" if failed else None
        table.add_row(*pair, tuned, value, rerun, str(running or "·"), str(failed or "·"), style=style)
    return table


def summary_line(state: StudyState) -> Text:
    """Return one line: the number of runs in each state, the reruns that wait for a selection, and the time left.

    The time is that of training, without scoring, with as many runs at a time as are running now (at least one).
    """
    parts = [f"{len(state.names(name))} {name}" for name in STATES]
    left = [(run.job.model.label, SHARES[run.state]) for run in state.runs.values() if run.state in SHARES]
    tuning = {r.job.pair: r.job.model for r in state.runs.values() if r.job.stage == "tune" and r.state in SHARES}
    unselected = [(model.label, 1.0) for model in tuning.values() for _ in range(model.rerun_seeds)]
    if unselected:
        parts.append(f"{len(unselected)} reruns not selected yet")
    if (seconds := _seconds_left(state, left + unselected)) is not None:
        parts.append(f"about {describe_duration(seconds / max(1, len(state.names('running'))))} of training left")
    return Text(", ".join(parts))


def _seconds_left(state: StudyState, left: Sequence[tuple[str, float]]) -> float | None:
    """Return the seconds of work in shares of runs of models, each as long as the finished runs of the same model.

    None if nothing is left, or nothing is finished.
    """
    seconds: dict[str, list[float]] = {}
    for run in state.runs.values():
        if run.results:
            seconds.setdefault(run.job.model.label, []).append(run.results.get("seconds") or 0.0)
    everything = [number for numbers in seconds.values() for number in numbers]
    if not left or not everything:
        return None
    return sum(fmean(seconds.get(model, everything)) * share for model, share in left)


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
def study_progress(folder: StudyFolder, *, show: bool = True) -> Iterator[Show]:
    """Yield a function that shows a state, for `run_study`.

    It draws a live table on a terminal, and elsewhere prints one line for each run that ends.
    """
    if not show:
        yield lambda state: None
        return
    if not sys.stderr.isatty():
        yield _line_printer()
        return
    with Live(console=Console(stderr=True), refresh_per_second=2) as live:
        yield lambda state: live.update(Group(summary_line(state), status_table(state, folder)))


def _line_printer() -> Show:
    last: dict[str, str] = {}
    started = time.monotonic()

    def show(state: StudyState) -> None:
        for name, run in state.runs.items():
            if last.get(name, run.state) != run.state and run.state in ("done", "failed"):
                reason = f": {run.error}" if run.error else ""
                seconds = time.monotonic() - started
                print(f"[{seconds:5.0f} s] {run.state} {name}{reason} ({summary_line(state)})", file=sys.stderr)
            last[name] = run.state

    return show


def describe_study(plan: Plan, out: str | os.PathLike[str]) -> str:
    """Return the runs of a study as lines of text, and mark those that are finished. Nothing is written.

    Raises:
        ValueError: if `run_study` would reject the plan or the folder.
    """
    state = read_state(plan, checked_folder(plan, out))
    state.require_consistent()
    # The values for the reruns of tuned models are unknown until tuning is over; the first stands in for them.
    first = {(d.label, m.label): next(iter(m.grid), None) for d in plan.data for m in plan.models}
    tuning, reruns = tune_jobs(plan), rerun_jobs(plan, first | state.rerun_values())
    done = state.names("done")

    def stage(title: str, jobs: Sequence[Job]) -> list[str]:
        lines = [f"{title}: {_count_runs(len(jobs))}"]
        for job in jobs:
            name = job.name if job.name in state.runs else f"{'/'.join(job.pair)}/(selected value)-s{job.seed}"
            lines.append(f"   {name}  {job.steps:,} updates{'  finished' * (job.name in done)}")
        return [*lines, ""]

    fidelity = [data.spec.preview().traits.load("fidelity").key for data in plan.data]
    rule = describe_rule(plan.near_db, plan.scored_weights, fidelity)
    jobs = [*tuning, *reruns]
    lines = [
        *(f"{plan.name}: {plan.about}".rstrip(": "), ""),
        *stage("1. tune", tuning),
        *(f"2. select, for each data set and model: {rule}", ""),
        *stage("3. rerun", reruns),
        *(f"4. report: tables, figures and a page in {Path(out) / 'report'}", ""),
        f"{_count_runs(len(jobs))}, {len(done)} known to be finished",
    ]
    if len(done) < len(jobs):
        lines.append("To estimate the time of one of them on this machine: qlae train MODEL … --dry-run")
    return "\n".join(lines)


def _count_runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
