"""Image files in a folder of any depth, a zip or a tar, and images that were prepared from them.

Sources may come as an ``.npy``, or as a CSV with one line per image, whose first column is the name of the file. A
source with fractional values keeps them; the values of any other source become levels 0, 1, 2 … in sorted order.

Files that have not changed since they were checked are not read again. For each folder or archive there is a JSON file
in ``checked`` in the cache folder. It holds for each image its size and times, a digest of its bytes, and the reason if
it cannot be decoded. A file whose size or times differ is read again, and so is one that changed less than two seconds
before it was read: it may have changed again within the resolution of the clock. Its result is remembered all the same,
so that nothing is reported twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import PIL
from numpy.typing import NDArray

from .._io import read_json, waiting_lock, write_bytes
from ..registry import DATA
from . import cache
from .archives import Files, Stamp, open_files
from .array_files import read_source_file
from .cache import ImageSet, cache_folder, name_of_files
from .dataset import Progress, SourceDataset
from .pictures import map_in_threads, require_readable
from .published import image_batches
from .sources import named_columns, source_rows
from .spec import ResizedImages
from .tables import csv_header, csv_lines

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
#: Images that are not read, and are named when they are left out.
OTHER_SUFFIXES = (".heic", ".heif", ".avif", ".dng", ".cr2", ".nef", ".arw", ".jxl", ".svg")
NAMES_SHOWN = 3  # in a message
NAMES_KEPT = 10  # of images that are left out, in the description of a data set
EXAMPLE_HEADER = "file,shape,size"  # of a CSV of sources
CHECKS_FORMAT = 1
CHECKS_FOLDER = "checked"
FRESH_NS = 2 * 10**9
REPORT_EVERY = 200  # files between two calls of a progress callback


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
    return ImageSet.with_columns(
        name,
        len(readable),
        _readable_columns(table, checks),
        image_batches(files, readable),
        _fingerprint(files, checks),
        details={"num_skipped": len(failures), "skipped": failures[:NAMES_KEPT]} if failures else {},
        file_names=readable,
        left_out=left_out | dict.fromkeys(others, "its format is not read"),
    )


def _readable_columns(table: SourceTable | NDArray[Any] | None, checks: Sequence[Check]) -> dict[str, list[Any]]:
    """Return the values of each source, for the images that can be decoded."""
    if table is None:
        return {}
    if isinstance(table, SourceTable):
        return dict(table.rows_for([check.name for check in checks if check.reason is None]))
    return named_columns(table[[i for i, check in enumerate(checks) if check.reason is None]])


def _fingerprint(files: Files, checks: Sequence[Check]) -> dict[str, Any]:
    """Return where images come from, and a digest of their names and bytes."""
    listing = "".join(f"{printable(check.name)}:{check.digest}\n" for check in checks)
    digest = hashlib.sha256(listing.encode()).hexdigest()
    return {"path": str(files.path.resolve()), "num_files": len(checks), "sha256": digest}


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


class SourceTable:
    """The sources of images in a CSV: one line per image, whose first column is the name of the file.

    Args:
        path: the CSV.
        images: the names of all image files, also of those that turn out to be unreadable. Lines for other files are
            ignored.

    Raises:
        ValueError: the CSV cannot be read, or an image has two lines.
    """

    def __init__(self, path: Path, images: list[str]) -> None:
        if not path.is_file():
            raise ValueError(f"{path} is not a file: sources come as a CSV (one line per image) or an .npy")
        self.path = path
        self._header, delimiter = csv_header(path)
        image_names = set(images)
        self._check_header(image_names)
        self._by_name: dict[str, tuple[int, list[str]]] = {}
        for number, cells in csv_lines(path, delimiter):
            if len(cells) != len(self._header):
                raise ValueError(
                    f"line {number} of {path} has {len(cells)} columns, its first line has {len(self._header)}"
                )
            name = _match_image(cells[0], image_names)
            if name in self._by_name:
                raise ValueError(
                    f"{path} has two lines for {name}, {self._by_name[name][0]} and {number}: remove one of them"
                )
            if name is not None:
                self._by_name[name] = number, [cell.strip() for cell in cells]
        if not self._by_name:
            self.rows_for(images)  # raises

    def _check_header(self, images: set[str]) -> None:
        header = self._header
        if header[0] in images:
            raise ValueError(
                f"{self.path} begins with an image; its first line must name the columns, such as {EXAMPLE_HEADER}"
            )
        if len(header) < 2 or len(set(header)) != len(header) or "" in header:
            raise ValueError(
                f"{self.path} must begin with a line of distinct names, such as {EXAMPLE_HEADER}, got {header}"
            )

    def rows_for(self, images: list[str]) -> dict[str, list[str]]:
        """Return for each source its values, in the order of `images`.

        Raises:
            ValueError: an image has no line, or an empty cell.
        """
        missing = [name for name in images if name not in self._by_name]
        if missing:
            raise ValueError(
                f"{self.path} has no line for {len(missing)} of {len(images)} images, the first of them {missing[0]}: "
                "the first column must hold the path of the file relative to the folder"
            )
        rows = [self._by_name[name] for name in images]
        for number, line in rows:
            if "" in line:
                raise ValueError(f"line {number} of {self.path} has no {self._header[line.index('')]!r}: fill it in")
        return {name: [line[i] for _, line in rows] for i, name in enumerate(self._header) if i}


def _match_image(cell: str, images: set[str]) -> str | None:
    """Return the image that a cell names, literally or as another spelling of its path; ``None`` if there is none."""
    spellings = (cell, cell.strip(), cell.strip().replace("\\", "/").removeprefix("./"))
    return next((name for name in spellings if name in images), None)


@dataclass(frozen=True)
class Check:
    """What is known about an image file.

    Attributes:
        name: of the file.
        reason: why it cannot be decoded; None if it can.
        digest: SHA-256 of its bytes.
        is_new: whether no earlier check of the file had the same result.
    """

    name: str
    reason: str | None
    digest: str
    is_new: bool = False


def check_files(
    files: Files, names: Sequence[str], others: Sequence[str], *, progress: Progress | None = None
) -> tuple[list[Check], bool]:
    """Check that image files can be decoded, reading only those that are new or have changed.

    Args:
        files: a folder or an archive.
        names: its images.
        others: files of it that are left out because of their format.
        progress: called with (files read, number of files to read).

    Returns:
        A check for each of ``names``, in order; and whether some of ``others`` were not there at the last check.
    """
    with _locked(files.path):
        before, others_before = _read_checks(files.path)
        start_ns = time.time_ns()
        stamps = files.stamps(names)
        known = {
            name: before[name][1]
            for name in names
            if name in before and before[name][0] is not None and before[name][0] == stamps[name]
        }
        unread = [name for name in names if name not in known]
        checks = dict(known)
        for done, check in enumerate(_check_new(files, unread), start=1):
            is_new = check.name not in before or before[check.name][1].reason != check.reason
            checks[check.name] = replace(check, is_new=is_new)
            if progress is not None and (done % REPORT_EVERY == 0 or done == len(unread)):
                progress(done, len(unread))
        if unread or before.keys() != set(names) or set(others) != set(others_before):
            trusted = {name: _settled(stamps[name], start_ns) for name in names}
            _write_checks(files.path, {name: (trusted[name], checks[name]) for name in names}, others)
    return [checks[name] for name in names], bool(set(others) - set(others_before))


def forget_checks() -> int:
    """Remove what is remembered about all folders and archives; return the number of bytes freed."""
    folder = cache_folder() / CHECKS_FOLDER
    if not folder.is_dir() or folder.is_symlink():
        return 0
    num_bytes = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    shutil.rmtree(folder)
    return num_bytes


def printable(name: str) -> str:
    """Return a file name with escapes for the bytes that are not UTF-8."""
    return name.encode(errors="backslashreplace").decode()


def _check_new(files: Files, names: Sequence[str]) -> Iterator[Check]:
    def check(item: tuple[str, bytes]) -> Check:
        name, content = item
        digest = hashlib.sha256(content).hexdigest()
        if name != printable(name):
            return Check(name, "its name is not UTF-8; rename it", digest)
        try:
            require_readable(content)
        except ValueError as error:
            return Check(name, str(error), digest)
        return Check(name, None, digest)

    return map_in_threads(check, files.read(list(names)), weigh=lambda item: len(item[1]))


def _settled(stamp: Stamp | None, start_ns: int) -> Stamp | None:
    """Return a stamp that can be trusted; None for a file that changed just before it was read."""
    return stamp if stamp is not None and stamp.newest < start_ns - FRESH_NS else None


def _checks_file(path: Path) -> Path:
    """Return the file for a folder or an archive."""
    digest = hashlib.sha256(str(path.resolve()).encode(errors="surrogateescape")).hexdigest()
    return cache_folder() / CHECKS_FOLDER / f"{digest[:16]}.json"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time check a folder; where the cache is not writable, nothing is remembered nor locked."""
    store = _checks_file(path)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            store.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(waiting_lock(store.with_suffix(".lock"), f"reading the images in {path}"))
        yield


def _read_checks(path: Path) -> tuple[dict[str, tuple[Stamp | None, Check]], list[str]]:
    """Return what is remembered: by name the stamp and the check of images, and the files of other formats.

    A damaged file, or one of another version, counts as none.
    """
    try:
        content = read_json(_checks_file(path))
        if content["made_with"] != _made_with():
            return {}, []
        images = {
            name: (
                None if stamp is None else Stamp(*map(int, stamp)),
                Check(name, None if reason is None else str(reason), str(digest)),
            )
            for name, (stamp, digest, reason) in content["images"].items()
        }
        return images, [str(name) for name in content["others"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, []


def _write_checks(path: Path, checks: Mapping[str, tuple[Stamp | None, Check]], others: Sequence[str]) -> None:
    content = {
        "made_with": _made_with(),
        "path": str(path.resolve()),
        "others": list(others),
        "images": {name: [stamp, check.digest, check.reason] for name, (stamp, check) in checks.items()},
    }
    with contextlib.suppress(OSError):  # as where the cache is not writable: then files are checked again
        write_bytes(_checks_file(path), json.dumps(content).encode())


def _made_with() -> dict[str, Any]:
    """Return the versions on which the results of checks depend."""
    return {"format": CHECKS_FORMAT, "pillow": PIL.__version__}
