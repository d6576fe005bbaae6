"""A lock on a directory, so that only one process at a time writes into it.

The lock is on the file ``.lock`` inside the directory. The operating system releases it however the process ends, so a
killed process leaves no stale lock behind. Where file locks are not available (Windows), nothing is guarded.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ._locks import holder_of, signed, try_lock
from ._opening import open_own, open_regular

LOCK_FILE = ".lock"


@contextlib.contextmanager
def locked_directory(path: Path, busy_message: str) -> Iterator[None]:
    """Hold the lock of a directory for the length of a ``with`` block.

    Args:
        path: the directory, which is created if it does not exist.
        busy_message: text of the error raised if another process holds the lock; ``{holder}`` in it is replaced by
            that process, such as ``process 4711``.

    Raises:
        ValueError: if another process holds the lock.
    """
    path.mkdir(parents=True, exist_ok=True)
    with open_own(path / LOCK_FILE, append=True) as file:
        if not try_lock(file):
            raise ValueError(busy_message.replace("{holder}", holder_of(file) or "unknown"))
        with signed(file):
            yield


def is_locked(path: Path) -> bool:
    """Return whether some process on this machine holds the lock of a directory."""
    try:
        with open_regular(path / LOCK_FILE) as file:
            return not try_lock(file, shared=True)
    except (FileNotFoundError, ValueError):
        return False
