"""What needs the models of runs: encoding the same images with all of them, and the straight-through gap.

The straight-through gap (Friede et al. 2023, "Learning Disentangled Discrete Representations") is the difference
between the losses of two reconstructions, one decoded from the codes and one from what they were rounded from:

    gap = |mean L(x, decode(z)) − mean L(x, decode(z before rounding))|,

where L is the cross entropy of an image in nats, summed over pixels and channels. The decoder is trained on codes only.
The gap is small if the encoder puts images where the codes are.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from .._device import pick_device
from .._process import evaluation_process
from .._progress import progress_bar
from ..data import SourceDataset, images_of, load_from_config
from ..metrics.inputs import Ints
from ..models.latents import DiscreteLatent
from ..models.model import CHUNK, Model, run_in_own_precision
from ..registry import OBJECTIVES
from ..runs import checkpoint
from ..runs.loading import model_from
from ..scoring.evaluation import encode_sample
from .reading import Candidate
from .representation import Representation

GAP_IMAGES = 1_000


def encode_images(
    candidates: Sequence[Candidate],
    rows: Ints,
    *,
    num_shared: int,
    weights: str,
    data: SourceDataset | None,
    device: str,
    show: bool,
) -> list[Representation]:
    """Return the representations of the same images by all runs, encoded by their models where samples lack them.

    Args:
        candidates: the runs.
        rows: row numbers of the images.
        num_shared: number of images that all samples have, for the message if a model cannot be loaded.
        weights: the set of weights.
        data: the data, if they cannot be loaded as the config of a run says.
        device: where the models run.
        show: draw progress bars.
    """
    images: NDArray[np.uint8] | None = None
    representations = []
    for candidate in candidates:
        if np.array_equal(candidate.indices, rows):
            representations.append(candidate.represent())
            continue
        model = load_model(candidate, weights=weights, device=device)
        if model is None:
            raise ValueError(
                f"the samples have only {num_shared:,} images in common, and {candidate.run.path} has no checkpoint to "
                "encode others with. Evaluate all runs on equally many images: `qlae evaluate RUN --num-samples N`"
            )
        images = load_images(candidate, rows, data, device) if images is None else images
        with evaluation_process():
            arrays = encode_sample(model, images, task=f"encoding, {candidate.run.path.name}", show=show)
        representations.append(replace(candidate, indices=rows, arrays=arrays).represent())
    return representations


def straight_through_gaps(
    candidates: Sequence[Candidate], *, weights: str, data: SourceDataset | None, device: str, show: bool
) -> list[float | None]:
    """Return the straight-through gap of each run, in nats per image.

    Returns:
        None where latents are continuous, where the model is not trained to reconstruct, or where a run has no
        checkpoint. All are None if the images cannot be loaded.
    """
    gaps: list[float | None] = [None] * len(candidates)
    images: NDArray[np.uint8] | None = None
    with progress_bar("gaps", len(candidates), show=show) as report:
        for number, candidate in enumerate(candidates):
            if "codes" in candidate.arrays and OBJECTIVES.entry_of(candidate.config.objective).part.reconstructs:
                model = load_model(candidate, weights=weights, device=device)
                if model is not None:
                    if images is None:
                        images = load_images(candidate, candidate.indices[:: _stride(candidate)], data, device)
                    gaps[number] = straight_through_gap(model, images)
            report(number + 1)
    return gaps


def straight_through_gap(model: Model, images: NDArray[np.uint8]) -> float | None:
    """Return the gap of one model over observations, in nats for each; None if it does not round its latents.

    >>> from qlae.models.latents import ContinuousLatent
    >>> from torch import nn
    >>> model = Model(nn.Flatten(), ContinuousLatent(3), nn.Identity(), resolution=8)
    >>> straight_through_gap(model, np.zeros((2, 8, 8, 3), np.uint8)) is None
    True
    """
    latent = model.latent
    if not isinstance(latent, DiscreteLatent):
        return None
    differences = []
    with evaluation_process(), torch.inference_mode():
        for start in range(0, len(images), CHUNK):
            batch = model.form.to_input(torch.from_numpy(images[start : start + CHUNK]).to(model.device))
            encoded = run_in_own_precision(model.encoder, batch)
            unrounded = latent.before_rounding(encoded)
            if unrounded is None:
                return None
            losses = [
                model.form.nats(run_in_own_precision(model.decoder, z), batch) for z in (latent(encoded).z, unrounded)
            ]
            differences.append((losses[0] - losses[1]).double().cpu().numpy())
    return float(abs(np.concatenate(differences).mean()))


def load_model(candidate: Candidate, *, weights: str, device: str) -> Model | None:
    """Return the model of a run; None if it has no checkpoint that belongs to its results, or a damaged one."""
    try:
        snapshot = checkpoint.load(candidate.run.path)
    except ValueError as error:
        warnings.warn(str(error), stacklevel=2)
        return None
    if snapshot is None or snapshot.state["step"] != candidate.results["steps"]:
        return None
    return model_from(candidate.run, snapshot, weights=weights, device=device)


def load_images(candidate: Candidate, rows: Ints, data: SourceDataset | None, device: str) -> NDArray[np.uint8]:
    """Return images (n, r, r, 3) of the data of a run."""
    data = load_from_config(candidate.config.data) if data is None else data
    return images_of(data, rows, str(pick_device(device)))


def _stride(candidate: Candidate) -> int:
    return max(1, len(candidate.indices) // GAP_IMAGES)
