"""A lock on work that several processes may want done once: the others wait for the one that does it.

The lock is on a file. The operating system releases it however the process ends, so a killed process keeps nobody
waiting. Where file locks are not available (Windows), nobody waits.
"""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ._locks import holder_of, signed, try_lock
from ._opening import open_own

POLL_SECONDS = 0.2


@contextlib.contextmanager
def waiting_lock(path: Path, task: str, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file for the length of a ``with`` block.

    While another process holds it, wait, after one line on standard error that says so. Ctrl-C ends the waiting.

    Args:
        path: the file, which is created if it does not exist.
        task: what the holder of the lock does, such as ``"preparing holiday"``.
        wait: raise an error instead of waiting if False.

    Raises:
        ValueError: if another process holds the lock and ``wait`` is False.
    """
    with open_own(path, append=True) as file:
        if not try_lock(file):
            holder = holder_of(file) or "another process"
            if not wait:
                raise ValueError(f"{holder} is {task}: wait until it ends, or stop it")
            print(f"qlae: {holder} is {task}; waiting until it ends", file=sys.stderr, flush=True)
            while not try_lock(file):
                time.sleep(POLL_SECONDS)
        with signed(file):
            yield
