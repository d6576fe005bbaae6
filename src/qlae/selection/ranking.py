"""Rank runs by their agreement with each other, quantify how certain the ranking is, and name the run to take.

The score of a run is the mean of its agreements with the other runs. UDR takes the median, which ignores the agreement
between disentangled runs if these are fewer than half, as they may be among several models. Runs whose reconstructions
are much worse than the best are not taken, whatever they agree on. Scores by sources, if there are any, are reported
and never influence the choice.

The latents that are compared are read from the ``sample.npz`` of each run. If the samples are of the same observations,
nothing is encoded. If they have enough observations in common, only these are used; otherwise the models encode the
largest sample.
"""

import hashlib
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .._process import evaluation_process, pick_device, usual_errors
from ..config import DataConfig, RunConfig
from ..data import SourceDataset, images_of, load_from_config
from ..metrics import find_score
from ..metrics.inputs import Bools, Floats, Ints
from ..registry import OBJECTIVES
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.load_model import model_from
from ..scoring.evaluation import encode_sample
from ..scoring.fidelity import fidelity_db
from ..scoring.sample import PARTS, PREFIXES, Arrays
from .agreement import Representation, agreement_matrix, chance_agreement, represent, scores_of

NEAR_DB = 6.0  # twice the root mean squared error of the best run; as in studies
FEW_SHARE = 0.25  # of the latents that the median run uses; a run with no more is not taken
NUM_DRAWS = 2_000
MIN_RUNS = 4  # with fewer, a warning says that agreement means little
MIN_SAMPLES = 1_000  # with fewer observations, unrelated runs agree noticeably
TIMES_CHANCE = 3.0  # the best agreement should be at least this many times that of unrelated runs
SHOWN = ("psnr", "held_out_psnr", "r2", "held_out_r2", "infom")  # scores that do not decide
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

    def represent(self) -> Representation:
        """Return the representation of the sample."""
        return represent(**{name: self.arrays[name] for name in ("latents", "codes") if name in self.arrays})

    def take(self, rows: Ints) -> "RunCodes":
        """Return the codes and latents of some rows of the sample."""
        arrays: Arrays = {name: self.arrays[name][rows] for name in ("latents", "codes") if name in self.arrays}
        return replace(self, indices=self.indices[rows], sources=self.sources[rows], arrays=arrays)


@dataclass(frozen=True)
class RankedRun:
    """A run and the evidence for it.

    Attributes:
        run: the run directory.
        model, seed: as in its results.
        agreement: mean agreement with the other runs, from 0 to 1.
        spread: the middle half of these agreements, as (lower quartile, upper quartile).
        first: share of the bootstrap draws in which the run comes first.
        num_used, num_latents: latents that vary enough to count, and all latents.
        psnr: mean PSNR of images in dB; None for other data, or if the run does not have it.
        r2: R² of vectors and series; None for images, or if the run does not have it.
        is_near: whether it may be taken: its reconstructions are nearly as good as the best, and it does not use few
            latents.
        uses_few: whether it uses at most a quarter as many latents as the median run.
        infom: InfoM, if the data have sources. Not used for the choice.
        held_out_psnr, held_out_r2: ``psnr`` and ``r2`` of rows that took no part in the training; None if there are
            none.
    """

    run: Run
    model: str
    seed: int
    agreement: float
    spread: tuple[float, float]
    first: float
    num_used: int
    num_latents: int
    psnr: float | None
    r2: float | None
    is_near: bool
    uses_few: bool
    infom: float | None
    held_out_psnr: float | None = None
    held_out_r2: float | None = None

    @property
    def path(self) -> Path:
        return self.run.path

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in a form that JSON can hold."""
        fields = {name: value for name, value in vars(self).items() if name != "run"}
        return {"run": str(self.path), **fields, "spread": list(self.spread)}


@dataclass(frozen=True, eq=False)
class Selection:
    """Runs in the order of their agreement.

    Attributes:
        runs: the runs, best first.
        matrix: (n, n) agreement of each pair, in the same order; NaN on the diagonal.
        chance: mean agreement of these runs if the rows of each are shuffled, so that they have nothing in common.
        skipped: runs that could not be compared, and why.
        num_images: number of observations that they were compared on.
        kind: of the observations: ``"images"``, ``"vectors"`` or ``"series"``.
        data: name of the data set.
        weights: the set of weights, ``"averaged"`` or ``"raw"``.
        near_db: how many decibels below the best PSNR a run may be to be taken.
        warnings: caveats about the selection.
    """

    runs: tuple[RankedRun, ...]
    matrix: Floats
    chance: float
    skipped: tuple[Skipped, ...]
    num_images: int
    kind: str
    data: str
    weights: str
    near_db: float
    warnings: tuple[str, ...] = ()

    @property
    def best(self) -> RankedRun:
        """The run to take: the first that may be taken."""
        return next(run for run in self.runs if run.is_near)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in a form that JSON can hold."""
        matrix = [[None if np.isnan(value) else round(float(value), 6) for value in row] for row in self.matrix]
        return {
            "take": str(self.best.path),
            "data": self.data,
            "kind": self.kind,
            "weights": self.weights,
            "num_images": self.num_images,
            "near_db": self.near_db if math.isfinite(self.near_db) else None,
            "chance": round(self.chance, 6),
            "runs": [run.to_dict() for run in self.runs],
            "agreement": matrix,
            "skipped": [{"run": str(skip.path), "reason": skip.reason} for skip in self.skipped],
            "warnings": list(self.warnings),
        }


@usual_errors()
def select(
    runs: Iterable[Run | str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    weights: str = "averaged",
    near_db: float = NEAR_DB,
    data: SourceDataset | None = None,
    device: str = "cpu",
    show: bool = True,
) -> Selection:
    """Rank runs of different seeds, hyperparameters or models of one data set without labels.

    Args:
        runs: run directories, or folders that hold run directories.
        weights: the set of weights, ``"averaged"`` or ``"raw"``.
        near_db: how many decibels below the best PSNR a run may be to be taken, if it was trained to reconstruct.
        data: the data, if they cannot be loaded as the runs say; needed only if the samples are of other images.
        device: where models run.
        show: whether to draw progress bars.

    Raises:
        ValueError: the runs are of different data, or fewer than two can be compared.
    """
    require_known(weights, PREFIXES, "set of weights")
    if not near_db >= 0:
        raise ValueError(f"near_db={near_db:g} must not be negative")
    compared, skipped = read_codes(find_runs(runs), weights=weights)
    if len(compared) < 2:
        reasons = "".join(f"\n  {skip.reason}" for skip in skipped)
        raise ValueError(
            f"agreement needs at least two finished runs, better {MIN_RUNS} or more, got {len(compared)}"
            f"{reasons and f'. Skipped:{reasons}'}"
        )
    representations = common_representations(compared, data=data, device=device, show=show)
    matrix = agreement_matrix(representations, show=show)
    chance = chance_agreement(representations)
    warnings = _caveats(compared, representations[0].num_samples, float(scores_of(matrix).max()), chance)
    decibels = [fidelity_db(run.results[weights]) for run in compared]
    ranked = _rank(compared, representations, matrix, decibels, near_db)
    # Equal agreements, as of two runs, are sorted by fidelity.
    order = sorted(range(len(ranked)), key=lambda i: (-round(ranked[i].agreement, 9), -(decibels[i] or 0.0)))
    return Selection(
        runs=tuple(ranked[i] for i in order),
        matrix=matrix[np.ix_(order, order)],
        chance=chance,
        skipped=tuple(skipped),
        num_images=representations[0].num_samples,
        kind=compared[0].config.data.observations.kind,
        data=compared[0].config.data.name,
        weights=weights,
        near_db=float(near_db),
        warnings=tuple(warnings),
    )


def _rank(
    runs: Sequence[RunCodes],
    representations: Sequence[Representation],
    matrix: Floats,
    decibels: Sequence[float | None],
    near_db: float,
) -> list[RankedRun]:
    """Return the runs with their scores, in the given order."""
    scores, used = scores_of(matrix), np.array([representation.num_used for representation in representations])
    # Agreement does not detect a run that misses most sources: whatever a single latent encodes, it resembles one part
    # of every other run.
    few = used <= FEW_SHARE * float(np.median(used))
    reconstructing = [OBJECTIVES.entry_of(run.config.objective).part.reconstructs for run in runs]  # unlike a GAN
    compared = [value if counts else None for value, counts in zip(decibels, reconstructing, strict=True)]
    best = max((value for value in compared if value is not None), default=0.0)
    near = np.array([value is None or value >= best - near_db for value in compared])
    near = near & ~few if (near & ~few).any() else near
    first = shares_first(matrix, near).tolist()
    quartiles = np.nanquantile(matrix, (0.25, 0.75), axis=1).T.tolist()
    return [
        RankedRun(
            run=run.run,
            model=run.results["model"],
            seed=run.results["seed"],
            agreement=float(scores[i]),
            spread=tuple(quartiles[i]),
            first=first[i],
            num_used=representations[i].num_used,
            num_latents=representations[i].num_latents,
            is_near=bool(near[i]),
            uses_few=bool(few[i]),
            **{key: run.results[run.weights].get(key) for key in SHOWN},
        )
        for i, run in enumerate(runs)
    ]


def shares_first(matrix: Floats, eligible: Bools) -> Floats:
    """Return how often each run (n,) would come first if the other runs were drawn anew (bootstrap).

    Each draw takes n of the runs with replacement, and each eligible run is scored by its agreement with those, itself
    left out. The matrix (n, n) has NaN on the diagonal.
    """
    count = len(matrix)
    random = np.random.default_rng(0)
    wins = np.zeros(count)
    valid = 0
    for _ in range(NUM_DRAWS):
        drawn = random.integers(count, size=count)
        if len(set(drawn.tolist())) < 2:  # that run would have nothing to agree with
            continue
        scores = np.where(eligible, scores_of(matrix[:, drawn]), -np.inf)
        best = scores >= scores.max() - 1e-12
        wins += best / best.sum()
        valid += 1
    return wins / max(valid, 1)


def _caveats(runs: Sequence[RunCodes], num_samples: int, best: float, chance: float) -> list[str]:
    """List caveats about the selection, from the highest agreement and that of unrelated runs."""
    count, traits = len(runs), runs[0].config.data.observations.traits
    messages = []
    if count == 2:
        fidelity = find_score(traits.load("fidelity").key).title
        messages.append(
            "two runs agree with each other equally, so agreement cannot choose between them; the higher "
            f"{fidelity} decides. Train more seeds"
        )
    elif count < MIN_RUNS:
        messages.append(f"only {count} runs: the agreement of so few says little. Train more seeds")
    if num_samples < MIN_SAMPLES:
        messages.append(
            f"the runs are compared on only {num_samples:,} {traits.many}, where agreement is imprecise; better are "
            f"{MIN_SAMPLES:,} or more, if there are as many: `qlae evaluate RUN --num-samples N`"
        )
    if best < TIMES_CHANCE * chance:
        messages.append(
            f"the best agreement is {best:.3f}, and that of unrelated runs would be {chance:.3f}: these runs have "
            "hardly anything in common, so the choice says little"
        )
    return messages


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
    if getattr(config.objective, "imitated", ()):
        raise ValueError(f"{run.path} imitates the latents of other runs, so it agrees with them in any case")
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


def _fitting_data(config: DataConfig, data: SourceDataset | None, sample: RunCodes) -> SourceDataset:
    """Return the data that samples are from; raise an error if what was passed cannot be these data."""
    if data is None:
        return load_from_config(config)
    if difference := config.observations.difference(data.observations):
        raise ValueError(difference)
    if len(data) <= int(sample.indices.max()):
        raise ValueError(
            f"{sample.run.path} was evaluated on row {int(sample.indices.max()):,}, and the data that were passed have "
            f"{len(data):,} rows; pass the data that the runs were trained on"
        )
    return data


def common_representations(
    runs: Sequence[RunCodes], *, data: SourceDataset | None = None, device: str = "cpu", show: bool = False
) -> list[Representation]:
    """Return the representation of each run for the same observations; arguments as for `common_codes`."""
    return [run.represent() for run in common_codes(runs, data=data, device=device, show=show)]


def common_codes(
    runs: Sequence[RunCodes], *, data: SourceDataset | None = None, device: str = "cpu", show: bool = False
) -> list[RunCodes]:
    """Return the codes of each run, all of the same observations in the same order.

    ``data``, ``device`` and ``show`` are those of `select`, and matter only if the samples differ.
    """
    samples = [run.indices for run in runs]
    shared, largest = reduce(np.intersect1d, samples), max(runs, key=lambda run: len(run.indices))
    if len(shared) >= min(MIN_COMMON, len(largest.indices)):
        return [run.take(np.intersect1d(run.indices, shared, return_indices=True)[1]) for run in runs]
    images: NDArray[Any] | None = None
    common = []
    for run in runs:
        if not np.array_equal(run.indices, largest.indices):
            snapshot = checkpoint.load(run.run.path)
            if snapshot is None or snapshot.state["step"] != run.results["steps"]:
                raise ValueError(
                    f"the samples have only {len(shared):,} images in common, and {run.run.path} has no checkpoint of "
                    "the scored update to encode others with. Evaluate all runs on equally many images: "
                    "`qlae evaluate RUN --num-samples N`"
                )
            if images is None:
                data = _fitting_data(run.config.data, data, largest)
                images = images_of(data, largest.indices, str(pick_device(device)))
            with evaluation_process():
                model = model_from(run.run, snapshot, weights=run.weights, device=device)
                arrays = encode_sample(model, images, task=f"encoding, {run.run.path.name}", show=show)
            run = replace(run, indices=largest.indices, sources=largest.sources, arrays=arrays)
        common.append(run)
    return common
