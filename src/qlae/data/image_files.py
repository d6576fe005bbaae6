"""Image files in a folder of any depth, a zip or a tar, and images that were prepared from them.

Sources may come as an ``.npy``, or as a CSV with one line per image, whose first column is the name of the file. A
source with fractional values keeps them; the values of any other source become levels 0, 1, 2 … in sorted order.

All files are read once, into the cache. They are found there as long as no name, size or time of a file changes.

Nothing is ever extracted. The members of an archive are read by name as a stream of bytes, so a member's path cannot
lead anywhere, and reading stops at a limit, whatever size a member claims to have.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import lzma
import os
import tarfile
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .._io import DAMAGE, explain_damage, open_regular, read_json, require_regular
from ..registry import DATA
from .array_files import COPY_AGAIN, open_zip, read_source_file
from .cache import ImageSet, find_by_name, name_of_files
from .dataset import Progress, SourceDataset
from .pictures import MAX_FILE_BYTES, PictureSize, decode, map_in_threads
from .sources import level_table, named_columns, source_rows
from .spec import ResizedImages, UserData
from .table_files import read_csv

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
#: Images that are not read, and are named when they are left out.
OTHER_SUFFIXES = (".heic", ".heif", ".avif", ".dng", ".cr2", ".nef", ".arw", ".jxl", ".svg")
NAMES_SHOWN = 3  # in a message


@DATA.register("image-files")
@dataclass(frozen=True, kw_only=True)
class ImageFiles(UserData, ResizedImages):
    """Image files in a folder of any depth, a zip or a tar, prepared in the cache in one size.

    Files that cannot be decoded are left out, and a warning counts them when they are read. Run directories below the
    folder are left out too.

    Attributes:
        path: a folder, zip or tar with PNG, JPEG, WebP, BMP, GIF or TIFF images.
        source_file: a CSV with one line per image, or an ``.npy`` (n, n_s).
        group_column: a column of the CSV that is no source: images with equal values in it stay together when some
            are held out.
    """

    title: ClassVar[str] = "the image files in"
    path_fields: ClassVar[tuple[str, ...]] = ("path", "source_file")

    path: str
    source_file: str | None = None
    group_column: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(name=name_of_files(self.path, self.name))
        if self.group_column is not None and not (self.source_file or "").lower().endswith(".csv"):
            raise ValueError(
                "group_column names a column of the CSV in source_file, with one line per image: give such a file"
            )
        if self.source_file is not None and Path(self.source_file).suffix.lower() not in (".csv", ".npy"):
            raise ValueError(
                f"source_file must be a .csv (one line per image) or an .npy of shape (n, n_s), got {self.source_file}"
            )

    def read(self, progress: Progress | None = None) -> SourceDataset:
        data = self.image_set().prepare(self.size, progress=progress)
        if self.group_column is not None:
            assert self.source_file is not None
            assert data.file_names is not None
            table = read_source_table(Path(self.source_file), list(data.file_names))
            data.groups = np.unique(table[self.group_column], return_inverse=True)[1].reshape(-1)
        return data

    def image_set(self) -> ImageSet:
        """List the files, without reading them, and read their sources."""
        path = Path(self.path)
        if not path.exists():
            raise ValueError(f"{path} does not exist: give a folder of images, an archive, an .npz or an .npy")
        files = open_files(path)
        names = [name for name in files.names() if not name.rsplit("/", 1)[-1].startswith("._")]
        images = [name for name in names if name.lower().endswith(SUFFIXES)]
        others = [printable(name) for name in names if name.lower().endswith(OTHER_SUFFIXES)]
        if not images:
            also = f"; it has {_describe_others(others)}" if others else ""
            raise ValueError(f"{path} has no images: no PNG, JPEG, WebP, BMP, GIF or TIFF files{also}")
        columns: dict[str, list[Any]] = {}
        if self.source_file is not None and self.source_file.lower().endswith(".csv"):
            columns = read_source_table(Path(self.source_file), images)
            if self.group_column is not None:
                require_known(self.group_column, columns, f"column of {self.source_file}")
                columns.pop(self.group_column)
        elif self.source_file is not None:
            columns = named_columns(source_rows(read_source_file(self.source_file), len(images)))

        def read(size: PictureSize) -> Iterator[NDArray[np.uint8] | ValueError]:
            if others:
                warnings.warn(f"{path}: {_describe_others(others)}; the others are used", stacklevel=2)
            return decode_files(files, images, size)

        listing = repr([*files.stamps(images), *map(printable, images), *others])
        return ImageSet(
            name=self.name,
            num_images=len(images),
            read=read,
            fingerprint={"path": str(path.resolve()), "sha256": hashlib.sha256(listing.encode()).hexdigest()},
            source_names=list(columns),
            sources=level_table(columns, len(images)),
            file_names=[printable(name) for name in images],
            unread=dict.fromkeys(others, "its format is not read"),
        )


@DATA.register("prepared")
@dataclass(frozen=True, kw_only=True)
class PreparedImages(UserData, ResizedImages):
    """Images in the cache, by the name under which they were prepared from files that may be gone."""

    title: ClassVar[str] = "the prepared images"

    def read(self, progress: Progress | None = None) -> SourceDataset:
        return find_by_name(self.name, self.size)


def decode_files(files: Files, names: list[str], size: PictureSize) -> Iterator[NDArray[np.uint8] | ValueError]:
    """Yield the image (1, h, w, c) in each of the named files, decoded on several threads, or why there is none."""

    def decode_one(file: tuple[str, bytes]) -> NDArray[np.uint8] | ValueError:
        try:
            if file[0] != printable(file[0]):
                raise ValueError("its name is not UTF-8; rename it")
            return decode(file[1], size)[None]
        except ValueError as error:
            return error

    return map_in_threads(decode_one, files.read(names), weigh=lambda file: len(file[1]))


def printable(name: str) -> str:
    """Return a file name with escapes for the bytes that are not UTF-8."""
    return name.encode(errors="backslashreplace").decode()


def _describe_others(names: list[str]) -> str:
    """Describe which images are left out because of their format, and what to do."""
    kinds = sorted({name.rsplit(".", 1)[-1].upper() for name in names})
    examples = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
    count = f"{len(names):,} {'file' if len(names) == 1 else 'files'}"
    return f"{count} in formats that are not read ({', '.join(kinds)}): {examples}. Convert them to PNG or JPEG"


def read_source_table(path: Path, images: list[str]) -> dict[str, list[Any]]:
    """Read the sources of images from a CSV: one line per image, whose first column is the name of the file.

    Lines for other files are ignored.
    """
    if not path.is_file():
        raise ValueError(f"{path} is not a file: sources come as a CSV (one line per image) or an .npy")
    known = set(images)
    table = read_csv(path)
    if table.columns[0] in known or len(table.columns) < 2:
        raise ValueError(f"{path} must begin with a line of names, such as file,shape,size, got {list(table.columns)}")
    file = table.iloc[:, 0].fillna("").map(lambda cell: _match_image(cell, known))
    table = table[file.notna()].set_axis(file[file.notna()].rename(None))
    if table.index.has_duplicates:
        raise ValueError(f"{path} has two lines for {table.index[table.index.duplicated()][0]}: remove one of them")
    missing = [name for name in images if name not in table.index]
    if missing:
        raise ValueError(
            f"{path} has no line for {len(missing)} of {len(images)} images, such as {printable(missing[0])}: its "
            "first column must hold paths of files relative to the folder"
        )
    table = table.loc[images].iloc[:, 1:]
    if table.isna().any(axis=None):
        name = table.columns[table.isna().any()][0]
        raise ValueError(f"{path} has no {name!r} for {table.index[table[name].isna()][0]}: fill it in")
    return {name: table[name].str.strip().tolist() for name in table.columns}


def _match_image(cell: str, images: set[str]) -> str | None:
    """Return the image that a cell names, literally or as another spelling of its path; ``None`` if there is none."""
    spellings = (cell, cell.strip(), cell.strip().replace("\\", "/").removeprefix("./"))
    return next((name for name in spellings if name in images), None)


class Files(ABC):
    """Files by name. Names are relative and use ``/``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all files, in the order in which reading them is cheapest."""

    @abstractmethod
    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of the files in `names`, which must be in the order of `names()`."""

    def read_one(self, name: str) -> bytes:
        """Return the content of one file."""
        return next(content for _, content in self.read([name]))

    def stamps(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        """Return sizes and times that change when the files do: of the archive, if they are in one."""
        return [_stamp(self.path)]


class FolderFiles(Files):
    """The files below a folder, without those of run directories, whose pictures are not data.

    Links to folders are not followed, so that no loop can occur.
    """

    def names(self) -> list[str]:
        names = []
        for folder, folders, files in os.walk(self.path, followlinks=False):
            if Path(folder) != self.path and _is_run(Path(folder), files):
                folders.clear()
                continue
            names += [(Path(folder) / name).relative_to(self.path).as_posix() for name in files]
        return sorted(names)

    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            content = b""
            # A link to nowhere, a pipe or a file without permission reads as empty.
            with contextlib.suppress(OSError, ValueError), open_regular(self.path / name) as file:
                content = file.read(MAX_FILE_BYTES + 1)
            yield name, content

    def stamps(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        return [_stamp(self.path / name) for name in names]


def _is_run(folder: Path, files: list[str]) -> bool:
    """Return whether a folder is a run directory whose training has begun, judging by its files and its config."""
    if "config.json" not in files or not {"log.jsonl", "checkpoint.json", "results.json"} & set(files):
        return False
    try:
        return {"model", "data", "latent"} <= read_json(folder / "config.json").keys()
    except (OSError, ValueError):
        return False


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        state = path.stat()
    except OSError:  # a link to nowhere
        return ()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


class ZipFiles(Files):
    """The members of a zip."""

    def names(self) -> list[str]:
        with open_zip(self.path) as archive:
            return sorted(info.filename for info in archive.infolist() if not info.is_dir())

    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        with open_zip(self.path) as archive:
            for name in names:
                with archive.open(name) as member:
                    yield name, member.read(MAX_FILE_BYTES + 1)


class TarFiles(Files):
    """The members of a tar, compressed or not. A tar has no index, so reading passes through all of it.

    The list of names, which every reader asks for first, reads to the end, where compressed files have their checksum.
    """

    def names(self) -> list[str]:
        with _open_tar(self.path) as (archive, file):
            names = [member.name for member in archive if member.isfile()]
            while file.read(2**20):
                pass
            return names

    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        missing = set(names)
        with _open_tar(self.path) as (archive, _):
            for member in archive:
                if not missing:
                    return
                if member.name in missing and (file := archive.extractfile(member)) is not None:
                    missing.discard(member.name)
                    yield member.name, file.read(MAX_FILE_BYTES + 1)
        if missing:
            raise ValueError(f"{self.path} ends before {min(missing)}; {COPY_AGAIN}")


@contextlib.contextmanager
def _open_tar(path: Path) -> Iterator[tuple[tarfile.TarFile, IO[bytes]]]:
    """Open a tar and the stream that it is read from; `tarfile` would decompress it without comparing checksums."""
    with (
        open_regular(path) as raw,
        explain_damage(path, COPY_AGAIN),
        _decompress(raw) as file,
        tarfile.open(fileobj=file, mode="r|") as archive,
    ):
        yield archive, file


def _decompress(raw: IO[bytes]) -> Any:
    """Return the content of an open file as a stream, decompressed if its first bytes say that it is compressed."""
    magic = raw.read(6)
    raw.seek(0)
    openers: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
    return next((opener(raw) for start, opener in openers.items() if magic.startswith(start)), raw)


def open_files(path: Path) -> Files:
    """Open a folder, a zip or a tar."""
    if path.is_dir():
        return FolderFiles(path)
    require_regular(path)
    with explain_damage(path, COPY_AGAIN):
        if zipfile.is_zipfile(path):
            return ZipFiles(path)
    with contextlib.suppress(OSError, *DAMAGE):
        if tarfile.is_tarfile(path):
            return TarFiles(path)
    raise ValueError(f"{path} is neither a folder nor a zip or tar archive")
