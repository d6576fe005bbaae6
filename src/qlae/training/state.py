"""The state of a training: built from a config and its data, and everything that a run must remember to resume exactly.

Tensors are named ``weights.*`` (parameters and buffers), ``average.*``, ``optimizer.<player>.*.first`` and ``.second``,
``optimizer.<player>.moves``, ``window.<player>``, ``sampler`` and ``noise``. Runs with parts from outside the package,
which may draw from torch's global generators (as dropout does), also have ``random`` and ``random.cuda``. The number of
the last update, the seconds spent, and the number of threads and other settings on which the last bit of a sum depends
are in the JSON.
"""

import math
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._process import settings_in_force
from .._progress import progress_bar
from ..config import RunConfig, TrainingConfig
from ..data import RenderedImages, SourceDataset, keep_on_disk
from ..data.batches import Batches, DeviceBatches, HostBatches, fits
from ..models.building import Networks, build_model, is_all_ours, is_ours
from ..models.model import Model, place
from ..objectives import players_of
from ..runs.checkpoint import Checkpoint
from .graphs import GraphUpdates
from .step import EagerUpdates, Step, Turn

# Scenes that take a CPU half a minute or more to render are rendered once and kept on disk; Shapes3D takes seconds.
SLOW_SCENES = ("mpi3d", "falcor3d", "isaac3d", "dsprites")


class TrainingState:
    """A model, one update of it, the way in which updates are made, and the number of updates made."""

    def __init__(
        self, model: Model, update: Step, updates: EagerUpdates | GraphUpdates, *, saves_global_generators: bool = False
    ):
        self.model, self.update, self.updates = model, update, updates
        self.saves_global_generators = saves_global_generators  # torch's
        self.step, self.seconds = 0, 0.0
        self._names = {parameter: name for name, parameter in model.named_parameters()}

    def to_checkpoint(self) -> Checkpoint:
        """Return the state as it is now, on the CPU."""
        tensors, batches = self._tensors(), self.update.batches
        tensors |= {"sampler": batches.generator.get_state(), "noise": self.update.noise.get_state()}
        if self.saves_global_generators:
            tensors["random"] = torch.get_rng_state()
            if batches.device.type == "cuda":
                tensors["random.cuda"] = torch.cuda.get_rng_state(batches.device)
        state = {
            "step": self.step,
            "seconds": self.seconds,
            "window_filled": {turn.player.name: turn.window.filled for turn in self.update.turns},
            "threads": torch.get_num_threads(),
            "settings": settings_in_force(),
        }
        return Checkpoint({name: tensor.cpu() for name, tensor in tensors.items()}, state)

    def from_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Restore a state, bit for bit."""
        try:
            self._restore(checkpoint.tensors, checkpoint.state)
        except KeyError as error:
            raise ValueError(
                f"the checkpoint has no {error}: it is damaged, or another version of qlae wrote it; "
                "start again in another folder"
            ) from None

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        own, batches, turns = self._tensors(), self.update.batches, self.update.turns
        for name in sorted(tensors.keys() - {"sampler", "noise", "random", "random.cuda"} | own.keys()):
            shapes = [tuple(some[name].shape) if name in some else None for some in (tensors, own)]
            if shapes[0] != shapes[1]:
                what = f"it has {name} of shape {shapes[0]}, the model of {shapes[1]}"
                raise ValueError(f"the checkpoint does not fit the model: {what}")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(tensors[name])
        for turn in turns:
            turn.flat.refresh()
            turn.window.filled = int(state["window_filled"][turn.player.name])
        batches.generator.set_state(tensors["sampler"])
        self.update.noise.set_state(tensors["noise"])
        if "random" in tensors:
            torch.set_rng_state(tensors["random"])
        if "random.cuda" in tensors and batches.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], batches.device)
        self.step, self.seconds = int(state["step"]), float(state["seconds"])
        settings = settings_in_force()
        if state["settings"] != settings:
            warnings.warn(
                f"the run was interrupted with the settings {state['settings']} and is resumed with {settings}; it "
                "will not end with the same bits as an uninterrupted one",
                stacklevel=4,
            )
        if batches.device.type == "cpu":
            torch.set_num_threads(int(state["threads"]))

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors that are saved and restored as they stand, by name; they are those in use."""
        tensors = {f"weights.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for turn in self.update.turns:  # the weights that the optimizer moves, of which the model may hold a copy
            tensors |= self._views_by_name(turn, turn.flat.values, "weights.{}")
        for turn, average in zip(self.update.turns, self.update.averages, strict=True):
            player, optimizer = turn.player.name, turn.optimizer
            tensors |= self._views_by_name(turn, average, "average.{}")
            tensors |= self._views_by_name(turn, optimizer.first, f"optimizer.{player}.{{}}.first")
            tensors |= self._views_by_name(turn, optimizer.second, f"optimizer.{player}.{{}}.second")
            tensors |= {f"optimizer.{player}.moves": optimizer.moves, f"window.{player}": turn.window.values}
        return tensors

    def _views_by_name(self, turn: Turn, buffer: Tensor, pattern: str) -> dict[str, Tensor]:
        """Return the views of a player's buffer, by the names of its parameters."""
        views = zip(turn.flat.parameters, turn.flat.views(buffer), strict=True)
        return {pattern.format(self._names[parameter]): view for parameter, view in views}


def initial_model(config: RunConfig, networks: Networks | None = None, device: torch.device | None = None) -> Model:
    """Return a model with the weights that follow from the seed of a config; they are the same on every device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        return place(build_model(config, networks), device or torch.device("cpu"))


def require_trainable(config: RunConfig, networks: Networks | None) -> None:
    """Raise an error if no model can be built for a config, or its players do not fit.

    Models of qlae are built on the device ``meta``, without memory or random numbers.
    """
    with torch.random.fork_rng(devices=[]), torch.device("meta" if is_all_ours(config) else "cpu"):
        players_of(config, build_model(config, networks))


def build_state(
    config: RunConfig,
    data: SourceDataset,
    device: torch.device,
    *,
    model: Model | None = None,
    targets: NDArray[Any] | None = None,
    compile: bool = True,
    show: bool = False,
) -> TrainingState:
    """Return a run before its first update; weights and batches follow from the seed.

    ``model`` is the result of ``initial_model`` on the same device, which custom networks need. ``targets`` (n, k) are
    whole numbers that the objective needs of each observation. ``compile`` records updates as CUDA graphs on a GPU.
    """
    model = initial_model(config, device=device) if model is None else model
    batches = _batches(data, config.training, device, show=show)
    batches.targets = None if targets is None else torch.from_numpy(targets).to(device)
    training, held_out = data.split
    batches.rows = torch.from_numpy(training).to(batches.generator.device) if len(held_out) else None
    return state_on(config, model, batches, compile=compile)


def state_on(config: RunConfig, model: Model, batches: Batches, *, compile: bool = True) -> TrainingState:
    """Return a run before its first update, on batches that are on their device already."""
    step = Step(players_of(config, model), batches, config, model.form.to_input)
    updates: EagerUpdates | GraphUpdates = EagerUpdates(step)
    if batches.device.type == "cuda" and compile:
        updates = GraphUpdates(step, log_every=config.training.log_every, rehearse=is_ours(config))
    return TrainingState(model, step, updates, saves_global_generators=not is_all_ours(config))


def _batches(data: SourceDataset, training: TrainingConfig, device: torch.device, *, show: bool) -> Batches:
    """Return batches of the images, which are rendered first if necessary, on the device or on the way to it."""
    images, on_gpu = data.images, device.type == "cuda"
    rendered = images if isinstance(images, RenderedImages) else None
    fit = (rendered is not None and rendered.is_kept_on(str(device))) or fits(
        math.prod(images.shape) * images.dtype.itemsize, device
    )
    on_device: Tensor | None = None
    with progress_bar("rendering", len(data), show=show and rendered is not None) as report:
        if rendered is not None and on_gpu and fit:
            on_device = rendered.render_on(str(device), progress=report)
        elif rendered is not None and rendered.name in SLOW_SCENES:
            images = keep_on_disk(data, progress=report).images
        elif not isinstance(images, np.ndarray) and not getattr(images, "stays_lazy", False):
            images = data.in_memory(progress=report).images
    if on_device is None and fit and isinstance(images, np.ndarray) and (on_gpu or images.flags.writeable):
        on_device = torch.from_numpy(images if images.flags.writeable else images.copy()).to(device)
    if on_device is not None:
        return DeviceBatches(on_device, training.batch_size, torch.Generator(device).manual_seed(training.seed))
    if not fit:
        warnings.warn(
            f"{len(data):,} {data.observations.traits.many} do not fit on {device} together with the training; they "
            "stay on the host, and batches are copied",
            stacklevel=2,
        )
    return HostBatches(images, training.batch_size, torch.Generator().manual_seed(training.seed), device)
