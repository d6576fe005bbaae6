"""Observations in ``.npy`` and ``.npz`` files, in the size and type that they have.

An ``.npy`` holds the observations. In an ``.npz`` they are the array ``images``, ``observations``, ``x`` or ``X``, or
the only one; ``sources``, ``source_names`` and ``feature_names`` may stand beside them. Square RGB images of bytes, and
images that are to be resized, are read by ``user_images.py`` instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from ..observations import COLOURS, IMAGES, KINDS, MAX_CHANNELS, MAX_SIDE, MIN_SIDE
from .arrays import build_data
from .dataset import SourceDataset
from .observing import KINDS_BY_RANK, as_array
from .streams import ArrayStream, array_names
from .user_images import named_columns, source_array

SUFFIXES = (".npy", ".npz")
KEYS = ("images", "observations", "x", "X")
BESIDE = ("sources", "source_names", "feature_names", "origin")


def is_array_file(path: str | Path) -> bool:
    """Return whether a path has the suffix of NumPy's files."""
    return Path(path).suffix.lower() in SUFFIXES


def native_resolution(path: str | Path, kind: str | None = None) -> int | None:
    """Return the resolution at which ``user_images.py`` reads a file; None if it is read as it is, by this module.

    Images of bytes are resized to 64×64 if the networks cannot take them as they are.
    """
    stream = _open(Path(path))
    shape = stream.shape
    if not holds_images(path, kind) or len(shape) not in (3, 4):
        return None
    sides, channels = shape[1:3], shape[3] if len(shape) == 4 else 1
    if channels == COLOURS and sides[0] == sides[1]:
        return max(MIN_SIDE, sides[0])
    fits = min(sides) >= MIN_SIDE and max(sides) <= MAX_SIDE and channels <= MAX_CHANNELS
    return None if fits else 64


def holds_images(path: str | Path, kind: str | None = None) -> bool:
    """Return whether a file holds images of bytes, unless the user says that they are of another kind."""
    return _open(Path(path)).dtype == np.uint8 and (kind is None or KINDS[kind].has_bytes)


def kind_of_file(path: str | Path, kind: str | None = None) -> str:
    """Return the kind of the observations in a file, by its header, unless the user says it."""
    stream = _open(Path(path))
    if kind is not None:
        return KINDS[require_known(kind, KINDS, "kind of observations")].name
    return KINDS_BY_RANK.get(len(stream.shape), (IMAGES, IMAGES))[stream.dtype != np.uint8]


def shape_in_file(path: str | Path) -> tuple[int, ...]:
    """Return the shape of one observation in a file, by its header."""
    return _open(Path(path)).shape[1:]


def read_raw(path: Path) -> NDArray[Any]:
    """Return the array of observations in a file, of an ``.npy`` mapped into memory."""
    stream = _open(path)
    if stream.path.suffix == ".npy":
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped if mapped.flags.c_contiguous else np.ascontiguousarray(mapped)  # rows lie together
    raw = np.empty(stream.shape, stream.dtype)
    done = 0
    for chunk in stream.chunks():
        raw[done : done + len(chunk)] = chunk
        done += len(chunk)
    return raw


def read_array_file(
    path: str | Path, *, sources: Any = None, kind: str | None = None, name: str | None = None
) -> SourceDataset:
    """Read observations as they are.

    Args:
        path: an ``.npy``, which stays on disk, or an ``.npz``, which is read into memory.
        sources: the path of an ``.npy``, or an array (n, n_s), instead of those in the file.
        kind: as for `SourceDataset`.
        name: of the data set; by default that of the file.

    Raises:
        ValueError: the file is damaged or holds no observations, values are missing, or sources do not fit.
    """
    path = Path(path)
    array, kind = as_array(read_raw(path), kind=kind, name=str(path))
    beside = array_names(path) if path.suffix == ".npz" else []
    columns: dict[str, list[Any]] = {}
    if sources is not None:
        columns = named_columns(source_array(sources, len(array)), None)
    elif "sources" in beside:
        table = source_array(ArrayStream(path, "sources").read_all(), len(array))
        columns = named_columns(table, _names(path, "source_names", beside) or None)
    feature_names = _names(path, "feature_names", beside)
    data = build_data(array, kind, columns, feature_names, name=name or path.stem)
    data.checksum = checksum(data)
    return data


def checksum(data: SourceDataset) -> str:
    """Return the SHA-256 of all observations and sources."""
    digest = hashlib.sha256()
    for start in range(0, len(data), 4096):
        digest.update(np.ascontiguousarray(data.images[start : start + 4096]).tobytes())
    digest.update(np.ascontiguousarray(data.sources).tobytes())
    return digest.hexdigest()


def _open(path: Path) -> ArrayStream:
    if path.suffix != ".npz":
        return ArrayStream(path)
    names = array_names(path)
    others = [name for name in names if name not in BESIDE]
    key = next((name for name in KEYS if name in names), others[0] if len(others) == 1 else None)
    if key is None:
        raise ValueError(
            f"{path} must hold the observations in one of the arrays {', '.join(KEYS)}; it has "
            f"{', '.join(names) or 'none'}"
        )
    return ArrayStream(path, key)


def _names(path: Path, key: str, beside: Sequence[str]) -> list[str]:
    return [str(name) for name in ArrayStream(path, key).read_all()] if key in beside else []
