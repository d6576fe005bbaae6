"""Load the model of a run directory, of a folder that ``save_pretrained`` wrote, or of plain data."""

import hashlib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from .._io import require_regular
from .._process import pick_device, plain_tensors
from ..config import RunConfig
from ..models.building import Networks, build_model
from ..models.model import Model, place
from . import checkpoint
from .directory import Run
from .memory import require_memory
from .pretrained import Origin, is_pretrained, pack_tensors, read_pretrained, unpack_tensors
from .shipped import find_folder

WEIGHTS = {"averaged": "average.", "raw": "weights."}
FITTED_FILE = "fitted.safetensors"


def load(
    path: str | os.PathLike[str],
    *,
    weights: str = "averaged",
    networks: Networks | None = None,
    device: str = "cpu",
) -> Model:
    """Return the model of a run directory, of a folder that ``Model.save_pretrained`` wrote, or one that comes with
    the package.

    Args:
        path: the run directory, the folder, or the name of a shipped model such as ``"shapes3d-qlae"``.
        weights: ``"averaged"`` (the exponential average) or ``"raw"`` (after the last update); an exported folder has
            one of the two.
        networks: the encoder and the decoder, if the run was trained with custom networks.
        device: ``"cpu"``, ``"cuda"``, ``"auto"``, …
    """
    path = find_folder(path)
    if is_pretrained(path):
        return _load_pretrained(path, weights=weights, networks=networks, device=device)
    run = Run.open(path)
    snapshot = checkpoint.load(run.path)
    if snapshot is None:
        raise ValueError(f"{run.path} has no checkpoint yet; let `qlae train` finish, or stop it with Ctrl-C to save")
    return model_from(run, snapshot, weights=weights, networks=networks, device=device)


def model_from(
    run: Run,
    snapshot: checkpoint.Checkpoint,
    *,
    weights: str,
    device: str,
    networks: Networks | None = None,
    fitted: bool = True,
) -> Model:
    """Return the model of a run with one of the two sets of weights of a checkpoint.

    Args:
        run: the run directory.
        snapshot: its checkpoint.
        weights: ``"averaged"`` or ``"raw"``.
        device: where the model will run.
        networks: the encoder and the decoder, if the run was trained with custom networks.
        fitted: whether a latent space that is fitted after training comes as it was fitted.
    """
    _require_weights(weights)
    config = run.config
    model = _build(config, networks)
    # Buffers, such as the running statistics of batch norm, have no average: they come from the raw weights.
    tensors = _tensors_with_prefix(snapshot, WEIGHTS["raw"]) | _tensors_with_prefix(snapshot, WEIGHTS[weights])
    if fitted and model.latent.is_fitted_after_training:
        tensors |= _fitted_tensors(run, snapshot, weights)
    _fill(model, tensors, run.path, networks)
    results = run.results_so_far or {}
    is_current = results.get("steps") == snapshot.state["step"]  # otherwise the run was trained further since
    return _prepare(model, Origin(config, weights, results if is_current else {}), device)


def _fitted_tensors(run: Run, snapshot: checkpoint.Checkpoint, weights: str) -> dict[str, Tensor]:
    tensors = read_fitted(run.path, snapshot, weights)
    if tensors is None:
        warnings.warn(
            f"the latents of {run.path} were not fitted since update {snapshot.state['step']:,}, so they are the "
            f"encoder's outputs as they are; `qlae train` does it at the end of a run, and so does `qlae evaluate "
            f"{run.path}`",
            stacklevel=4,
        )
    return tensors or {}


def read_fitted(folder: Path, snapshot: checkpoint.Checkpoint, weights: str) -> dict[str, Tensor] | None:
    """Return the tensors of a latent space that was fitted after training, for one set of weights.

    ``fitted.safetensors`` belongs to one checkpoint, whose weights it names by a checksum. A file of another checkpoint
    is stale and a damaged one can be written again, so both are ignored.

    Returns:
        The tensors by their names in the model; None if there are none.
    """
    path = folder / FITTED_FILE
    if not path.is_file():
        return None
    try:
        require_regular(path)
        with safetensors.safe_open(path, "pt") as file:
            if (file.metadata() or {}).get("weights") != fingerprint(snapshot):
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError):
        return None
    prefix = f"{weights}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def fingerprint(snapshot: checkpoint.Checkpoint) -> str:
    """Return a checksum of the raw and the averaged weights of a checkpoint."""
    digest = hashlib.sha256()
    for name in sorted(snapshot.tensors):
        if name.startswith(("weights.", "average.")):
            digest.update(name.encode())
            digest.update(snapshot.tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _load_pretrained(folder: Path, *, weights: str, device: str, networks: Networks | None) -> Model:
    _require_weights(weights)
    origin, tensors = read_pretrained(folder)
    if origin.weights != weights:
        raise ValueError(f"{folder} holds the {origin.weights} weights; load it with weights={origin.weights!r}")
    model = _build(origin.config, networks)
    _fill(model, tensors, folder, networks)
    return _prepare(model, origin, device)


def pack_model(model: Model) -> dict[str, Any]:
    """Return a loaded model as plain data: a config for JSON, and the bytes of a safetensors file."""
    if not isinstance(model.origin, Origin):
        raise ValueError("only a model that qlae.load returned can be packed; one built by hand has no config")
    config, weights = model.origin.config.to_dict(), model.origin.weights
    return {"config": config, "weights": weights, "tensors": pack_tensors(model.state_dict())}


def unpack_model(content: Mapping[str, Any], *, device: str = "cpu") -> Model:
    """Return the model that ``pack_model`` packed, on a device."""
    config = RunConfig.from_dict(content["config"])
    model = _build(config, None)
    _fill(model, unpack_tensors(content["tensors"]), "the packed model", None)
    return _prepare(model, Origin(config, content["weights"], {}), device)


def _build(config: RunConfig, networks: Networks | None) -> Model:
    """Return a model whose initial weights are about to be replaced; the caller's generator stays as it is."""
    require_memory(config, batch_size=1)
    with torch.random.fork_rng(devices=[]), plain_tensors():
        return build_model(config, networks)


def _fill(model: Model, tensors: dict[str, Tensor], folder: str | Path, networks: Networks | None) -> None:
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        what = "its config.json" if networks is None else "the networks that were passed"
        raise ValueError(f"{folder}: the weights do not fit {what}: {' '.join(str(error).split())}") from None


def _prepare(model: Model, origin: Origin, device: str) -> Model:
    model.origin = origin
    return place(model, pick_device(device)).eval().requires_grad_(False)


def _require_weights(weights: str) -> None:
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be 'averaged' or 'raw', got {weights!r}")


def _tensors_with_prefix(snapshot: checkpoint.Checkpoint, prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in snapshot.tensors.items() if name.startswith(prefix)}
