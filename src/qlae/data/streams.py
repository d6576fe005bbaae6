"""Arrays too large for memory, read a few rows at a time from ``.npy`` and ``.npz`` files.

An ``.npz`` is a zip of ``.npy`` members. Both are read as streams, compressed or not. Pickled arrays are refused.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._io import explain_damage, open_regular

#: Bytes of the longest header that is read. A longer header does not belong to an array of images.
MAX_HEADER = 10_000
#: Bytes of rows that are read at once, unless a single row is longer.
MAX_READ = 2**24
#: Bytes of the largest array that is read as a whole, such as a table of sources.
MAX_WHOLE = 2**28
#: Bytes of the largest array in Fortran order, whose rows are scattered, so that all of it is read at once.
MAX_FORTRAN = 2**31
#: What to do about a damaged file, as error messages put it.
COPY_AGAIN = "download or copy it again"


class ArrayStream:
    """One array in a file. Shape and dtype are known at once; rows are read on request, in C or Fortran order.

    Args:
        path: an ``.npy`` or ``.npz`` file.
        key: the array's name in an ``.npz``; ignored for an ``.npy``.

    Raises:
        ValueError: the file is damaged, or does not hold an array with rows under this name.
    """

    def __init__(self, path: Path, key: str = "images") -> None:
        self.path = path
        self.key = key
        with self._open() as file, explain_damage(path, COPY_AGAIN):
            self.shape, self.dtype, self._is_fortran, start = _read_header(file, path)
            self.row_bytes = int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize
            self._start = start
            expected, actual = start + self.shape[0] * self.row_bytes, self._num_bytes()
            if actual != expected:
                what = "" if path.suffix == ".npy" else f" for {key!r}"
                raise ValueError(
                    f"{path} has {actual:,} bytes{what}, but its header announces {expected:,}; {COPY_AGAIN}"
                )
            if self._is_fortran and actual > MAX_FORTRAN:
                raise ValueError(
                    f"{path} has {actual:,} bytes in Fortran order, which are too many to read at once; save the array "
                    "as np.ascontiguousarray(array)"
                )

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, rows_at_once: int, first: int = 0) -> Iterator[NDArray[Any]]:
        """Yield arrays of up to `rows_at_once` rows, starting at row `first`."""
        with self._open() as file, explain_damage(self.path, COPY_AGAIN):
            if self._is_fortran:
                whole = self._read_fortran(file)
                yield from (whole[start : start + rows_at_once] for start in range(first, len(self), rows_at_once))
                return
            _skip(file, self._start + first * self.row_bytes)
            for start in range(first, len(self), rows_at_once):
                num = min(rows_at_once, len(self) - start)
                content = file.read(num * self.row_bytes)
                if len(content) != num * self.row_bytes:
                    raise ValueError(f"{self.path} ends in the middle of {self.key!r}; {COPY_AGAIN}")
                yield np.frombuffer(content, dtype=self.dtype).reshape(num, *self.shape[1:])

    def _read_fortran(self, file: IO[bytes]) -> NDArray[Any]:
        """Return the whole array in C order from a file that has it in Fortran order."""
        _skip(file, self._start)
        content = file.read(len(self) * self.row_bytes)
        if len(content) != len(self) * self.row_bytes:
            raise ValueError(f"{self.path} ends in the middle of {self.key!r}; {COPY_AGAIN}")
        return np.ascontiguousarray(np.frombuffer(content, dtype=self.dtype).reshape(self.shape[::-1]).T)

    def chunks(self, first: int = 0) -> Iterator[NDArray[Any]]:
        """Yield arrays of as many rows as take little memory, starting at row `first`."""
        yield from self.rows(max(1, MAX_READ // max(1, self.row_bytes)), first)

    def read_all(self) -> NDArray[Any]:
        """Return the whole array, which must have at most ``MAX_WHOLE`` bytes."""
        num_bytes = len(self) * self.row_bytes
        if num_bytes > MAX_WHOLE:
            raise ValueError(
                f"{self.key!r} in {self.path} has {num_bytes:,} bytes; at most {MAX_WHOLE:,} are read as a whole"
            )
        parts = list(self.rows(max(1, len(self))))
        return parts[0] if parts else np.empty(self.shape, self.dtype)

    @contextlib.contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.path.suffix == ".npy":
            with open_regular(self.path) as file:
                yield file
            return
        with _open_zip(self.path) as archive:
            names = _names_in(archive)
            if self.key not in names:
                raise ValueError(f"{self.path} has no array {self.key!r}: it has {', '.join(names) or 'none'}")
            with archive.open(f"{self.key}.npy") as file:
                yield file

    def _num_bytes(self) -> int:
        if self.path.suffix == ".npy":
            return self.path.stat().st_size
        with _open_zip(self.path) as archive:
            return archive.getinfo(f"{self.key}.npy").file_size


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an ``.npz``."""
    with _open_zip(path) as archive:
        return _names_in(archive)


@contextlib.contextmanager
def _open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    with open_regular(path) as file, explain_damage(path, COPY_AGAIN), zipfile.ZipFile(file) as archive:
        yield archive


def _names_in(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _read_header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], np.dtype[Any], bool, int]:
    """Return shape and dtype of an array, whether it is in Fortran order, and the length of its header in bytes."""
    head = io.BytesIO(file.read(MAX_HEADER))
    try:
        version = np.lib.format.read_magic(head)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(head, max_header_size=MAX_HEADER)
    except (ValueError, SyntaxError, TypeError, UnicodeDecodeError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is not a NumPy array that can be read ({error})") from error
    if dtype.hasobject:
        raise ValueError(f"{path} holds pickled objects, which are never loaded: save plain numbers instead")
    if not shape or min(shape) < 0:
        raise ValueError(f"{path} must hold one row per observation, got an array of shape {shape}")
    return shape, dtype, bool(fortran), head.tell()


def _skip(file: IO[bytes], num_bytes: int) -> None:
    while num_bytes > 0:
        num_read = len(file.read(min(num_bytes, 2**24)))
        if num_read == 0:
            raise EOFError("file is too short")
        num_bytes -= num_read
