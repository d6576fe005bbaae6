"""Notice a run whose latents have stopped carrying anything, while it trains.

Strong weight decay, a high learning rate, very small codebooks or a penalty on the entropy of codes can push all inputs
to the same code. The decoder then draws the mean image, and the loss stays flat without any error. Ten times in a run
the encoder is applied to the same few images; if no latent varies over them twice in a row, a warning says so.
"""

import warnings

import numpy as np
import torch
from torch import Tensor

from .._process import evaluation_process
from ..config import RunConfig
from ..data.batches import Batches
from ..models.model import Model, run_in_own_precision
from ..objectives.code_penalties import ENTROPY

LOOKS = 10  # in a run
NUM_IMAGES = 64
TOLERANCE = 1e-5  # a range below this share of the largest value is rounding


class CollapseCheck:
    """Counts the latents that vary over the images that a model is trained on, at a few log points of a run."""

    def __init__(self, model: Model, batches: Batches, config: RunConfig):
        self._model, self._batches, self._config = model, batches, config
        self._steps = config.training.steps
        self._times = 0  # looks in a row at which no latent varied
        self._next = self._mark(0)

    def look(self, step: int) -> None:
        """Warn if it is time to look, and no latent varies now nor did at the last look."""
        if step < self._next:
            return
        self._next = self._mark(step)
        if num_varying(self._model, self._batches):
            self._times = 0
            return
        self._times += 1
        if self._times == 2:
            warnings.warn(
                f"after update {step:,} of {self._steps:,} no latent varies: all observations have the same code, and "
                f"their reconstructions are the same. {_remedy(self._config)}",
                stacklevel=2,
            )

    def _mark(self, step: int) -> float:
        """Return the first update after a given one at which to look."""
        return (step * LOOKS // self._steps + 1) * self._steps / LOOKS


def _remedy(config: RunConfig) -> str:
    """Return what to change so that latents vary."""
    num_values = getattr(config.latent, "num_values", None)
    if num_values is not None and np.max(num_values) == 1:
        return "A latent needs at least two values to vary: raise num_values, which is 1"
    penalty = " or the weight of entropy" if ENTROPY in config.objective.weights else ""
    values = "" if num_values is None else ", or give latents more values by num_values"
    return f"Lower weight_decay or learning_rate{penalty}{values}"


def num_varying(model: Model, batches: Batches) -> int:
    """Return how many of a model's latents vary over a few images, without any effect on the training."""
    rows = np.unique(np.linspace(0, len(batches.images) - 1, NUM_IMAGES).astype(np.int64))
    if isinstance(batches.images, Tensor):
        images = batches.images[torch.from_numpy(rows).to(batches.images.device)]
    else:
        images = torch.from_numpy(np.array(batches.images[rows])).to(batches.device)
    modes = {module: module.training for module in model.modules()}
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    with torch.random.fork_rng(devices=devices), torch.no_grad(), evaluation_process():
        model.eval()
        try:
            z = model.latent(run_in_own_precision(model.encoder, model.form.to_input(images))).z
        finally:
            for module, mode in modes.items():
                module.training = mode
    spread = z.amax(0) - z.amin(0)
    return int((spread > torch.clamp(TOLERANCE * z.abs().max(), min=model.latent.least_range)).sum())
