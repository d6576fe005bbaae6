"""Locks on open files, which the system lets go of however a process ends.

Where it has none of this kind (Windows), nothing is guarded.
"""

from typing import IO, Any


def try_lock(file: IO[Any], *, shared: bool = False) -> bool:
    """Lock a file until it is closed; whether nobody else holds it, or, if ``shared``, nobody but others who share."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(file: IO[Any]) -> None:
    """Lock a file until it is closed, after everyone who holds it; not at all on a disk that knows no locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
    except (ImportError, OSError):
        pass
