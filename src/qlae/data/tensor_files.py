"""Tensors in ``.safetensors`` files, mapped into memory: embeddings and activations of other models, of any size.

A file begins with the length of a header, a JSON header with the type, shape and place of each tensor, and the numbers.
Numbers of 16 bits, as most activations are stored, become floats of 32 bits batch by batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._io import open_regular
from .._parsing import decode_json
from .dataset import ImageArray, LazyImages

SUFFIX = ".safetensors"
MAX_HEADER = 2**24  # bytes; the format allows 100 MB
BFLOAT16 = "BF16"
#: The type of a tensor → that of its numbers in the file. NumPy has no bfloat16.
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    BFLOAT16: "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
MAX_READ = 2**24  # bytes of rows that are read at once


class ConvertedRows(LazyImages):
    """Rows of an array, such as one on disk, as floats of 32 bits when they are indexed.

    Args:
        rows: the array.
        is_bfloat16: whether it has the bits of bfloat16 numbers.
    """

    stays_lazy = True

    def __init__(self, rows: NDArray[Any], *, is_bfloat16: bool = False) -> None:
        self.rows = rows
        self.is_bfloat16 = is_bfloat16
        self.shape = rows.shape
        self.dtype = np.dtype(np.float32)

    def compute(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self[rows]

    def __getitem__(self, rows: Any, /) -> NDArray[np.float32]:
        part = np.asarray(self.rows[rows])
        if self.is_bfloat16:
            part = (part.astype(np.uint32) << 16).view(np.float32)
        return part.astype(np.float32, copy=False)


class Tensor(NamedTuple):
    """A tensor in a file.

    Attributes:
        name: of the tensor.
        type: a key of `TYPES`.
        shape: of the tensor.
        start: its first byte in the file.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    start: int


class TensorStream:
    """One tensor of a ``.safetensors``, with the interface of `ArrayStream`."""

    def __init__(self, path: Path, tensor: Tensor) -> None:
        self.path = path
        self.tensor = tensor
        self.shape = tensor.shape
        self.dtype = np.dtype(np.float32 if tensor.type == BFLOAT16 else TYPES[tensor.type])

    def __len__(self) -> int:
        return self.shape[0]

    def map(self) -> ImageArray:
        """Return the tensor as an array that is on disk."""
        rows = np.memmap(self.path, TYPES[self.tensor.type], "r", self.tensor.start, self.shape)
        return ConvertedRows(rows, is_bfloat16=True) if self.tensor.type == BFLOAT16 else rows

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Yield arrays of as many rows as take little memory."""
        mapped = self.map()
        step = max(1, MAX_READ // max(1, math.prod(self.shape[1:]) * self.dtype.itemsize))
        for start in range(0, len(self), step):
            yield np.array(mapped[start : start + step])


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a ``.safetensors`` by name, reading only its header."""
    size = path.stat().st_size
    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise ValueError(f"{path} is not a .safetensors file: its header cannot have {length:,} bytes")
        try:
            header = decode_json(file.read(length))
            entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            return {name: _read_entry(name, entry, 8 + length, size) for name, entry in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not a .safetensors file that can be read ({error})") from None


def _read_entry(name: str, entry: dict[str, Any], base: int, size: int) -> Tensor:
    """Return a tensor from its entry in the header, if it lies in the file."""
    kind, shape, (start, end) = str(entry["dtype"]), entry["shape"], entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, start, end)):
        raise ValueError(f"{name!r} has the shape {shape} and lies at {start} to {end}")
    if kind in TYPES and math.prod(shape) * np.dtype(TYPES[kind]).itemsize != end - start:
        raise ValueError(f"{name!r} of shape {shape} does not have {end - start:,} bytes")
    if base + end > size:
        raise ValueError(f"{name!r} ends at byte {base + end:,}, and the file has {size:,}: copy it again")
    return Tensor(name, kind, tuple(shape), base + start)
