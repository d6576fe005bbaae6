"""What ``qlae train --seeds`` and ``qlae select`` share: train and compare seeds, and suggest what to do next."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import with_imports

if TYPE_CHECKING:
    from ..data import SourceDataset
    from ..runs.directory import Run

PICTURES = ("interventions", "interpolations", "between-codes", "reconstructions", "generated", "nmi", "curves")


def train_and_compare(
    model: str,
    data: "SourceDataset",
    *,
    out: Path,
    seeds: int,
    options: dict[str, Any],
    imports: tuple[str, ...],
    start: float,
    show: bool,
) -> None:
    """Train several seeds, and print how they compare and which run to take.

    Args:
        model: its name.
        data: the data set.
        out: the folder of the runs.
        seeds: number of seeds.
        options: of the training and of its execution.
        imports: modules that the user imports first, for the command that is suggested.
        start: when the command began, by ``time.monotonic``.
        show: whether to draw progress bars.
    """
    from ..report import print_results
    from ..selection.display import print_selection
    from ..selection.train_seeds import train_seeds
    from ..training.callbacks import Callback

    trained: list[Run] = []

    class Count(Callback):
        def on_end(self, run: "Run") -> None:
            trained.append(run)

    selection = train_seeds(model, data, out=out, seeds=seeds, callbacks=[Count()], show=show, **options)
    runs = sorted((run.run for run in selection.runs), key=lambda run: int(run.results["seed"]))
    print_results(runs, warn=False)
    print_selection(selection)
    print(f"{out}: {describe_work(len(runs), len(trained))} in {time.monotonic() - start:.0f} s")
    print(f"Picture: agreement.png in {out}. {next_step(selection.best.run, imports)}")


def describe_work(num_runs: int, num_trained: int) -> str:
    """Return in words what was done now, and what had been done before.

    >>> describe_work(3, 3), describe_work(3, 1), describe_work(3, 0)
    ('3 runs trained, scored and compared', '3 runs compared, 1 of them trained now,', '3 finished runs compared')
    """
    if not num_trained:
        return f"{num_runs} finished runs compared"
    if num_trained < num_runs:
        return f"{num_runs} runs compared, {num_trained} of them trained now,"
    return f"{num_runs} runs trained, scored and compared"


def next_step(run: "Run", imports: tuple[str, ...]) -> str:
    """Return where the pictures of a run are, and a command that works on what the run has."""
    from ..runs.pretrained import is_pretrained

    pictures = [f"{name}.png" for name in PICTURES if (run.path / f"{name}.png").is_file()]
    place = f"Pictures: {', '.join(pictures)} in {run.path}. " if pictures else ""
    if run.updates_made is not None or is_pretrained(run.path):
        return f"{place}Next: {with_imports(f'qlae explore {run.path}', imports)}"
    missing = f"{run.path} has no checkpoint, so `qlae explore` cannot open it."
    if run.pictures_path.is_file():
        missing += f" Next: {with_imports(f'qlae report {run.path}', imports)}"
    return place + missing
