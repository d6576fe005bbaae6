"""Image files in a folder of any depth, a zip or a tar, and images that were prepared from them.

Sources may come as an ``.npy``, or as a CSV with one line per image, whose first column is the name of the file. A
source with fractional values keeps them; the values of any other source become levels 0, 1, 2 … in sorted order.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from ..registry import DATA
from . import cache
from .archives import Files, open_files
from .array_files import read_source_file
from .cache import ImageSet, name_of_files
from .dataset import Progress, SourceDataset
from .image_checks import check_files, printable
from .published import image_batches
from .source_table import SourceTable
from .sources import named_columns, source_rows
from .spec import ResizedImages

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
#: Images that are not read, and are named when they are left out.
OTHER_SUFFIXES = (".heic", ".heif", ".avif", ".dng", ".cr2", ".nef", ".arw", ".jxl", ".svg")
NAMES_SHOWN = 3  # in a message
NAMES_KEPT = 10  # of images that are left out, in the description of a data set


@DATA.register("image-files")
@dataclass(frozen=True, kw_only=True)
class ImageFiles(ResizedImages):
    """Image files in a folder of any depth, a zip or a tar, prepared in the cache in one size.

    Files that cannot be decoded are left out; the description of the data counts and names them, and a warning does so
    when they are read for the first time. Run directories below the folder are left out too.

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
        return self.image_set(progress).prepare(self.size, progress=progress)

    def image_set(self, progress: Progress | None = None) -> ImageSet:
        """Check all files and return those that are images, which can be prepared in any size."""
        path = Path(self.path)
        if not path.exists():
            raise ValueError(f"{path} does not exist: give a folder of images, an archive, an .npz or an .npy")
        return _read_pictures(self.name, open_files(path), self.source_file, progress)


@DATA.register("prepared")
@dataclass(frozen=True, kw_only=True)
class PreparedImages(ResizedImages):
    """Images in the cache, by the name under which they were prepared from files that may be gone."""

    title: ClassVar[str] = "the prepared images"

    def read(self, progress: Progress | None = None) -> SourceDataset:
        data = cache.find_by_name(self.name, self.size)
        if data is None:
            raise ValueError(f"there are no prepared images of the name {self.name!r}; prepare them again")
        return data


def _read_pictures(name: str, files: Files, source_file: str | None, progress: Progress | None) -> ImageSet:
    names = [n for n in files.names() if not n.rsplit("/", 1)[-1].startswith("._")]
    candidates = [n for n in names if n.lower().endswith(SUFFIXES)]
    others = [printable(n) for n in names if n.lower().endswith(OTHER_SUFFIXES)]
    if not candidates:
        also = f"; it has {_describe_others(others)}" if others else ""
        raise ValueError(f"{files.path} has no images: no PNG, JPEG, WebP, BMP, GIF or TIFF files{also}")
    table = _open_sources(source_file, candidates)
    checks, has_new_others = check_files(files, candidates, others, progress=progress)
    if has_new_others:
        warnings.warn(f"{files.path}: {_describe_others(others)}; the others are used", stacklevel=4)
    readable = [check.name for check in checks if check.reason is None]
    left_out = {printable(check.name): check.reason for check in checks if check.reason is not None}
    failures = [f"{name} ({reason})" for name, reason in left_out.items()]
    if not readable:
        raise ValueError(
            f"none of the {len(candidates)} images in {files.path} can be read, the first of them {failures[0]}"
        )
    if any(check.is_new and check.reason is not None for check in checks):
        examples = ", ".join(failures[:NAMES_SHOWN]) + (", …" if len(failures) > NAMES_SHOWN else "")
        warnings.warn(
            f"{len(failures):,} of {len(candidates):,} images in {files.path} are left out: {examples}. A run lists "
            "all of them in left_out.json",
            stacklevel=4,
        )
    columns: dict[str, list[Any]] = {}
    if isinstance(table, SourceTable):
        columns = dict(table.rows_for(readable))
    elif table is not None:
        rows = [i for i, check in enumerate(checks) if check.reason is None]
        columns = named_columns(table[rows])
    listing = "".join(f"{printable(check.name)}:{check.digest}\n" for check in checks)
    digest = hashlib.sha256(listing.encode()).hexdigest()
    fingerprint = {"path": str(files.path.resolve()), "num_files": len(candidates), "sha256": digest}
    details = {"num_skipped": len(failures), "skipped": failures[:NAMES_KEPT]} if failures else {}
    return ImageSet.with_columns(
        name,
        len(readable),
        columns,
        image_batches(files, readable),
        fingerprint,
        details=details,
        file_names=readable,
        left_out=left_out | dict.fromkeys(others, "its format is not read"),
    )


def _open_sources(source_file: str | None, images: list[str]) -> SourceTable | NDArray[Any] | None:
    """Return the sources of images, before the images are read: a table by file name, or an array with a row each."""
    if source_file is None:
        return None
    if Path(source_file).suffix.lower() == ".csv":
        return SourceTable(Path(source_file), images)
    return source_rows(read_source_file(source_file), len(images))


def _describe_others(names: list[str]) -> str:
    """Describe which images are left out because of their format, and what to do."""
    kinds = sorted({name.rsplit(".", 1)[-1].upper() for name in names})
    examples = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
    count = f"{len(names):,} {'file' if len(names) == 1 else 'files'}"
    return f"{count} in formats that are not read ({', '.join(kinds)}): {examples}. Convert them to PNG or JPEG"
