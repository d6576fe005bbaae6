"""One model of a consensus: a QLAE whose first latents imitate the latents that several runs agree on.

The codes that the chosen latents have for all training observations are computed once, by the models of their runs, and
stored in the new run directory. The training then needs neither the runs nor their models: it is an ordinary run, which
is resumed, explored, exported and scored like any other. Each imitated latent has as many values as its original uses.
A few *free* latents after them learn what the reconstruction needs and no factor explains; no other run confirms them.

`objectives/imitation.py` is the loss. ``docs/consensus.md`` compares the model with the code of the consensus.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._checks import MAX_LATENTS, values_per_latent, whole_number
from .._io import write_json
from .._process import usual_errors
from .._progress import progress_bar
from ..configuring import configure, require_data
from ..data import RenderedImages, SourceDataset, data_config, hold_out_as, keep_on_disk, load_from_config
from ..models.latents import DiscreteLatent, LatentSpace
from ..objectives.imitation import IMITATE, Imitated
from ..pipeline import train
from ..presets import ModelSpec, find_model
from ..runs.directory import Run
from ..runs.latent_names import names_file
from ..runs.targets import read_targets, targets_checksum, write_targets
from ..scoring.sample import PREFIXES, known_kinds, score_weights
from ..training.state import SLOW_SCENES

if TYPE_CHECKING:
    from .consensus import Consensus

BASE, MODEL = "qlae", "qlae-consensus"
NUM_FREE = 4
WEIGHT = 1.0  # of the imitation
MIN_SHARE = 1e-3  # of the observations; a rarer code is imitated as the nearest code that is not rare
MOST_CODES = 64  # of a latent
SCORES = ("infom", "infoe", "infoc")


@usual_errors()
def train_consensus_model(
    consensus: Consensus,
    data: Any = None,
    out: str | os.PathLike[str] = "",
    *,
    num_free: int = NUM_FREE,
    show: bool = True,
    **options: Any,
) -> Run:
    """Train one QLAE that imitates the latents of a consensus; or resume it if it was interrupted.

    Args:
        consensus: of runs whose latents are continuous, or have codes with an order.
        data: the data that the runs were trained on; by default they are loaded as the runs say.
        out: the new run directory.
        num_free: number of latents that imitate nothing.
        show: whether to draw progress bars.
        options: as for ``qlae.train("qlae", …)``; the number of latents follows from the consensus, and ``num_values``
            is that of the free latents. By default the networks have the size of those of the first run, and the
            learning rate falls to 0 in the second half of the training.

    Returns:
        The run. ``config.objective.imitated`` names the latents that it imitates, and ``names.json`` labels those that
        are not confirmed.

    Raises:
        ValueError: if there is no consensus of runs to imitate, the data are not those of the runs, or there is
            another run in ``out``.
    """
    _require_imitable(consensus, num_free)
    if not os.fspath(out):
        raise ValueError("name the new run directory with out=…")
    if "num_latents" in options:
        raise ValueError("num_latents follows from the consensus; choose the number of free latents with num_free=…")
    options.setdefault("size", consensus.runs[0].config.networks.size)
    run = Run(out)
    data = _data_of(consensus, data, show=show)
    begun = _read_codes(run, consensus, data) if run.is_begun else None
    targets, num_values = begun or _imitated_codes(consensus, data, device=options.get("device", "auto"), show=show)
    spec = _specification(consensus, targets, [*num_values, *_free_values(num_free, options)])
    options.pop("num_values", None)
    config = configure(spec, data, out=run.path, **options).config
    run.require_free(config)
    if begun is None:
        with run.locked():
            run.write_config(config)
            write_targets(run.path, targets)
            write_names(run)
    return train(spec, data, out=run.path, show=show, **options)


def _require_imitable(consensus: Consensus, num_free: int) -> None:
    """Raise an error unless the latents of a consensus can be imitated."""
    whole_number("num_free", num_free, at_least=0, at_most=MAX_LATENTS)
    if not consensus.runs:
        raise ValueError(
            "this consensus is of arrays, which have no models to imitate; pass run directories to qlae.consensus"
        )
    if not consensus.confirmed:
        raise ValueError(f"there is nothing to imitate. {consensus.describe()}")
    for factor in consensus.factors:
        config = consensus.runs[factor.run].config
        if config.latent.has_codes and max(config.latent.values_each) > MOST_CODES:  # type: ignore[attr-defined]
            raise ValueError(
                f"{consensus.runs[factor.run].path} has latents of {max(config.latent.values_each):,} values, and "  # type: ignore[attr-defined]
                f"a latent imitates at most {MOST_CODES}; take a consensus without runs of {config.model}"
            )


def _data_of(consensus: Consensus, given: Any, *, show: bool) -> SourceDataset:
    """Return the data of the runs, with all images rendered; raise an error if the caller's are other ones."""
    config = consensus.runs[0].config.data
    data: SourceDataset = load_from_config(config) if given is None else require_data(given, show=show)
    data = hold_out_as(config, data)
    described = data_config(data)
    if difference := config.difference(described):
        raise ValueError(f"the data are not those of {consensus.runs[0].path}: {difference}")
    data = copy.copy(data)
    data.checksum = described.checksum  # computed once
    if not isinstance(data.images, RenderedImages):
        return data
    with progress_bar("rendering", len(data), show=show) as report:
        is_slow = data.images.name in SLOW_SCENES
        return keep_on_disk(data, progress=report) if is_slow else data.in_memory(progress=report)


def _imitated(consensus: Consensus) -> tuple[Imitated, ...]:
    count = len(consensus.names)
    return tuple(
        Imitated(consensus.names[factor.run], factor.latent, factor.num_found, count, factor.is_confirmed)
        for factor in consensus.factors
    )


def _imitated_codes(
    consensus: Consensus, data: SourceDataset, *, device: str, show: bool
) -> tuple[NDArray[Any], list[int]]:
    """Return the codes (n, k) of all observations, in the order of their values, and how many each latent has."""
    latents = {run: consensus.load_model(run).latent for run in {factor.run for factor in consensus.factors}}
    values = [_values_of(latents[factor.run], factor.latent) for factor in consensus.factors]
    for factor, own in zip(consensus.factors, values, strict=True):
        if latents[factor.run].has_codes and own is None:
            raise ValueError(
                f"the codes of {consensus.runs[factor.run].path} stand for vectors and have no order, so a latent "
                "cannot imitate them; take a consensus without such runs"
            )
    codes, training = consensus.encode(data, device=device, show=show), data.training_rows
    bins = [np.arange(column.max() + 1.0) for column in codes.T]  # of continuous latents
    imitated = [
        ordered(column, numbers if own is None else own, training)
        for column, own, numbers in zip(codes.T, values, bins, strict=True)
    ]
    return np.stack([ranks for ranks, _ in imitated], axis=1).astype(np.uint8), [count for _, count in imitated]


def _values_of(latent: LatentSpace, column: int) -> NDArray[np.float64] | None:
    """Return the values of the codes of one latent; None if they stand for vectors, or there are none."""
    if not isinstance(latent, DiscreteLatent) or latent.num_outputs != latent.num_latents:
        return None
    codes = torch.zeros(latent.num_values[column], latent.num_latents, dtype=torch.int64)
    codes[:, column] = torch.arange(len(codes))
    with torch.no_grad():
        return np.asarray(latent.to_values(codes)[:, column].double().numpy())


def ordered(
    codes: NDArray[Any], values: NDArray[Any], rows: NDArray[np.int64] | slice = slice(None)
) -> tuple[NDArray[np.int64], int]:
    """Return codes (n,) as ranks of their values (m,), and the number of ranks.

    Codes that stand for equal values share a rank, and a code that is rare takes the rank of the nearest other one.
    Only some rows, those that train, count for that.

    >>> ordered(np.array([0, 1, 3, 3]), np.array([0.5, -0.5, 9.0, 0.0]))
    (array([2, 0, 1, 1]), 3)
    """
    counts = np.bincount(codes[rows], minlength=len(values))
    kept = np.unique(values[counts > max(0.0, MIN_SHARE * counts.sum())])
    ranks = np.abs(values[:, None] - kept[None, :]).argmin(axis=1)
    return ranks[codes], len(kept)


def _read_codes(run: Run, consensus: Consensus, data: SourceDataset) -> tuple[NDArray[Any], list[int]]:
    """Return the codes that a run was started with, and how many each latent has."""
    config = run.config
    if getattr(config.objective, "imitated", None) != _imitated(consensus):
        raise ValueError(
            f"{run.path} holds another run, which does not imitate this consensus; choose another folder with out=…"
        )
    targets = read_targets(run.path, config.objective, len(data))
    assert targets is not None
    return targets, list(config.latent.values_each[: targets.shape[1]])  # type: ignore[attr-defined]


def _free_values(num_free: int, options: Mapping[str, Any]) -> list[int]:
    """Return the number of values of each free latent: that of the options, or of a QLAE of this size."""
    preset = find_model(BASE).training_preset(options["size"])
    return list(values_per_latent(num_free, options.get("num_values") or preset.num_values)) if num_free else []


def _specification(consensus: Consensus, targets: NDArray[Any], num_values: Sequence[int]) -> ModelSpec:
    """Return the model whose first latents imitate the codes of a consensus."""
    base = find_model(BASE)
    return dataclasses.replace(
        base,
        name=MODEL,
        objective="imitation",
        weights=dict(base.weights) | {IMITATE: WEIGHT},
        objective_options={"imitated": _imitated(consensus), "targets": targets_checksum(targets)},
        latent_options={"num_values": tuple(num_values)},
        training={"schedule": "linear", "num_latents": len(num_values)},
        published=False,
    )


def write_names(run: Run) -> None:
    """Label the latents of a model that are not confirmed in its ``names.json``, unless there is one."""
    imitated, num_latents = run.config.objective.imitated, run.config.latent.num_latents  # type: ignore[attr-defined]
    path = names_file(run.path)
    if path.is_file():
        return
    labels = {str(j): f"z{j} (found by {one.num_found} of {one.num_runs} runs)" for j, one in enumerate(imitated)}
    names = {j: label for (j, label), one in zip(labels.items(), imitated, strict=True) if not one.is_confirmed}
    names |= {str(j): f"z{j} (free, not confirmed)" for j in range(len(imitated), num_latents)}
    write_json(path, {"latents": names, "values": {}})


def score_model(run: Run, *, weights: str = "averaged") -> dict[str, dict[str, float]] | None:
    """Return the scores of a model by its sample: of the ``imitated`` latents alone, of the ``confirmed`` among them,
    and of ``all``; None if the data have no sources.

    InfoMEC of the imitated latents is comparable with that of the code of a consensus.
    """
    results, arrays = run.results, run.arrays(run.sample_path, ("sources",))
    if not arrays["sources"].shape[1]:
        return None
    imitated = run.config.objective.imitated  # type: ignore[attr-defined]
    options = {key: results[key] for key in ("protocol", "prune")} | {"source_kinds": known_kinds(results["data"])}
    confirmed = [j for j, one in enumerate(imitated) if one.is_confirmed]
    scores = {"all": {key: results[weights][key] for key in SCORES}}
    for name, columns in (("imitated", list(range(len(imitated)))), ("confirmed", confirmed)):
        encoded = {part: arrays[PREFIXES[weights] + part][:, columns] for part in ("latents", "codes")}
        scored = score_weights(arrays["sources"], encoded, show=False, **options)
        scores[name] = {key: scored[key] for key in SCORES}
    return scores


def imitation_accuracy(run: Run) -> list[float]:
    """Return for each imitated latent the share of the evaluation sample for which it has the code it imitates."""
    arrays = run.arrays(run.sample_path, ("indices", "codes"))
    targets = read_targets(run.path, run.config.objective, run.config.data.num_images)
    assert targets is not None
    expected = targets[arrays["indices"]]
    return [float(share) for share in (arrays["codes"][:, : expected.shape[1]] == expected).mean(axis=0)]
