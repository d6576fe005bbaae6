"""Files written whole: under a temporary name, flushed to disk, then renamed into place.

Whoever opens a file of a run directory sees the old content or the new, never a part.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a file that appears at ``path`` only when it is complete; nothing is left on failure."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # which a full disk does not name
            error.filename = str(path)
        raise


def require_new(path: Path) -> None:
    """An error unless a file can be written there without overwriting anything."""
    if path.exists():
        raise ValueError(f"{path} exists already; choose another --out or remove it")
    if not path.parent.is_dir():
        raise ValueError(f"the folder {path.parent} does not exist; make it first")


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` whole."""
    write_whole(path, lambda file: file.write(content))


def write_json(path: Path, content: Any) -> None:
    """Write JSON that a person can read; NaN and infinity are refused, since JSON has neither."""
    write_bytes(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write a compressed ``.npz`` whole."""
    write_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))
