"""Evaluation: encode a sample of images, store it, and score it.

As in the paper the model is scored on 10,000 images of the data it was trained on. Evaluation writes ``sample.npz`` and
``pictures.npz``, and ``results.json`` with the scores of the sample. ``sample.npz`` is the border between torch and
NumPy: everything after it needs neither the model nor the images.

Latent spaces that gradients do not train, such as independent components, are first fitted to the encodings of 10,000
training images. The result is stored in the run (``fitted.safetensors``), and loading, the explorer and exports use it.
"""

import itertools
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._io import seal, write_bytes, write_json, write_npz
from .._process import describe_device, evaluation_process, pick_device, usual_errors
from .._progress import progress_bar
from ..data import SourceDataset, data_config, hold_out_as, images_of, load_data, load_from_config
from ..data.cache import safe_name
from ..data.model_inputs import align_features, how_to_read, load_matching
from ..data.tables import is_frame
from ..metrics import watched_scores
from ..models.building import Networks
from ..models.model import CHUNK, Model
from ..observations import TABLES
from ..registry import LATENTS, OBJECTIVES
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.export import is_pretrained, tensors_to_bytes
from ..runs.load_model import FITTED_FILE, WEIGHTS, fingerprint, model_from, read_fitted
from .fidelity import score_unseen
from .held_out import describe_gap, with_held_out
from .interventions import make_pictures
from .round_trip import has_round_trip, measure_round_trip
from .sample import (
    NUM_SAMPLES,
    PREFIXES,
    Arrays,
    check_scoring,
    draw_sample,
    known_kinds,
    metrics_of,
    parts_of,
    score_held_out,
    score_sample,
    score_weights,
    versions,
)

NUM_FITTED = 10_000  # images that a latent space is fitted to
FITTED_SEED = 1  # not that of the evaluation sample


@usual_errors()
def evaluate_run(
    run: Run | str | os.PathLike[str],
    *,
    data: Any = None,
    networks: Networks | None = None,
    device: str = "auto",
    num_samples: int | None = None,
    protocol: str | None = None,
    prune: bool | None = None,
    metrics: str | Sequence[str] | None = None,
    bootstrap: int = 0,
    jobs: int = 1,
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    show: bool = True,
) -> dict[str, Any]:
    """Score a trained run and write ``sample.npz``, ``pictures.npz`` and ``results.json``.

    Args:
        run: the run, or its directory.
        data: the data that it was trained on; by default they are loaded as the run's config describes. Other data are
            scored as a whole, and their results are written to ``evaluations/NAME`` in the run directory. A path or a
            data frame is read as the training data were.
        networks: the encoder and the decoder, if it was trained with custom networks.
        device: where the model runs.
        num_samples: number of images to score on, drawn without replacement; by default as many as before, or 10,000.
        protocol: of InfoMEC; see ``qlae.metrics.infomec``. By default as before, or the paper's.
        prune: whether InfoMEC leaves out latents that vary little; by default as before, or true.
        metrics: names from ``qlae.metrics.METRICS`` (``"dci"`` takes a while), or ``"all"``. By default InfoMEC, and
            whatever was computed before.
        bootstrap: number of random half samples from which the averaged weights get a 95% interval for each score of
            the metrics that are named, or of InfoMEC, and a curve of the scores against the sample size; 200 suffice.
        jobs: number of processes for the half samples, and of threads for DCI; -1 for all cores.
        metric_options: further keyword arguments of single metrics, such as ``{"dci": {"max_features": "all"}}``.
        show: whether to draw progress bars.

    Returns:
        The content of ``results.json``.
    """
    run = run if isinstance(run, Run) else Run.open(run)
    before = run.results_so_far or {"num_samples": NUM_SAMPLES, "protocol": "paper", "prune": True, "averaged": {}}
    others: Sequence[str] = ()  # metrics without intervals
    if metrics is None:  # intervals for what nobody named might take hours
        earlier = [metric for metric in metrics_of(before) if metric != "infomec"]
        metrics, others = ((), earlier) if bootstrap else (earlier, ())
    how: dict[str, Any] = {
        "protocol": protocol or before["protocol"],
        "prune": before["prune"] if prune is None else prune,
    }
    check_scoring(how["protocol"], metrics, bootstrap, jobs)
    config, snapshot = run.config, checkpoint.load(run.path)
    if snapshot is None:
        what = "is an exported model; evaluate the run that it came from" if is_pretrained(run.path) else ""
        raise ValueError(f"{run.path} {what or 'has no checkpoint to evaluate; train it first'}")
    data = load_from_config(config.data) if data is None else read_scored(data, run)
    folder, is_other = evaluation_folder(run, data), not is_training_data(run, data)
    data = data.with_hold_out(0.0) if is_other else hold_out_as(config.data, data)
    fit_run(run, None if is_other else data, networks=networks, device=device)
    most = NUM_SAMPLES if num_samples is None else num_samples
    count = max(2, before["num_samples"]) if num_samples is None and not is_other else most
    sample, held_out = draw_sample(data, count), draw_sample(data, most, held_out=True)
    images, unseen = (images_of(data, rows, str(pick_device(device))) for rows in (sample, held_out))

    arrays, held_out_arrays = (
        {"indices": rows, "sources": data.sources[rows], "step": np.asarray(snapshot.state["step"])}
        for rows in (sample, held_out)
    )
    for weights, prefix in PREFIXES.items():
        with evaluation_process():
            model = model_from(run, snapshot, weights=weights, networks=networks, device=device)
            encoded = encode_sample(model, images, task=f"encoding, {weights}", show=show)
            if len(held_out):
                others_encoded = encode_sample(model, unseen, task=f"encoding held-out rows, {weights}", show=show)
                held_out_arrays |= {prefix + name: array for name, array in others_encoded.items()}
            if weights == "averaged":
                pictures = make_pictures(model, images, encoded)
                returned = measure_round_trip(model, encoded["codes"]) if has_round_trip(model) else None
        arrays |= {prefix + name: array for name, array in encoded.items()}
    description = data.describe()
    options = how | {"source_kinds": known_kinds(description), "metric_options": metric_options}
    options |= {"jobs": jobs, "show": show}
    scores, warned = score_sample(arrays, metrics=metrics, bootstrap=bootstrap, **options)
    if others:
        rest, _ = score_sample(arrays, metrics=others, **options)
        scores = {weights: rest[weights] | named for weights, named in scores.items()}

    if returned is not None:
        scores["averaged"] |= {"round_trip": returned}
    if is_other:
        scores = {weights: own | score_unseen(parts_of(arrays, weights)) for weights, own in scores.items()}
    unseen_scores = None
    if len(held_out):
        unseen_scores = score_held_out(held_out_arrays, metrics=(*metrics, *others), **options)
        scores = {weights: with_held_out(own, unseen_scores[weights]) for weights, own in scores.items()}
        if gap := describe_gap(scores["averaged"]):
            warnings.warn(gap, stacklevel=4)
            warned.append(gap)
    unconfirmed = OBJECTIVES.build(config.objective).unconfirmed_latents(config.latent.num_latents)
    results = {
        "model": config.model,
        "data": description,
        **how,
        "seed": config.training.seed,
        "steps": snapshot.state["step"],
        "seconds": round(snapshot.state.get("seconds", 0.0), 1),
        "device": describe_device(pick_device(device)),
        "num_samples": len(sample),
        **({"settings": snapshot.state["settings"]} if "settings" in snapshot.state else {}),
        **scores,
        **({"held_out": unseen_scores} if unseen_scores else {}),
        **({"trained_on": config.data.name, "checksum": data_config(data).checksum} if is_other else {}),
        **({"unconfirmed_latents": unconfirmed} if unconfirmed else {}),
        "warnings": warned,
        "versions": versions() | {"torch": torch.__version__},
    }
    target = Run(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_npz(target.sample_path, **arrays)
    if len(held_out):
        write_npz(target.held_out_path, **held_out_arrays)
    else:
        target.held_out_path.unlink(missing_ok=True)
    if not is_other:
        write_npz(target.pictures_path, **pictures)
    write_json(target.results_path, seal(results))
    return results


def read_scored(data: Any, run: Run) -> SourceDataset:
    """Return data to score a run on: a data set, or a path, an array or a data frame, read as the training data were.

    Raises:
        ValueError: the model of the run does not take these data.
    """
    config = run.config.data
    if isinstance(data, SourceDataset):
        scored = data
    elif config.observations.kind == TABLES:
        path = getattr(config.spec, "path", None)
        is_same = path is not None and isinstance(data, str | Path) and os.path.realpath(data) == os.path.realpath(path)
        scored = load_from_config(config) if is_same else load_matching(data, config.observations, config.spec)
    else:
        how = how_to_read(config.observations, config.spec, data) if _has_columns(data) else {}
        scored = load_data(data, **how | {"hold_out": 0})
        if config.spec is not None and is_training_data(run, scored):
            scored = load_from_config(config)  # with its groups
    scored = align_features(scored, config.observations)
    if difference := config.observations.difference(scored.observations):
        raise ValueError(difference)
    return scored


def _has_columns(data: Any) -> bool:
    return isinstance(data, str | Path) or is_frame(data)


def is_training_data(run: Run, data: SourceDataset) -> bool:
    """Return whether data are those that a run was trained on, by their checksum or else by their description."""
    config, described = run.config.data, data_config(data)
    if config.checksum and described.checksum:
        return config.checksum == described.checksum and config.num_images == len(data)
    return config.difference(replace(described, held_out=config.held_out)) is None


def evaluation_folder(run: Run, data: SourceDataset) -> Path:
    """Return the folder of the scores of a run on some data: the run itself, or one in ``evaluations`` for other data.

    Data of the same name that differ have different folders.
    """
    if is_training_data(run, data):
        return run.path
    described, name = data.describe(), safe_name(data.name)
    checksum = data_config(data).checksum
    for number in itertools.count(1):
        folder = run.path / "evaluations" / (name if number == 1 else f"{name}-{number}")
        before = Run(folder).results_so_far
        if before is None or (before["data"], before.get("checksum")) == (described, checksum):
            return folder
    raise AssertionError


def decode_pictures(run: Run, weights: str, *, device: str = "cpu") -> dict[str, NDArray[Any]]:
    """Return the arrays of ``pictures.npz`` for a set of weights of the checkpoint, from the sample of the run."""
    snapshot, prefix = checkpoint.load(run.path), PREFIXES[weights]
    if snapshot is None:
        raise ValueError(f"{run.path} has no checkpoint to decode images with")
    arrays = run.arrays(run.sample_path, ("indices",))
    encoded = {name: arrays[prefix + name] for name in ("latents", "codes") if prefix + name in arrays}
    images = images_of(load_from_config(run.config.data), arrays["indices"], device)
    with evaluation_process():
        return make_pictures(model_from(run, snapshot, weights=weights, device=device), images, encoded)


def scorer(
    run: Run, data: SourceDataset, *, networks: Networks | None = None, device: str = "auto"
) -> Callable[[checkpoint.Checkpoint], dict[str, float]]:
    """Return a function that scores the averaged weights of a checkpoint on the evaluation sample."""
    sample = draw_sample(data, NUM_SAMPLES)
    images = images_of(data, sample, str(pick_device(device)))
    sources, kinds = data.sources[sample], known_kinds(data.describe())

    def score_saved(snapshot: checkpoint.Checkpoint) -> dict[str, float]:
        with torch.random.fork_rng(devices=[]), evaluation_process():  # parts from outside may draw random numbers
            model = model_from(run, snapshot, weights="averaged", networks=networks, device=device, fitted=False)
            if model.latent.is_fitted_after_training:
                fit_latents(model, fitting_images(data, device))
            encoded = encode_sample(model, images, task="scoring", show=False)
        scores = score_weights(sources, encoded, source_kinds=kinds, show=False)
        return {name: scores[name] for name in watched_scores() if name in scores}

    return score_saved


def encode_sample(model: Model, images: NDArray[Any], *, task: str, show: bool) -> Arrays:
    """Return codes if there are any, latents if each is one number, and how faithful reconstructions are."""
    parts: dict[str, list[NDArray[Any]]] = {}
    fidelity = model.observations.traits.load("fidelity")(model.form, images)
    with progress_bar(task, len(images), show=show) as report, torch.inference_mode():
        for start in range(0, len(images), CHUNK):
            batch = model.form.to_input(torch.from_numpy(images[start : start + CHUNK]).to(model.device))
            output = model(batch)
            if model.latent.num_outputs == model.latent.num_latents:
                parts.setdefault("latents", []).append(output.latent.z.cpu().numpy())
            if output.latent.codes is not None:
                parts.setdefault("codes", []).append(output.latent.codes.cpu().numpy())
            fidelity.add(output.logits, batch)
            report(start + len(batch))
    encoded = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return {**encoded, **fidelity.arrays()}


def fit_run(run: Run, data: SourceDataset | None, *, networks: Networks | None = None, device: str = "auto") -> None:
    """Fit the latent space of a run to its checkpoint, if it is of this kind and was not fitted to it before.

    ``data`` are the images that the run was trained on, None to load them, and ``networks`` its custom networks, if it
    has any.
    """
    if not LATENTS.entry_of(run.config.latent).part.is_fitted_after_training:
        return
    snapshot = checkpoint.load(run.path)
    assert snapshot is not None
    if all(read_fitted(run.path, snapshot, weights) for weights in WEIGHTS):
        return
    images = fitting_images(load_from_config(run.config.data) if data is None else data, device)
    tensors: dict[str, torch.Tensor] = {}
    for weights in WEIGHTS:
        with evaluation_process():
            model = model_from(run, snapshot, weights=weights, networks=networks, device=device, fitted=False)
            fit_latents(model, images)
        tensors |= {f"{weights}.latent.{name}": tensor for name, tensor in model.latent.named_buffers()}
    write_bytes(run.path / FITTED_FILE, tensors_to_bytes(tensors, {"weights": fingerprint(snapshot)}))


def fitting_images(data: SourceDataset, device: str) -> NDArray[np.uint8]:
    """Return the training images whose encodings a latent space is fitted to."""
    rows = data.training_rows
    count = min(NUM_FITTED, len(rows))
    drawn = rows[np.sort(np.random.default_rng(FITTED_SEED).choice(len(rows), count, replace=False))]
    return images_of(data, drawn, str(pick_device(device)))


def fit_latents(model: Model, images: NDArray[np.uint8]) -> None:
    """Fit the latent space of a model in evaluation mode to the encodings of images (n, r, r, 3)."""
    parts = []
    with torch.no_grad():
        for start in range(0, len(images), CHUNK):
            batch = model.form.to_input(torch.from_numpy(images[start : start + CHUNK]).to(model.device))
            parts.append(model.encoder(batch).double().cpu().numpy())
        model.latent.fit(np.concatenate(parts))
