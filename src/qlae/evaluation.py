"""Evaluation: a run directory → ``sample.npz`` and ``pictures.npz`` → ``results.json``.

As in the paper the model is scored on 10,000 images of the data it was trained on. ``sample.npz`` is the border between
torch and NumPy: what comes after it needs neither the model nor the images.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .atomic import write_json, write_npz
from .config import DataConfig
from .data import SourceDataset, load_again
from .device import pick_device
from .latents import QuantizedLatent
from .loading import model_from, versions
from .metrics import psnr, score
from .model import CHUNK, Model, to_float
from .progress import progress_bar
from .run import Run
from .training import checkpoint

NUM_SAMPLES = 10_000
NUM_RECONSTRUCTIONS = 10
NUM_INTERVENED = 3  # samples whose latents are intervened on
NUM_STEPS = 10  # through each latent's range


def evaluate_run(
    run: Run | str | os.PathLike[str],
    *,
    data: SourceDataset | None = None,
    device: str = "auto",
    num_samples: int = NUM_SAMPLES,
    protocol: str = "paper",
    metrics: Sequence[str] = ("infomec",),
    show: bool = True,
) -> dict[str, Any]:
    """Score a trained run, write its sample and results, and draw its pictures.

    Args:
        run: the run, or its directory.
        data: what it was trained on; read from the run's config if not given.
        device: where the model runs.
        num_samples: images to score on, drawn without replacement.
        protocol: of InfoMEC; see ``qlae.metrics.infomec``.
        metrics: what to compute, ``"infomec"`` and any other of ``qlae.metrics.METRICS`` (``"dci"`` takes a while).
        show: draw progress bars.

    Returns:
        The content of ``results.json``.
    """
    run = run if isinstance(run, Run) else Run.open(run)
    config = run.config
    saved = checkpoint.load(run.path)
    if saved is None:
        raise ValueError(f"{run.path} has no checkpoint to evaluate; train it first")
    data = data_of(config.data) if data is None else data
    sample = draw_sample(data, num_samples)
    images = data.images[sample]
    sources = data.sources[sample]

    arrays: dict[str, NDArray[Any]] = {"indices": sample, "sources": sources}
    scores: dict[str, dict[str, Any]] = {}
    for weights in ("averaged", "raw"):
        model = model_from(run, saved, weights=weights, device=device)
        found, decibels = encode_sample(model, images, task=f"encoding, {weights}", show=show)
        scores[weights] = score_sample(sources, found, protocol, metrics) | {"psnr": decibels}
        prefix = "" if weights == "averaged" else "raw_"
        arrays |= {prefix + name: array for name, array in found.items()}
        if weights == "averaged":
            pictures = make_pictures(model, images, found["latents"])

    results = {
        "model": config.model,
        "data": data.describe(),
        "protocol": protocol,
        "seed": config.seed,
        "steps": saved.state["step"],
        "seconds": round(saved.state["seconds"], 1),
        "device": str(pick_device(device)),
        "num_samples": len(sample),
        **scores,
        "versions": versions(),
    }
    write_npz(run.sample_path, **arrays)
    write_npz(run.pictures_path, **pictures)
    write_json(run.results_path, results)
    return results


def data_of(config: DataConfig) -> SourceDataset:
    """The data behind a run's config, where its recipe is enough to make it again."""
    if config.recipe is None:
        raise ValueError(f"{config.name} came from arrays that only its maker has; evaluate with data=…")
    data = load_again(config.name, config.resolution, config.recipe)
    if len(data) != config.num_images:
        raise ValueError(f"{config.name} had {config.num_images:,} images when it was trained, now {len(data):,}")
    return data


def draw_sample(data: SourceDataset, num_samples: int) -> NDArray[np.int64]:
    """Row numbers of the evaluation sample, the same for every model of a data set."""
    if num_samples < 2:
        raise ValueError(f"num_samples must be at least 2, got {num_samples}")
    count = min(num_samples, len(data))
    return np.sort(np.random.default_rng(0).choice(len(data), count, replace=False))


def encode_sample(
    model: Model, images: NDArray[np.uint8], *, task: str, show: bool
) -> tuple[dict[str, NDArray[Any]], float]:
    """Latents, codes where there are any, and the mean PSNR (dB) of the reconstructions."""
    latents, codes, decibels = [], [], []
    with progress_bar(task, len(images), show=show) as report, torch.inference_mode():
        for start in range(0, len(images), CHUNK):
            rows = images[start : start + CHUNK]
            output = model(to_float(torch.from_numpy(rows).to(model.device)))
            latents.append(output.latent.z.cpu().numpy())
            if output.latent.codes is not None:
                codes.append(output.latent.codes.cpu().numpy())
            decibels.append(psnr(rows, output.logits.sigmoid().permute(0, 2, 3, 1).cpu().numpy()) * len(rows))
            report(start + len(rows))
    found = {"latents": np.concatenate(latents)}
    if codes:
        found["codes"] = np.concatenate(codes)
    return found, float(np.sum(decibels) / len(images))


def score_sample(
    sources: NDArray[Any], found: dict[str, NDArray[Any]], protocol: str, metrics: Sequence[str]
) -> dict[str, Any]:
    """The scores of a sample: codes where there are any, else the continuous latents; none without sources."""
    if not sources.shape[1]:
        return {}
    names = dict.fromkeys(("infomec", *metrics))
    scored = score(sources, found.get("codes", found["latents"]), metrics=list(names), protocol=protocol)
    result = scored.results["infomec"]
    return {
        **scored.values,
        "active": result.num_active,
        "informative": int(result.informative.sum()),
        "active_latents": result.active.tolist(),
        "informative_latents": result.informative.tolist(),
        "nmi": np.round(result.nmi, 6).tolist(),
    }


def make_pictures(model: Model, images: NDArray[np.uint8], latents: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """What the report draws: originals beside reconstructions, and decoded interventions.

    ``interventions`` is (blocks, steps, num_latents, r, r, 3): in each block one sample's latents are kept but for one,
    which steps through its range over the evaluation sample.
    """
    chosen = np.random.default_rng(0).choice(len(images), min(NUM_RECONSTRUCTIONS, len(images)), replace=False)
    originals = images[chosen]
    starts = latents[chosen[:NUM_INTERVENED]]
    steps = intervention_values(model, latents)
    num_steps, num_latents = steps.shape
    changed = np.broadcast_to(starts[:, None, None], (len(starts), num_steps, num_latents, num_latents)).copy()
    for j in range(num_latents):
        changed[:, :, j, j] = steps[:, j]
    decoded = model.decode(changed.reshape(-1, num_latents))
    return {
        "originals": originals,
        "reconstructions": model.reconstruct(originals),
        "interventions": decoded.reshape(*changed.shape[:3], *decoded.shape[1:]),
        "intervention_values": steps,
    }


def intervention_values(model: Model, latents: NDArray[np.float32]) -> NDArray[np.float32]:
    """(steps, num_latents): evenly through each latent's range; a quantized latent goes through its values in order."""
    low, high = latents.min(0), latents.max(0)
    if not isinstance(model.latent, QuantizedLatent):
        return np.linspace(low, high, NUM_STEPS, dtype=np.float32)
    sizes = model.latent.num_values
    codebook = model.latent.codebook().cpu().numpy()
    columns = []
    for j, size in enumerate(sizes):
        values = np.sort(codebook[j, :size])
        values = values[(values >= low[j]) & (values <= high[j])]  # those that the sample's range holds
        columns.append(values[np.linspace(0, len(values) - 1, min(NUM_STEPS, max(sizes))).round().astype(int)])
    return np.stack(columns, axis=1)
