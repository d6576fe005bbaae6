"""Images kept on disk: one folder an entry, whole or not there at all.

An entry holds ``images.u8`` (n · h · w · 3 bytes, memory-mapped when read), ``sources.npy`` where the sources are not a
full grid, ``files.json`` with the files' names where each image was one, and ``info.json`` with what made it and a
checksum. It is built under a name ending in ``.partial``, beside a count of the jobs done, so that an interrupted build
goes on where it stopped; when all is on disk, one rename makes it an entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import write_json, write_whole
from .._locks import try_lock
from .dataset import ORIGINS, SourceDataset

FORMAT = 1
PARTIAL = ".partial"
FILE_NAMES = "files.json"
KEY = re.compile(rf".+-({'|'.join(ORIGINS)})-[0-9]+-[0-9a-f]{{12}}")  # see `entry_key`

#: Fill `images` from job `first_job` on, calling ``job_done(jobs done, jobs in all)`` after each, in order.
Fill = Callable[[NDArray[np.uint8], int, Callable[[int, int], None]], None]


def cache_folder() -> Path:
    """Where entries are kept: ``$QLAE_CACHE``, else ``qlae`` in the user's cache folder."""
    if os.environ.get("QLAE_CACHE"):
        return Path(os.environ["QLAE_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qlae"


@dataclass(frozen=True)
class Entry:
    """A folder of the cache."""

    key: str
    path: Path
    whole: bool
    num_bytes: int

    @property
    def name(self) -> str:
        """Of the data set."""
        return self.key.rsplit("-", 3)[0]

    @property
    def resolution(self) -> int:
        """Of its images."""
        return int(self.key.rsplit("-", 3)[2])


def entries() -> list[Entry]:
    """All entries, also those not yet whole, by name. Whatever else lies in the folder is none of ours."""
    folder = cache_folder()
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if KEY.fullmatch(path.name.removesuffix(PARTIAL)) and path.is_dir() and not path.is_symlink():
            whole = (path / "info.json").is_file() and not path.name.endswith(PARTIAL)
            num_bytes = sum(f.stat().st_size for f in path.iterdir() if f.is_file())
            found.append(Entry(path.name.removesuffix(PARTIAL), path, whole, num_bytes))
    return found


def clear(name: str | None = None) -> int:
    """Remove the entries of a data set (of all by default); returns the bytes freed."""
    freed = 0
    for entry in entries():
        if name is None or name == entry.key or entry.name in (name, own_name(name)):
            with _only_builder(entry.key):
                freed += entry.num_bytes
                shutil.rmtree(entry.path)
    return freed


def own_name(text: str) -> str:
    """What images of one's own are kept as when they are called so: a name that any disk takes.

    >>> own_name("my cats & dogs"), own_name("été-2024")
    ('my_cats_dogs', 'été-2024')
    """
    return re.sub(r"[^\w.-]+", "_", text).strip("._-") or "images"


def entry_key(description: Mapping[str, Any]) -> str:
    """The name of the entry for a data set that describes itself so."""
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
    """The entry that was made from exactly this description, opened; ``None`` if there is none."""
    path = cache_folder() / entry_key(description)
    # Unlike `Path.is_file`, this takes a folder that may not be looked into for one without entries.
    return open_entry(path) if os.path.isfile(path / "info.json") else None


def named(name: str, resolution: int) -> SourceDataset | None:
    """Images of one's own that were kept under a name, opened; ``None`` if there are none.

    An error if there are several, or only at other resolutions.
    """
    kept = [entry for entry in entries() if entry.whole and entry.name == own_name(name)]
    found = [entry for entry in kept if entry.resolution == resolution]
    if kept and not found:
        sizes = sorted({entry.resolution for entry in kept})
        raise ValueError(
            f"{name} is kept at {' and '.join(f'{size}×{size}' for size in sizes)} pixels, not at {resolution}×"
            f"{resolution}: choose resolution {' or '.join(map(str, sizes))}, or prepare it again from its files"
        )
    if len(found) > 1:
        raise ValueError(
            f"{name} was prepared {len(found)} times from different files ({', '.join(e.key for e in found)}); "
            "remove those that are not meant with `qlae data clear`"
        )
    return open_entry(found[0].path) if found else None


def open_entry(path: Path, *, verify: bool = False) -> SourceDataset:
    """Open an entry; images stay on disk and are mapped into memory.

    Args:
        path: its folder.
        verify: read all images and compare their checksum. Lengths are compared in any case.
    """
    again = f"remove it with `qlae data clear` or by deleting {path}, and make it again"
    try:
        info = json.loads((path / "info.json").read_text())
        shape = (info["num_images"], info["resolution"], info["resolution"], 3)
        expected, length = int(np.prod(shape, dtype=np.int64)), (path / "images.u8").stat().st_size
        if info["format"] != FORMAT or expected != length:
            raise ValueError(f"its images take {length:,} bytes where {expected:,} are expected")
        if verify and checksum(path / "images.u8") != info["sha256"]:
            raise ValueError("its images do not have the checksum they were written with")
        sources = np.load(path / "sources.npy", allow_pickle=False) if info["has_sources"] else None
        facts = info["data"]
        known = ("name", "origin", "resolution", "num_images", "source_names", "source_sizes", "fixed")
        data = SourceDataset(
            np.memmap(path / "images.u8", dtype=np.uint8, mode="r", shape=shape),
            sources,
            name=facts["name"],
            origin=facts["origin"],
            source_names=facts["source_names"],
            source_sizes=facts["source_sizes"],
            fixed=facts.get("fixed"),
            details={k: v for k, v in facts.items() if k not in known},
        )
        if (path / FILE_NAMES).is_file():
            data.file_names = tuple(json.loads((path / FILE_NAMES).read_text()))
            if len(data.file_names) != len(data):
                raise ValueError(f"it names {len(data.file_names):,} files where {len(data):,} are expected")
        data.checksum = info["sha256"] if data.origin == "real" else None  # rendered images follow from their recipe
        return data
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"the cache entry {path.name} is damaged ({error}): {again}") from error


def build(
    data: Mapping[str, Any],
    fill: Fill,
    *,
    made_with: Mapping[str, Any],
    sources: NDArray[Any] | None = None,
    file_names: Sequence[str] | None = None,
) -> SourceDataset:
    """Make an entry, or go on with one begun before, and open it.

    Args:
        data: the description of the data set (``SourceDataset.describe``); it also names the entry.
        fill: writes the images.
        made_with: what the images depend on beside `data`; an entry begun with anything else is begun anew.
        sources: (n, n_s), where they are not the full grid.
        file_names: of each image, where each is a file.
    """
    key = entry_key(data)
    final, work = cache_folder() / key, cache_folder() / (key + PARTIAL)
    with _only_builder(key):
        if (final / "info.json").is_file():
            return open_entry(final)
        work.mkdir(parents=True, exist_ok=True)
        shape = (data["num_images"], data["resolution"], data["resolution"], 3)
        begun = json.dumps([FORMAT, dict(data), dict(made_with)], sort_keys=True)
        first_job = _jobs_done(work, begun, shape)
        with open(work / "images.u8", "r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)

        def job_done(done: int, total: int) -> None:
            if done == total or done % max(1, total // 100) == 0:
                _to_disk(mapped)
                write_json(work / "progress.json", {"begun": begun, "jobs_done": done})

        fill(np.frombuffer(mapped, dtype=np.uint8).reshape(shape), first_job, job_done)
        _to_disk(mapped)
        if sources is not None:
            write_whole(work / "sources.npy", lambda file: np.save(file, sources, allow_pickle=False))
        if file_names is not None:
            write_json(work / FILE_NAMES, list(file_names))
        info = {
            "format": FORMAT,
            "data": dict(data),
            "made_with": dict(made_with),
            "num_images": data["num_images"],
            "resolution": data["resolution"],
            "has_sources": sources is not None,
            "sha256": checksum(work / "images.u8"),
        }
        write_json(work / "info.json", info)
        (work / "progress.json").unlink(missing_ok=True)
        os.replace(work, final)
    return open_entry(final)


def _to_disk(mapped: mmap.mmap) -> None:
    """Write what was changed to disk, and let go of the memory it took: a set may be larger than all there is."""
    mapped.flush()
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _jobs_done(work: Path, begun: str, shape: tuple[int, ...]) -> int:
    """How many jobs of this very build are on disk; 0 after making room for a new one."""
    num_bytes = int(np.prod(shape, dtype=np.int64))
    try:
        progress = json.loads((work / "progress.json").read_text())
        if progress["begun"] == begun and (work / "images.u8").stat().st_size == num_bytes:
            return int(progress["jobs_done"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing begun, or nothing that can be trusted
    for name in ("progress.json", "images.u8"):
        (work / name).unlink(missing_ok=True)
    try:
        with open(work / "images.u8", "wb") as file:
            # Taking all room now turns a full disk into an error here, and not into a crash in the middle of a write.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)
            else:
                file.truncate(num_bytes)
    except OSError as error:
        shutil.rmtree(work, ignore_errors=True)
        free = shutil.disk_usage(work.parent).free
        raise OSError(
            error.errno,
            f"{num_bytes:,} bytes do not fit on the disk of {work.parent} ({free:,} are free): "
            f"make room, or set QLAE_CACHE to another folder",
        ) from error
    return 0


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _only_builder(key: str) -> Iterator[None]:
    """Hold the entry's lock; it is let go even if the process is killed. A second builder is refused."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f".{key}.lock", "w") as file:
            if not try_lock(file):
                raise ValueError(f"another process is at work on {folder / key}: wait for it to end")
            yield
    except PermissionError as error:
        raise ValueError(
            f"cannot write to the cache folder {folder}: set QLAE_CACHE to one you can write to"
        ) from error
