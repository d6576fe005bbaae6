"""The image cache on disk: one folder per entry, complete or absent. ``ImageSet`` prepares image files in it.

An entry holds ``images.u8`` (n · h · w · c bytes, memory-mapped when read), ``sources.npy`` if the sources are not a
full grid, ``files.json`` with the file names if each image was a file, ``left_out.json`` with the names of files that
could not be read, and ``info.json`` with a description of the data and a checksum. It is written in a folder whose name
ends in ``.partial``, which one rename makes an entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._io import (
    create_new,
    open_regular,
    read_json,
    read_npy,
    read_regular,
    require_regular,
    waiting_lock,
    write_json,
    write_whole,
)
from .._parsing import decode_json, parse
from .dataset import ORIGINS, Progress, SourceDataset
from .pictures import GREY, PictureSize, picture_size
from .sources import SOURCES, level_table, named_columns

FORMAT = 1
PARTIAL = ".partial"
KEY = re.compile(rf".+-({'|'.join(ORIGINS)})-([0-9]+(?:x[0-9]+){{0,2}})-[0-9a-f]{{12}}")  # see `entry_key`


def cache_folder() -> Path:
    """Return the folder of all entries: ``$QLAE_CACHE``, else ``qlae`` in the user's cache folder."""
    if os.environ.get("QLAE_CACHE"):
        return Path(os.environ["QLAE_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qlae"


@dataclass(frozen=True)
class Entry:
    """A folder of the cache, which `entry_key` names; one that is not complete was interrupted or is being written."""

    key: str
    path: Path
    is_complete: bool
    num_bytes: int

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.key.rsplit("-", 3)[0]

    @property
    def size(self) -> PictureSize:
        """Height, width and channels of the images."""
        return picture_size(self.key.rsplit("-", 3)[2])


def entries(name: str | None = None) -> list[Entry]:
    """Return the entries of a data set, or all, also incomplete ones, sorted by name; other folders are ignored."""
    folder = cache_folder()
    listing = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        key = path.name.removesuffix(PARTIAL)
        if KEY.fullmatch(key) and path.is_dir() and not path.is_symlink():
            is_complete = (path / "info.json").is_file() and not path.name.endswith(PARTIAL)
            num_bytes = sum(f.stat().st_size for f in path.iterdir() if f.is_file())
            listing.append(Entry(key, path, is_complete, num_bytes))
    return [entry for entry in listing if name is None or entry.name in (name, safe_name(name))]


def clear(name: str | None = None) -> int:
    """Remove the entries of a data set, one entry by its key, or all; return the number of bytes freed."""
    num_bytes = 0
    for entry in entries():
        if name is None or name in (entry.key, entry.name) or safe_name(name) == entry.name:
            with _lock_entry(entry.key, f"writing {entry.key}", wait=False):
                num_bytes += entry.num_bytes
                shutil.rmtree(entry.path)
    return num_bytes


def safe_name(text: str) -> str:
    """Return the name under which a user's images are cached: the text without what a file system may refuse.

    >>> safe_name("my cats & dogs"), safe_name("été-2024")
    ('my_cats_dogs', 'été-2024')
    """
    return re.sub(r"[^\w.-]+", "_", text).strip("._-") or "images"


def name_of_files(path: str | Path, name: str = "") -> str:
    """Return the name of the data set in a file or folder: the one that the user chose, else that of the file."""
    path = Path(path)
    name = safe_name(name or (path.name if path.is_dir() else path.name.partition(".")[0]) or path.name)
    return f"own_{name}" if name in SOURCES else name  # which would be taken for the published data


def file_fingerprint(path: Path) -> dict[str, Any]:
    """Return facts that distinguish a file from another of the same name, without reading it."""
    state = path.stat()
    return {"path": str(path.resolve()), "bytes": state.st_size, "modified_ns": state.st_mtime_ns}


def entry_key(description: Mapping[str, Any]) -> str:
    """Return the key of the entry for a data set with this description."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
    return "-".join([*(str(description[fact]) for fact in ("name", "origin", "resolution")), digest[:12]])


def find(description: Mapping[str, Any]) -> SourceDataset | None:
    """Open the entry with exactly this description; ``None`` if there is none."""
    path = cache_folder() / entry_key(description)
    # Unlike `Path.is_file`, `os.path.isfile` is false, not an error, in a folder that may not be searched.
    return open_entry(path) if os.path.isfile(path / "info.json") else None


def find_by_name(name: str, size: PictureSize) -> SourceDataset:
    """Open the user's images that were prepared under a name: one complete entry must have this name and size."""
    candidates = [entry for entry in entries(name) if entry.is_complete]
    if not candidates:
        raise ValueError(f"there are no prepared images of the name {name!r}; prepare them again")
    matches = [entry for entry in candidates if entry.size == size]
    if not matches:
        sizes = sorted({entry.size for entry in candidates}, key=lambda other: other.shape)
        choices = [f"{str(s.plain).removesuffix('x1')}{' and grey' * (s.channels == GREY)}" for s in sizes]
        raise ValueError(
            f"{name} was prepared at {' and '.join(map(str, sizes))} pixels, not at {size}: choose resolution "
            f"{' or '.join(choices)}, or prepare it again from its files"
        )
    if len(matches) > 1:
        raise ValueError(
            f"{name} was prepared {len(matches)} times from different files ({', '.join(e.key for e in matches)}): "
            "remove the wrong ones with `qlae data clear`"
        )
    return open_entry(matches[0].path)


def open_entry(path: Path) -> SourceDataset:
    """Open an entry by its folder. Images stay on disk and are mapped into memory."""
    try:
        return _read_entry(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(
            f"the cache entry {path.name} is damaged ({error}): "
            f"remove it with `qlae data clear` or by deleting {path}, then create it again"
        ) from error


def _read_entry(path: Path) -> SourceDataset:
    info = read_json(path / "info.json")
    facts = info["data"]
    require_regular(path / "images.u8")
    shape = (facts["num_images"], *picture_size(facts["resolution"]).shape)
    expected, length = math.prod(shape), (path / "images.u8").stat().st_size
    if info["format"] != FORMAT or expected != length:
        raise ValueError(f"its images take {length:,} bytes, expected {expected:,}")
    standard = ("name", "origin", "resolution", "num_images", "source_names", "source_sizes", "fixed")
    data = SourceDataset(
        np.memmap(path / "images.u8", dtype=np.uint8, mode="r", shape=shape),
        read_npy(path / "sources.npy") if info["has_sources"] else None,
        name=facts["name"],
        origin=facts["origin"],
        source_names=facts["source_names"],
        source_sizes=facts["source_sizes"],
        fixed=facts.get("fixed"),
        details={k: v for k, v in facts.items() if k not in standard},
    )
    if (path / "files.json").is_file():
        data.file_names = tuple(parse(decode_json(read_regular(path / "files.json")), list[str], "files.json"))
        if not all(map(_is_below, data.file_names)) or len(data.file_names) != len(data):
            raise ValueError(f"files.json must list {len(data):,} relative paths of files")
    if (path / "left_out.json").is_file():
        data.left_out = {str(name): str(reason) for name, reason in read_json(path / "left_out.json").items()}
    data.checksum = info["sha256"] if data.origin == "real" else None  # the recipe determines rendered images
    return data


def _is_below(name: str) -> bool:
    """Return whether a relative path, with ``/``, stays below the folder that it is relative to."""
    parts = name.split("/")
    return bool(name) and "\0" not in name and not any(part in ("", "..") for part in parts)


class Content(NamedTuple):
    """The content of an entry besides its images; `sources` are None for the full grid."""

    facts: dict[str, Any]
    sources: NDArray[Any] | None = None
    file_names: Sequence[str] | None = None
    left_out: Mapping[str, str] | None = None


def build(description: Mapping[str, Any], fill: Callable[[NDArray[np.uint8]], Content]) -> SourceDataset:
    """Write an entry and open it. If another process is writing it, wait for that one.

    `fill` writes images (n, h, w, c), all or the first of them, and returns what else belongs to the entry.
    """
    key = entry_key(description)
    final, partial = cache_folder() / key, cache_folder() / (key + PARTIAL)
    task = f"{'rendering' if description['origin'] == 'rendered' else 'preparing'} {description['name']}"
    with _lock_entry(key, task):
        if not (final / "info.json").is_file():
            if partial.is_symlink():
                raise ValueError(f"{partial} is a symbolic link, which would lead outside the cache; remove it")
            shutil.rmtree(partial, ignore_errors=True)
            try:
                _write_entry(partial, description, fill)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
            os.replace(partial, final)
    return open_entry(final)


def _write_entry(folder: Path, description: Mapping[str, Any], fill: Callable[[NDArray[np.uint8]], Content]) -> None:
    folder.mkdir(parents=True)
    path = folder / "images.u8"
    shape = (description["num_images"], *picture_size(description["resolution"]).shape)
    _allocate(path, math.prod(shape))
    images = np.memmap(path, np.uint8, "r+", shape=shape)
    content = fill(images)
    images.flush()
    del images
    os.truncate(path, content.facts["num_images"] * math.prod(shape[1:]))
    if (sources := content.sources) is not None:
        write_whole(folder / "sources.npy", lambda file: np.save(file, sources, allow_pickle=False))
    if content.file_names is not None:
        write_json(folder / "files.json", list(content.file_names))
    if content.left_out:
        write_json(folder / "left_out.json", dict(content.left_out))
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    info = {"format": FORMAT, "data": content.facts, "has_sources": sources is not None, "sha256": digest}
    write_json(folder / "info.json", info)


def _allocate(path: Path, num_bytes: int) -> None:
    """Create a file with all its space, so that a full disk is an error here and not a crash in the middle."""
    try:
        with create_new(path) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)
            else:
                file.truncate(num_bytes)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{num_bytes:,} bytes do not fit on the disk of {path.parent.parent}: make room, or set QLAE_CACHE to "
            "another folder",
        ) from error


@contextlib.contextmanager
def _lock_entry(key: str, task: str, *, wait: bool = True) -> Iterator[None]:
    """Hold an entry's lock; `task` is what the holder does, for processes that wait (see `waiting_lock`)."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with waiting_lock(folder / f".{key}.lock", task, wait=wait):
            yield
    except PermissionError as error:
        raise ValueError(
            f"cannot write to the cache folder {folder}: set QLAE_CACHE to a folder you can write to"
        ) from error


@dataclass(frozen=True, kw_only=True)
class ImageSet:
    """Images in files, which are prepared in the cache in any size.

    Attributes:
        name: the data set's name.
        num_images: n.
        read: ``read(size)`` yields uint8 images (k, h, w, c), in order, or the reason why one row cannot be read.
        fingerprint: facts that distinguish these files from others (path, size, time), fit for JSON.
        source_names: the names of the n_s known sources.
        sources: (n, n_s) levels; ``None`` if the images are the full grid in row-major order.
        source_sizes: the numbers of values; counted if they are not given.
        file_names: the name of each image, where each is a file.
        unread: files that are no images, and why.
        origin: ``"rendered"`` if the file says so, as those of `qlae data render` do.
    """

    name: str
    num_images: int
    read: Callable[[PictureSize], Iterator[NDArray[np.uint8] | ValueError]]
    fingerprint: Mapping[str, Any]
    source_names: Sequence[str] = ()
    sources: NDArray[Any] | None = None
    source_sizes: Sequence[int] = ()
    file_names: Sequence[str] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    origin: str = "real"

    def prepare(self, size: PictureSize, *, progress: Progress | None = None) -> SourceDataset:
        """Resample all images into the cache in one pass, or find them there."""
        files = dict(self.fingerprint)
        if self.sources is not None and self.sources.size:
            files["sources"] = hashlib.sha256(np.ascontiguousarray(self.sources).tobytes()).hexdigest()
        description = {
            "name": self.name,
            "origin": self.origin,
            "resolution": size.plain,
            "num_images": self.num_images,
            "source_names": list(self.source_names),
            "source_sizes": list(self.source_sizes) or _num_values(self.sources),
            "files": files,
        }
        return find(description) or build(description, lambda images: self._fill(images, size, description, progress))

    def _fill(
        self, images: NDArray[np.uint8], size: PictureSize, facts: dict[str, Any], progress: Progress | None
    ) -> Content:
        left_out: dict[int, str] = {}
        done = 0
        for batch in self.read(size):
            if isinstance(batch, ValueError):
                left_out[done + len(left_out)] = str(batch)
                continue
            images[done : done + len(batch)] = batch
            done += len(batch)
            if progress is not None:
                progress(done + len(left_out), self.num_images)
        if done + len(left_out) != self.num_images:
            raise ValueError(f"{self.name}: the files hold {done:,} of the {self.num_images:,} images announced")
        if not left_out:
            return Content(facts, self.sources, self.file_names or None, self.unread)
        return self._without(left_out, facts)

    def _without(self, left_out: dict[int, str], facts: dict[str, Any]) -> Content:
        """Return the content of an entry without some of the files; warn about these."""
        kept = [row for row in range(self.num_images) if row not in left_out]
        reasons = {self.file_names[row]: reason for row, reason in left_out.items()}
        failures = [f"{name} ({reason})" for name, reason in reasons.items()]
        place = self.fingerprint["path"]
        if not kept:
            raise ValueError(f"none of the {len(failures)} images in {place} can be read, such as {failures[0]}")
        warnings.warn(
            f"{len(failures):,} of {self.num_images:,} images in {place} are left out: {', '.join(failures[:3])}"
            f"{', …' * (len(failures) > 3)}. A run lists all of them in left_out.json",
            stacklevel=2,
        )
        sources = self.sources
        if sources is not None:
            sources = level_table(named_columns(sources[kept], self.source_names), len(kept))
        facts = facts | {"num_images": len(kept), "source_sizes": _num_values(sources)}
        return Content(facts, sources, [self.file_names[row] for row in kept], reasons | dict(self.unread))


def _num_values(sources: NDArray[Any] | None) -> list[int]:
    return [] if sources is None else [len(np.unique(column)) for column in sources.T]
