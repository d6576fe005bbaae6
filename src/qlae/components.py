"""Independent components of an autoencoder that is trained already: a run of ``ae`` becomes one of ``ae-ica``.

The model ``ae-ica`` is ``ae`` until the training is over (``models/latents/independent.py``), so there is no need to
train it again: the new run gets the checkpoint and the log of the old one, and the components are fitted to it. Studies
that have both models train them once.
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ._process import usual_errors
from .config import RunConfig
from .models.building import Networks
from .models.latents.independent import IndependentComponents, IndependentConfig
from .pipeline import resume
from .registry import LATENTS
from .runs import checkpoint
from .runs.directory import Run

MODEL = "ae-ica"


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
    return replace(config, model=MODEL, latent=IndependentConfig(num_latents=config.latent.num_latents))


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
