"""Consensus of runs: compare their latents on the same observations, and keep those on which they agree.

`factors` finds the latents. This file reads the runs, or arrays of codes, and returns a `Consensus`: a code made of the
latents of several runs, which `Consensus.encode` computes for other observations. Sources, if the data have any, are
never used to find it.

A consensus of arrays does not import torch, so the modules that read runs are imported where they are needed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._io import write_bytes, write_json, write_npz
from .._progress import progress_bar
from ..metrics.inputs import Floats, Ints, unwrap_tensor
from .factors import Factor, FoundFactors, find_factors, find_factors_of_arrays

if TYPE_CHECKING:
    from ..data import SourceDataset
    from ..models.model import Model
    from ..runs.directory import Run
    from .ranking import Skipped

    RunLike = Run | str | os.PathLike[str]

JSON_FILE, CODES_FILE, PICTURE_FILE, PAGE_FILE = "consensus.json", "codes.npz", "factors.png", "index.html"
SURE_RUNS = 4  # with fewer, a warning says that they can make the same mistake
SURE_SAMPLES = 1_000  # with fewer observations, a warning says that similarities are imprecise
DIGITS = 6  # of numbers in files


@dataclass(frozen=True, eq=False)
class Consensus:
    """A code made of the latents that several runs, or several models, agree on.

    Attributes:
        found: the factors and the evidence for them; ``found.codes`` are labels numbered anew.
        codes: (n, number of factors) the codes of the sample, as the models that they are from number them. For a
            continuous latent, its bin of 20 with equally many observations.
        names: of the runs, as ``Factor.run`` counts them.
        runs: the run directories; empty for arrays.
        skipped: runs that could not be compared, and why.
        weights: the set of weights, ``"averaged"`` or ``"raw"``; empty for arrays.
        num_images: number of observations that the runs were compared on.
        data: name of the data set; empty for arrays.
        kind: of the observations: ``"images"``, ``"vectors"`` or ``"series"``; empty for arrays.
        warnings: caveats about the consensus.
        latents: (n, number of factors) the numbers that the codes stand for, or continuous latents as they are; None
            if a model has neither.
        is_continuous: for each factor, whether its latent is continuous and its codes are bins.
        indices: (n,) row numbers of the observations in the data set.
        sources: (n, number of sources), which have no part in the consensus.
    """

    found: FoundFactors
    codes: Ints
    names: tuple[str, ...]
    runs: tuple[Run, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    weights: str = ""
    num_images: int = 0
    data: str = ""
    kind: str = ""
    warnings: tuple[str, ...] = ()
    latents: NDArray[Any] | None = None
    is_continuous: tuple[bool, ...] = ()
    indices: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sources: NDArray[Any] = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors, one per column of ``codes``, the most replicable first."""
        return self.found.factors

    @property
    def confirmed(self) -> tuple[Factor, ...]:
        """The factors that at least half of the other runs found."""
        return self.found.confirmed

    def describe(self) -> str:
        """Return the verdict on the whole in a sentence or two."""
        using = sum(count > 0 for count in self.found.num_used)
        if using < 2:
            which = "no run has" if using == 0 else f"only {self._using()[0]} has"
            return f"No consensus: {which} latents that vary, so there is nothing to compare."
        return self.found.describe()

    def describe_factor(self, number: int) -> str:
        """Return the verdict on a factor in a sentence."""
        factor = self.factors[number]
        if not self.confirmed and factor.num_found > 1:
            others = f"{factor.num_found - 1} of {len(factor.found) - 1} other runs"
            return f"somewhat alike in {others}: not enough to rely on it"
        return factor.describe()

    def _using(self) -> list[str]:
        return [name for name, count in zip(self.names, self.found.num_used, strict=True) if count]

    def __str__(self) -> str:
        from .consensus_display import consensus_text

        return consensus_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the codes in a form that JSON can hold."""
        return {
            "verdict": self.describe(),
            "data": self.data,
            "kind": self.kind,
            "weights": self.weights,
            "num_images": self.num_images,
            "runs": [
                {
                    "name": name,
                    "run": str(self.runs[k].path) if self.runs else None,
                    "num_used": self.found.num_used[k],
                    "found_again": {str(latent): count for latent, count in self.found.found_again[k].items()},
                }
                for k, name in enumerate(self.names)
            ],
            "coverage": round(self.found.coverage, DIGITS),
            "chance": round(self.found.chance, DIGITS),
            "factors": [self._factor_to_dict(k) for k in range(len(self.factors))],
            "skipped": [{"run": str(skip.path), "reason": skip.reason} for skip in self.skipped],
            "warnings": list(self.warnings),
        }

    def _factor_to_dict(self, number: int) -> dict[str, Any]:
        factor = self.factors[number]
        return {
            "factor": number,
            "run": self.names[factor.run],
            "latent": factor.latent,
            "is_continuous": bool(self.is_continuous[number]),
            "status": factor.status,
            "verdict": self.describe_factor(number),
            "num_found": factor.num_found,
            "purity": round(factor.purity, DIGITS),
            "replicability": round(factor.replicability, DIGITS),
            "stability": None if np.isnan(factor.stability) else round(factor.stability, DIGITS),
            "counterparts": {
                name: {"latent": latent, "similarity": round(similarity, DIGITS), "found": bool(found)}
                for name, latent, similarity, found in zip(
                    self.names, factor.counterparts, factor.similarities, factor.found, strict=True
                )
                if latent >= 0
            },
        }

    def save(self, folder: str | os.PathLike[str], *, device: str = "cpu", show: bool = False) -> list[Path]:
        """Write the consensus to a folder, and return the paths.

        The files are ``consensus.json`` (the factors), ``codes.npz`` (the codes of the sample, as ``codes`` and, where
        they exist, ``latents`` and ``indices``), ``factors.png`` (a picture of factors × runs) and, for runs,
        ``index.html``, a page with the verdicts and traversals of each factor, decoded by the models of the runs. Files
        of an earlier consensus are replaced; the runs stay as they are.

        Args:
            folder: it is created if it does not exist.
            device: where the models run.
            show: whether to draw progress bars.
        """
        from .consensus_picture import plot_consensus

        paths = [Path(folder) / name for name in (JSON_FILE, CODES_FILE, PICTURE_FILE)]
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        write_json(paths[0], self.to_dict() | {"scores": self.scores()})
        arrays = {"codes": self.codes, "latents": self.latents, "indices": self.indices if self.runs else None}
        write_npz(paths[1], **{name: array for name, array in arrays.items() if array is not None})
        plot_consensus(self, paths[2])
        if self.runs:
            from .consensus_page import consensus_page

            paths.append(Path(folder) / PAGE_FILE)
            write_bytes(paths[3], consensus_page(self, device=device, show=show).encode())
        return paths

    def encode(self, data: SourceDataset | NDArray[Any], *, device: str = "cpu", show: bool = False) -> Ints:
        """Return the codes (n, number of factors) of other observations, by the models of the runs.

        Each model is loaded once. The codes are numbered as in ``codes``.

        Args:
            data: a data set, or an array of observations such as images (n, h, w, 3) uint8.
            device: where the models run.
            show: whether to draw progress bars.
        """
        if not self.runs:
            raise ValueError(
                "this consensus is of arrays, so it has no models: encode the observations with your models, and take "
                f"the columns {self._columns()}"
            )
        images: Any = getattr(data, "images", data)
        table = np.zeros((len(images), len(self.factors)), dtype=np.int64)
        used = sorted({factor.run for factor in self.factors})
        with progress_bar("encoding", len(used), show=show) as report:
            for done, run in enumerate(used, start=1):
                columns = [k for k, factor in enumerate(self.factors) if factor.run == run]
                table[:, columns] = self._encode_with(run, columns, images, device)
                report(done)
        return table

    def _columns(self) -> str:
        return ", ".join(f"{factor.latent} of {self.names[factor.run]}" for factor in self.factors) or "(none)"

    def _encode_with(self, run: int, columns: Sequence[int], images: Any, device: str) -> Ints:
        """Return the codes (n, columns) of the factors that are latents of one run."""
        from .._process import evaluation_process

        latents = [self.factors[k].latent for k in columns]
        with evaluation_process():
            model = self.load_model(run, device=device)
            if not self.is_continuous[columns[0]]:
                return np.asarray(model.encode(images)[:, latents])
            values = model.latents(images)[:, latents]
        assert self.latents is not None
        bins = [
            np.searchsorted(_bin_edges(self.latents[:, k], self.codes[:, k]), column)
            for k, column in zip(columns, values.T, strict=True)
        ]
        return np.stack(bins, axis=1)

    def load_model(self, run: int, *, device: str = "cpu") -> Model:
        """Return the model of a run, by its position, with the weights that were compared.

        Raises:
            ValueError: the run has no checkpoint of the update that was compared.
        """
        from ..runs.load_model import load

        directory = self.runs[run]
        made, compared = directory.updates_made, directory.results["steps"]
        if made is not None and made != compared:
            raise ValueError(
                f"{directory.path} was scored after update {compared:,}, and its checkpoint is of update {made:,}; run "
                f"`qlae evaluate {directory.path}`"
            )
        return load(directory.path, weights=self.weights, device=device)

    def scores(self) -> dict[str, Any] | None:
        """Return InfoMEC of the code next to that of the single runs; None if the data have no sources.

        The entries are ``code`` and ``confirmed`` (the confirmed factors alone; None if there are none), and ``mean``
        and ``best`` over those runs that were scored in the same way, of which there are ``num_runs``. ``best`` is the
        run with the highest InfoM. ``sources`` has, for each factor, the name of the source that it is most informative
        about and their NMI, or None. Scores have no influence on the consensus.
        """
        return self._scores

    @cached_property
    def _scores(self) -> dict[str, Any] | None:
        from .consensus_display import score_consensus

        return score_consensus(self)


def consensus(
    runs: Iterable[RunLike] | RunLike | Iterable[Any],
    *,
    weights: str = "averaged",
    data: SourceDataset | None = None,
    device: str = "cpu",
    show: bool = True,
) -> Consensus:
    """Return the latents on which several runs of the same data agree, found without labels.

    Args:
        runs: run directories, or folders that hold run directories, which may differ in seed, hyperparameters and
            model; or arrays (n, n_z) of codes (integers) or latents (floats) that any models gave for the same rows.
        weights: the set of weights, ``"averaged"`` or ``"raw"``.
        data: the data, if they cannot be loaded as the runs say; needed only if the samples are of other images.
        device: where models run, if images have to be encoded.
        show: whether to draw progress bars.

    Raises:
        ValueError: fewer than two runs can be compared, or they are of different data.

    >>> sources = np.random.default_rng(0).integers(4, size=(2000, 2))
    >>> found = consensus([sources, 3 - sources[:, ::-1]])
    >>> found.codes.shape, found.describe()
    ((2000, 2), 'Consensus: 2 factors, each found again by other runs.')
    """
    given: list[Any] = [runs] if _is_path(runs) else list(runs)  # type: ignore[arg-type]
    are_paths = [_is_path(item) for item in given]
    if any(are_paths) and not all(are_paths):
        raise ValueError(
            f"runs holds {sum(are_paths)} paths and {len(given) - sum(are_paths)} other objects: give run directories "
            "or arrays of codes, not both"
        )
    if given and not any(are_paths):
        return _of_arrays(given)
    return _of_runs(given, weights=weights, data=data, device=device, show=show)


def _is_path(item: Any) -> bool:
    return isinstance(item, str | os.PathLike) or hasattr(item, "config_path")  # of a Run, which would import torch


def _of_arrays(given: Sequence[Any]) -> Consensus:
    """Return the consensus of arrays of codes or latents."""
    arrays = [_as_table(item, number) for number, item in enumerate(given)]
    found = find_factors_of_arrays(arrays)
    names = tuple(f"model {number}" for number in range(len(arrays)))
    columns = [{"codes": array} if _is_integer(array) else {"latents": array} for array in arrays]
    return Consensus(
        found=found,
        names=names,
        num_images=len(arrays[0]),
        warnings=tuple(_caveats(found, names, len(arrays[0]), "rows")),
        **_kept(found, columns),
    )


def _as_table(item: Any, number: int) -> NDArray[Any]:
    """Return the codes or latents (n, n_z) of a model as an array."""
    if isinstance(item, Mapping):
        raise ValueError(f"model {number} is a {type(item).__name__}; give an array (n, n_z) of its codes or latents")
    try:
        array = np.asarray(unwrap_tensor(item, f"model {number}"))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"model {number} cannot be read as an array ({error}); give codes (n, n_z)") from error
    if array.ndim != 2:
        raise ValueError(
            f"model {number} has the shape {array.shape}; give codes or latents (n, n_z), a row for each observation "
            "and a column for each latent"
        )
    return array


def _is_integer(array: NDArray[Any]) -> bool:
    return bool(np.issubdtype(array.dtype, np.integer))


def _of_runs(
    given: Sequence[RunLike], *, weights: str, data: SourceDataset | None, device: str, show: bool
) -> Consensus:
    """Return the consensus of run directories."""
    from .._checks import require_known
    from ..observations import KINDS
    from ..scoring.sample import PREFIXES
    from .display import short_names
    from .ranking import common_codes, find_runs, read_codes

    require_known(weights, PREFIXES, "set of weights")
    compared, skipped = read_codes(find_runs(given), weights=weights)
    skipped += _named_twice(given)
    if len(compared) < 2:
        reasons = "".join(f"\n  {skip.reason}" for skip in skipped)
        raise ValueError(
            "a consensus needs at least two finished runs of different seeds, better five, got "
            f"{len(compared)}{reasons and f'. Skipped:{reasons}'}"
        )
    compared = common_codes(compared, data=data, device=device, show=show)
    found = find_factors([run.represent() for run in compared])
    names, config = tuple(short_names([run.run.path for run in compared])), compared[0].config.data
    num_images, kind = len(compared[0].indices), config.observations.kind
    return Consensus(
        found=found,
        names=names,
        runs=tuple(run.run for run in compared),
        skipped=tuple(skipped),
        weights=weights,
        num_images=num_images,
        data=config.name,
        kind=kind,
        warnings=tuple(_caveats(found, names, num_images, KINDS[kind].many)),
        indices=compared[0].indices,
        sources=compared[0].sources,
        **_kept(found, [run.arrays for run in compared]),
    )


def _named_twice(given: Sequence[RunLike]) -> list[Skipped]:
    """Return the run directories that are named more than once, which count once."""
    from .ranking import Skipped

    paths = [Path(item if isinstance(item, str | os.PathLike) else item.path) for item in given]
    resolved = [path.resolve() for path in paths]
    return [
        Skipped(path, f"{path} is named twice; it counts as one run")
        for number, path in enumerate(paths)
        if resolved[number] in resolved[:number]
    ]


def _kept(found: FoundFactors, columns: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, Any]:
    """Return the arrays of a consensus, from the codes and latents of each run: their columns as they are."""
    is_continuous = tuple("codes" not in columns[factor.run] for factor in found.factors)
    codes = [
        found.codes[:, k] if is_continuous[k] else columns[factor.run]["codes"][:, factor.latent]
        for k, factor in enumerate(found.factors)
    ]
    latents = [columns[f.run]["latents"][:, f.latent] for f in found.factors if "latents" in columns[f.run]]
    return {
        "codes": np.stack(codes, axis=1).astype(np.int64) if codes else found.codes,
        "latents": np.stack(latents, axis=1) if latents and len(latents) == len(codes) else None,
        "is_continuous": is_continuous,
    }


def _bin_edges(latents: NDArray[Any], bins: Ints) -> Floats:
    """Return the borders (number of bins − 1,) between the bins of a continuous latent.

    >>> _bin_edges(np.array([0.0, 1.0, 2.0, 5.0]), np.array([0, 0, 1, 2])).tolist()
    [1.5, 3.5]
    """
    groups = [latents[bins == label].astype(np.float64) for label in range(int(bins.max()) + 1)]
    return np.array([(low.max() + high.min()) / 2 for low, high in itertools.pairwise(groups)])


def _caveats(found: FoundFactors, names: Sequence[str], num_samples: int, many: str) -> list[str]:
    """List caveats about a consensus."""
    messages = []
    if len(names) < SURE_RUNS:
        messages.append(
            f"only {len(names)} runs: so few may make the same mistake, and then confirm it. Train more seeds"
        )
    if unused := [name for name, count in zip(names, found.num_used, strict=True) if not count]:
        messages.append(
            f"no latent of {', '.join(unused)} varies, which counts as having found nothing. Leave out runs that failed"
        )
    if num_samples < SURE_SAMPLES:
        messages.append(
            f"the runs are compared on only {num_samples:,} {many}, where similarities are imprecise; better are "
            f"{SURE_SAMPLES:,} or more"
        )
    return messages
