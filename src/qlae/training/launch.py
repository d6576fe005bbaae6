"""Train a config in a run directory, from its last checkpoint if it has one."""

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch

from .._device import pick_device
from .._process import training_process
from .._progress import progress_bar
from ..config import RunConfig
from ..data import RenderedImages, SourceDataset, keep_on_disk
from ..data.batches import Batches, DeviceBatches, HostBatches, fits
from ..models.building import ROLES, Networks, build_model, is_all_ours, is_ours
from ..models.model import place
from ..objectives import players_of
from ..options import CHECKPOINT_SECONDS
from ..runs import checkpoint
from ..runs.directory import Run
from .callbacks import Callback
from .graphs import GraphUpdates
from .state import TrainingState, Updates
from .step import EagerUpdates, Step
from .trainer import Estimate, Watch, run_updates

# Scenes that take a CPU half a minute or more to render are rendered once and kept on disk; Shapes3D takes seconds.
SLOW_SCENES = ("mpi3d", "falcor3d", "isaac3d", "dsprites")


def train_run(
    run: Run,
    config: RunConfig,
    data: SourceDataset,
    *,
    networks: Networks | None = None,
    device: str = "auto",
    compile: bool = True,
    threads: int | None = None,
    watch: Watch | None = None,
    callbacks: Callable[[int], Sequence[Callback]] | None = None,
    estimate: Estimate | None = None,
    show: bool = True,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> None:
    """Train a config in the directory of a run, from its last checkpoint if it has one.

    The settings of the process are restored: cuDNN flags, threads, default type, generators and signal handlers.

    Args:
        run: the run directory.
        config: of the run.
        data: the images.
        networks: the caller's encoder and decoder, if the config says so.
        device, compile, threads, checkpoint_seconds: as in ``options.ExecutionOptions``.
        watch: computes scores during training.
        callbacks: a function of the number of updates made so far that returns the callbacks.
        estimate: called once with the seconds per update and the number of updates left.
        show: whether to draw progress bars.
    """
    place_on = pick_device(device)
    with training_process(place_on, compile=compile, threads=threads):
        config.require_restorable()
        require_trainable(config, networks)
        if networks is not None:
            _warn_of_idle_networks(networks)
        run.require_free(config)
        with run.locked():
            snapshot = checkpoint.load(run.path)
            steps = config.training.steps
            if snapshot is not None and snapshot.state["step"] > steps:
                raise ValueError(
                    f"{run.path} has made {snapshot.state['step']:,} updates already, more than steps={steps:,}; "
                    "ask for as many or more, or choose another folder"
                )
            run.write_config(config)
            run.write_left_out(data.left_out)
            if snapshot is not None and snapshot.state["step"] == steps:
                return
            state = build_state(config, data, place_on, networks=networks, compile=compile, show=show)
            torch.manual_seed(config.training.seed + 2)  # for parts that draw from torch's global generators
            if snapshot is not None:
                state.from_checkpoint(snapshot)
            run.trim_log(state.step)
            run_updates(
                run,
                config,
                state,
                checkpoint_seconds=checkpoint_seconds,
                watch=watch,
                callbacks=callbacks(state.step) if callbacks is not None else (),
                estimate=estimate,
                show=show,
            )


def build_state(
    config: RunConfig,
    data: SourceDataset,
    device: torch.device,
    *,
    networks: Networks | None = None,
    compile: bool = True,
    show: bool = False,
) -> TrainingState:
    """Return a run before its first update.

    Weights and batches follow from the seed; the weights are the same on every device.
    """
    training = config.training
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        model = place(build_model(config, networks), device)
    batches = _batches(data, training.batch_size, training.seed, device, show=show)
    step = Step(players_of(config, model), batches, config, model.form.to_input)
    updates: Updates = EagerUpdates(step)
    if device.type == "cuda" and compile:
        updates = GraphUpdates(step, log_every=training.log_every, rehearse=is_ours(config))
    return TrainingState(model, step, updates, saves_global_generators=not is_all_ours(config))


def require_trainable(config: RunConfig, networks: Networks | None) -> None:
    """Raise an error if no model can be built for a config or its players do not fit, before anything is written."""
    with torch.random.fork_rng(devices=[]):
        model = build_model(config, networks)
        players_of(config, model)


def _warn_of_idle_networks(networks: Networks) -> None:
    """Warn about settings that keep networks from learning, as networks from `qlae.load` have."""
    for role, module in zip(ROLES, networks, strict=True):
        parameters = [] if module is None else list(module.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            warnings.warn(
                f"no parameter of the {role} has requires_grad, so it is not trained; call .requires_grad_(True)",
                stacklevel=5,
            )
        if module is not None and not module.training:
            warnings.warn(
                f"the {role} is in evaluation mode and is trained in it (batch norm, dropout); call .train()",
                stacklevel=5,
            )


def _batches(data: SourceDataset, batch_size: int, seed: int, device: torch.device, *, show: bool) -> Batches:
    """Return batches of the images, which are rendered first if necessary, on the device or on the way to it."""
    images = data.images
    is_rendered = isinstance(images, RenderedImages) and images.is_kept_on(str(device))
    fit = is_rendered or fits(math.prod(images.shape) * images.dtype.itemsize, device)
    with progress_bar("rendering", len(data), show=show and isinstance(images, RenderedImages)) as report:
        if isinstance(images, RenderedImages) and device.type == "cuda" and fit:
            return DeviceBatches(
                images.render_on(str(device), progress=report), batch_size, torch.Generator(device).manual_seed(seed)
            )
        if isinstance(images, RenderedImages) and images.name in SLOW_SCENES:
            images = keep_on_disk(data, progress=report).images
        elif not isinstance(images, np.ndarray):
            images = data.in_memory(progress=report).images
    if fit and isinstance(images, np.ndarray) and (device.type == "cuda" or images.flags.writeable):
        on_device = torch.from_numpy(images if images.flags.writeable else images.copy()).to(device)
        return DeviceBatches(on_device, batch_size, torch.Generator(device).manual_seed(seed))
    if not fit:
        warnings.warn(
            f"{len(data):,} {data.observations.traits.many} do not fit on {device} beside the training; they stay on "
            "the host, and batches are copied",
            stacklevel=2,
        )
    return HostBatches(images, batch_size, torch.Generator().manual_seed(seed), device)
