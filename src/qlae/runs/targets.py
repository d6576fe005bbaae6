"""The targets of a run: whole numbers for each training observation that its objective needs, in ``targets.npy``.

They are stored in the run directory, so that a run is resumed from its directory and its data alone. The config has
their checksum.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io import read_npy, write_whole
from ..config import ObjectiveConfig
from ..registry import OBJECTIVES

FILE = "targets.npy"


def targets_checksum(targets: NDArray[Any]) -> str:
    """Return the SHA-256 of targets (n, k), their shape and their type."""
    digest = hashlib.sha256(f"{targets.dtype.str} {targets.shape} ".encode())
    digest.update(np.ascontiguousarray(targets).tobytes())
    return digest.hexdigest()


def write_targets(folder: Path, targets: NDArray[Any]) -> None:
    """Write the targets (n, k) of a run."""
    write_whole(folder / FILE, lambda file: np.save(file, targets, allow_pickle=False))


def read_targets(folder: Path, objective: ObjectiveConfig, num_observations: int) -> NDArray[Any] | None:
    """Return the targets (n, k) of a run; None if its objective takes none.

    Raises:
        ValueError: the file is missing, damaged, of other data, or another file than that of the config.
    """
    count = OBJECTIVES.build(objective).num_targets
    if not count:
        return None
    path, remedy = folder / FILE, "make the run again from the consensus of its runs"
    if not path.is_file():
        raise ValueError(f"{path} is missing, and the run needs it to be trained further; restore it, or {remedy}")
    targets = read_npy(path)
    if targets_checksum(targets) != getattr(objective, "targets", None):
        raise ValueError(f"{path} is not the file that the run was started with; restore it, or {remedy}")
    if targets.shape != (num_observations, count):
        raise ValueError(
            f"{path} has targets of {len(targets):,} observations, and the data have {num_observations:,}: pass the "
            f"data of the run, or {remedy}"
        )
    return targets
