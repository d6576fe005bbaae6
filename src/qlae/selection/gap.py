"""The straight-through gap: how far the codes of a model are from the outputs of its encoder.

After Friede et al. 2023, "Learning Disentangled Discrete Representations", it is the difference between the losses of
two reconstructions, one decoded from the codes z and one from the values before rounding:

    gap = |mean L(x, decode(z)) − mean L(x, decode(z before rounding))|,

where L is the cross entropy of an image in nats, summed over pixels and channels. The decoder is trained on codes only,
so the gap is small if the encoder maps images close to the codes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._process import evaluation_process
from .._progress import progress_bar
from ..data import SourceDataset
from ..models.latents import DiscreteLatent
from ..models.model import CHUNK, Model, run_in_own_precision
from .run_codes import RunCodes

NUM_IMAGES = 1_000


def straight_through_gaps(
    runs: Sequence[RunCodes], *, data: SourceDataset | None, device: str, show: bool
) -> list[float | None]:
    """Return the straight-through gap of each run, in nats per image.

    Returns:
        None where latents are continuous, where the model is not trained to reconstruct, or where a run has no
        checkpoint.
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
