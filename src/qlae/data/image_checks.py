"""Check image files, and remember the results, so that files that have not changed are not read again.

For each folder or archive there is a JSON file in ``checked`` in the cache folder. It holds for each image its size and
times, a digest of its bytes, and the reason if it cannot be decoded. A file whose size or times differ is read again,
and so is one that changed less than two seconds before it was read: it may have changed again within the resolution of
the clock. Its result is remembered all the same, so that nothing is reported twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import PIL

from .._io import read_json, waiting_lock, write_bytes
from .archives import Files, Stamp
from .cache import cache_folder
from .dataset import Progress
from .pictures import map_in_threads, require_readable

FORMAT = 1
FOLDER = "checked"
FRESH_NS = 2 * 10**9
REPORT_EVERY = 200  # files between two calls of a progress callback


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
        before, others_before = _read(files.path)
        start_ns = time.time_ns()
        stamps = files.stamps(names)
        known = {
            name: before[name][1]
            for name in names
            if name in before and before[name][0] is not None and before[name][0] == stamps[name]
        }
        unread = [name for name in names if name not in known]
        checks = dict(known)
        for done, check in enumerate(_read_and_check(files, unread), start=1):
            is_new = check.name not in before or before[check.name][1].reason != check.reason
            checks[check.name] = replace(check, is_new=is_new)
            if progress is not None and (done % REPORT_EVERY == 0 or done == len(unread)):
                progress(done, len(unread))
        if unread or before.keys() != set(names) or set(others) != set(others_before):
            trusted = {name: _settled(stamps[name], start_ns) for name in names}
            _write(files.path, {name: (trusted[name], checks[name]) for name in names}, others)
    return [checks[name] for name in names], bool(set(others) - set(others_before))


def forget_checks() -> int:
    """Remove what is remembered about all folders and archives; return the number of bytes freed."""
    folder = cache_folder() / FOLDER
    if not folder.is_dir() or folder.is_symlink():
        return 0
    num_bytes = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    shutil.rmtree(folder)
    return num_bytes


def printable(name: str) -> str:
    """Return a file name with escapes for the bytes that are not UTF-8."""
    return name.encode(errors="backslashreplace").decode()


def _read_and_check(files: Files, names: Sequence[str]) -> Iterator[Check]:
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


def _store(path: Path) -> Path:
    """Return the file for a folder or an archive."""
    digest = hashlib.sha256(str(path.resolve()).encode(errors="surrogateescape")).hexdigest()
    return cache_folder() / FOLDER / f"{digest[:16]}.json"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time check a folder; where the cache is not writable, nothing is remembered nor locked."""
    store = _store(path)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            store.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(waiting_lock(store.with_suffix(".lock"), f"reading the images in {path}"))
        yield


def _read(path: Path) -> tuple[dict[str, tuple[Stamp | None, Check]], list[str]]:
    """Return what is remembered: by name the stamp and the check of images, and the files of other formats.

    A damaged file, or one of another version, counts as none.
    """
    try:
        content = read_json(_store(path))
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


def _write(path: Path, checks: Mapping[str, tuple[Stamp | None, Check]], others: Sequence[str]) -> None:
    content = {
        "made_with": _made_with(),
        "path": str(path.resolve()),
        "others": list(others),
        "images": {name: [stamp, check.digest, check.reason] for name, (stamp, check) in checks.items()},
    }
    with contextlib.suppress(OSError):  # as where the cache is not writable: then files are checked again
        write_bytes(_store(path), json.dumps(content).encode())


def _made_with() -> dict[str, Any]:
    """Return the versions on which the results of checks depend."""
    return {"format": FORMAT, "pillow": PIL.__version__}
