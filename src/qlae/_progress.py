"""Progress of long work: a bar on a terminal, an occasional line elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_SECONDS = 30.0  # between two lines where there is no terminal

#: Turns a note of the library into the words of its user interface; the command line sets its own.
translate: Callable[[str], str] = str
#: Called as ``report(done, total=None, note="")``.
Report = Callable[..., None]


@contextlib.contextmanager
def progress_bar(task: str, total: int | None = None, *, start: int = 0, show: bool = True) -> Iterator[Report]:
    """Show the progress of a task of ``total`` steps, of which ``start`` are done; print nothing without ``show``.

    Yields:
        ``report(done, total=None, note="")``, to be called after each step. The bar appears at its first call, which
        gives the total of work whose number of steps is not known before.
    """
    if not show:
        yield lambda *_, **__: None
    elif not sys.stderr.isatty():
        yield _lines(task, total)
    else:
        columns = (
            *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}")),
            *(TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()),
        )
        progress = Progress(*columns, console=Console(stderr=True), refresh_per_second=4)
        bar = progress.add_task(task, total=total, completed=start, note="")

        def report(done: int, total: int | None = total, note: str = "") -> None:
            progress.update(bar, total=total, completed=done, note=note)
            progress.start()

        try:
            yield report
        finally:
            progress.stop()


def print_note(message: str, *, show: bool = True) -> None:
    """Print a line about what is done, such as a default that the machine decides; nothing without ``show``."""
    if show:
        print(f"qlae: {translate(message)}", file=sys.stderr, flush=True)


def _lines(task: str, total: int | None) -> Report:
    last = time.monotonic()

    def report(done: int, total: int | None = total, note: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            print(f"{task} {done:,}/{total or 0:,} {note}".rstrip(), file=sys.stderr, flush=True)

    return report
