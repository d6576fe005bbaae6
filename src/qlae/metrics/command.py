"""What `qlae score FILE.npz` does: read, score with a progress bar, print a table or JSON, draw the heatmap."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from qlae.metrics.infomec import InfoMEC
from qlae.metrics.scoring import METRICS, Scores, score_file
from qlae.metrics.table import plot_nmi, print_scores


def score_command(
    path: str | Path,
    *,
    metrics: Sequence[str] = ("infomec",),
    protocol: str = "paper",
    seed: int = 0,
    bootstrap: int = 0,
    n_jobs: int | None = None,
    as_json: bool = False,
    plot: str | Path | None = None,
) -> Scores:
    """Score a file with arrays `sources` and `latents` and show the result.

    Parameters
    ----------
    path : an .npz file.
    metrics : names out of `METRICS`, or "all".
    protocol : of InfoMEC.
    seed, bootstrap, n_jobs : as for `score`.
    as_json : print JSON, and nothing else, to standard output.
    plot : where to write the NMI heatmap; needs the metric "infomec".

    Raises `ValueError` with a message for the user.
    """
    names = list(METRICS) if list(metrics) == ["all"] or metrics == "all" else list(metrics)
    if plot is not None and "infomec" not in names:
        raise ValueError(f"plot draws the NMI of InfoMEC, and metrics are {names}: add 'infomec'.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = _with_progress(path, names, protocol, seed, bootstrap, n_jobs)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"note: {message}", file=sys.stderr)
    if as_json:
        print(json.dumps(scores.to_dict(), indent=2))
    else:
        print_scores(scores, title=str(path))
    if plot is not None:
        result = scores.results["infomec"]
        assert isinstance(result, InfoMEC)
        written = plot_nmi(result, plot, title=Path(path).stem)
        if not as_json:
            print(f"wrote {written}")
    return scores


def _with_progress(
    path: str | Path, names: Sequence[str], protocol: str, seed: int, bootstrap: int, n_jobs: int | None
) -> Scores:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=len(names) + bootstrap)

        def show(part: str) -> None:
            bar.update(task, description=part, advance=1)

        return score_file(
            path,
            metrics=names,
            protocol=protocol,
            seed=seed,
            bootstrap=bootstrap,
            n_jobs=n_jobs,
            progress=show,
        )
