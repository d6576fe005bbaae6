"""Make the n-th system call of a write fail, or end the process there."""

import contextlib
import errno
import os
from collections.abc import Iterator

import pytest

from qlae import _io

KILLED = 77  # exit status of a process that was ended


class Faults:
    """Counts system calls and lets one of them fail.

    Args:
        place: the number of the call that fails, from 0.
        how: ``"ENOSPC"`` or ``"EIO"`` to raise, ``"kill"`` to end the process at once.
    """

    def __init__(self, place: int, how: str):
        self.place = place
        self.how = how
        self.count = 0
        self.calls: list[str] = []

    def call(self, name: str) -> None:
        self.calls.append(name)
        self.count += 1
        if self.count - 1 == self.place:
            if self.how == "kill":
                os._exit(KILLED)
            raise OSError(getattr(errno, self.how), os.strerror(getattr(errno, self.how)))


class FaultyFile:
    """An open file whose writes are counted; half of a write that fails is on disk."""

    def __init__(self, file, faults: Faults):
        self._file = file
        self._faults = faults

    def write(self, content):
        half = len(content) // 2
        self._file.write(content[:half])
        self._file.flush()
        self._faults.call("write")
        return half + self._file.write(content[half:])

    def flush(self):
        self._faults.call("flush")
        self._file.flush()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


@contextlib.contextmanager
def injected(place: int, how: str) -> Iterator[Faults]:
    """Let call number ``place`` of creating, writing, syncing and renaming files fail inside the block."""
    faults = Faults(place, how)
    create, replace, fsync = _io.create_new, os.replace, os.fsync

    def faulty_create(path):
        faults.call("create")
        return FaultyFile(create(path), faults)

    def faulty_replace(source, target):
        faults.call("rename")
        replace(source, target)

    def faulty_fsync(descriptor):
        faults.call("fsync")
        fsync(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_io, "create_new", faulty_create)
        patch.setattr(os, "replace", faulty_replace)
        patch.setattr(os, "fsync", faulty_fsync)
        yield faults
