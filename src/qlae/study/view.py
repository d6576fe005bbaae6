"""Show a study in the terminal: which runs are done, running, failed and waiting, live or once."""

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .driver import Show, current_index
from .engine import Engine
from .estimate import format_seconds, seconds_left
from .folder import STATES, Entry, Index, StudyFolder
from .jobs import num_updates, rerun_jobs, tune_jobs
from .plan import Plan

MAX_ERRORS = 5  # shown per state


def status_table(index: Index, *, title: str) -> Table:
    """Return a table with one row per data set and model.

    A row has the finished runs of each stage, the selected value, and the numbers of running and failed runs.
    """
    table = Table(title=title, title_justify="left")
    for name in ("data", "model"):
        table.add_column(name)
    for name in ("tuned", "value", "rerun", "running", "failed"):
        table.add_column(name, justify="right")
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in index.runs.values():
        groups.setdefault((entry.data, entry.model), []).append(entry)
    data_sets = list(dict.fromkeys(data for data, _ in groups))
    for (data, model), entries in sorted(groups.items(), key=lambda item: data_sets.index(item[0][0])):
        values = index.selected_values(data, model)
        value = f"{values[0]:g}" if values else "·"
        counts = [sum(entry.state == state for entry in entries) for state in ("running", "failed")]
        stages = (_count_done(entries, "tune"), value, _count_done(entries, "rerun"))
        table.add_row(
            data, model, *stages, *(str(count or "·") for count in counts), style="red" if counts[1] else None
        )
    return table


def _count_done(entries: list[Entry], stage: str) -> str:
    of_stage = [entry.state == "done" for entry in entries if entry.stage == stage]
    return f"{sum(of_stage)}/{len(of_stage)}" if of_stage else "·"


def summary_line(index: Index, num_workers: int | None, plan: Plan) -> Text:
    """Return one line: the number of runs in each state, the reruns that wait for a selection, and the time left.

    Args:
        index: the state of the study.
        num_workers: number of runs at a time; None if nobody is running the study. The line then says how long the
            runs take one after the other.
        plan: the plan of the study.
    """
    entries = list(index.runs.values())
    parts = [f"{sum(entry.state == state for entry in entries)} {state}" for state in STATES]
    tuning = {(e.data, e.model) for e in entries if e.stage == "tune" and e.state in ("waiting", "running")}
    num_seeds = {model.label: plan.rerun_seeds_of(model) for model in plan.models}
    num_unselected = sum(num_seeds[model] for _, model in tuning)
    if num_unselected:
        parts.append(f"{num_unselected} reruns not selected yet")
    left = seconds_left([*entries, *[Entry("rerun", "", "", None, 0)] * num_unselected], num_workers or 1)
    if left:
        parts.append(f"about {format_seconds(left)} {'left' if num_workers else 'of work left'}")
    return Text(", ".join(parts))


@contextlib.contextmanager
def study_progress(folder: StudyFolder, plan: Plan, engine: Engine, *, show: bool = True) -> Iterator[Show]:
    """Yield a function that shows an index, for `run_study`.

    It draws a live table on a terminal, and elsewhere prints one line for each run that ends.
    """
    if not show:
        yield lambda index: None
        return
    title = f"{plan.name} in {folder.path}"
    if not sys.stderr.isatty():
        yield _line_printer(plan, engine)
        return
    with Live(console=Console(stderr=True), refresh_per_second=2) as live:

        def draw(index: Index) -> None:
            live.update(Group(summary_line(index, engine.num_workers, plan), status_table(index, title=title)))

        yield draw


def _line_printer(plan: Plan, engine: Engine) -> Show:
    states: dict[str, str] = {}
    started = time.monotonic()

    def show(index: Index) -> None:
        for name, entry in index.runs.items():
            if states.get(name, entry.state) != entry.state and entry.state in ("done", "failed"):
                reason = f": {entry.error}" if entry.error else ""
                line = summary_line(index, engine.num_workers, plan)
                print(f"[{time.monotonic() - started:5.0f} s] {entry.state} {name}{reason} ({line})", file=sys.stderr)
            states[name] = entry.state

    return show


def status(folder: StudyFolder) -> RenderableType:
    """Return the state of a study from its folder: the table, the progress of running runs, and errors."""
    plan, last_index = folder.plan, folder.index
    index = current_index(plan, folder, last_index, strict=False)
    is_running = folder.is_driven()
    running = [name for name, entry in index.runs.items() if is_running and _is_running(name, entry, last_index)]
    for name in running:
        index.runs[name].state = "running"
    steps = {job.name: num_updates(job) for job in tune_jobs(plan) + rerun_jobs(plan, index.rerun_values(plan))}
    parts: list[RenderableType] = [status_table(index, title=f"{plan.name} in {folder.path}")]
    parts += [Text(f"running {name}: {_progress(folder, name, steps.get(name))}") for name in running]
    parts += _error_lines("failed", index)
    parts += _error_lines("waiting", index, "will run again")
    parts.append(summary_line(index, max(1, len(running)) if is_running else None, plan))
    states = {entry.state for entry in index.runs.values()}
    command = resume_command(folder)
    if not is_running and "waiting" in states:
        parts.append(Text(f"The study is not running. To resume it: {command}"))
    if not is_running and "failed" in states:
        parts.append(Text(f"To repeat failed runs: {command} --retry-failed"))
    return Group(*parts)


def resume_command(folder: StudyFolder) -> str:
    """Return the command line that resumes a study."""
    imports = folder.imports if folder.plan_path.is_file() else ()
    return shlex.join(["qlae", "study", str(folder.path), *(part for name in imports for part in ("--import", name))])


def _is_running(name: str, entry: Entry, last_index: Index) -> bool:
    last = last_index.runs.get(name)
    return entry.state == "waiting" and last is not None and last.state == "running"


def _error_lines(state: str, index: Index, word: str = "") -> list[RenderableType]:
    """Return one line for each of the first runs in a state that have an error."""
    errors = [(name, entry.error) for name, entry in index.runs.items() if entry.state == state and entry.error]
    lines: list[RenderableType] = [
        Text(f"{word or state} {name}: {error}", style="red") for name, error in errors[:MAX_ERRORS]
    ]
    if len(errors) > MAX_ERRORS:
        lines.append(Text(f"and {len(errors) - MAX_ERRORS} more {word or state}", style="red"))
    return lines


def _progress(folder: StudyFolder, name: str, steps: int | None) -> str:
    """Return the last logged update of a running run, in words."""
    log = folder.run(name).log()
    if not log:
        return "no update logged yet"
    progress = f"update {log[-1]['step']:,}" + (f" of {steps:,}" if steps else "")
    return f"{progress}, loss {log[-1]['loss']:.4f}" if "loss" in log[-1] else progress
