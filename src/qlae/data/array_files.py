"""Observations in ``.npy`` and ``.npz`` files, and the reader of arrays that are too large for memory.

An ``.npy`` holds the observations. In an ``.npz`` they are the array ``images``, ``observations``, ``x`` or ``X``, or
the only one; ``sources``, ``source_names`` and ``feature_names`` may accompany them. Observations keep their size and
type, except for images that the user or the networks want in another size: these are resized into the cache, as square
RGB images of bytes always are.

An ``.npz`` is a zip of ``.npy`` members. Both are read as streams, a few rows at a time, compressed or not. Pickled
arrays are refused.
"""

from __future__ import annotations

import contextlib
import io
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .._io import explain_damage, open_regular
from ..observations import COLOURS, IMAGES, KINDS, MAX_CHANNELS, MAX_SIDE, MIN_SIDE, Observations
from ..registry import DATA
from .cache import ImageSet, file_fingerprint, name_of_files
from .dataset import ORIGINS, Progress, SourceDataset, as_array, kind_of_array, observe
from .pictures import DEFAULT_RESOLUTION, GREY, MAX_PIXELS, PictureSize, resize, wanted_size
from .sources import level_table, named_columns, source_rows
from .spec import NoisyData

SUFFIXES = (".npy", ".npz")
KEYS = ("images", "observations", "x", "X")
OTHER_KEYS = ("sources", "source_names", "feature_names", "origin")
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


def is_array_file(path: str | Path) -> bool:
    """Return whether a path has the suffix of NumPy's files."""
    return Path(path).suffix.lower() in SUFFIXES


@DATA.register("array-file")
@dataclass(frozen=True, kw_only=True)
class ArrayFile(NoisyData):
    """An ``.npy``, which stays on disk, or an ``.npz``, which is read into memory.

    Attributes:
        path: of the file.
        layout: ``"images"``, ``"vectors"`` or ``"series"``, if the shape is ambiguous.
        source_file: an ``.npy`` with sources (n, n_s), instead of those in the file.
        resolution: the size to which images of bytes are resized; None if they keep theirs.
        grey: whether resized images have one channel instead of three.
    """

    title: ClassVar[str] = "the array file"
    path_fields: ClassVar[tuple[str, ...]] = ("path", "source_file")

    path: str
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
        stream = open_observations(Path(self.path))
        if (size := self._new_size(stream)) is not None:
            return Observations(IMAGES, size.shape)
        kind = kind_of_array(stream.shape, stream.dtype, self.layout, self.path)
        shape = stream.shape[1:] if len(stream.shape) == len(kind.axes) + 1 else (*stream.shape[1:], 1)
        return Observations(kind.name, shape, "uint8" if kind.has_bytes and stream.dtype == np.uint8 else "float64")

    def read(self, progress: Progress | None = None) -> SourceDataset:
        path = Path(self.path)
        stream = open_observations(path)
        size = self._new_size(stream)
        if size is None:
            array, kind = as_array(read_raw(path), layout=self.layout, name=self.path)
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

    def _new_size(self, stream: ArrayStream) -> PictureSize | None:
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
        stream = open_observations(path)
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


def require_images(stream: ArrayStream) -> None:
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


def open_observations(path: Path) -> ArrayStream:
    """Open the observations of a file; their shape and type are known at once."""
    if path.suffix != ".npz":
        return ArrayStream(path)
    names = array_names(path)
    others = [name for name in names if name not in OTHER_KEYS]
    key = next((name for name in KEYS if name in names), others[0] if len(others) == 1 else None)
    if key is None:
        raise ValueError(
            f"{path} must hold the observations in one of the arrays {', '.join(KEYS)}; it has "
            f"{', '.join(names) or 'none'}"
        )
    return ArrayStream(path, key)


def read_raw(path: Path) -> NDArray[Any]:
    """Return the array of observations in a file, of an ``.npy`` mapped into memory."""
    stream = open_observations(path)
    if path.suffix == ".npy":
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped if mapped.flags.c_contiguous else np.ascontiguousarray(mapped)  # rows lie together
    raw = np.empty(stream.shape, stream.dtype)
    done = 0
    for chunk in stream.chunks():
        raw[done : done + len(chunk)] = chunk
        done += len(chunk)
    return raw


def read_sources(path: Path, source_file: str | None, num_rows: int) -> dict[str, list[Any]]:
    """Return the columns of sources by name: those of a separate ``.npy``, or those in the ``.npz``."""
    if source_file is not None:
        return named_columns(source_rows(read_source_file(source_file), num_rows))
    if path.suffix != ".npz" or "sources" not in array_names(path):
        return {}
    table = source_rows(ArrayStream(path, "sources").read_all(), num_rows)
    return named_columns(table, _texts(path, "source_names"))


def read_source_file(path: str | Path) -> NDArray[Any]:
    """Return the sources in an ``.npy``."""
    if Path(path).suffix != ".npy":
        raise ValueError(
            f"{path}: a CSV refers to file names, which an array does not have; give its sources as an .npy of shape "
            "(n, n_s)"
        )
    return ArrayStream(Path(path)).read_all()


def _texts(path: Path, key: str) -> list[str]:
    """Return a list of texts from an ``.npz``; an empty one if the file has none of that name."""
    if path.suffix != ".npz" or key not in array_names(path):
        return []
    stream = ArrayStream(path, key)
    if len(stream.shape) != 1 or stream.dtype.kind != "U":
        raise ValueError(f"{key} in {path} must be a list of texts, got {stream.dtype} {stream.shape}")
    return [str(text) for text in stream.read_all()]


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
        num_bytes = len(self) * self.row_bytes
        if num_bytes > MAX_WHOLE:
            raise ValueError(
                f"{self.key!r} in {self.path} has {num_bytes:,} bytes; at most {MAX_WHOLE:,} are read as a whole"
            )
        return next(self._rows(len(self)), np.empty(self.shape, self.dtype))

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
    """Return the names of the arrays in an ``.npz``."""
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
