"""What is compared of several runs: the codes that they assign to the same observations, and the straight-through gap.

Codes are read from the ``sample.npz`` of each run. If the samples are of the same observations, nothing is encoded. If
they have enough observations in common, only these are used; otherwise the models encode the largest sample.

The straight-through gap says how far the codes of a model are from the outputs of its encoder. After Friede et al.
2023, "Learning Disentangled Discrete Representations", it is the difference between the losses of two reconstructions,
one decoded from the codes z and one from the values before rounding:

    gap = |mean L(x, decode(z)) − mean L(x, decode(z before rounding))|,

where L is the cross entropy of an image in nats, summed over pixels and channels. The decoder is trained on codes only,
so the gap is small if the encoder maps images close to the codes.
"""

import hashlib
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._process import evaluation_process, pick_device
from .._progress import progress_bar
from ..config import RunConfig
from ..data import SourceDataset, images_of, load_from_config
from ..metrics.inputs import Ints
from ..models.latents import DiscreteLatent
from ..models.model import CHUNK, Model, run_in_own_precision
from ..registry import OBJECTIVES
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.load_model import model_from
from ..scoring.evaluation import encode_sample
from ..scoring.sample import PARTS, PREFIXES, Arrays
from .agreement import Representation, represent

MIN_COMMON = 2_000  # observations that samples must share to be compared without encoding
NUM_IMAGES = 1_000  # for gaps


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


def find_runs(runs: Iterable[Run | str | os.PathLike[str]] | Run | str | os.PathLike[str]) -> list[Run]:
    """Return runs, given run directories or folders with run directories in them, at any depth.

    Raises:
        ValueError: a path does not exist, or holds no run.
    """
    named = [runs] if isinstance(runs, Run | str | os.PathLike) else runs
    found: dict[Path, Run] = {}
    for path in (Path(run.path if isinstance(run, Run) else run) for run in named):
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
        first = finished[0]
        difference = other.config.data.difference(first.config.data)
        if not difference and np.array_equal(other.indices, first.indices):  # as data passed as arrays may be
            same = np.array_equal(other.sources, first.sources)
            difference = None if same else "the same row numbers have other sources in one sample than in the other"
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
            skipped.append(
                Skipped(run.run.path, f"{run.run.path} is a copy of {original} (same model, seed and latents)")
            )
        else:
            kept.append(run)
    return kept, skipped


def common_representations(
    runs: Sequence[RunCodes], *, data: SourceDataset | None = None, device: str = "cpu", show: bool = False
) -> list[Representation]:
    """Return the representation of each run, all of the same observations in the same order.

    ``data``, ``device`` and ``show`` are those of `ranking.select`, and matter only if the samples differ.
    """
    shared = runs[0].indices
    if all(np.array_equal(run.indices, shared) for run in runs):
        return [run.represent() for run in runs]
    for run in runs[1:]:
        shared = np.intersect1d(shared, run.indices)
    if len(shared) >= MIN_COMMON:
        orders = [np.argsort(run.indices) for run in runs]
        return [
            run.represent(order[np.searchsorted(run.indices, shared, sorter=order)])
            for run, order in zip(runs, orders, strict=True)
        ]
    return _encode_again(runs, len(shared), data=data, device=device, show=show)


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


def straight_through_gaps(
    runs: Sequence[RunCodes], *, data: SourceDataset | None, device: str, show: bool
) -> list[float | None]:
    """Return the straight-through gap of each run, in nats per image.

    It is None where latents are continuous, the model is not trained to reconstruct, or a run has no checkpoint.
    """
    gaps: list[float | None] = [None] * len(runs)
    images: NDArray[Any] | None = None
    with progress_bar("gaps", len(runs), show=show) as report:
        for number, run in enumerate(runs):
            if "codes" in run.arrays and run.reconstructs:
                model = run.load_model(device)
                if model is not None:
                    if images is None:
                        stride = max(1, len(run.indices) // NUM_IMAGES)
                        images = run.load_observations(run.indices[::stride], data, device)
                    gaps[number] = straight_through_gap(model, images)
            report(number + 1)
    return gaps


def straight_through_gap(model: Model, images: NDArray[Any]) -> float | None:
    """Return the gap of one model, the mean over observations in nats; None if it does not round its latents.

    >>> from qlae.models.latents import ContinuousLatent
    >>> from qlae.observations import square_images
    >>> from torch import nn
    >>> model = Model(nn.Flatten(), ContinuousLatent(3), nn.Identity(), observations=square_images(8))
    >>> straight_through_gap(model, np.zeros((2, 8, 8, 3), np.uint8)) is None
    True
    """
    latent = model.latent
    if not isinstance(latent, DiscreteLatent) or latent.num_inputs != latent.num_outputs:
        return None
    differences = []
    with evaluation_process(), torch.inference_mode():
        for start in range(0, len(images), CHUNK):
            batch = model.form.to_input(torch.from_numpy(images[start : start + CHUNK]).to(model.device))
            encoded = run_in_own_precision(model.encoder, batch)
            losses = [
                model.form.nats(run_in_own_precision(model.decoder, z), batch)
                for z in (latent(encoded).z, latent.unrounded(encoded))
            ]
            differences.append((losses[0] - losses[1]).double().cpu().numpy())
    return float(abs(np.concatenate(differences).mean()))
