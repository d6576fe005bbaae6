"""Image files in a folder of any depth, a zip or a tar, and images that were prepared from them.

Sources may come as an ``.npy``, or as a CSV with one line per image, whose first column is the name of the file. A
source with fractional values keeps them; the values of any other source become levels 0, 1, 2 … in sorted order.

All files are read once, into the cache. They are found there as long as no name, size or time of a file changes.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..registry import DATA
from .archives import Files, open_files
from .array_files import read_source_file
from .cache import ImageSet, find_by_name, name_of_files
from .dataset import Progress, SourceDataset
from .pictures import PictureSize, decode, map_in_threads
from .sources import level_table, named_columns, source_rows
from .spec import ResizedImages
from .tables import read_csv

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
#: Images that are not read, and are named when they are left out.
OTHER_SUFFIXES = (".heic", ".heif", ".avif", ".dng", ".cr2", ".nef", ".arw", ".jxl", ".svg")
NAMES_SHOWN = 3  # in a message


@DATA.register("image-files")
@dataclass(frozen=True, kw_only=True)
class ImageFiles(ResizedImages):
    """Image files in a folder of any depth, a zip or a tar, prepared in the cache in one size.

    Files that cannot be decoded are left out; the description of the data counts and names them, and a warning does so
    when they are read. Run directories below the folder are left out too.

    Attributes:
        path: a folder, zip or tar with PNG, JPEG, WebP, BMP, GIF or TIFF images.
        source_file: a CSV with one line per image, or an ``.npy`` (n, n_s).
    """

    title: ClassVar[str] = "the image files in"
    path_fields: ClassVar[tuple[str, ...]] = ("path", "source_file")

    path: str
    source_file: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(name=name_of_files(self.path, self.name))
        if self.source_file is not None and Path(self.source_file).suffix.lower() not in (".csv", ".npy"):
            raise ValueError(
                f"source_file must be a .csv (one line per image) or an .npy of shape (n, n_s), got {self.source_file}"
            )

    def read(self, progress: Progress | None = None) -> SourceDataset:
        return self.image_set().prepare(self.size, progress=progress)

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
class PreparedImages(ResizedImages):
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
    table = read_csv(path, as_text=True)
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
