"""From a run directory back to its model."""

import os

import torch

from .device import pick_device
from .model import Model, Networks, build_model, place
from .run import Run
from .training import checkpoint

WEIGHTS = {"averaged": "average.", "raw": "weights."}


def load(
    path: str | os.PathLike[str],
    *,
    weights: str = "averaged",
    networks: Networks | None = None,
    device: str = "cpu",
) -> Model:
    """The model of a run directory, ready to encode and decode.

    Args:
        path: the run directory.
        weights: ``"averaged"`` (the exponential average) or ``"raw"`` (after the last update).
        networks: the encoder and the decoder, where the run was trained with networks of your own.
        device: ``"cpu"``, ``"cuda"``, ``"auto"``, …
    """
    run = Run.open(path)
    saved = checkpoint.load(run.path)
    if saved is None:
        raise ValueError(f"{run.path} has no checkpoint yet; let `qlae train` finish, or stop it with Ctrl-C to save")
    return model_from(run, saved, weights=weights, networks=networks, device=device)


def model_from(
    run: Run, saved: checkpoint.Checkpoint, *, weights: str, device: str, networks: Networks | None = None
) -> Model:
    """The model of a run with one of the two sets of weights of a checkpoint."""
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be 'averaged' or 'raw', got {weights!r}")
    model = build_model(run.config, networks)
    # Buffers, such as the running statistics of a batch norm, have no average: they come from the raw weights.
    model.load_state_dict(_named(saved, WEIGHTS["raw"]) | _named(saved, WEIGHTS[weights]))
    return place(model, pick_device(device)).eval().requires_grad_(False)


def _named(saved: checkpoint.Checkpoint, prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in saved.tensors.items() if name.startswith(prefix)}
