"""Progress on long work: a bar on a terminal, a line now and then elsewhere; nothing where it is not wanted."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_SECONDS = 30.0  # between lines where there is no terminal

Report = Callable[..., None]


@contextlib.contextmanager
def progress_bar(task: str, total: int, *, start: int = 0, show: bool = True) -> Iterator[Report]:
    """Yield ``report(done, note="")`` to call as work goes on; further numbers, such as a total, are passed over.

    Args:
        task: what is being done, such as ``"rendering"``.
        total: how many steps there are in all.
        start: how many are done already.
        show: ``False`` to say nothing.
    """
    if not show:
        yield lambda done, *_, note="": None
    elif sys.stderr.isatty():
        with _bar() as progress:
            bar = progress.add_task(task, total=total, completed=start, note="")
            yield lambda done, *_, note="": progress.update(bar, completed=done, note=note)
    else:
        yield _lines(task, total)


@contextlib.contextmanager
def growing_bar(task: str, *, show: bool = True) -> Iterator[Report]:
    """Yield ``report(done, total)`` for work whose size is known only once it has begun; no bar if it never does."""
    with contextlib.ExitStack() as stack:
        inner: list[Report] = []

        def report(done: int, total: int) -> None:
            if not inner:
                inner.append(stack.enter_context(progress_bar(task, total, show=show)))
            inner[0](done)

        yield report


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=4,
    )


def _lines(task: str, total: int) -> Report:
    last = time.monotonic()

    def report(done: int, *_: int, note: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            print(f"{task} {done:,}/{total:,} {note}".rstrip(), file=sys.stderr, flush=True)

    return report
