"""Files by name, from a folder, a zip or a tar: what the published PNG sets come in.

Nothing is ever extracted. An archive's members are read by name as a stream of bytes, so a member's path cannot lead
anywhere, and a member that claims to be small but is not is stopped at a limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import tarfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from .pictures import MAX_FILE_BYTES
from .streams import DAMAGE, explained


class Files(ABC):
    """Named files. Names are relative and use ``/``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all files, in the order in which reading them is cheapest."""

    @abstractmethod
    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """The named files and their bytes; `names` must be in the order of `names()`."""

    def read_one(self, name: str) -> bytes:
        """The bytes of one file."""
        return next(content for _, content in self.read([name]))


class FolderFiles(Files):
    """The files below a folder, but for those of runs, whose pictures are no data.

    Links to folders are not followed, so no loop can be walked.
    """

    def names(self) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self.path, followlinks=False):
            if Path(folder) != self.path and _is_run(Path(folder), files):
                folders.clear()
                continue
            found += [(Path(folder) / name).relative_to(self.path).as_posix() for name in files]
        return sorted(found)

    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            path = self.path / name
            content = b""
            # A link to nowhere, a pipe or a forbidden file reads as empty.
            with contextlib.suppress(OSError):
                if path.is_file():
                    with open(path, "rb") as file:
                        content = file.read(MAX_FILE_BYTES + 1)
            yield name, content


def _is_run(folder: Path, files: list[str]) -> bool:
    """Whether a folder is a run directory that has begun: by its files, and by what its config speaks of."""
    if "config.json" not in files or not {"log.jsonl", "checkpoint.json", "results.json"} & set(files):
        return False
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and {"model", "data", "latent", "network"} <= config.keys()


class ZipFiles(Files):
    """The members of a zip."""

    def names(self) -> list[str]:
        with explained(self.path), zipfile.ZipFile(self.path) as archive:
            return sorted(info.filename for info in archive.infolist() if not info.is_dir())

    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        with explained(self.path), zipfile.ZipFile(self.path) as archive:
            for name in names:
                with archive.open(name) as member:
                    yield name, member.read(MAX_FILE_BYTES + 1)


class TarFiles(Files):
    """The members of a tar, compressed or not. It has no index, so reading walks through all of it."""

    def names(self) -> list[str]:
        with _tar(self.path) as archive:
            return [member.name for member in archive if member.isfile()]

    def read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        wanted = set(names)
        with _tar(self.path) as archive:
            for member in archive:
                if not wanted:
                    return
                if member.name in wanted and member.isfile():
                    file = archive.extractfile(member)
                    assert file is not None
                    wanted.discard(member.name)
                    yield member.name, file.read(MAX_FILE_BYTES + 1)
        if wanted:
            raise ValueError(f"{self.path} ends before {min(wanted)}: download or copy it again")


@contextlib.contextmanager
def _tar(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, "r|*") as archive:
            yield archive
    except (tarfile.TarError, OSError, *DAMAGE) as error:
        raise ValueError(f"{path} is damaged or not complete ({error}): download or copy it again") from error


def open_files(path: Path) -> Files:
    """The files below a folder, or in a zip or tar."""
    if path.is_dir():
        return FolderFiles(path)
    with explained(path):
        if zipfile.is_zipfile(path):
            return ZipFiles(path)
        if _is_tar(path):
            return TarFiles(path)
    raise ValueError(f"{path} is neither a folder nor a zip or tar archive")


def _is_tar(path: Path) -> bool:
    try:
        return tarfile.is_tarfile(path)
    except (OSError, *DAMAGE):
        return False
