"""Train → evaluate → report: the only module that knows all three.

The same call on the same directory continues where a run was interrupted or killed.
"""

import os
import shutil
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ._process import usual_errors
from .config import RunConfig
from .configuring import Configuration, configure, prepare_data, require_data
from .data import SourceDataset, data_config, hold_out_as, load_from_config
from .data.hold_out import FEWEST_ROWS, MOST_SHARE
from .models.building import Networks
from .models.latents.independent import IndependentComponents, IndependentConfig
from .options import TrainingOptions, split_options
from .presets import ModelSpec
from .registry import LATENTS
from .runs import checkpoint
from .runs.directory import Run
from .scoring.evaluation import evaluate_run, fit_run, scorer
from .scoring.sample import require_scorable
from .training.callbacks import Callback, TensorBoard
from .training.trainer import Watch, train_run

NUM_COMPARED = 256  # observations that are compared at once


@usual_errors()
def train(
    model: str | ModelSpec,
    data: Any,
    *,
    out: str | os.PathLike[str],
    networks: Networks | str | None = None,
    callbacks: Sequence[Callback] = (),
    show: bool = True,
    **options: Any,
) -> Run:
    """Train a model, score it and draw its pictures; or resume a run that was interrupted.

    Args:
        model: a name such as ``"qlae"`` (``qlae.presets.MODELS`` lists them) or a ``qlae.ModelSpec``.
        data: a data set, its name or path, or an array, tensor, data frame or torch data set: see ``qlae.load_data``.
        out: the run directory.
        networks: your encoder and decoder, torch modules, of which one may be None for the paper's; or the
            name of a registered pair. Copies of the modules are trained.
        callbacks: called with rows of the log, with checkpoints, and at the end.
        show: whether to draw progress bars.
        options: fields of ``qlae.options.TrainingOptions`` (``steps``, ``size``, ``seed``, ``form``, ``learning_rate``,
            ``schedule``, ``batch_size``, ``weight_decay``, ``weights``, ``warm_up``, ``num_latents``, ``num_values``,
            ``fixed_values``, ``precision``, …) and of ``qlae.options.ExecutionOptions`` (``device``, ``compile``,
            ``threads``, ``checkpoint_seconds``, ``score_every``, ``evaluate``, ``tensorboard``). A resumed run keeps
            the size, the precision and the number of threads that it began with.

    Returns:
        The run, with ``.results`` if it was evaluated.
    """
    data = prepare_data(model, data, out=out, networks=networks, show=show, **options)
    run = Run(out)
    configuration = configure(model, data, out=out, networks=networks, **options)
    configuration.note_size(run, show=show)
    _train_and_report(run, configuration, data, callbacks=callbacks, show=show)
    return run


@usual_errors()
def resume(
    path: str | os.PathLike[str],
    *,
    steps: int | None = None,
    data: Any = None,
    networks: Networks | None = None,
    callbacks: Sequence[Callback] = (),
    show: bool = True,
    **options: Any,
) -> Run:
    """Resume a run from its directory alone, with the configuration that it began with.

    Args:
        path: the run directory.
        steps: train for more updates than the run was started with.
        data: the data that it was trained on, if they cannot be loaded by name.
        networks: the encoder and the decoder, if the run was started with custom ones.
        callbacks, show: as for ``train``.
        options: fields of ``qlae.options.ExecutionOptions``.

    Returns:
        The run, with ``.results`` if it was evaluated.
    """
    run = Run.open(path)
    training, execution = split_options(options)
    if training != TrainingOptions():
        raise ValueError("resume keeps the configuration of the run; only steps and execution options can be given")
    config = run.config
    if steps is not None:
        longer = replace(config, training=replace(config.training, steps=steps))
        if config.difference(longer):
            raise ValueError(
                f"{run.path}: the learning rate falls towards update {config.training.steps:,}, so a run of {steps:,} "
                "updates is another run; start it in a folder of its own"
            )
        config = longer
    data = load_from_config(config.data) if data is None else hold_out_as(config.data, require_data(data))
    # Data with a spec are not compared: a run of files may be resumed with the same images from an array.
    was = config.data
    if was.spec is None and was.checksum is not None and data_config(data).checksum not in (None, was.checksum):
        raise ValueError(
            f"the run was started with other {was.observations.traits.many} than those in data=…: pass the same ones, "
            "or start another run"
        )
    _train_and_report(run, Configuration(config, {}, execution, networks), data, callbacks=callbacks, show=show)
    return run


def _train_and_report(
    run: Run, configuration: Configuration, data: SourceDataset, *, callbacks: Sequence[Callback], show: bool
) -> None:
    config, execution, networks = configuration.config, configuration.execution, configuration.networks
    configuration.require_executable()
    if execution.evaluate and data.source_names:
        try:
            require_scorable(data)
        except ValueError as error:
            advice = "Correct or leave out that source, or train without scoring: evaluate=False"
            raise ValueError(f"{error} {advice}") from error
    _warn_of_equal_observations(data)
    _warn_of_no_hold_out(data)
    callbacks = [*callbacks, TensorBoard(run.path / "tensorboard")] if execution.tensorboard else callbacks
    shared: dict[str, Any] = {"networks": networks, "device": execution.device}
    watch = Watch(execution.score_every, scorer(run, data, **shared)) if execution.score_every else None
    train_run(
        run,
        config,
        data,
        compile=execution.compile,
        threads=configuration.threads,
        watch=watch,
        callbacks=callbacks,
        show=show,
        checkpoint_seconds=execution.checkpoint_seconds,
        **shared,
    )
    fit_run(run, data, **shared)
    if execution.evaluate:
        from .report import draw_pictures  # imports matplotlib

        evaluate_run(run, data=data, show=show, **shared)
        draw_pictures(run)
    for callback in callbacks:
        callback.on_end(run)


def _warn_of_equal_observations(data: SourceDataset) -> None:
    """Warn if there is nothing to learn, since all observations in memory are the same."""
    images, many = data.images, data.observations.traits.many
    if not isinstance(images, np.ndarray) or (images[:NUM_COMPARED] != images[:1]).any():
        return
    if all((images[start : start + NUM_COMPARED] == images[:1]).all() for start in range(0, len(data), NUM_COMPARED)):
        warnings.warn(
            f"all {many} of {data.name} ({len(data):,}) are the same: there is nothing to learn", stacklevel=4
        )


def _warn_of_no_hold_out(data: SourceDataset) -> None:
    """Warn if rows should be held out and the data have too few of them."""
    if data.hold_out and not len(data.held_out_rows):
        reason = "its rows cannot be divided, since they are of one group or overlap"
        if len(data) < FEWEST_ROWS / MOST_SHARE:
            fewest = round(FEWEST_ROWS / MOST_SHARE)
            reason = f"{len(data):,} {data.observations.traits.many} are too few; it takes at least {fewest}"
        warnings.warn(
            f"no rows of {data.name} are held out: {reason}. The model is scored on what it was trained on; hold_out=0 "
            "silences this warning",
            stacklevel=4,
        )


# Independent components of an autoencoder that is trained already. The model ``ae-ica`` is ``ae`` until the training is
# over (``models/latents/independent.py``), so it needs no second training: the new run gets the checkpoint and the log
# of the old one, and the components are fitted to it. Studies that have both models train them once.

COMPONENTS_MODEL = "ae-ica"


@usual_errors()
def find_components(
    run: Run | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    data: Any = None,
    networks: Networks | None = None,
    show: bool = True,
    **options: Any,
) -> Run:
    """Find independent components of a trained autoencoder's latents, score them and draw their pictures.

    The result is the run of ``ae-ica`` that a training with the same options and seed would end with.

    Args:
        run: a finished run of ``ae``. It stays as it is.
        out: the new run directory.
        data: the data that it was trained on, if they cannot be loaded by name.
        networks: the encoder and the decoder, if the run was trained with custom ones.
        show: whether to draw progress bars.
        options: fields of ``qlae.options.ExecutionOptions``.

    Returns:
        The new run, with ``.results`` if it was evaluated.

    Raises:
        ValueError: if the run is unfinished or not of a plain autoencoder, or there is another run in ``out``.
    """
    source, target = run if isinstance(run, Run) else Run.open(run), Run(out)
    config = components_config(source)
    if target.path.resolve() == source.path.resolve():
        raise ValueError(f"{target.path} is the run itself; choose another folder for its components with out=…")
    target.require_free(config)
    if checkpoint.load(target.path) is None:
        _copy_training(source, target, config)
    return resume(target.path, data=data, networks=networks, show=show, **options)


def components_config(source: Run) -> RunConfig:
    """Return the config of the components of a run; raise ``ValueError`` if it cannot have any."""
    config = source.config
    kind, weights = LATENTS.entry_of(config.latent).kind, sorted(config.objective.weights)
    if kind != "continuous" or weights != ["reconstruct"]:
        raise ValueError(
            f"{source.path} is a run of {config.model}; components are found for `ae`, whose latents are continuous "
            "and whose only loss is that of the reconstruction"
        )
    return replace(config, model=COMPONENTS_MODEL, latent=IndependentConfig(num_latents=config.latent.num_latents))


def reuse_training(target: Run, config: RunConfig, others: Iterable[Run]) -> bool:
    """Start a run of ``ae-ica`` from a finished run of ``ae`` that was trained in the same way, if there is one.

    Returns:
        Whether there was one among ``others``, so that nothing is left to train.
    """
    for other in () if target.is_begun else others:
        try:
            if components_config(other) == config:
                _copy_training(other, target, config)
                return True
        except (ValueError, OSError):  # another model, unfinished or damaged
            continue
    return False


def _copy_training(source: Run, target: Run, config: RunConfig) -> None:
    """Write config, log and checkpoint of a run of ``ae-ica`` that was trained as another run was."""
    snapshot = checkpoint.load(source.path)
    steps = config.training.steps
    if snapshot is None or snapshot.state["step"] < steps:
        raise ValueError(
            f"{source.path} is unfinished, or its checkpoint was removed; components need the weights after "
            f"{steps:,} updates. `qlae train --resume {source.path}` trains it to its end"
        )
    latent = IndependentComponents(config.latent.num_latents)
    buffers = {f"weights.latent.{name}": buffer for name, buffer in latent.named_buffers()}
    target.path.mkdir(parents=True, exist_ok=True)
    with target.locked():
        target.write_config(config)
        if source.log_path.is_file():
            shutil.copyfile(source.log_path, target.log_path)
        checkpoint.save(target.path, replace(snapshot, tensors=snapshot.tensors | buffers))
