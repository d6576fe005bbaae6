"""Files written whole: under a temporary name, flushed to disk, then renamed into place.

Whoever opens a file of a run directory sees the old content or the new, never a part.
"""

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._locks import wait_for_lock

TURNS = 1000  # to wait for; more are no sign of other writers, but of a disk that does not know a file again


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a file that appears at ``path`` only when it is complete; nothing is left on failure."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with _alone(temporary) as file:
            try:
                write(file)
                file.flush()
                os.fsync(file.fileno())
                if os.name == "nt":  # which renames no open file
                    file.close()
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(PermissionError):
                    temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        if error.filename is None:  # which a full disk does not name
            error.filename = str(path)
        raise


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[BinaryIO]:
    """A file, empty, for one writer: another process that wants to write it waits until it is gone or renamed."""
    for turn in itertools.count(1):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "wb") as file:
            wait_for_lock(file)
            if _is_at(file, path) or turn == TURNS:
                file.truncate()
                yield file
                return


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether an open file still lies where it was opened, and was not renamed by who had the lock before."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


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
