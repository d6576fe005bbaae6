"""Arrays too large for memory, read a few rows at a time from ``.npy`` and ``.npz`` files.

An ``.npz`` is a zip of ``.npy`` members; both are read as a stream, compressed or not. Pickled arrays are refused.
"""

from __future__ import annotations

import contextlib
import errno
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

#: The longest header of an array; a longer one is no array of images.
MAX_HEADER = 10_000


#: What damaged archives make their readers throw.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    KeyError,
    OverflowError,
    UnicodeDecodeError,
)


class ArrayStream:
    """One array in a file: its shape and dtype at once, its rows when asked for.

    Args:
        path: an ``.npy`` or ``.npz`` file.
        key: the array's name in an ``.npz``; not used for an ``.npy``.
    """

    def __init__(self, path: Path, key: str = "images") -> None:
        self.path = path
        self.key = key
        with self._open() as file, explained(path):
            self.shape, self.dtype, start = _header(file, path)
            self.row_bytes = int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize
            self._start = start
            expected, there = start + self.shape[0] * self.row_bytes, self._num_bytes()
            if there != expected:
                raise ValueError(f"{path} holds {there:,} bytes for {key!r} where its header speaks of {expected:,}")

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, rows_at_once: int, first: int = 0) -> Iterator[NDArray[Any]]:
        """Arrays of up to `rows_at_once` rows, from row `first` on."""
        with self._open() as file, explained(self.path):
            _skip(file, self._start + first * self.row_bytes)
            for at in range(first, len(self), rows_at_once):
                num = min(rows_at_once, len(self) - at)
                content = file.read(num * self.row_bytes)
                if len(content) != num * self.row_bytes:
                    raise ValueError(f"{self.path} ends in the middle of {self.key!r}: download or copy it again")
                yield np.frombuffer(content, dtype=self.dtype).reshape(num, *self.shape[1:])

    def all(self) -> NDArray[Any]:
        """The whole array, for the small ones."""
        parts = list(self.rows(max(1, len(self))))
        return parts[0] if parts else np.empty(self.shape, self.dtype)

    @contextlib.contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.path.suffix == ".npy":
            with open(self.path, "rb") as file:
                yield file
            return
        with explained(self.path), zipfile.ZipFile(self.path) as archive:
            names = array_names(archive)
            if self.key not in names:
                raise ValueError(f"{self.path} has no array {self.key!r}: it has {', '.join(names) or 'none'}")
            with archive.open(f"{self.key}.npy") as file:
                yield file

    def _num_bytes(self) -> int:
        if self.path.suffix == ".npy":
            return self.path.stat().st_size
        with zipfile.ZipFile(self.path) as archive:
            return archive.getinfo(f"{self.key}.npy").file_size


def array_names(archive: zipfile.ZipFile) -> list[str]:
    """The names of the arrays in an ``.npz``."""
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def keys_of(path: Path) -> list[str]:
    """The names of the arrays in an ``.npz``; one nameless array for an ``.npy``."""
    if path.suffix == ".npy":
        return ["images"]
    with explained(path), zipfile.ZipFile(path) as archive:
        return array_names(archive)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what a damaged file makes readers throw into one clear error."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EINVAL:  # a damaged directory of an archive points nowhere; all else is the system's
            raise
        raise ValueError(f"{path} is damaged: it points outside itself; download or copy it again") from error
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged or not complete ({error}): download or copy it again") from error


def _header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, dtype and length of an array's header."""
    head = io.BytesIO(file.read(MAX_HEADER))
    try:
        version = np.lib.format.read_magic(head)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(head, max_header_size=MAX_HEADER)
    except (ValueError, SyntaxError, TypeError, UnicodeDecodeError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is not a NumPy array that can be read ({error})") from error
    if dtype.hasobject:
        raise ValueError(f"{path} holds pickled objects, which are never loaded: save plain numbers instead")
    if not shape or fortran or min(shape) < 0:
        order = "Fortran" if fortran else "C"
        raise ValueError(f"{path} must hold rows in C order, got shape {shape} in {order} order")
    return shape, dtype, head.tell()


def _skip(file: IO[bytes], num_bytes: int) -> None:
    while num_bytes > 0:
        read = len(file.read(min(num_bytes, 2**24)))
        if read == 0:
            raise EOFError("file is too short")
        num_bytes -= read
