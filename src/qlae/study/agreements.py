"""Compare the runs of a study on data without sources, by their agreement with each other (see `qlae.selection`)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..runs.directory import Run
from ..selection.agreement import agreement_matrix, scores_of
from ..selection.run_codes import common_representations, read_codes

KEY = "agreement"


def has_sources(results: Mapping[str, Any]) -> bool:
    """Return whether the data of a run have sources, so that InfoMEC can score it."""
    return bool(results["data"]["source_names"])


def run_agreements(runs: Sequence[Run], weights: str) -> dict[Path, float]:
    """Return the mean agreement of each run with the others, by path.

    Runs whose sample is missing or damaged are absent, and so is a run without others to agree with.
    """
    stamps = tuple((str(run.path), _stamp(run)) for run in runs)
    return dict(_agreements(stamps, weights))


def _stamp(run: Run) -> tuple[int, int]:
    """Return what changes if the sample of a run is written again."""
    try:
        status = run.sample_path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)  # a study asks for the same runs again and again: while it runs, and for its report
def _agreements(stamps: tuple[tuple[str, tuple[int, int]], ...], weights: str) -> tuple[tuple[Path, float], ...]:
    compared, _ = read_codes([Run(path) for path, _ in stamps], weights=weights)
    if len(compared) < 2:
        return ()
    scores = scores_of(agreement_matrix(common_representations(compared)))
    return tuple((run.run.path, float(score)) for run, score in zip(compared, scores, strict=True))
