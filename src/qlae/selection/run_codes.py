"""The codes that several runs assign to the same observations.

Codes are read from the ``sample.npz`` of each run. If the samples are of the same observations, nothing is encoded. If
they have enough observations in common, only these are used; otherwise the models encode the largest sample.
"""

import hashlib
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._process import evaluation_process, pick_device
from ..config import RunConfig
from ..data import SourceDataset, images_of, load_from_config
from ..metrics.inputs import Ints
from ..models.model import Model
from ..registry import OBJECTIVES
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
    """A run and the codes, or continuous latents, of its evaluation sample.

    Attributes:
        run: the run directory.
        config: its configuration.
        results: the content of its ``results.json``.
        weights: the set of weights that encoded the sample, ``"averaged"`` or ``"raw"``.
        indices: (n,) row numbers of the observations.
        sources: (n, n_s) their sources; n_s is 0 if the data have none. Only used to detect different data.
        arrays: the ``codes`` and ``latents`` of these weights, whichever the model has.
    """

    run: Run
    config: RunConfig
    results: dict[str, Any]
    weights: str
    indices: Ints
    sources: NDArray[Any]
    arrays: Arrays

    @property
    def scores(self) -> dict[str, Any]:
        """The scores of the weights."""
        scores: dict[str, Any] = self.results[self.weights]
        return scores

    @property
    def reconstructs(self) -> bool:
        """Whether the model is trained to reconstruct, unlike a GAN."""
        return bool(OBJECTIVES.entry_of(self.config.objective).part.reconstructs)

    def represent(self, rows: NDArray[np.intp] | None = None) -> Representation:
        """Return the representation of the sample, or of some of its rows."""
        latents, codes = (self.arrays.get(name) for name in ("latents", "codes"))
        if rows is not None:
            latents, codes = (None if array is None else array[rows] for array in (latents, codes))
        return represent(latents, codes)

    def load_model(self, device: str) -> Model | None:
        """Return the model; None if the run has no checkpoint of the update that was scored, or a damaged one."""
        try:
            snapshot = checkpoint.load(self.run.path)
        except ValueError as error:
            warnings.warn(str(error), stacklevel=2)
            return None
        if snapshot is None or snapshot.state["step"] != self.results["steps"]:
            return None
        return model_from(self.run, snapshot, weights=self.weights, device=device)

    def load_observations(self, rows: Ints, data: SourceDataset | None, device: str) -> NDArray[Any]:
        """Return rows of the run's data; ``data`` replaces them if they cannot be loaded."""
        data = load_from_config(self.config.data) if data is None else data
        return images_of(data, rows, str(pick_device(device)))


def find_runs(paths: Iterable[str | os.PathLike[str]]) -> list[Run]:
    """Return the runs of some paths: run directories, or folders with run directories in them, at any depth.

    Raises:
        ValueError: a path does not exist, or holds no run.
    """
    found: dict[Path, Run] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise ValueError(f"{path} does not exist; name run directories, or folders that hold some")
        if path.is_file():
            raise ValueError(f"{path} is a file, not a run directory; give the folder, such as {path.parent}")
        configs = [path / "config.json"] if (path / "config.json").is_file() else sorted(path.rglob("config.json"))
        if not configs:
            raise ValueError(f"{path} holds no run directory: no config.json is in it or below it")
        for config in configs:
            found.setdefault(config.parent.resolve(), Run(config.parent))
    return list(found.values())


def read_codes(runs: Sequence[Run], *, weights: str) -> tuple[list[RunCodes], list[Skipped]]:
    """Return the codes of finished runs of the same data, and the runs that are unfinished or damaged.

    Args:
        runs: the runs.
        weights: the set of weights, ``"averaged"`` or ``"raw"``.

    Raises:
        ValueError: two runs are of different data.
    """
    finished: list[RunCodes] = []
    skipped: list[Skipped] = []
    for run in runs:
        try:
            finished.append(_read_run(run, weights))
        except (ValueError, TypeError, OSError) as error:
            skipped.append(Skipped(run.path, _without_path(str(error), run.path)))
    for other in finished[1:]:
        first = finished[0]
        difference = other.config.data.difference(first.config.data) or _sample_difference(other, first)
        if difference:
            raise ValueError(
                f"{other.run.path} and {first.run.path} are of different data: {difference}. Agreement compares codes "
                "of the same images, so give runs of one data set only"
            )
    return finished, skipped


def _read_run(run: Run, weights: str) -> RunCodes:
    """Return the codes of one run; raise ``ValueError`` if it is unfinished or damaged."""
    config, results = run.config, run.results
    if results["steps"] < config.training.steps:
        raise ValueError(f"{run.path} {run.describe_unfinished(results['steps'])}")
    arrays = run.arrays(run.sample_path, ("indices", "sources"))
    own = {name: arrays[PREFIXES[weights] + name] for name in PARTS if PREFIXES[weights] + name in arrays}
    remedy = f"run `qlae evaluate {run.path}` to write it again"
    if not {"latents", "codes"} & own.keys():
        raise ValueError(f"{run.sample_path} has no latents of the {weights} weights; {remedy}")
    indices = arrays["indices"].astype(np.int64)
    if len(indices) < 2 or len(np.unique(indices)) < len(indices):
        raise ValueError(f"{run.sample_path} holds one row, or the same row twice; {remedy}")
    if int(arrays.get("step", results["steps"])) != results["steps"]:
        raise ValueError(f"{run.sample_path} is of another update than results.json; {remedy}")
    codes = RunCodes(run, config, results, weights, indices, arrays["sources"], own)
    codes.represent()  # raises an error here, where the run is skipped, if codes cannot be read
    return codes


def _without_path(message: str, path: Path) -> str:
    """Return a message about a run without the path that it begins with.

    >>> _without_path("runs/a is unfinished", Path("runs/a")), _without_path("runs/a/x.npz is damaged", Path("runs/a"))
    ('it is unfinished', 'x.npz is damaged')
    """
    if message.startswith(f"{path} "):
        return f"it {message.removeprefix(f'{path} ')}"
    return message.removeprefix(f"{path}{os.sep}").removeprefix(f"{path}: ")


def leave_out_copies(runs: Sequence[RunCodes]) -> tuple[list[RunCodes], list[Skipped]]:
    """Return the runs without copies of earlier ones, which would agree with them fully, and the copies.

    Collapsed runs are not copies of each other: their latents are equal because none is used.
    """
    originals: dict[tuple[Any, ...], Path] = {}
    kept, skipped = [], []
    for run in runs:
        encoded = run.arrays["codes"] if "codes" in run.arrays else run.arrays["latents"]
        content = hashlib.sha256(run.indices.tobytes() + encoded.tobytes()).digest()
        key = run.results["model"], run.results["seed"], encoded.shape, content
        original = originals.setdefault(key, run.run.path)
        if original != run.run.path and run.represent().num_used:
            skipped.append(Skipped(run.run.path, f"it is a copy of {original} (same model, seed and latents)"))
        else:
            kept.append(run)
    return kept, skipped


def _sample_difference(one: RunCodes, other: RunCodes) -> str | None:
    """Describe that two samples have different sources for the same rows, as data passed as arrays may."""
    if not np.array_equal(one.indices, other.indices) or np.array_equal(one.sources, other.sources):
        return None
    return "the same row numbers have other sources in one sample than in the other"


def common_representations(
    runs: Sequence[RunCodes], *, data: SourceDataset | None = None, device: str = "cpu", show: bool = False
) -> list[Representation]:
    """Return the representation of each run, all of the same observations in the same order.

    Args:
        runs: the runs.
        data, device, show: as for `ranking.select`; they matter only if the samples differ.
    """
    shared = runs[0].indices
    if all(np.array_equal(run.indices, shared) for run in runs):
        return [run.represent() for run in runs]
    for run in runs[1:]:
        shared = np.intersect1d(shared, run.indices)
    if len(shared) >= MIN_COMMON:
        return [run.represent(_rows_of(shared, run.indices)) for run in runs]
    return _encode_again(runs, len(shared), data=data, device=device, show=show)


def _rows_of(shared: Ints, indices: Ints) -> NDArray[np.intp]:
    """Return the positions of the shared indices among the indices of one run."""
    order = np.argsort(indices)
    return np.asarray(order[np.searchsorted(indices, shared, sorter=order)])


def _encode_again(
    runs: Sequence[RunCodes], num_shared: int, *, data: SourceDataset | None, device: str, show: bool
) -> list[Representation]:
    """Return the representations of the largest sample, encoded by the models of the runs that lack it."""
    rows = max((run.indices for run in runs), key=len)
    images: NDArray[Any] | None = None
    representations = []
    for run in runs:
        if not np.array_equal(run.indices, rows):
            model = run.load_model(device)
            if model is None:
                raise ValueError(
                    f"the samples have only {num_shared:,} images in common, and {run.run.path} has no checkpoint to "
                    "encode others with. Evaluate all runs on equally many images: `qlae evaluate RUN --num-samples N`"
                )
            images = run.load_observations(rows, data, device) if images is None else images
            with evaluation_process():
                arrays = encode_sample(model, images, task=f"encoding, {run.run.path.name}", show=show)
            run = replace(run, indices=rows, arrays=arrays)
        representations.append(run.represent())
    return representations
