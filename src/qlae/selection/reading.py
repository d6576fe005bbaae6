"""Read the runs that are to be compared: find them, check that they are of the same data, and find common images.

Runs are compared through their ``sample.npz``. If these are of the same images, nothing is encoded. If they have enough
images in common, these are used; otherwise the models encode the images of the first run.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import DataConfig, RunConfig
from ..data import SourceDataset
from ..metrics.inputs import Ints
from ..runs.directory import Run
from ..scoring.sample import PARTS, PREFIXES, ROW_PARTS, Arrays
from .representation import Representation, represent

MIN_COMMON = 2_000  # images that samples must share to be compared without encoding
PLACES = ("path", "source_file")  # entries of a recipe that say where files are, which may have moved


@dataclass(frozen=True)
class Skipped:
    """A run that cannot be compared, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, eq=False)
class Candidate:
    """A run that can be compared.

    Attributes:
        run: the run directory.
        config: its configuration.
        results: the content of its ``results.json``.
        indices: (n,) row numbers of the images of its sample.
        sources: (n, n_s) their sources; n_s is 0 if the data have none. Only the check for equal data reads them.
        arrays: its latents, codes and PSNR for these images, of one set of weights.
    """

    run: Run
    config: RunConfig
    results: dict[str, Any]
    indices: Ints
    sources: NDArray[Any]
    arrays: Arrays

    def represent(self, rows: NDArray[np.intp] | None = None) -> Representation:
        """Return the representation of the sample, or of some of its rows."""
        latents, codes = (self.arrays.get(name) for name in ("latents", "codes"))
        if rows is not None:
            latents, codes = (None if array is None else array[rows] for array in (latents, codes))
        return represent(latents, codes)


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


def read_candidates(runs: Sequence[Run], *, weights: str) -> tuple[list[Candidate], list[Skipped]]:
    """Return the runs that can be compared, and those that cannot because they are unfinished or damaged.

    Args:
        runs: the runs.
        weights: the set of weights, ``"averaged"`` or ``"raw"``.

    Raises:
        ValueError: two runs are of different data.
    """
    candidates: list[Candidate] = []
    skipped: list[Skipped] = []
    for run in runs:
        try:
            candidates.append(_read_candidate(run, weights))
        except (ValueError, TypeError, OSError) as error:  # arrays of a damaged sample may have any type and shape
            skipped.append(Skipped(run.path, _without_path(str(error), run.path)))
    for other in candidates[1:]:
        first = candidates[0]
        difference = data_difference(other.config.data, first.config.data) or _sample_difference(other, first)
        if difference:
            raise ValueError(
                f"{other.run.path} and {first.run.path} are of different data: {difference}. Agreement compares codes "
                "of the same images, so give runs of one data set only"
            )
    return candidates, skipped


def _without_path(message: str, path: Path) -> str:
    """Return a message about a run without the path that it begins with.

    >>> _without_path("runs/a is unfinished", Path("runs/a")), _without_path("runs/a/x.npz is damaged", Path("runs/a"))
    ('it is unfinished', 'x.npz is damaged')
    """
    if message.startswith(f"{path} "):
        return f"it {message.removeprefix(f'{path} ')}"
    return message.removeprefix(f"{path}{os.sep}").removeprefix(f"{path}: ")


def _read_candidate(run: Run, weights: str) -> Candidate:
    """Return a run with its sample; raise ``ValueError`` if it is unfinished or damaged."""
    config, results = run.config, run.results
    if results["steps"] < config.training.steps:
        raise ValueError(f"{run.path} {run.describe_unfinished(results['steps'])}")
    arrays = run.arrays(run.sample_path)
    own = {name: arrays[PREFIXES[weights] + name] for name in PARTS if PREFIXES[weights] + name in arrays}
    remedy = f"run `qlae evaluate {run.path}` to write it again"
    if not {"indices", "sources"} <= arrays.keys() or not {"latents", "codes"} & own.keys():
        raise ValueError(
            f"{run.sample_path} has no indices or sources, or no latents of the {weights} weights; {remedy}"
        )
    indices = arrays["indices"]
    fits = indices.ndim == 1 and all(own[name].shape[:1] == indices.shape for name in own if name in ROW_PARTS)
    fits = fits and all(own[name].ndim == 2 and own[name].shape[1] for name in ("latents", "codes") if name in own)
    if not fits or indices.dtype.kind != "i" or len(indices) < 2 or len(np.unique(indices)) < len(indices):
        raise ValueError(f"{run.sample_path} holds arrays that do not fit together; {remedy}")
    if int(arrays.get("step", results["steps"])) != results["steps"]:
        raise ValueError(f"{run.sample_path} is of another update than results.json; {remedy}")
    candidate = Candidate(run, config, results, indices.astype(np.int64), arrays["sources"], own)
    candidate.represent()  # so that codes and latents that cannot be read are found here
    return candidate


def leave_out_copies(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Skipped]]:
    """Return the runs without copies of earlier ones, which would agree with them fully, and the copies.

    Collapsed runs are no copies of each other: their latents are equal because none is used.
    """
    originals: dict[tuple[Any, ...], Path] = {}
    kept, skipped = [], []
    for candidate in candidates:
        encoded = candidate.arrays.get("codes", candidate.arrays.get("latents"))
        assert encoded is not None
        content = hashlib.sha256(candidate.indices.tobytes() + encoded.tobytes()).digest()
        key = candidate.results["model"], candidate.results["seed"], encoded.shape, content
        original = originals.setdefault(key, candidate.run.path)
        if original != candidate.run.path and candidate.represent().num_used:
            skipped.append(Skipped(candidate.run.path, f"it is a copy of {original} (same model, seed and latents)"))
        else:
            kept.append(candidate)
    return kept, skipped


def data_difference(one: DataConfig, other: DataConfig) -> str | None:
    """Return in words how two data sets differ; None if they are the same."""
    many = one.observed.traits.many
    facts = {
        "name": (one.name, other.name),
        "resolution": (one.resolution, other.resolution),
        "size": (one.observed.size, other.observed.size),
        "origin": (one.origin, other.origin),
        f"number of {many}": (one.num_images, other.num_images),
        "sources": (one.source_names, other.source_names),
        "recipe": (_plain_recipe(one), _plain_recipe(other)),
    }
    for name, (a, b) in facts.items():
        if a != b:
            return f"the {name} is {a} and {b}" if name != "sources" else f"the sources are {a} and {b}"
    if one.checksum and other.checksum and one.checksum != other.checksum:
        return f"the {many} differ, although they have the same number and name"
    return None


def _sample_difference(one: Candidate, other: Candidate) -> str | None:
    """Return in words that two samples have different sources for the same images, as data passed as arrays may."""
    if not np.array_equal(one.indices, other.indices) or np.array_equal(one.sources, other.sources):
        return None
    return "the same row numbers have other sources in one sample than in the other"


def _plain_recipe(data: DataConfig) -> dict[str, Any] | None:
    """Return what decides the images, without entries that are empty and without the folders of files."""
    if data.recipe is None:
        return None
    recipe = {key: value for key, value in data.recipe.items() if value or value == 0}
    return {key: Path(value).name if key in PLACES else value for key, value in recipe.items()}


def common_representations(
    candidates: Sequence[Candidate], *, weights: str, data: SourceDataset | None, device: str, show: bool
) -> list[Representation]:
    """Return the representation of each run, all of the same images in the same order.

    Args:
        candidates: the runs.
        weights, data, device, show: as for `ranking.select`; they matter only if the samples differ.
    """
    first = candidates[0].indices
    if all(np.array_equal(candidate.indices, first) for candidate in candidates):
        return [candidate.represent() for candidate in candidates]
    shared = first
    for candidate in candidates[1:]:
        shared = np.intersect1d(shared, candidate.indices)
    if len(shared) >= MIN_COMMON:
        return [candidate.represent(_rows_of(shared, candidate.indices)) for candidate in candidates]
    from .encoding import encode_images  # the only case that needs the models

    rows = max((candidate.indices for candidate in candidates), key=len)
    return encode_images(candidates, rows, num_shared=len(shared), weights=weights, data=data, device=device, show=show)


def _rows_of(shared: Ints, indices: Ints) -> NDArray[np.intp]:
    """Return where the shared indices stand in the indices of one run."""
    order = np.argsort(indices)
    return np.asarray(order[np.searchsorted(indices, shared, sorter=order)])
