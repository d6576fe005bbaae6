"""Progress of long work: a bar on a terminal, an occasional line elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_SECONDS = 30.0  # between two lines where there is no terminal

#: Called as ``report(done, note="")``.
Report = Callable[..., None]


@contextlib.contextmanager
def progress_bar(task: str, total: int, *, start: int = 0, show: bool = True) -> Iterator[Report]:
    """Show the progress of a task of ``total`` steps, of which ``start`` are done; print nothing without ``show``.

    Yields:
        ``report(done, note="")``, to be called after each step. Further positional arguments, such as a total, are
        ignored, so that it also serves as a ``progress(done, total)`` callback.
    """
    if not show:
        yield lambda done, *_, note="": None
    elif sys.stderr.isatty():
        columns = (
            *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}")),
            *(TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()),
        )
        with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as progress:
            bar = progress.add_task(task, total=total, completed=start, note="")
            yield lambda done, *_, note="": progress.update(bar, completed=done, note=note)
    else:
        yield _lines(task, total)


@contextlib.contextmanager
def growing_bar(task: str, *, show: bool = True) -> Iterator[Report]:
    """Show the progress of work whose number of steps is known only once it has begun.

    Yields:
        ``report(done, total)``. The bar appears at its first call.
    """
    with contextlib.ExitStack() as stack:
        bars: list[Report] = []

        def report(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(progress_bar(task, total, show=show)))
            bars[0](done)

        yield report


def _lines(task: str, total: int) -> Report:
    last = time.monotonic()

    def report(done: int, *_: int, note: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            print(f"{task} {done:,}/{total:,} {note}".rstrip(), file=sys.stderr, flush=True)

    return report
