"""From names to a finished run: resolve the presets, lay out the run directory, train, evaluate.

The same call on the same directory goes on where a run was stopped or killed.
"""

import inspect
import math
import os
import warnings
from typing import Any

import numpy as np
import torch

from .._checks import require_known, whole_number
from .._device import keep_freed_memory, pick_device
from .._progress import progress_bar
from ..config import RunConfig
from ..data import RenderedImages, SourceDataset, data_config, keep_on_disk, load_data
from ..data.batches import Batches, DeviceBatches, HostBatches, fits
from ..models.model import Networks, build_model, place, require_buildable
from ..objectives import build_players
from ..ops import kernels
from ..presets import resolve
from ..runs import checkpoint
from ..runs.directory import Run
from .state import TrainingState
from .step import EagerStep, GraphStep
from .trainer import CHECKPOINT_SECONDS, Watch, run_updates

# What `train` passes on to `resolve`.
OPTIONS = tuple(
    name for name in tuple(inspect.signature(resolve).parameters)[3:] if name not in ("own_networks", "precision")
)
# Scenes that take a CPU minutes to render are rendered once and kept on disk; Shapes3D takes seconds.
SLOW_SCENES = ("mpi3d", "falcor3d", "isaac3d")


def train(
    model: str,
    data: SourceDataset | str,
    *,
    out: str | os.PathLike[str],
    networks: Networks | None = None,
    device: str = "auto",
    precision: str = "auto",
    compile: bool = True,
    threads: int | None = None,
    score_every: int = 0,
    evaluate: bool = True,
    show: bool = True,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    **options: Any,
) -> Run:
    """Train a model by name, or go on with a run that was stopped.

    Args:
        model: such as ``"qlae"`` or ``"ae"``; see ``qlae.presets.MODELS``.
        data: a data set, or its name.
        out: the run directory.
        networks: an encoder and a decoder of your own, modules of torch, instead of the paper's; see
            ``docs/models.md``. Copies of them are trained.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, …
        precision: of the networks' weights and activations: ``"float32"``, ``"bfloat16"``, or ``"auto"``, which is
            bfloat16 for our networks on a GPU that has it; everything else is in float32. A run that goes on keeps
            what it began with.
        compile: on a GPU, launch updates as CUDA graphs, with fused kernels where Triton is there; ``False`` runs one
            operation of torch after the other.
        threads: of torch on the CPU; a run that goes on keeps the number it began with, to stay exact.
        score_every: updates between scorings of the averaged weights while they train, which go into the log and its
            picture (InfoM, InfoE, InfoC, PSNR); a multiple of 100, or 0 for none. The training is the same.
        evaluate: also score the trained model and draw its pictures.
        show: draw progress bars.
        checkpoint_seconds: between checkpoints.
        options: whatever else ``qlae.presets.resolve`` takes: ``steps``, ``size``, ``seed``, ``form``,
            ``learning_rate``, ``batch_size``, ``weight_decay``, ``weights``, ``warm_up``, ``num_latents``,
            ``num_values``, ``fixed_values``.

    Returns:
        The run, with ``.results`` if it was evaluated.
    """
    if isinstance(data, str):
        data = load_data(data)
    if not isinstance(data, SourceDataset):
        raise ValueError(
            f"data must be a data set or the name of one, got {type(data).__name__}; "
            "an array of images becomes one by qlae.SourceDataset(images, sources, name='mine', origin='real'), "
            "without sources if there are none"
        )
    for name in options:
        require_known(name, OPTIONS, "option of train")
    run = Run(out)
    own = networks is not None
    precision = _precision(precision, run, device, own=own)
    config = resolve(model, data_config(data), len(data.source_names), own_networks=own, precision=precision, **options)
    if not checkpoint_seconds >= 0:
        raise ValueError(f"checkpoint_seconds must not be negative, got {checkpoint_seconds}")
    if evaluate and data.source_names:
        from ..scoring.sample import require_scorable

        try:
            require_scorable(data)
        except ValueError as error:
            raise ValueError(
                f"{error} Mend or leave out that source, or train without scoring (--no-evaluate)"
            ) from error
    if threads is not None:
        torch.set_num_threads(whole_number("threads", threads))
    train_run(
        run,
        config,
        data,
        networks=networks,
        device=device,
        compile=compile,
        watch=_watch(score_every, run, config, data, networks, device) if score_every else None,
        show=show,
        checkpoint_seconds=checkpoint_seconds,
    )
    if evaluate:
        from ..report import draw_pictures
        from ..scoring.evaluation import evaluate_run

        evaluate_run(run, data=data, networks=networks, device=device, show=show)
        draw_pictures(run)
    return run


def train_run(
    run: Run,
    config: RunConfig,
    data: SourceDataset,
    *,
    networks: Networks | None = None,
    device: str = "auto",
    compile: bool = True,
    watch: Watch | None = None,
    show: bool = True,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> None:
    """Train what ``config`` says in the directory of ``run``, from its last checkpoint if it has one."""
    require_buildable(config, networks)
    if networks is not None:
        _warn_of_idle(networks)
    place_on = pick_device(device)
    if place_on.type == "cpu":
        keep_freed_memory()
    run.require_free(config)
    with run.locked():
        saved = checkpoint.load(run.path)
        if saved is not None and saved.state["step"] > config.steps:
            raise ValueError(
                f"{run.path} has made {saved.state['step']:,} updates already, and {config.steps:,} are asked for; "
                "ask for as many or more, or choose another --out"
            )
        run.write_config(config)
        if saved is not None and saved.state["step"] == config.steps:
            return
        state = build_state(config, data, place_on, networks=networks, compile=compile, show=show)
        # Networks of the caller's may draw from torch's own generators.
        with torch.random.fork_rng(devices=[place_on] if place_on.type == "cuda" else []):
            torch.manual_seed(config.seed + 2)
            if saved is not None:
                state.from_checkpoint(saved)
            run.trim_log(state.step)
            run_updates(run, config, state, checkpoint_seconds=checkpoint_seconds, watch=watch, show=show)


def _watch(
    every: int, run: Run, config: RunConfig, data: SourceDataset, networks: Networks | None, device: str
) -> Watch:
    from ..scoring.evaluation import scorer

    if every < 0 or every % config.log_every:
        raise ValueError(
            f"score_every must be a multiple of {config.log_every}, at which losses are logged, or 0 for no scores "
            f"before the end, got {every}"
        )
    return Watch(every, scorer(run, data, networks=networks, device=device))


def build_state(
    config: RunConfig,
    data: SourceDataset,
    device: torch.device,
    *,
    networks: Networks | None = None,
    compile: bool = True,
    show: bool = False,
) -> TrainingState:
    """A run before its first update. Weights and batches follow from the seed, the weights on any device alike."""
    on_gpu = device.type == "cuda"
    if on_gpu and device.index is not None:
        torch.cuda.set_device(device)  # where kernels are launched and graphs recorded
    kernels.enabled = compile
    torch.backends.cudnn.benchmark = on_gpu and compile
    torch.backends.cudnn.deterministic = on_gpu  # which costs nothing here, and a run can be repeated
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = place(build_model(config, networks), device)
    batches = _batches(data, config.batch_size, config.seed, device, show=show)
    step = GraphStep if on_gpu and compile else EagerStep
    return TrainingState(model, step(build_players(config, model), batches, config), own_networks=config.network.own)


def _warn_of_idle(networks: Networks) -> None:
    """Tell of what keeps networks from learning, as in those that `qlae.load` gives."""
    for role, module in zip(("encoder", "decoder"), networks, strict=True):
        parameters = list(module.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            warnings.warn(
                f"no parameter of the {role} has requires_grad, so it is not trained; .requires_grad_(True) lets it",
                stacklevel=4,
            )
        if not module.training:
            warnings.warn(
                f"the {role} is in evaluation mode and is trained so (batch norm, dropout); .train() changes it",
                stacklevel=4,
            )


def _precision(name: str, run: Run, device: str, *, own: bool) -> str:
    """What ``auto`` means for a run on a device; networks of the caller's may have parts that only float32 will do."""
    if name != "auto":
        return name
    if run.config_path.is_file():
        return run.config.precision
    reduced = not own and pick_device(device).type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if reduced else "float32"


def _batches(data: SourceDataset, batch_size: int, seed: int, device: torch.device, *, show: bool) -> Batches:
    """The images, rendered if they have to be, and the way that batches of them reach the device."""
    images = data.images
    drawn = isinstance(images, RenderedImages)
    ready = isinstance(images, RenderedImages) and images.is_kept_on(str(device))
    fit = ready or fits(math.prod(images.shape), device)
    with progress_bar("rendering", len(data), show=show and drawn) as report:
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
            f"{len(data):,} images do not fit on {device} beside the training; they stay on the host, batches travel",
            stacklevel=2,
        )
    return HostBatches(images, batch_size, torch.Generator().manual_seed(seed), device)
