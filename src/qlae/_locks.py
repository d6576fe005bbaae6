"""Advisory locks on open files. The system releases them however a process ends.

Systems without such locks (Windows) have no protection: every lock is granted at once.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any


def try_lock(file: IO[Any], *, shared: bool = False) -> bool:
    """Try to lock a file until it is closed.

    Args:
        file: an open file.
        shared: let other processes hold a shared lock at the same time.

    Returns:
        Whether the lock was acquired; ``False`` if another process holds a lock that excludes it.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder_of(file: IO[bytes]) -> str:
    """Return who holds the lock of a file, such as ``process 4711``; empty if they did not say."""
    file.seek(0)
    return file.read(100).decode(errors="replace")


@contextlib.contextmanager
def signed(file: IO[bytes]) -> Iterator[None]:
    """Name this process in a file that it has locked, for the length of a ``with`` block."""
    file.truncate(0)
    file.write(f"process {os.getpid()}".encode())
    file.flush()
    try:
        yield
    finally:
        file.truncate(0)
