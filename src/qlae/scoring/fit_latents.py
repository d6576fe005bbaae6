"""Fit latent spaces that gradients do not train, such as independent components, to a trained encoder.

The encodings are those of 10,000 training images, drawn with a fixed seed. The result is stored in the run
(``fitted.safetensors``), and loading, evaluation, interventions, the explorer and exports use it.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from .._io import write_bytes
from .._process import evaluation_process, pick_device
from ..data import SourceDataset, images_of
from ..models.building import Networks
from ..models.model import CHUNK, Model
from ..registry import LATENTS
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.load_model import FITTED_FILE, WEIGHTS, fingerprint, model_from, read_fitted
from ..runs.pretrained import tensors_to_bytes

NUM_IMAGES = 10_000
SEED = 1  # not that of the evaluation sample


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
    count = min(NUM_IMAGES, len(data))
    rows = np.sort(np.random.default_rng(SEED).choice(len(data), count, replace=False))
    return images_of(data, rows, str(pick_device(device)))


def fit_latents(model: Model, images: NDArray[np.uint8]) -> None:
    """Fit the latent space of a model in evaluation mode to the encodings of images (n, r, r, 3)."""
    parts = []
    with torch.no_grad():
        for start in range(0, len(images), CHUNK):
            batch = model.form.to_input(torch.from_numpy(images[start : start + CHUNK]).to(model.device))
            parts.append(model.encoder(batch).double().cpu().numpy())
        model.latent.fit(np.concatenate(parts))
