"""A study in the terminal: a table of what is done, running, failed and to come, alive or once."""

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .driver import Show, current
from .engine import Engine
from .estimate import seconds_left, told
from .folder import STATES, Entry, Index, StudyFolder
from .jobs import num_updates, rerun_jobs, tune_jobs
from .plan import Plan

MAX_ERRORS = 5


def status_table(index: Index, *, title: str) -> Table:
    """One row a data set and model: runs done of each stage, the value selected, and what is running or failed."""
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
        chosen = index.chosen(data, model)
        value = f"{chosen[0]:g}" if chosen else "·"
        counts = [sum(entry.state == state for entry in entries) for state in ("running", "failed")]
        cells = [_done(entries, "tune"), value, _done(entries, "rerun"), *(str(count or "·") for count in counts)]
        table.add_row(data, model, *cells, style="red" if counts[1] else None)
    return table


def _done(entries: list[Entry], stage: str) -> str:
    of_stage = [entry.state == "done" for entry in entries if entry.stage == stage]
    return f"{sum(of_stage)}/{len(of_stage)}" if of_stage else "·"


def summary(index: Index, num_workers: int | None, plan: Plan) -> Text:
    """One line: how many runs are in each state, how many reruns wait for a selection, and the time left.

    Where nobody is running it (``num_workers`` is None), the time that its runs would take one after the other.
    """
    entries = list(index.runs.values())
    parts = [f"{sum(entry.state == state for entry in entries)} {state}" for state in STATES]
    tuning = {(e.data, e.model) for e in entries if e.stage == "tune" and e.state in ("waiting", "running")}
    unplanned = len(tuning) * plan.rerun_seeds
    if unplanned:
        parts.append(f"{unplanned} reruns not selected yet")
    left = seconds_left([*entries, *[_later() for _ in range(unplanned)]], num_workers or 1)
    if left:
        parts.append(f"about {told(left)} {'left' if num_workers else 'of work left'}")
    return Text(", ".join(parts))


def _later() -> Entry:
    return Entry("rerun", "", "", None, 0)


@contextlib.contextmanager
def shown(folder: StudyFolder, plan: Plan, engine: Engine, *, show: bool = True) -> Iterator[Show]:
    """Yield what `run_study` calls with the index: a live table on a terminal, else a line for each run that ends."""
    if not show:
        yield lambda index: None
        return
    title = f"{plan.name} in {folder.path}"
    if not sys.stderr.isatty():
        yield _lines(plan, engine)
        return
    with Live(console=Console(stderr=True), refresh_per_second=2) as live:

        def draw(index: Index) -> None:
            live.update(Group(summary(index, engine.num_workers, plan), status_table(index, title=title)))

        yield draw


def _lines(plan: Plan, engine: Engine) -> Show:
    states: dict[str, str] = {}
    started = time.monotonic()

    def show(index: Index) -> None:
        for name, entry in index.runs.items():
            if states.get(name, entry.state) != entry.state and entry.state in ("done", "failed"):
                why = f": {entry.error}" if entry.error else ""
                left = summary(index, engine.num_workers, plan)
                print(f"[{time.monotonic() - started:5.0f} s] {entry.state} {name}{why} ({left})", file=sys.stderr)
            states[name] = entry.state

    return show


def status(folder: StudyFolder) -> RenderableType:
    """The state of a study as its folder tells it: the table, what is running and how far, and what failed."""
    plan, before = folder.plan, folder.index
    index = current(plan, folder, before, strict=False)
    driven = folder.is_driven()
    running = [name for name, entry in index.runs.items() if driven and _is_running(name, entry, before)]
    for name in running:
        index.runs[name].state = "running"
    steps = {job.name: num_updates(job) for job in tune_jobs(plan) + rerun_jobs(plan, index.values(plan))}
    parts: list[RenderableType] = [status_table(index, title=f"{plan.name} in {folder.path}")]
    parts += [Text(f"running {name}: {_progress(folder, name, steps.get(name))}") for name in running]
    parts += _told_errors("failed", index)
    parts += _told_errors("waiting", index, "to be done again")
    parts.append(summary(index, max(1, len(running)) if driven else None, plan))
    states = {entry.state for entry in index.runs.values()}
    if not driven and "waiting" in states:
        parts.append(Text(f"Nobody is running it now. To go on: qlae study {shlex.quote(str(folder.path))}"))
    if not driven and "failed" in states:
        parts.append(Text(f"To try failed runs again: qlae study {folder.path} --retry-failed"))
    return Group(*parts)


def _is_running(name: str, entry: Entry, before: Index) -> bool:
    last = before.runs.get(name)
    return entry.state == "waiting" and last is not None and last.state == "running"


def _told_errors(state: str, index: Index, word: str = "") -> list[RenderableType]:
    """The first runs of a state that an error is known of."""
    found = [(name, e.error) for name, e in index.runs.items() if e.state == state and e.error]
    told: list[RenderableType] = [
        Text(f"{word or state} {name}: {error}", style="red") for name, error in found[:MAX_ERRORS]
    ]
    if len(found) > MAX_ERRORS:
        told.append(Text(f"and {len(found) - MAX_ERRORS} more {word or state}", style="red"))
    return told


def _progress(folder: StudyFolder, name: str, steps: int | None) -> str:
    log = folder.run(name).log()
    if not log:
        return "no update logged yet"
    done = f"update {log[-1]['step']:,}" + (f" of {steps:,}" if steps else "")
    return f"{done}, loss {log[-1]['loss']:.4f}"
