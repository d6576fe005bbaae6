"""Observations in ``.npy``, ``.npz`` and ``.safetensors`` files, and the reader of arrays too large for memory.

An ``.npy`` holds the observations. In the others they are the array ``images``, ``observations``, ``embeddings``, ``x``
or ``X``, the only one, or the one that the user names; ``sources``, and in an ``.npz`` ``source_names`` and
``feature_names``, may accompany them. Large arrays stay on disk, unless they are compressed. Observations keep their
size and type, except for images that the user or the networks want in another size: these are resized into the cache,
as square RGB images of bytes always are.

An ``.npz`` is a zip of ``.npy`` members. Both are read as streams, a few rows at a time, compressed or not. Pickled
arrays are refused.
"""

from __future__ import annotations

import contextlib
import io
import math
import struct
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .._io import explain_damage, open_regular, require_loadable
from ..observations import COLOURS, IMAGES, KINDS, MAX_CHANNELS, MAX_SIDE, MIN_SIDE, Observations
from ..registry import DATA
from . import tensor_files
from .cache import ImageSet, file_fingerprint, name_of_files
from .dataset import ORIGINS, Progress, SourceDataset, as_array, kind_of_array, observe
from .pictures import DEFAULT_RESOLUTION, GREY, MAX_PIXELS, PictureSize, resize, wanted_size
from .sources import level_table, named_columns, source_rows
from .spec import NoisyData, UserData
from .tensor_files import ConvertedRows, TensorStream

SUFFIXES = (".npy", ".npz", tensor_files.SUFFIX)
KEYS = ("images", "observations", "embeddings", "x", "X")
OTHER_KEYS = ("sources", "source_names", "feature_names", "origin")
#: Bytes of the longest header that is read. A longer header does not belong to an array of images.
MAX_HEADER = 10_000
#: Bytes of rows that are read at once, unless a single row is longer.
MAX_READ = 2**24
#: Bytes of the largest array that is read as a whole, such as a table of sources. Larger ones stay on disk if they can.
MAX_WHOLE = 2**28
#: Bytes of the largest array in Fortran order, whose rows are scattered, so that all of it is read at once.
MAX_FORTRAN = 2**31
#: What to do about a damaged file, as error messages put it.
COPY_AGAIN = "download or copy it again"


def is_array_file(path: str | Path) -> bool:
    """Return whether a path has the suffix of a file of arrays."""
    return Path(path).suffix.lower() in SUFFIXES


def has_names(path: str | Path) -> bool:
    """Return whether a path has the suffix of a file whose arrays have names."""
    return Path(path).suffix.lower() in SUFFIXES[1:]


@DATA.register("array-file")
@dataclass(frozen=True, kw_only=True)
class ArrayFile(UserData, NoisyData):
    """An ``.npy`` or ``.safetensors``, which stays on disk, or an ``.npz``, which does if large and not compressed.

    Attributes:
        path: of the file.
        array: the name of the array with the observations, if the file has several.
        layout: ``"images"``, ``"vectors"`` or ``"series"``, if the shape is ambiguous.
        source_file: an ``.npy`` with sources (n, n_s), instead of those in the file.
        resolution: the size to which images of bytes are resized; None if they keep theirs.
        grey: whether resized images have one channel instead of three.
    """

    title: ClassVar[str] = "the array file"
    path_fields: ClassVar[tuple[str, ...]] = ("path", "source_file")

    path: str
    array: str | None = None
    layout: str | None = None
    source_file: str | None = None
    resolution: int | tuple[int, int] | str | None = None
    grey: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(name=name_of_files(self.path, self.name))
        if self.layout is not None:
            require_known(self.layout, KINDS, "layout")
        if self.resolution is not None:
            size = wanted_size(self.resolution, grey=self.grey)
            self._set(resolution=size.resolution, grey=size.channels == GREY)
        elif self.grey:
            raise ValueError(
                f"{self.path} is an array, which keeps its size and channels: give resolution and grey, or neither"
            )

    def preview(self) -> Observations:
        stream = open_observations(Path(self.path), self.array)
        if (size := self._new_size(stream)) is not None:
            return Observations(IMAGES, size.shape)
        kind = kind_of_array(stream.shape, stream.dtype, self.layout, self.path)
        shape = stream.shape[1:] if len(stream.shape) == len(kind.axes) + 1 else (*stream.shape[1:], 1)
        return Observations(kind.name, shape, "uint8" if kind.has_bytes and stream.dtype == np.uint8 else "float64")

    def read(self, progress: Progress | None = None) -> SourceDataset:
        path = Path(self.path)
        stream = open_observations(path, self.array)
        size = self._new_size(stream)
        if size is None:
            array, kind = as_array(read_raw(path, self.array), layout=self.layout, name=self.path)
            columns = read_sources(path, self.source_file, len(array))
            observations = observe(array, kind, _texts(path, "feature_names"), name=self.path)
            data = SourceDataset.from_columns(array, columns, observations, name=self.name)
            data.checksum = data.compute_checksum()
            return data
        if self.resolution is None and stream.shape[1:3] != size.shape[:2]:
            height, width = stream.shape[1:3]
            warnings.warn(
                f"{path} has images of {height}×{width} pixels, and the networks take {MIN_SIDE} to {MAX_SIDE} per "
                f"side: they are resized to {size} pixels with three channels; choose a size by resolution "
                "(--resolution)",
                stacklevel=4,
            )
        return self.image_set().prepare(size, progress=progress)

    def _new_size(self, stream: ArrayStream | TensorStream) -> PictureSize | None:
        """Return the size to which images are resized; None for observations that are read as they are."""
        is_bytes = stream.dtype == np.uint8 and (self.layout is None or KINDS[self.layout].has_bytes)
        if self.resolution is None:
            return _size_for_networks(stream.shape) if is_bytes and len(stream.shape) in (3, 4) else None
        if not is_bytes:
            raise ValueError(f"resolution is for images of bytes; {self.path} is read as it is: leave resolution out")
        return wanted_size(self.resolution, grey=self.grey)

    def image_set(self) -> ImageSet:
        """Return images of bytes, which can be prepared in any size."""
        path = Path(self.path)
        stream = open_observations(path, self.array)
        require_images(stream)
        columns = read_sources(path, self.source_file, len(stream))
        origins = _texts(path, "origin")
        return ImageSet(
            name=self.name,
            num_images=len(stream),
            read=lambda size: (resize(chunk, size) for chunk in stream.chunks()),
            fingerprint=file_fingerprint(path),
            source_names=list(columns),
            sources=level_table(columns, len(stream)),
            origin=origins[0] if len(origins) == 1 and origins[0] in ORIGINS else "real",
        )


def _size_for_networks(shape: tuple[int, ...]) -> PictureSize | None:
    """Return the size that images of bytes get by default; None if the networks take them as they are.

    Square RGB images keep their size, but are prepared in the cache.
    """
    sides, channels = shape[1:3], shape[3] if len(shape) == 4 else 1
    if channels == COLOURS and sides[0] == sides[1]:
        return wanted_size(max(MIN_SIDE, sides[0]))
    fits = min(sides) >= MIN_SIDE and max(sides) <= MAX_SIDE and channels <= MAX_CHANNELS
    return None if fits else wanted_size(DEFAULT_RESOLUTION)


def require_images(stream: ArrayStream | TensorStream) -> None:
    """Raise an error unless an array of bytes can be resized as images."""
    shape = stream.shape
    if stream.dtype != np.uint8 or 0 in shape or not (len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3, 4))):
        is_channels_first = len(shape) == 4 and shape[1] <= MAX_CHANNELS < shape[3]
        hint = ", which looks as if the channels came first; save np.moveaxis(images, 1, -1)" * is_channels_first
        raise ValueError(
            f"images in {stream.path} must be uint8 of shape (n, h, w), (n, h, w, 1), (n, h, w, 3) or (n, h, w, 4), "
            f"got {stream.dtype} {shape}{hint}"
        )
    if shape[1] * shape[2] > MAX_PIXELS:
        raise ValueError(f"{stream.path} has images of {shape[2]}×{shape[1]} pixels, more than {MAX_PIXELS:,}")


def open_observations(path: Path, name: str | None = None) -> ArrayStream | TensorStream:
    """Open the observations of a file, in a named array or the usual one; their shape and type are known at once."""
    if path.suffix == ".npy":
        if name is not None:
            raise ValueError(f"{path} is a single array without a name: leave array out, got array={name!r}")
        return _require_content(ArrayStream(path))
    names = array_names(path)
    others = [key for key in names if key not in OTHER_KEYS]
    usual = next((key for key in KEYS if key in names), others[0] if len(others) == 1 else None)
    if name is None and usual is None:
        raise ValueError(
            f"{path} must hold the observations in one of the arrays {', '.join(KEYS)}, or name it with array=…; it "
            f"has {', '.join(names) or 'none'}"
        )
    key = require_known(name or usual, names, f"array of {path}")
    return _open_tensor(path, key) if path.suffix == tensor_files.SUFFIX else _require_content(ArrayStream(path, key))


def _require_content(stream: ArrayStream) -> ArrayStream:
    """Return an array; raise an error if its rows have no numbers, which a short file may announce in any number."""
    if not stream.row_bytes:
        raise ValueError(f"{stream.path} must hold rows of numbers, got {stream.dtype} of shape {stream.shape}")
    return stream


def _open_tensor(path: Path, name: str) -> TensorStream:
    tensor = tensor_files.read_tensors(path)[name]
    if tensor.type not in tensor_files.TYPES or not tensor.shape or 0 in tensor.shape:
        raise ValueError(
            f"{name!r} in {path} must hold one row of numbers per observation, got {tensor.type} of shape "
            f"{tensor.shape}"
        )
    return TensorStream(path, tensor)


def read_raw(path: Path, name: str | None = None) -> Any:
    """Return the array of observations in a file, which stays on disk if it is not compressed, of an ``.npz`` if large.

    Numbers of 16 bits of a large array become floats when they are indexed.
    """
    stream = open_observations(path, name)
    if isinstance(stream, TensorStream):
        return _without_copy(stream.map())
    if (mapped := stream.map()) is not None:
        # In C order, rows lie together.
        return _without_copy(mapped) if mapped.flags.c_contiguous else np.ascontiguousarray(mapped)
    require_loadable(path, num_bytes=math.prod(stream.shape) * max(8, stream.dtype.itemsize))  # as floats
    raw = np.empty(stream.shape, stream.dtype)
    done = 0
    for chunk in stream.chunks():
        raw[done : done + len(chunk)] = chunk
        done += len(chunk)
    return raw


def _without_copy(mapped: Any) -> Any:
    """Return an array on disk such that numbers of 16 bits or less are no copy in memory if they are many."""
    is_large = math.prod(mapped.shape) * mapped.dtype.itemsize > MAX_WHOLE
    if isinstance(mapped, ConvertedRows):
        return mapped if is_large else mapped[:]
    return ConvertedRows(mapped) if is_large and mapped.dtype.kind in "fi" and mapped.dtype.itemsize <= 2 else mapped


def read_sources(path: Path, source_file: str | None, num_rows: int) -> dict[str, list[Any]]:
    """Return the columns of sources by name: those of a separate ``.npy``, or those in the ``.npz``."""
    if source_file is not None:
        return named_columns(source_rows(read_source_file(source_file), num_rows))
    if path.suffix == ".npy" or "sources" not in array_names(path):
        return {}
    if path.suffix == tensor_files.SUFFIX:
        tensor = _open_tensor(path, "sources")
        require_whole(tensor.map(), f"'sources' in {path}")
        return named_columns(source_rows(np.array(tensor.map()[:]), num_rows))
    stream = ArrayStream(path, "sources")
    require_loadable(path, num_cells=math.prod(stream.shape))
    table = source_rows(stream.read_all(), num_rows)
    return named_columns(table, _texts(path, "source_names"))


def read_source_file(path: str | Path) -> NDArray[Any]:
    """Return the sources in an ``.npy``."""
    if Path(path).suffix != ".npy":
        raise ValueError(
            f"{path}: a CSV refers to file names, which an array does not have; give its sources as an .npy of shape "
            "(n, n_s)"
        )
    stream = ArrayStream(Path(path))
    require_loadable(stream.path, num_cells=math.prod(stream.shape))
    return stream.read_all()


def _texts(path: Path, key: str) -> list[str]:
    """Return a list of texts from an ``.npz``; an empty one if the file has none of that name."""
    if path.suffix != ".npz" or key not in array_names(path):
        return []
    stream = ArrayStream(path, key)
    if len(stream.shape) != 1 or stream.dtype.kind != "U":
        raise ValueError(f"{key} in {path} must be a list of texts, got {stream.dtype} {stream.shape}")
    require_loadable(path, num_cells=len(stream))
    return [str(text) for text in stream.read_all()]


def require_whole(array: Any, name: str) -> None:
    """Raise an error for an array that is too large to be read as a whole."""
    num_bytes = int(np.prod(array.shape, dtype=object)) * array.dtype.itemsize
    if num_bytes > MAX_WHOLE:
        raise ValueError(f"{name} has {num_bytes:,} bytes; at most {MAX_WHOLE:,} are read as a whole")


class ArrayStream:
    """One array in an ``.npy``, or of a name in an ``.npz``.

    Shape and dtype are known at once; rows are read on request, in C or Fortran order.
    """

    def __init__(self, path: Path, key: str = "images") -> None:
        self.path = path
        self.key = key
        with self._open() as (file, actual):
            self.shape, self.dtype, self._is_fortran, self._start = _read_header(file, path)
        self.row_bytes = int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize
        expected = self._start + self.shape[0] * self.row_bytes
        if actual != expected:
            what = "" if path.suffix == ".npy" else f" for {key!r}"
            raise ValueError(f"{path} has {actual:,} bytes{what}, but its header announces {expected:,}; {COPY_AGAIN}")
        if self._is_fortran and actual > MAX_FORTRAN:
            raise ValueError(
                f"{path} has {actual:,} bytes in Fortran order, which are too many to read at once; save the array as "
                "np.ascontiguousarray(array)"
            )

    def __len__(self) -> int:
        return self.shape[0]

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Yield arrays of as many rows as take little memory."""
        yield from self._rows(max(1, MAX_READ // max(1, self.row_bytes)))

    def read_all(self) -> NDArray[Any]:
        """Return the whole array, which must have at most ``MAX_WHOLE`` bytes."""
        require_whole(self, f"{self.key!r} in {self.path}")
        return next(self._rows(len(self)), np.empty(self.shape, self.dtype))

    def map(self) -> NDArray[Any] | None:
        """Return the array as one that is on disk; None for a small or a compressed member of an ``.npz``."""
        if self.path.suffix == ".npy":
            mapped: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
            return mapped
        if len(self) * self.row_bytes <= MAX_WHOLE or self._is_fortran:
            return None
        with open_zip(self.path) as archive:
            member = archive.getinfo(f"{self.key}.npy")
            if member.compress_type != zipfile.ZIP_STORED:
                return None
        with open_regular(self.path) as file:  # a local header has 30 bytes, and two texts whose lengths it begins with
            file.seek(member.header_offset + 26)
            texts = sum(struct.unpack("<HH", file.read(4)))
        start = member.header_offset + 30 + texts + self._start
        return np.memmap(self.path, self.dtype, "r", start, self.shape)

    def _rows(self, rows_at_once: int) -> Iterator[NDArray[Any]]:
        with self._open() as (file, _):
            file.read(self._start)
            step = max(1, len(self) if self._is_fortran else rows_at_once)
            for start in range(0, len(self), step):
                num = min(step, len(self) - start)
                content = file.read(num * self.row_bytes)
                if len(content) != num * self.row_bytes:
                    raise EOFError("it ends in the middle of an array")
                rows = np.frombuffer(content, self.dtype)
                if self._is_fortran:
                    yield np.ascontiguousarray(rows.reshape(self.shape[::-1]).T)
                else:
                    yield rows.reshape(num, *self.shape[1:])

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], int]]:
        """Open the array and return its number of bytes, with the header; damage is one clear error."""
        if self.path.suffix == ".npy":
            with open_regular(self.path) as file, explain_damage(self.path, COPY_AGAIN):
                yield file, self.path.stat().st_size
            return
        with open_zip(self.path) as archive:
            if f"{self.key}.npy" not in archive.namelist():
                names = ", ".join(array_names(self.path)) or "none"
                raise ValueError(f"{self.path} has no array {self.key!r}: it has {names}")
            with archive.open(f"{self.key}.npy") as file:
                yield file, archive.getinfo(f"{self.key}.npy").file_size


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an ``.npz`` or a ``.safetensors``."""
    if path.suffix == tensor_files.SUFFIX:
        return list(tensor_files.read_tensors(path))
    with open_zip(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


@contextlib.contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip for reading; damage in it is one clear error."""
    with open_regular(path) as file, explain_damage(path, COPY_AGAIN), zipfile.ZipFile(file) as archive:
        yield archive


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
