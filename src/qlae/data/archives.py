"""Files by name, from a folder, a zip or a tar: the forms in which the published PNG sets come.

Nothing is ever extracted. The members of an archive are read by name as a stream of bytes, so a member's path cannot
lead anywhere, and reading stops at a limit, whatever size a member claims to have.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import tarfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from .._io import DAMAGE, explain_damage, open_regular, read_json, require_regular
from .array_files import COPY_AGAIN, open_zip
from .pictures import MAX_FILE_BYTES


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


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        state = path.stat()
    except OSError:  # a link to nowhere
        return ()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _is_run(folder: Path, files: list[str]) -> bool:
    """Return whether a folder is a run directory whose training has begun, judging by its files and its config."""
    if "config.json" not in files or not {"log.jsonl", "checkpoint.json", "results.json"} & set(files):
        return False
    try:
        return {"model", "data", "latent"} <= read_json(folder / "config.json").keys()
    except (OSError, ValueError):
        return False


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
