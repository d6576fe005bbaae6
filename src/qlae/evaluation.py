"""Evaluation: a run directory → ``sample.npz`` and ``pictures.npz`` → ``results.json``.

As in the paper the model is scored on 10,000 images of the data it was trained on. ``sample.npz`` is the border between
torch and NumPy: what comes after it needs neither the model nor the images.
"""

import os
import platform
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray

from ._version import __version__
from .atomic import write_json, write_npz
from .config import DataConfig
from .data import SourceDataset, load_again
from .device import pick_device, told_device
from .latents import ContinuousLatent, DiscreteLatent, QuantizedLatent
from .loading import model_from
from .metrics import METRICS, psnr, score
from .model import CHUNK, Model, Networks, to_float
from .progress import progress_bar
from .resampling import NUM_DRAWS, SHARES, by_sample_size, mean_interval
from .run import Run
from .training import checkpoint

NUM_SAMPLES = 10_000
NUM_RECONSTRUCTIONS = 10
NUM_INTERVENED = 3  # samples whose latents are intervened on
NUM_STEPS = 10  # through each latent's range
NUM_GENERATED = 30  # images decoded from the prior
WATCHED = ("infom", "infoe", "infoc", "psnr")  # of the scores, those that go into the log of a run as it trains


def evaluate_run(
    run: Run | str | os.PathLike[str],
    *,
    data: SourceDataset | None = None,
    networks: Networks | None = None,
    device: str = "auto",
    num_samples: int = NUM_SAMPLES,
    protocol: str = "paper",
    metrics: Sequence[str] = ("infomec",),
    bootstrap: int = 0,
    jobs: int = 1,
    show: bool = True,
) -> dict[str, Any]:
    """Score a trained run, write its sample and results, and draw its pictures.

    Args:
        run: the run, or its directory.
        data: what it was trained on; read from the run's config if not given.
        networks: the encoder and the decoder, where it was trained with networks of your own.
        device: where the model runs.
        num_samples: images to score on, drawn without replacement.
        protocol: of InfoMEC; see ``qlae.metrics.infomec``.
        metrics: what to compute, ``"infomec"`` and any other of ``qlae.metrics.METRICS`` (``"dci"`` takes a while), or
            ``"all"``.
        bootstrap: half samples from which the averaged weights get a 95% interval for each score, and beside them a
            curve of the scores against the sample size; 200 are plenty.
        jobs: processes for these, and threads for DCI; -1 for all cores.
        show: draw progress bars.

    Returns:
        The content of ``results.json``.
    """
    if bootstrap < 0:
        raise ValueError(f"bootstrap must not be negative, got {bootstrap}")
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
        model = model_from(run, saved, weights=weights, networks=networks, device=device)
        found, decibels = encode_sample(model, images, task=f"encoding, {weights}", show=show)
        scores[weights] = score_sample(sources, found, protocol, metrics, jobs) | {"psnr": float(decibels.mean())}
        if bootstrap and weights == "averaged":
            told = resample(sources, found, protocol, metrics, decibels, bootstrap=bootstrap, jobs=jobs, show=show)
            scores[weights] |= told
        prefix = "" if weights == "averaged" else "raw_"
        arrays |= {prefix + name: array for name, array in found.items()}
        if weights == "averaged":
            pictures = make_pictures(model, images, found)

    results = {
        "model": config.model,
        "data": data.describe(),
        "protocol": protocol,
        "seed": config.seed,
        "steps": saved.state["step"],
        "seconds": round(saved.state["seconds"], 1),
        "device": told_device(pick_device(device)),
        "num_samples": len(sample),
        **scores,
        "versions": versions(),
    }
    write_npz(run.sample_path, **arrays)
    write_npz(run.pictures_path, **pictures)
    write_json(run.results_path, results)
    return results


def scorer(
    run: Run, data: SourceDataset, *, networks: Networks | None = None, device: str = "auto"
) -> Callable[[checkpoint.Checkpoint], dict[str, float]]:
    """What scores the averaged weights of a checkpoint on the evaluation sample, while the run still trains."""
    sample = draw_sample(data, NUM_SAMPLES)
    images, sources = data.images[sample], data.sources[sample]

    def score_saved(saved: checkpoint.Checkpoint) -> dict[str, float]:
        with torch.random.fork_rng(devices=[]):  # which a network of the caller's may be drawing from
            model = model_from(run, saved, weights="averaged", networks=networks, device=device)
        found, decibels = encode_sample(model, images, task="scoring", show=False)
        scores = score_sample(sources, found, "paper", ("infomec",)) | {"psnr": float(decibels.mean())}
        return {name: scores[name] for name in WATCHED if name in scores}

    return score_saved


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
) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64]]:
    """Codes where there are any, latents where each is one number, and the PSNR (dB) of each reconstruction."""
    latents, codes, decibels = [], [], []
    with progress_bar(task, len(images), show=show) as report, torch.inference_mode():
        for start in range(0, len(images), CHUNK):
            rows = images[start : start + CHUNK]
            output = model(to_float(torch.from_numpy(rows).to(model.device)))
            if model.latent.num_outputs == model.latent.num_latents:
                latents.append(output.latent.z.cpu().numpy())
            if output.latent.codes is not None:
                codes.append(output.latent.codes.cpu().numpy())
            decoded = output.logits.sigmoid().permute(0, 2, 3, 1).cpu().numpy()
            decibels += [psnr(rows[n : n + 1], decoded[n : n + 1]) for n in range(len(rows))]
            report(start + len(rows))
    found = {name: np.concatenate(parts) for name, parts in (("latents", latents), ("codes", codes)) if parts}
    return found, np.asarray(decibels)


def score_sample(
    sources: NDArray[Any], found: dict[str, NDArray[Any]], protocol: str, metrics: Sequence[str], jobs: int = 1
) -> dict[str, Any]:
    """The scores of a sample: codes where there are any, else the continuous latents; none without sources."""
    if not sources.shape[1]:
        return {}
    scored = score(sources, scored_form(found), metrics=metric_names(metrics), protocol=protocol, n_jobs=jobs)
    result = scored.results["infomec"]
    return {
        **scored.values,
        "active": result.num_active,
        "informative": int(result.informative.sum()),
        "active_latents": result.active.tolist(),
        "informative_latents": result.informative.tolist(),
        "nmi": np.round(result.nmi, 6).tolist(),
    }


def metric_names(metrics: Sequence[str]) -> list[str]:
    """What is computed: InfoMEC, which the pictures and tables need, and what is asked for beside it."""
    return list(METRICS) if "all" in metrics else list(dict.fromkeys(("infomec", *metrics)))


def resample(
    sources: NDArray[Any],
    found: dict[str, NDArray[Any]],
    protocol: str,
    metrics: Sequence[str],
    decibels: NDArray[np.float64],
    *,
    bootstrap: int,
    jobs: int,
    show: bool,
) -> dict[str, Any]:
    """The intervals of the scores and of PSNR, and the curve of the scores against the sample size."""
    intervals = {"psnr": mean_interval(decibels, bootstrap)}
    if not sources.shape[1]:
        return {"bootstrap": bootstrap, "intervals": intervals}
    names = metric_names(metrics)
    latents = scored_form(found)
    parts = iter(range(len(names) + bootstrap + 1))
    with progress_bar("resampling", len(names) + bootstrap, show=show) as report:
        scored = score(
            sources,
            latents,
            metrics=names,
            protocol=protocol,
            bootstrap=bootstrap,
            n_jobs=jobs,
            progress=lambda part: report(next(parts), note=part),
        )
    intervals = {name: list(ends) for name, ends in scored.intervals.items()} | intervals
    with progress_bar("sample sizes", len(SHARES) * NUM_DRAWS, show=show) as report:
        curve = by_sample_size(
            sources, latents, scored.values, metrics=names, protocol=protocol, n_jobs=jobs, progress=report
        )
    return {"bootstrap": bootstrap, "intervals": intervals, "by_sample_size": curve}


def scored_form(found: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """What is scored and intervened on of a sample: its codes where there are any, else its continuous latents."""
    return found["codes"] if "codes" in found else found["latents"]


def make_pictures(model: Model, images: NDArray[np.uint8], found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What the report draws: originals beside reconstructions, decoded interventions, and images from the prior.

    ``interventions`` is (blocks, steps, num_latents, r, r, 3): in each block one sample's codes or latents are kept but
    for one, which steps through its range over the evaluation sample.
    """
    chosen = np.random.default_rng(0).choice(len(images), min(NUM_RECONSTRUCTIONS, len(images)), replace=False)
    originals = images[chosen]
    starts = scored_form(found)[chosen[:NUM_INTERVENED]]
    steps = intervention_steps(model, scored_form(found))
    num_steps, num_latents = steps.shape
    changed = np.broadcast_to(starts[:, None, None], (len(starts), num_steps, num_latents, num_latents)).copy()
    for j in range(num_latents):
        changed[:, :, j, j] = steps[:, j]
    decoded = model.decode(changed.reshape(-1, num_latents))
    pictures = {
        "originals": originals,
        "reconstructions": model.reconstruct(originals),
        "interventions": decoded.reshape(*changed.shape[:3], *decoded.shape[1:]),
        "intervention_steps": steps,
    }
    if not isinstance(model.latent, ContinuousLatent):  # which has no prior
        pictures["generated"] = model.sample(NUM_GENERATED)
    return pictures


def intervention_steps(model: Model, latents: NDArray[Any]) -> NDArray[Any]:
    """(steps, num_latents): what each latent is set to, from the codes or latents (n, num_latents) of a sample.

    A continuous latent goes evenly through its range, a scalar code through the values in that range in their order,
    and the code of a vector, which has no order, through the vectors used most.
    """
    if not isinstance(model.latent, DiscreteLatent):
        return np.linspace(latents.min(0), latents.max(0), NUM_STEPS, dtype=np.float32)
    columns = [_ordered_codes(model.latent, j, latents[:, j]) for j in range(model.latent.num_latents)]
    num_steps = min(NUM_STEPS, max(len(column) for column in columns))
    return np.stack([column[np.linspace(0, len(column) - 1, num_steps).round().astype(int)] for column in columns], 1)


def _ordered_codes(latent: DiscreteLatent, j: int, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes that latent ``j`` steps through."""
    if latent.num_outputs != latent.num_latents:
        used, counts = np.unique(codes, return_counts=True)
        return np.sort(used[np.argsort(-counts, kind="stable")[:NUM_STEPS]])
    if not isinstance(latent, QuantizedLatent):
        return np.arange(codes.min(), codes.max() + 1)
    values = latent.codebook()[j, : latent.num_values[j]].detach().cpu().numpy()
    order = np.argsort(values, kind="stable")
    in_range = (values[order] >= values[codes].min()) & (values[order] <= values[codes].max())
    ordered: NDArray[np.int64] = order[in_range]
    return ordered


def versions() -> dict[str, str]:
    """What a result depends on."""
    return {
        "qlae": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
