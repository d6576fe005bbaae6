"""Evaluation: a run directory → ``sample.npz`` and ``pictures.npz``; ``sample`` makes ``results.json`` of the former.

As in the paper the model is scored on 10,000 images of the data it was trained on. ``sample.npz`` is the border between
torch and NumPy: what comes after it needs neither the model nor the images.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .._device import pick_device, told_device
from .._files import write_json, write_npz
from .._progress import progress_bar
from ..config import DataConfig
from ..data import SourceDataset, data_of, images_of
from ..metrics.psnr import psnr_of_errors
from ..models.latents import ContinuousLatent, DiscreteLatent, QuantizedLatent
from ..models.model import CHUNK, Model, Networks, to_float
from ..ops import kernels
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.loading import model_from
from ..runs.pretrained import is_pretrained
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
    num_samples: int | None = None,
    protocol: str | None = None,
    metrics: str | Sequence[str] | None = None,
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
        num_samples: images to score on, drawn without replacement; as many as before, or 10,000, by default.
        protocol: of InfoMEC; see ``qlae.metrics.infomec``. As before, or the paper's, by default.
        metrics: what to compute, ``"infomec"`` and any other of ``qlae.metrics.METRICS`` (``"dci"`` takes a while), or
            ``"all"``. InfoMEC, and whatever was computed before, by default.
        bootstrap: half samples from which the averaged weights get a 95% interval for each score of the metrics that
            are named, or of InfoMEC, and beside them a curve of the scores against the sample size; 200 are plenty.
        jobs: processes for these, and threads for DCI; -1 for all cores.
        show: draw progress bars.

    Returns:
        The content of ``results.json``.
    """
    run = run if isinstance(run, Run) else Run.open(run)
    asked = _asked(run.results_so_far, num_samples, protocol, metrics, bootstrap)
    how: dict[str, Any] = {"protocol": asked.protocol, "jobs": jobs}
    check_scoring(metrics=asked.metrics, bootstrap=bootstrap, **how)
    config = run.config
    saved = checkpoint.load(run.path)
    if saved is None:
        what = "is a model that was handed on; evaluate the run that it came from" if is_pretrained(run.path) else ""
        raise ValueError(f"{run.path} {what or 'has no checkpoint to evaluate; train it first'}")
    data = data_of(config.data) if data is None else _fitting(data, config.data)
    sample, images = _drawn(data, asked.num_samples, device)

    arrays: Arrays = {"indices": sample, "sources": data.sources[sample], "step": np.asarray(saved.state["step"])}
    for weights, prefix in PREFIXES.items():
        with _without_tuning():
            model = model_from(run, saved, weights=weights, networks=networks, device=device)
            found = encode_sample(model, images, task=f"encoding, {weights}", show=show)
            if weights == "averaged":
                pictures = make_pictures(model, images, found)
        arrays |= {prefix + name: array for name, array in found.items()}
    described = data.describe()
    how["source_kinds"] = known_kinds(described)
    scores, warned = score_sample(arrays, metrics=asked.metrics, bootstrap=bootstrap, show=show, **how)
    if asked.also:
        rest, _ = score_sample(arrays, metrics=asked.also, show=show, **how)
        scores = {weights: rest[weights] | told for weights, told in scores.items()}

    results = {
        "model": config.model,
        "data": described,
        "protocol": asked.protocol,
        "seed": config.seed,
        "steps": saved.state["step"],
        "seconds": round(saved.state["seconds"], 1),
        "device": told_device(pick_device(device)),
        "num_samples": len(sample),
        **scores,
        "warnings": warned,
        "versions": versions() | {"torch": torch.__version__},
    }
    write_npz(run.sample_path, **arrays)
    write_npz(run.pictures_path, **pictures)
    write_json(run.results_path, results)
    return results


class _Asked(NamedTuple):
    """How a run is to be scored."""

    num_samples: int
    protocol: str
    metrics: str | Sequence[str]  # with intervals, if there are to be any
    also: Sequence[str]  # without


def _asked(
    before: dict[str, Any] | None,
    num_samples: int | None,
    protocol: str | None,
    metrics: str | Sequence[str] | None,
    bootstrap: int,
) -> _Asked:
    """What is said, and else as it was before; the first time InfoMEC by the paper's protocol."""
    known = before or {"num_samples": NUM_SAMPLES, "protocol": "paper", "averaged": {}}
    also: Sequence[str] = ()
    if metrics is None:
        others = [metric for metric in metrics_of(known) if metric != "infomec"]
        # Intervals for what nobody named might take hours.
        metrics, also = (["infomec"], others) if bootstrap else (["infomec", *others], ())
    num_samples = max(2, known["num_samples"]) if num_samples is None else num_samples
    return _Asked(num_samples, protocol or known["protocol"], metrics, also)


def scorer(
    run: Run, data: SourceDataset, *, networks: Networks | None = None, device: str = "auto"
) -> Callable[[checkpoint.Checkpoint], dict[str, float]]:
    """What scores the averaged weights of a checkpoint on the evaluation sample, while the run still trains."""
    sample, images = _drawn(data, NUM_SAMPLES, device)
    sources, kinds = data.sources[sample], known_kinds(data.describe())

    def score_saved(saved: checkpoint.Checkpoint) -> dict[str, float]:
        with torch.random.fork_rng(devices=[]), _without_tuning():  # a network of the caller's may draw from torch's
            model = model_from(run, saved, weights="averaged", networks=networks, device=device)
            found = encode_sample(model, images, task="scoring", show=False)
        scores = score_weights(sources, found, source_kinds=kinds, show=False)
        return {name: scores[name] for name in WATCHED if name in scores}

    return score_saved


def _fitting(data: SourceDataset, config: DataConfig) -> SourceDataset:
    """Data that the caller gives, if a run's model can be scored on them and its results still say on what."""
    if not isinstance(data, SourceDataset):
        raise ValueError(f"data must be a data set, such as qlae.load_data gives, got {type(data).__name__}")
    if data.resolution != config.resolution:
        raise ValueError(
            f"the model takes {config.resolution}×{config.resolution} images, "
            f"data has {data.resolution}×{data.resolution}"
        )
    if tuple(data.source_names) != tuple(config.source_names):
        raise ValueError(
            f"the run was trained on data with the sources {', '.join(config.source_names) or 'none'}, these have "
            f"{', '.join(data.source_names) or 'none'}; score them by qlae.metrics.score(sources, model.encode(images))"
        )
    return data


def _drawn(data: SourceDataset, num_samples: int, device: str) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The evaluation sample: row numbers and images."""
    sample = draw_sample(data, num_samples)
    return sample, images_of(data, sample, str(pick_device(device)))


def encode_sample(model: Model, images: NDArray[np.uint8], *, task: str, show: bool) -> Arrays:
    """Codes where there are any, latents where each is one number, and the PSNR (dB) of each reconstruction."""
    parts: dict[str, list[NDArray[Any]]] = {}
    with progress_bar(task, len(images), show=show) as report, torch.inference_mode():
        for start in range(0, len(images), CHUNK):
            shown = to_float(torch.from_numpy(images[start : start + CHUNK]).to(model.device))
            output = model(shown)
            if model.latent.num_outputs == model.latent.num_latents:
                parts.setdefault("latents", []).append(output.latent.z.cpu().numpy())
            if output.latent.codes is not None:
                parts.setdefault("codes", []).append(output.latent.codes.cpu().numpy())
            errors = (output.logits.sigmoid() - shown).square().mean((1, 2, 3)).cpu().numpy()
            parts.setdefault("psnr", []).append(psnr_of_errors(errors).astype(np.float32))
            report(start + len(shown))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


@contextlib.contextmanager
def _without_tuning() -> Iterator[None]:
    """Torch's own operations as they come: a few forward passes are over before choosing and compiling would pay.

    It also makes what is scored after training the same as what is scored from the directory later.
    """
    before = kernels.enabled, torch.backends.cudnn.benchmark
    kernels.enabled = torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        kernels.enabled, torch.backends.cudnn.benchmark = before


def make_pictures(model: Model, images: NDArray[np.uint8], found: Arrays) -> dict[str, NDArray[Any]]:
    """What the report draws: originals beside reconstructions, decoded interventions, and images from the prior.

    ``interventions`` is (blocks, steps, num_latents, r, r, 3): in each block one sample's codes or latents are kept but
    for one, which steps through its range over the evaluation sample.
    """
    chosen = np.random.default_rng(0).choice(len(images), min(NUM_RECONSTRUCTIONS, len(images)), replace=False)
    originals = images[chosen]
    held = found["codes"] if "codes" in found else found["latents"]
    starts = held[chosen[:NUM_INTERVENED]]
    steps = intervention_steps(model, held)
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
