"""From a run directory back to its model."""

import os

import torch

from .device import pick_device
from .model import Model, build_model, place
from .run import Run
from .training import checkpoint

WEIGHTS = {"averaged": "average.", "raw": "weights."}


def load(path: str | os.PathLike[str], *, weights: str = "averaged", device: str = "cpu") -> Model:
    """The model of a run directory, ready to encode and decode.

    Args:
        path: the run directory.
        weights: ``"averaged"`` (the exponential average) or ``"raw"`` (after the last update).
        device: ``"cpu"``, ``"cuda"``, ``"auto"``, …
    """
    run = Run.open(path)
    saved = checkpoint.load(run.path)
    if saved is None:
        raise ValueError(f"{run.path} has no checkpoint yet; let `qlae train` finish, or stop it with Ctrl-C to save")
    return model_from(run, saved, weights=weights, device=device)


def model_from(run: Run, saved: checkpoint.Checkpoint, *, weights: str, device: str) -> Model:
    """The model of a run with one of the two sets of weights of a checkpoint."""
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be 'averaged' or 'raw', got {weights!r}")
    prefix = WEIGHTS[weights]
    model = build_model(run.config)
    named = {name.removeprefix(prefix): value for name, value in saved.tensors.items() if name.startswith(prefix)}
    model.load_state_dict(named)
    return place(model, pick_device(device)).eval().requires_grad_(False)


def versions() -> dict[str, str]:
    """What a result depends on."""
    import platform

    import numpy
    import sklearn

    from ._version import __version__

    return {
        "qlae": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
    }
