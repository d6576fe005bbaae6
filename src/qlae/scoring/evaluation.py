"""Evaluation: encode a sample of images, store it, and score it.

As in the paper the model is scored on 10,000 images of the data it was trained on. Evaluation writes ``sample.npz`` and
``pictures.npz``, and ``results.json`` with the scores of the sample. ``sample.npz`` is the border between torch and
NumPy: everything after it needs neither the model nor the images.

Latent spaces that gradients do not train, such as independent components, are first fitted to the encodings of 10,000
training images. The result is stored in the run (``fitted.safetensors``), and loading, the explorer and exports use it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._io import seal, write_bytes, write_json, write_npz
from .._process import describe_device, evaluation_process, pick_device, usual_errors
from .._progress import progress_bar
from ..config import DataConfig
from ..data import SourceDataset, images_of, load_from_config
from ..metrics import watched_scores
from ..models.building import Networks
from ..models.model import CHUNK, Model
from ..registry import LATENTS, OBJECTIVES
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.export import is_pretrained, tensors_to_bytes
from ..runs.load_model import FITTED_FILE, WEIGHTS, fingerprint, model_from, read_fitted
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
    data: SourceDataset | None = None,
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
        data: the data that it was trained on; by default they are loaded as the run's config describes.
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
    data = load_from_config(config.data) if data is None else _require_fitting(data, config.data)
    fit_run(run, data, networks=networks, device=device)
    sample = draw_sample(data, max(2, before["num_samples"]) if num_samples is None else num_samples)
    images = images_of(data, sample, str(pick_device(device)))

    arrays: Arrays = {"indices": sample, "sources": data.sources[sample], "step": np.asarray(snapshot.state["step"])}
    for weights, prefix in PREFIXES.items():
        with evaluation_process():
            model = model_from(run, snapshot, weights=weights, networks=networks, device=device)
            encoded = encode_sample(model, images, task=f"encoding, {weights}", show=show)
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
        **({"unconfirmed_latents": unconfirmed} if unconfirmed else {}),
        "warnings": warned,
        "versions": versions() | {"torch": torch.__version__},
    }
    write_npz(run.sample_path, **arrays)
    write_npz(run.pictures_path, **pictures)
    write_json(run.results_path, seal(results))
    return results


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


def _require_fitting(data: SourceDataset, config: DataConfig) -> SourceDataset:
    """Return the caller's data; raise an error unless the run's model can be scored on them."""
    if not isinstance(data, SourceDataset):
        raise ValueError(f"data must be a data set, such as qlae.load_data returns, got {type(data).__name__}")
    if difference := config.observations.difference(data.observations):
        raise ValueError(difference)
    if tuple(data.source_names) != tuple(config.source_names):
        raise ValueError(
            f"the run was trained on data with the sources {', '.join(config.source_names) or 'none'}, this one has "
            f"{', '.join(data.source_names) or 'none'}; score them by qlae.metrics.score(sources, model.encode(images))"
        )
    return data


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


def fit_run(run: Run, data: SourceDataset, *, networks: Networks | None = None, device: str = "auto") -> None:
    """Fit the latent space of a run to its checkpoint, if it is of this kind and was not fitted to it before.

    ``data`` are the images that the run was trained on, ``networks`` its custom networks, if it has any.
    """
    if not LATENTS.entry_of(run.config.latent).part.is_fitted_after_training:
        return
    snapshot = checkpoint.load(run.path)
    assert snapshot is not None
    if all(read_fitted(run.path, snapshot, weights) for weights in WEIGHTS):
        return
    images = fitting_images(data, device)
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
