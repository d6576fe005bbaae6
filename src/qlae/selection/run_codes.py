"""What is compared of several runs: the codes that they assign to the same observations.

Codes are read from the ``sample.npz`` of each run. If the samples are of the same observations, nothing is encoded. If
they have enough observations in common, only these are used; otherwise the models encode the largest sample.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._process import evaluation_process, pick_device
from ..config import RunConfig
from ..data import SourceDataset, images_of, load_from_config
from ..metrics.inputs import Ints
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.load_model import model_from
from ..scoring.evaluation import encode_sample
from ..scoring.sample import PARTS, PREFIXES, Arrays
from .agreement import Representation, represent

MIN_COMMON = 2_000  # observations that samples must share to be compared without encoding


@dataclass(frozen=True)
class Skipped:
    """A run that cannot be compared, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, eq=False)
class RunCodes:
    """A run and the codes, or continuous latents, of its evaluation sample."""

    run: Run
    config: RunConfig
    results: dict[str, Any]
    weights: str  # that encoded the sample, "averaged" or "raw"
    indices: Ints  # (n,) row numbers of the observations
    sources: NDArray[Any]  # (n, n_s), to detect different data; n_s is 0 if the data have none
    arrays: Arrays  # the codes and latents of these weights, whichever the model has

    def represent(self, rows: Any = slice(None)) -> Representation:
        """Return the representation of the sample, or of some of its rows."""
        return represent(**{name: self.arrays[name][rows] for name in ("latents", "codes") if name in self.arrays})


def find_runs(runs: Iterable[Run | str | os.PathLike[str]] | Run | str | os.PathLike[str]) -> list[Run]:
    """Return runs, given run directories or folders with run directories in them, at any depth."""
    named = [runs] if isinstance(runs, Run | str | os.PathLike) else runs
    found: dict[Path, Run] = {}
    for path in (Path(run.path if isinstance(run, Run) else run) for run in named):
        single = (path / "config.json").is_file() or not path.is_dir()
        there = [Run.open(path)] if single else [Run(file.parent) for file in sorted(path.rglob("config.json"))]
        if not there:
            raise ValueError(f"{path} holds no run directory: no config.json is in it or below it")
        for run in there:
            found.setdefault(run.path.resolve(), run)
    return list(found.values())


def read_codes(runs: Sequence[Run], *, weights: str) -> tuple[list[RunCodes], list[Skipped]]:
    """Return the codes of finished runs of the same data, and the runs that are unfinished, damaged or copies.

    A copy of an earlier run would agree with it fully. Collapsed runs are not copies of each other: their latents are
    equal because none is used.

    Raises:
        ValueError: two runs are of different data.
    """
    finished: list[RunCodes] = []
    skipped: list[Skipped] = []
    for run in runs:
        try:
            finished.append(_read_run(run, weights))
        except (ValueError, TypeError, OSError) as error:
            skipped.append(Skipped(run.path, str(error)))
    for other in finished[1:]:
        _require_same_data(finished[0], other)
    originals: dict[tuple[Any, ...], Path] = {}
    compared = []
    for codes in finished:
        encoded = codes.arrays["codes"] if "codes" in codes.arrays else codes.arrays["latents"]
        content = hashlib.sha256(codes.indices.tobytes() + encoded.tobytes()).digest()
        path = codes.run.path
        original = originals.setdefault((codes.results["model"], codes.results["seed"], encoded.shape, content), path)
        if original != path and codes.represent().num_used:
            skipped.append(Skipped(path, f"{path} is a copy of {original} (same model, seed and latents)"))
        else:
            compared.append(codes)
    return compared, skipped


def _read_run(run: Run, weights: str) -> RunCodes:
    """Return the codes of one run; raise ``ValueError`` if it is unfinished or damaged."""
    config, results = run.config, run.results
    if results["steps"] < config.training.steps:
        raise ValueError(f"{run.path} {run.describe_unfinished(results['steps'])}")
    arrays = run.arrays(run.sample_path, ("indices", "sources"))
    own = {name: arrays[PREFIXES[weights] + name] for name in PARTS if PREFIXES[weights] + name in arrays}
    indices = arrays["indices"].astype(np.int64)
    problem = ""
    if not {"latents", "codes"} & own.keys():
        problem = f"has no latents of the {weights} weights"
    elif len(indices) < 2 or len(np.unique(indices)) < len(indices):
        problem = "holds one row, or the same row twice"
    elif int(arrays.get("step", results["steps"])) != results["steps"]:
        problem = "is of another update than results.json"
    if problem:
        raise ValueError(f"{run.sample_path} {problem}; run `qlae evaluate {run.path}` to write it again")
    codes = RunCodes(run, config, results, weights, indices, arrays["sources"], own)
    codes.represent()  # raises an error here, where the run is skipped, if codes cannot be read
    return codes


def _require_same_data(first: RunCodes, other: RunCodes) -> None:
    difference = other.config.data.difference(first.config.data)
    if not difference and np.array_equal(other.indices, first.indices):  # as data passed as arrays may be
        same = np.array_equal(other.sources, first.sources)
        difference = None if same else "the same row numbers have other sources in one sample than in the other"
    if difference:
        raise ValueError(
            f"{other.run.path} and {first.run.path} are of different data: {difference}. Agreement compares codes "
            "of the same images, so give runs of one data set only"
        )


def common_representations(
    runs: Sequence[RunCodes], *, data: SourceDataset | None = None, device: str = "cpu", show: bool = False
) -> list[Representation]:
    """Return the representation of each run, all of the same observations in the same order.

    ``data``, ``device`` and ``show`` are those of `ranking.select`, and matter only if the samples differ.
    """
    samples = [run.indices for run in runs]
    shared, largest = reduce(np.intersect1d, samples), max(samples, key=len)
    if len(shared) >= min(MIN_COMMON, len(largest)):
        return [run.represent(np.intersect1d(run.indices, shared, return_indices=True)[1]) for run in runs]
    images: NDArray[Any] | None = None
    representations = []
    for run in runs:
        if not np.array_equal(run.indices, largest):
            snapshot = checkpoint.load(run.run.path)
            if snapshot is None or snapshot.state["step"] != run.results["steps"]:
                raise ValueError(
                    f"the samples have only {len(shared):,} images in common, and {run.run.path} has no checkpoint of "
                    "the scored update to encode others with. Evaluate all runs on equally many images: "
                    "`qlae evaluate RUN --num-samples N`"
                )
            if images is None:
                data = load_from_config(run.config.data) if data is None else data
                images = images_of(data, largest, str(pick_device(device)))
            with evaluation_process():
                model = model_from(run.run, snapshot, weights=run.weights, device=device)
                arrays = encode_sample(model, images, task=f"encoding, {run.run.path.name}", show=show)
            run = replace(run, indices=largest, arrays=arrays)
        representations.append(run.represent())
    return representations
