"""The image cache on disk: one folder per entry, complete or absent. ``ImageSet`` writes images from files to it.

An entry holds ``images.u8`` (n · h · w · c bytes, memory-mapped when read), ``sources.npy`` if the sources are not a
full grid, ``files.json`` with the file names if each image was a file, ``left_out.json`` with the names of files that
could not be read, and ``info.json`` with a description of the data and a checksum. An entry is built in a folder whose
name ends in ``.partial``, next to a count of finished jobs, so that an interrupted build resumes where it stopped. Once
everything is on disk, one rename makes it an entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io import (
    create_new,
    open_own,
    open_regular,
    read_json,
    read_npy,
    read_regular,
    require_regular,
    waiting_lock,
    write_json,
    write_whole,
)
from .dataset import ORIGINS, Progress, SourceDataset
from .pictures import GREY, PictureSize, picture_size
from .sources import SOURCES, level_table

FORMAT = 1
BATCH = 200  # images that are resized and written at once
PARTIAL = ".partial"
FILE_NAMES = "files.json"
LEFT_OUT = "left_out.json"
KEY = re.compile(rf".+-({'|'.join(ORIGINS)})-([0-9]+(?:x[0-9]+){{0,2}})-[0-9a-f]{{12}}")  # see `entry_key`

#: ``fill(images, first_job, job_done)`` writes `images` from job `first_job` on, and calls
#: ``job_done(jobs done, number of jobs)`` after each job, in order.
Fill = Callable[[NDArray[np.uint8], int, Callable[[int, int], None]], None]


def cache_folder() -> Path:
    """Return the folder of all entries: ``$QLAE_CACHE``, else ``qlae`` in the user's cache folder."""
    if os.environ.get("QLAE_CACHE"):
        return Path(os.environ["QLAE_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qlae"


@dataclass(frozen=True)
class Entry:
    """A folder of the cache.

    Attributes:
        key: name, origin, resolution and a digest of the description. See `entry_key`.
        path: the folder.
        is_complete: whether the entry can be read; otherwise its build was interrupted or is under way.
        num_bytes: the size of its files.
    """

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


def entries() -> list[Entry]:
    """Return all entries, also incomplete ones, sorted by name. Other content of the folder is ignored."""
    folder = cache_folder()
    listing = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if KEY.fullmatch(path.name.removesuffix(PARTIAL)) and path.is_dir() and not path.is_symlink():
            is_complete = (path / "info.json").is_file() and not path.name.endswith(PARTIAL)
            num_bytes = sum(f.stat().st_size for f in path.iterdir() if f.is_file())
            listing.append(Entry(path.name.removesuffix(PARTIAL), path, is_complete, num_bytes))
    return listing


def clear(name: str | None = None) -> int:
    """Remove entries.

    Args:
        name: a data set or the key of one entry; ``None`` for all entries.

    Returns:
        The number of bytes freed.
    """
    num_bytes = 0
    for entry in entries():
        if name is None or name == entry.key or entry.name in (name, safe_name(name)):
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
    """Return what distinguishes a file from another of the same name, without reading it."""
    state = path.stat()
    return {"path": str(path.resolve()), "bytes": state.st_size, "modified_ns": state.st_mtime_ns}


def entry_key(description: Mapping[str, Any]) -> str:
    """Return the key of the entry for a data set with this description."""
    text = json.dumps(description, sort_keys=True)
    return "-".join(
        [
            str(description["name"]),
            str(description["origin"]),
            str(description["resolution"]),
            hashlib.sha256(text.encode()).hexdigest()[:12],
        ]
    )


def find(description: Mapping[str, Any]) -> SourceDataset | None:
    """Open the entry with exactly this description; ``None`` if there is none."""
    path = cache_folder() / entry_key(description)
    # Unlike `Path.is_file`, `os.path.isfile` is false, not an error, in a folder that may not be searched.
    return open_entry(path) if os.path.isfile(path / "info.json") else None


def has_name(name: str) -> bool:
    """Return whether images of a name are prepared, or are being prepared, in any size."""
    return any(entry.name == safe_name(name) for entry in entries())


def find_by_name(name: str, size: PictureSize) -> SourceDataset | None:
    """Open the user's images that were prepared under a name; ``None`` if there are none.

    Raises:
        ValueError: several entries have this name, or it exists in other sizes only.
    """
    for entry in entries():
        if not entry.is_complete and entry.name == safe_name(name):
            with _lock_entry(entry.key, f"preparing {name}"):  # which waits until it is complete, or interrupted
                pass
    candidates = [entry for entry in entries() if entry.is_complete and entry.name == safe_name(name)]
    matches = [entry for entry in candidates if entry.size == size]
    if candidates and not matches:
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
    return open_entry(matches[0].path) if matches else None


def open_entry(path: Path, *, verify: bool = False) -> SourceDataset:
    """Open an entry. Images stay on disk and are mapped into memory.

    Args:
        path: its folder.
        verify: read all images and compare their checksum. Lengths are always compared.

    Raises:
        ValueError: the entry is damaged.
    """
    try:
        return _read_entry(path, verify=verify)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(
            f"the cache entry {path.name} is damaged ({error}): "
            f"remove it with `qlae data clear` or by deleting {path}, then create it again"
        ) from error


def _read_entry(path: Path, *, verify: bool) -> SourceDataset:
    info = read_json(path / "info.json")
    require_regular(path / "images.u8")
    shape = (info["num_images"], *picture_size(info["resolution"]).shape)
    expected, length = int(np.prod(shape, dtype=np.int64)), (path / "images.u8").stat().st_size
    if info["format"] != FORMAT or expected != length:
        raise ValueError(f"its images take {length:,} bytes, expected {expected:,}")
    if verify and checksum(path / "images.u8") != info["sha256"]:
        raise ValueError("its images do not have the checksum they were written with")
    facts = info["data"]
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
    if (path / FILE_NAMES).is_file():
        data.file_names = _read_file_names(path / FILE_NAMES)
        if len(data.file_names) != len(data):
            raise ValueError(f"it names {len(data.file_names):,} files, expected {len(data):,}")
    if (path / LEFT_OUT).is_file():
        data.left_out = {str(name): str(reason) for name, reason in read_json(path / LEFT_OUT).items()}
    data.checksum = info["sha256"] if data.origin == "real" else None  # the recipe determines rendered images
    return data


def _read_file_names(path: Path) -> tuple[str, ...]:
    """Return the names of the image files, which are relative and stay below their folder."""
    names = json.loads(read_regular(path))
    if not isinstance(names, list) or not all(isinstance(name, str) and is_below(name) for name in names):
        raise ValueError(f"{path.name} must list relative paths of files")
    return tuple(names)


def is_below(name: str) -> bool:
    """Return whether a relative path, with ``/``, stays below the folder that it is relative to.

    >>> is_below("a/b.png"), is_below("../b.png"), is_below("/b.png")
    (True, False, False)
    """
    parts = name.split("/")
    return bool(name) and "\0" not in name and not any(part in ("", "..") for part in parts)


def build(
    data: Mapping[str, Any],
    fill: Fill,
    *,
    made_with: Mapping[str, Any],
    sources: NDArray[Any] | None = None,
    file_names: Sequence[str] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> SourceDataset:
    """Build an entry, or resume an interrupted build, and open the entry.

    If another process is building it, wait for that one.

    Args:
        data: the description of the data set (``SourceDataset.describe``), which determines the key of the entry.
        fill: writes the images.
        made_with: what else the images depend on. A build that began with anything else starts over.
        sources: (n, n_s); ``None`` for the full grid.
        file_names: the name of each image, if each is a file.
        left_out: files that are not among them, and why.
    """
    key = entry_key(data)
    final, partial = cache_folder() / key, cache_folder() / (key + PARTIAL)
    task = f"{'rendering' if data['origin'] == 'rendered' else 'preparing'} {data['name']}"
    with _lock_entry(key, task):
        if (final / "info.json").is_file():
            return open_entry(final)
        if partial.is_symlink():
            raise ValueError(f"{partial} is a symbolic link, which would lead outside the cache; remove it")
        partial.mkdir(parents=True, exist_ok=True)
        _write_images(partial, data, fill, made_with)
        if sources is not None:
            write_whole(partial / "sources.npy", lambda file: np.save(file, sources, allow_pickle=False))
        if file_names is not None:
            write_json(partial / FILE_NAMES, list(file_names))
        if left_out:
            write_json(partial / LEFT_OUT, dict(left_out))
        info = {
            "format": FORMAT,
            "data": dict(data),
            "made_with": dict(made_with),
            "num_images": data["num_images"],
            "resolution": data["resolution"],
            "has_sources": sources is not None,
            "sha256": checksum(partial / "images.u8"),
        }
        write_json(partial / "info.json", info)
        (partial / "progress.json").unlink(missing_ok=True)
        os.replace(partial, final)
    return open_entry(final)


def _write_images(partial: Path, data: Mapping[str, Any], fill: Fill, made_with: Mapping[str, Any]) -> None:
    """Write ``images.u8`` of a partial entry, without the jobs that an earlier build finished."""
    shape = (data["num_images"], *picture_size(data["resolution"]).shape)
    identity = json.dumps([FORMAT, dict(data), dict(made_with)], sort_keys=True)
    first_job = _first_job(partial, identity, shape)
    with open_own(partial / "images.u8") as file:
        memory = mmap.mmap(file.fileno(), 0)

    def job_done(done: int, total: int) -> None:
        if done == total or done % max(1, total // 100) == 0:
            _flush(memory)
            write_json(partial / "progress.json", _progress(identity, done))

    fill(np.frombuffer(memory, dtype=np.uint8).reshape(shape), first_job, job_done)
    _flush(memory)


def _progress(identity: str, jobs_done: Any) -> dict[str, Any]:
    """Return the content of ``progress.json``; its checksum tells a damaged count."""
    digest = hashlib.sha256(f"{jobs_done} of {identity}".encode()).hexdigest()
    return {"begun": identity, "jobs_done": jobs_done, "sha256": digest}


def _flush(memory: mmap.mmap) -> None:
    """Write changes to disk and release the memory they took: a data set may be larger than the memory."""
    memory.flush()
    if hasattr(mmap, "MADV_DONTNEED"):
        memory.madvise(mmap.MADV_DONTNEED)


def _first_job(partial: Path, identity: str, shape: tuple[int, ...]) -> int:
    """Return the job at which a build resumes; a new build begins at 0, with its disk space allocated."""
    num_bytes = int(np.prod(shape, dtype=np.int64))
    try:
        progress = read_json(partial / "progress.json")
        done = progress["jobs_done"]
        if progress == _progress(identity, done) and (partial / "images.u8").stat().st_size == num_bytes:
            return int(done)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is no earlier build, or it cannot be trusted
    for name in ("progress.json", "images.u8"):
        (partial / name).unlink(missing_ok=True)
    try:
        with create_new(partial / "images.u8") as file:
            # With all space allocated now, a full disk is an error here and not a crash in the middle of a write.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)
            else:
                file.truncate(num_bytes)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        free = shutil.disk_usage(partial.parent).free
        raise OSError(
            error.errno,
            f"{num_bytes:,} bytes do not fit on the disk of {partial.parent} ({free:,} are free): "
            f"make room, or set QLAE_CACHE to another folder",
        ) from error
    return 0


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _lock_entry(key: str, task: str, *, wait: bool = True) -> Iterator[None]:
    """Hold an entry's lock, which is released even if the process is killed.

    Args:
        key: of the entry.
        task: what the holder does, for processes that wait.
        wait: raise an error instead of waiting if False.

    Raises:
        ValueError: another process holds the lock and `wait` is False, or the cache folder is not writable.
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with waiting_lock(folder / f".{key}.lock", task, wait=wait):
            yield
    except PermissionError as error:
        raise ValueError(
            f"cannot write to the cache folder {folder}: set QLAE_CACHE to a folder you can write to"
        ) from error


#: ``batches(size, first)`` yields uint8 images (k, h, w, c) of a size from row `first` on.
Batches = Callable[[PictureSize, int], Iterator[NDArray[np.uint8]]]


@dataclass(frozen=True)
class ImageSet:
    """Images in files.

    Attributes:
        name: the data set's name.
        num_images: n.
        source_names, source_sizes: names and numbers of values of the n_s known sources.
        sources: (n, n_s); ``None`` if the images are the full grid in row-major order.
        batches: reads the images in batches of `batch_size`; the last may be smaller.
        batch_size: images per batch.
        fingerprint: what distinguishes these files from others (path, size, time), fit for JSON.
        details: further facts for `SourceDataset.describe`.
        file_names: the name of each image, where each is a file.
        left_out: files that are no images that can be read, and why.
        origin: ``"rendered"`` if the file says so, as those of `qlae data render` do.
    """

    name: str
    num_images: int
    source_names: Sequence[str]
    source_sizes: Sequence[int]
    sources: NDArray[Any] | None
    batches: Batches
    batch_size: int
    fingerprint: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    file_names: Sequence[str] | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    origin: str = "real"

    @staticmethod
    def with_columns(
        name: str,
        num_images: int,
        columns: Mapping[str, Sequence[Any]],
        batches: Batches,
        fingerprint: Mapping[str, Any],
        **options: Any,
    ) -> ImageSet:
        """Return images with columns of sources, whose values become levels; see the class for the arguments."""
        table = level_table(columns, num_images)
        if table.size:
            digest = hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()
            fingerprint = {**fingerprint, "sources": digest}
        sizes = [len(np.unique(column)) for column in table.T]
        return ImageSet(
            name=name,
            num_images=num_images,
            source_names=list(columns),
            source_sizes=sizes,
            sources=table,
            batches=batches,
            batch_size=BATCH,
            fingerprint=fingerprint,
            **options,
        )

    def describe(self, size: PictureSize) -> dict[str, Any]:
        """Return the description by which the cache knows the images in a size."""
        return {
            "name": self.name,
            "origin": self.origin,
            "resolution": size.plain,
            "num_images": self.num_images,
            "source_names": list(self.source_names),
            "source_sizes": [int(size) for size in self.source_sizes],
            "files": dict(self.fingerprint),
        } | dict(self.details)

    def prepare(self, size: int | PictureSize, *, progress: Progress | None = None) -> SourceDataset:
        """Resample all images into the cache in one pass, or find them there."""
        size = picture_size(size)
        data = find(self.describe(size)) or self._build(size, progress)
        data.file_names = None if self.file_names is None else tuple(self.file_names)
        data.left_out = dict(self.left_out)
        return data

    def _build(self, size: PictureSize, progress: Progress | None) -> SourceDataset:

        def fill(images: NDArray[np.uint8], first_job: int, job_done: Callable[[int, int], None]) -> None:
            done = min(first_job * self.batch_size, self.num_images)
            num_jobs = math.ceil(self.num_images / self.batch_size)
            for job, batch in enumerate(self.batches(size, done), start=first_job + 1):
                if len(batch) != min(self.batch_size, self.num_images - done):
                    raise ValueError(f"{self.name}: the files do not hold the {self.num_images:,} images announced")
                images[done : done + len(batch)] = batch
                done += len(batch)
                job_done(job, num_jobs)
                if progress is not None:
                    progress(done, self.num_images)
            if done != self.num_images:
                raise ValueError(f"{self.name}: the files hold {done:,} of the {self.num_images:,} images announced")

        description = self.describe(size)
        return build(
            description, fill, made_with={}, sources=self.sources, file_names=self.file_names, left_out=self.left_out
        )
