"""The published files of the known data sets: where to download them, and how to read them.

====================  ==================================================================================================
``shapes3d``          ``3dshapes.h5``: ``images`` uint8 (n, 64, 64, 3), ``labels`` float (n, 6)
``mpi3d``             an ``.npz`` with ``images``; which of the sets it is follows from the number of images
``dsprites``          the published ``.npz``: ``imgs`` (n, 64, 64) of 0 and 1, ``latents_classes`` (n, 6)
``falcor3d``          ``Falcor3D_down128``: ``train-rec.labels`` (a NumPy file), ``images/000000.png`` …
``isaac3d``           ``Isaac3D_down128``: ``labels.npy``, ``images/000000.png`` …
====================  ==================================================================================================

The last two are read from the folder, or from the zip or tar in which they come.

An interrupted download resumes where it stopped. The file gets its final name only after its checksum, where one is
known, has been verified; so is a file that is there already. Nothing else needs these files: every scene can be
rendered instead.

``digits`` (1,797 grey images of 8×8 pixels, with their class as the source) comes with scikit-learn.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import math
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .._io import load_npy, open_own, open_regular, require_regular
from ..registry import DATA
from .array_files import COPY_AGAIN, MAX_READ, MAX_WHOLE, ArrayStream, require_images
from .cache import ImageSet, file_fingerprint
from .dataset import Progress, SourceDataset
from .image_files import decode_files, open_files
from .pictures import MAX_PIXELS, PictureSize, resize
from .sources import BUNDLED_SETS, SOURCES, grid_levels
from .spec import DataSpec, SquareImages

INK = 16  # the brightest value of a pixel in the digits of scikit-learn
BLOCK = 2**20  # bytes of a download that are written at once
SECONDS_OF_SILENCE = 60
MAX_DOWNLOAD = 2**34  # bytes
MAGIC = {"npz": b"PK", "h5": b"\x89HDF"}  # suffix → how such a file begins
#: number of images → colors and shapes of MPI3D: the everyday objects, and the toy, realistic and real sets.
MPI3D_COLORS_AND_SHAPES = {460_800: 4, 1_036_800: 6}
#: The labels of Shapes3D are values, not levels: the values of each source.
SHAPES3D_VALUES = [
    *[np.arange(10) / 10] * 3,
    np.linspace(0.75, 1.25, 8),
    np.arange(4),
    np.linspace(-30, 30, 15),
]


@DATA.register("published")
@dataclass(frozen=True, kw_only=True)
class PublishedFiles(SquareImages):
    """The published files of a built-in data set, prepared in the cache at one resolution."""

    title: ClassVar[str] = "the published files of"
    path_fields: ClassVar[tuple[str, ...]] = ("path",)
    known_names: ClassVar[Collection[str]] = SOURCES

    path: str

    def read(self, progress: Progress | None = None) -> SourceDataset:
        return read_files(self.name, self.path).prepare(self.size, progress=progress)


@DATA.register("bundled")
@dataclass(frozen=True, kw_only=True)
class BundledData(DataSpec):
    """The digits (Alpaydin and Kaynak, 1998): bytes (1797, 8, 8, 1) and the source ``digit`` from 0 to 9."""

    title: ClassVar[str] = "the data set of scikit-learn,"
    known_names: ClassVar[Collection[str]] = BUNDLED_SETS

    def read(self, progress: Progress | None = None) -> SourceDataset:
        from sklearn.datasets import load_digits

        bunch = load_digits()
        images = np.rint(bunch.images * (255 / INK)).astype(np.uint8)[..., None]
        return SourceDataset(
            images, bunch.target.astype(np.int64), name=self.name, origin="real", source_names=["digit"]
        )


def read_files(name: str, path: str | Path) -> ImageSet:
    """Open the published files of a built-in data set: a file, a folder or an archive."""
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist: give the path of the files of {name}")
    readers: dict[str, Callable[[Path], ImageSet]] = {
        "shapes3d": _shapes3d,
        "mpi3d": _mpi3d,
        "dsprites": _dsprites,
        "falcor3d": lambda p: _numbered_pngs("falcor3d", p, "train-rec.labels"),
        "isaac3d": lambda p: _numbered_pngs("isaac3d", p, "labels.npy"),
    }
    return readers[name](path)


def _one_file(path: Path, pattern: str) -> Path:
    """Return the path itself or, if it is a folder, the only file in it that matches `pattern`."""
    if not path.is_dir():
        return path
    matches = sorted(path.glob(pattern))
    if len(matches) != 1:
        raise ValueError(f"{path} has {len(matches)} files like {pattern}: give the path of the one to read")
    return matches[0]


def _shapes3d(path: Path) -> ImageSet:
    path = _one_file(path, "*.h5")
    with _open_hdf5(path) as file:
        images, labels = (_hdf5_array(file, key, path) for key in ("images", "labels"))
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or labels.shape != (len(images), 6):
            raise ValueError(
                f"{path} must hold images uint8 (n, h, w, 3) and labels (n, 6), "
                f"got {images.dtype} {images.shape} and {labels.dtype} {labels.shape}"
            )
        if not 0 < len(images) <= 480_000 or not 0 < images.shape[1] == images.shape[2] <= MAX_PIXELS**0.5:
            raise ValueError(f"{path} must hold up to 480,000 square images, got shape {images.shape}")
        levels = _labels_to_levels("shapes3d", labels[:], SHAPES3D_VALUES)

    def read(size: PictureSize) -> Iterator[NDArray[np.uint8]]:
        with _open_hdf5(path) as file:
            images = _hdf5_array(file, "images", path)
            num_rows = max(1, MAX_READ // math.prod(images.shape[1:]))
            for start in range(0, len(levels), num_rows):
                yield resize(images[start : start + num_rows], size)

    return _image_set("shapes3d", levels, read, file_fingerprint(path))


@contextlib.contextmanager
def _open_hdf5(path: Path) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise ValueError("reading 3dshapes.h5 needs the package h5py: install it with `pip install h5py`") from error
    require_regular(path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(f"{path} is damaged or not an HDF5 file ({error}): download it again") from error


def _hdf5_array(file: Any, key: str, path: Path) -> Any:
    """Return an array of an open HDF5 file.

    Links, external storage and virtual arrays could lead to other files, and the published set has none of them.
    """
    import h5py

    if not isinstance(file.get(key, getlink=True), h5py.HardLink) or not isinstance(file[key], h5py.Dataset):
        raise ValueError(f"{path} has no array {key!r}: it has {', '.join(file) or 'nothing'}")
    array = file[key]
    if array.external is not None or array.is_virtual:
        raise ValueError(f"{path} keeps {key!r} in other files, which are not read: store the array in the file itself")
    if array.dtype.kind not in "iuf" or math.prod(array.chunks or (1,)) * array.dtype.itemsize > MAX_WHOLE:
        raise ValueError(
            f"{path} must hold {key!r} as numbers in chunks of at most {MAX_WHOLE:,} bytes, got {array.dtype} in "
            f"chunks of shape {array.chunks}"
        )
    return array


def _mpi3d(path: Path) -> ImageSet:
    path = _one_file(path, "*.npz")
    stream = _square_images(path, "images")
    if len(stream) not in MPI3D_COLORS_AND_SHAPES:
        known = " or ".join(f"{n:,}" for n in MPI3D_COLORS_AND_SHAPES)
        raise ValueError(f"{path} has {len(stream):,} images; the MPI3D sets have {known}: download it again")
    num = MPI3D_COLORS_AND_SHAPES[len(stream)]
    sizes = SOURCES["mpi3d"] | {"object color": num, "shape": num}
    return ImageSet(
        name="mpi3d",
        num_images=len(stream),
        read=lambda size: (resize(chunk, size) for chunk in stream.chunks()),
        fingerprint=file_fingerprint(path),
        source_names=list(sizes),
        source_sizes=list(sizes.values()),
    )


def _dsprites(path: Path) -> ImageSet:
    path = _one_file(path, "*.npz")
    stream = _square_images(path, "imgs")
    classes = ArrayStream(path, "latents_classes").read_all()
    if classes.shape != (len(stream), 6):
        raise ValueError(f"latents_classes in {path} must have shape ({len(stream)}, 6), got {classes.shape}")
    levels = _labels_to_levels("dsprites", classes[:, 1:], [np.arange(size) for size in SOURCES["dsprites"].values()])

    def read(size: PictureSize) -> Iterator[NDArray[np.uint8]]:
        for chunk in stream.chunks():
            yield resize(np.where(chunk > 0, np.uint8(255), np.uint8(0)), size)

    return _image_set("dsprites", levels, read, file_fingerprint(path))


def _numbered_pngs(name: str, path: Path, labels_name: str) -> ImageSet:
    files = open_files(path)
    names = files.names()
    labels_at = [n for n in names if n.rsplit("/", 1)[-1] == labels_name]
    if len(labels_at) != 1:
        raise ValueError(f"{path} has {len(labels_at)} files called {labels_name}; {name} has one")
    folder = labels_at[0].removesuffix(labels_name)
    pattern = re.compile(re.escape(folder) + r"images/(\d{1,9})\.png")
    numbered = {n: int(match[1]) for n in names if (match := pattern.fullmatch(n))}
    labels = load_npy(io.BytesIO(files.read_one(labels_at[0])), f"{labels_at[0]} in {path}", remedy=COPY_AGAIN)
    values = [np.linspace(0, 1, size) for size in SOURCES[name].values()]
    levels = _labels_to_levels(name, labels, values)
    if sorted(numbered.values()) != list(range(len(labels))):
        raise ValueError(
            f"{path} has {len(numbered):,} pictures {folder}images/000000.png and on, but {len(labels):,} labels: "
            f"some are missing or duplicated; unpack or download it again"
        )
    levels = levels[list(numbered.values())]

    def read(size: PictureSize) -> Iterator[NDArray[np.uint8]]:
        for file, image in zip(numbered, decode_files(files, list(numbered), size), strict=True):
            if isinstance(image, ValueError):
                raise ValueError(f"{file} in {path} cannot be read ({image}): unpack or download it again")
            yield image

    return _image_set(name, levels, read, file_fingerprint(path) | {"num_files": len(numbered)})


def _image_set(name: str, levels: NDArray[np.int64], read: Any, fingerprint: dict[str, Any]) -> ImageSet:
    sizes = list(SOURCES[name].values())
    is_grid = len(levels) == math.prod(sizes) and np.array_equal(levels, grid_levels(sizes))
    return ImageSet(
        name=name,
        num_images=len(levels),
        read=read,
        fingerprint=fingerprint,
        source_names=list(SOURCES[name]),
        sources=None if is_grid else levels,
        source_sizes=sizes,
    )


def _square_images(path: Path, key: str) -> ArrayStream:
    stream = ArrayStream(path, key)
    require_images(stream)
    if stream.shape[1] != stream.shape[2] or stream.shape[3:] not in ((), (3,)):
        raise ValueError(f"{key!r} in {path} must be uint8 (n, h, h) or (n, h, h, 3), got {stream.shape}")
    return stream


def _labels_to_levels(name: str, labels: NDArray[Any], values: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Convert labels (n, n_s) to levels: the index of each among the known values of its source.

    Files differ in how they write a value (as itself, scaled to [0, 1], or as its level), but not in the order. Labels
    that match neither the known values nor the levels are numbered in the order of the values that occur.
    """
    names = list(SOURCES[name])
    if labels.ndim != 2 or labels.shape[1] != len(names) or len(labels) == 0 or labels.dtype.kind not in "iuf":
        raise ValueError(f"labels of {name} must be numbers (n, {len(names)}), got {labels.dtype} {labels.shape}")
    levels = np.empty(labels.shape, np.int64)
    for column, (source, source_values) in enumerate(zip(names, values, strict=True)):
        numbers = labels[:, column].astype(np.float64)
        occurring = np.unique(numbers)
        if not np.isfinite(occurring).all() or len(occurring) > len(source_values):
            raise ValueError(
                f"{name} has {len(source_values)} values of {source!r}, but its labels hold {len(occurring)}, or some "
                "that are not finite"
            )
        for table in (source_values, np.arange(len(source_values)), occurring):
            place = np.abs(occurring[:, None] - table[None]).argmin(axis=1)
            error = np.abs(occurring - table[place]).max()
            if error < 1e-3 * max(1.0, np.ptp(table)) and len(set(place)) == len(place):
                break
        levels[:, column] = place[np.searchsorted(occurring, numbers)]
    return levels


class Download(NamedTuple):
    """The address of a file, and its MD5 if known, which detects damage but not forgery."""

    url: str
    md5: str | None = None


_MPI3D = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset"
#: Data sets that can be downloaded. The everyday objects of MPI3D, Falcor3D and Isaac3D have no permanent address.
DOWNLOADS = {
    "shapes3d": Download("https://storage.googleapis.com/3d-shapes/3dshapes.h5", "099a2078d58cec4daad0702c55d06868"),
    "mpi3d-toy": Download(f"{_MPI3D}/mpi3d_toy.npz", "55889cb7c7dfc655d6e0277beee88868"),
    "mpi3d-realistic": Download(f"{_MPI3D}/mpi3d_realistic.npz", "59a6225b88b635365f70c91b3e52f70f"),
    "mpi3d-real": Download(f"{_MPI3D}/mpi3d_real.npz", "0f33f609918fb5c97996692f91129802"),
    "dsprites": Download(
        "https://github.com/google-deepmind/dsprites-dataset/raw/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    ),
}


def download(name: str, folder: str | Path, *, progress: Progress | None = None) -> Path:
    """Download the file of a data set, unless it is in the folder already, and return its path.

    Args:
        name: one of `DOWNLOADS`.
        folder: the folder for it; created if missing.
        progress: called with (bytes done, number of bytes); the number is 0 if the server does not report it.
    """
    if name in ("falcor3d", "isaac3d", "mpi3d"):
        kinds = ": choose one of mpi3d-toy, mpi3d-realistic, mpi3d-real" if name == "mpi3d" else ""
        raise ValueError(f"no permanent public address of {name} is known{kinds}; it can be rendered instead")
    published = DOWNLOADS[require_known(name, DOWNLOADS, "download")]
    target = Path(folder) / published.url.rsplit("/", 1)[-1].partition("?")[0]
    if target.is_file():
        _require_published(target, published)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        with open_own(part) as file:
            _fetch(published.url, file, progress)
    except (OSError, http.client.HTTPException) as error:
        raise ValueError(
            f"the download of {published.url} was interrupted ({error}): run the same command again to resume it"
        ) from error
    try:
        _require_published(part, published)
    except ValueError as error:  # which also shows that the server had another version earlier
        part.unlink()
        raise ValueError(f"the file from {published.url} was removed: {error}") from None
    os.replace(part, target)
    return target


def _require_published(path: Path, published: Download) -> None:
    """Raise a ``ValueError`` unless a file is the published one, as far as that is known."""
    with open_regular(path) as file:
        start = file.read(len(max(MAGIC.values(), key=len)))
        file.seek(0)
        digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if published.md5 not in (None, digest):
        raise ValueError(f"{path} has a wrong checksum: remove it and download it again")
    magic = MAGIC.get(path.name.removesuffix(".part").rpartition(".")[2])
    if published.md5 is None and magic is not None and not start.startswith(magic):
        raise ValueError(f"{path} is not a data set, perhaps the page of a login: remove it and download it again")


def _fetch(url: str, file: IO[bytes], progress: Progress | None) -> None:
    """Append the missing part of a file; start over if the server cannot resume."""
    num_bytes = file.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"Range": f"bytes={num_bytes}-"} if num_bytes else {})
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS_OF_SILENCE)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        file.truncate(0)  # all of it was there, or the file on the server has become shorter
        raise
    with response:
        asked = f"bytes {num_bytes}-"
        if response.status == 206 and not str(response.headers.get("Content-Range", "")).startswith(asked):
            file.truncate(0)
            raise OSError(f"the server sent another range than {asked}")
        if response.status != 206:
            num_bytes = 0
            file.truncate(0)
            file.seek(0)
        total = num_bytes + int(response.headers.get("Content-Length") or 0)
        while block := response.read(BLOCK):
            num_bytes += len(block)
            if max(num_bytes, total) > MAX_DOWNLOAD:
                file.truncate(0)
                raise OSError(f"the server sends more than {MAX_DOWNLOAD:,} bytes")
            file.write(block)
            if progress is not None:
                progress(num_bytes, total)
    if num_bytes < total:
        raise OSError(f"received {num_bytes:,} of {total:,} bytes")
