"""Load the model of a run directory, of a folder that ``save_pretrained`` wrote, or of plain data."""

import hashlib
import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from .._process import pick_device, plain_tensors
from ..config import RunConfig
from ..models.building import Networks, build_model
from ..models.model import Model, place
from ..registry import LATENTS
from . import checkpoint
from .directory import Run, find_folder
from .export import Origin, is_pretrained, read_pretrained, read_tensors, tensors_to_bytes

WEIGHTS = {"averaged": "average.", "raw": "weights."}
FITTED_FILE = "fitted.safetensors"
#: Bytes per entry of an image that a pass through even the smallest networks takes.
BYTES_PER_ENTRY = 16
#: Decoded images for each latent in the pictures of interventions: samples × steps.
TILES_PER_LATENT = 30
#: Bytes per code: the distance to every value, and its gradient.
BYTES_PER_DISTANCE = 8


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
        path: the run directory, the folder, the name of a shipped model such as ``"shapes3d-qlae"``, or a model on the
            Hugging Face Hub, such as ``"hf://user/model"`` (``pip install 'qlae[hub]'``), whose checksums are verified.
        weights: ``"averaged"`` (the exponential average) or ``"raw"`` (after the last update); an exported folder has
            one of the two.
        networks: the encoder and the decoder, if the run was trained with custom networks.
        device: ``"cpu"``, ``"cuda"``, ``"auto"``, …
    """
    path = find_folder(path)
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be 'averaged' or 'raw', got {weights!r}")
    if is_pretrained(path):
        origin, tensors = read_pretrained(path)
        if origin.weights != weights:
            raise ValueError(f"{path} holds the {origin.weights} weights; load it with weights={origin.weights!r}")
        return _assemble(origin, tensors, device, path, networks)
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
    """Return the model of a run with one of the two sets of weights of its checkpoint.

    ``networks`` are those of a run that was trained with custom networks. A latent space that is fitted after training
    comes as it was fitted, unless ``fitted`` is false.
    """
    config = run.config
    # Buffers, such as the running statistics of batch norm, have no average: they come from the raw weights.
    tensors = {
        name.removeprefix(prefix): tensor
        for prefix in (WEIGHTS["raw"], WEIGHTS[weights])
        for name, tensor in snapshot.tensors.items()
        if name.startswith(prefix)
    }
    if fitted and LATENTS.entry_of(config.latent).part.is_fitted_after_training:
        latent_tensors = read_fitted(run.path, snapshot, weights)
        if latent_tensors is None:
            warnings.warn(
                f"the latents of {run.path} were not fitted since update {snapshot.state['step']:,}, so they are the "
                "encoder's outputs as they are; `qlae train` does it at the end of a run, and so does `qlae evaluate "
                f"{run.path}`",
                stacklevel=3,
            )
        tensors |= latent_tensors or {}
    results = run.results_so_far or {}
    is_current = results.get("steps") == snapshot.state["step"]  # otherwise the run was trained further since
    return _assemble(Origin(config, weights, results if is_current else {}), tensors, device, run.path, networks)


def read_fitted(folder: Path, snapshot: checkpoint.Checkpoint, weights: str) -> dict[str, Tensor] | None:
    """Return the tensors of a latent space that was fitted after training, by their names in the model.

    ``fitted.safetensors`` belongs to one checkpoint, whose weights it names by a checksum. A file of another checkpoint
    is stale and a damaged one can be written again, so both are ignored and give None.
    """
    prefix = f"{weights}."
    try:
        metadata, tensors = read_tensors(folder / FITTED_FILE)
    except ValueError:
        return None
    if metadata.get("weights") != fingerprint(snapshot):
        return None
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def fingerprint(snapshot: checkpoint.Checkpoint) -> str:
    """Return a checksum of the raw and the averaged weights of a checkpoint."""
    digest = hashlib.sha256()
    for name in sorted(snapshot.tensors):
        if name.startswith(tuple(WEIGHTS.values())):
            digest.update(name.encode())
            digest.update(snapshot.tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def pack_model(model: Model) -> dict[str, Any]:
    """Return a loaded model as plain data: a config for JSON, and the bytes of a safetensors file."""
    assert isinstance(model.origin, Origin)
    config, weights = model.origin.config.to_dict(), model.origin.weights
    return {"config": config, "weights": weights, "tensors": tensors_to_bytes(model.state_dict())}


def unpack_model(content: Mapping[str, Any], *, device: str = "cpu") -> Model:
    """Return the model that ``pack_model`` packed, on a device."""
    origin = Origin(RunConfig.from_dict(content["config"]), content["weights"], {})
    return _assemble(origin, safetensors.torch.load(content["tensors"]), device, "the packed model")


def _assemble(
    origin: Origin, tensors: dict[str, Tensor], device: str, folder: str | Path, networks: Networks | None = None
) -> Model:
    """Build the model of a config, ready to use; the caller's generator stays as it is."""
    require_memory(origin.config, batch_size=1)
    with torch.random.fork_rng(devices=[]), plain_tensors():
        model = build_model(origin.config, networks)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        what = "its config.json" if networks is None else "the networks that were passed"
        raise ValueError(f"{folder}: the weights do not fit {what}: {' '.join(str(error).split())}") from None
    model.origin = origin
    return place(model, pick_device(device)).eval().requires_grad_(False)


def require_memory(
    config: RunConfig, batch_size: int, device: str | torch.device = "cpu", *, draws_pictures: bool = False
) -> None:
    """Raise a ``ValueError`` if a batch, or the pictures after a training, cannot fit into the memory of a device.

    The networks take far more memory: only the parts are counted whose size depends on numbers that a user can mistype.
    """
    latent, observed, place = config.latent, config.data.observations, pick_device(str(device))
    sizes, entries = tuple(getattr(latent, "values_each", ())), observed.num_entries
    needed = batch_size * (BYTES_PER_ENTRY * entries + BYTES_PER_DISTANCE * (latent.num_latents + sum(sizes)))
    if draws_pictures:
        needed = max(needed, TILES_PER_LATENT * latent.num_latents * (entries + 8 * latent.num_latents))
    available = total_memory(place)
    if needed > available:
        values = f" of {max(sizes):,} values" if sizes else ""
        raise ValueError(
            f"batches of {batch_size:,} {observed.traits.many} of {observed.size} with {latent.num_latents:,} latents"
            f"{values} need at least {math.ceil(needed / 1e9):,} GB of memory, and {place} has "
            f"{math.ceil(available / 1e9):,} GB; ask for less"
        )


def total_memory(device: torch.device) -> int:
    """Return the bytes of memory that a device has."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # as on Windows
        return 2**45
