"""``fitted.safetensors``: what a latent space was fitted to after training, for both sets of weights of a run.

Gradients train the networks; some latent spaces, such as independent components, are fitted once they are trained. The
file belongs to one checkpoint, whose weights it names by a checksum; that of a run that was trained further since is
stale and is ignored.
"""

import hashlib
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from .._files import write_bytes
from .._opening import require_regular
from .checkpoint import Checkpoint

FILE = "fitted.safetensors"
WEIGHTS = ("averaged", "raw")


def fingerprint(snapshot: Checkpoint) -> str:
    """Return a checksum of the raw and the averaged weights of a checkpoint."""
    digest = hashlib.sha256()
    for name in sorted(snapshot.tensors):
        if name.startswith(("weights.", "average.")):
            digest.update(name.encode())
            digest.update(snapshot.tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def write_fitted(folder: Path, snapshot: Checkpoint, buffers: dict[str, dict[str, Tensor]]) -> None:
    """Write the fitted tensors of each set of weights, by their names in the model."""
    tensors = {
        f"{weights}.{name}": tensor.detach().cpu().contiguous()
        for weights, named in buffers.items()
        for name, tensor in named.items()
    }
    write_bytes(folder / FILE, safetensors.torch.save(tensors, {"weights": fingerprint(snapshot)}))


def read_fitted(folder: Path, snapshot: Checkpoint, weights: str) -> dict[str, Tensor] | None:
    """Return the fitted tensors of a set of weights; None if there are none, or they belong to another checkpoint.

    A damaged file counts as none, since it can be written again.
    """
    path = folder / FILE
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
