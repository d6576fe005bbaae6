"""Downloads of the published files whose public address is known.

An interrupted download resumes where it stopped. The file gets its final name only after its checksum, where one is
known, has been verified. Nothing else needs these files: every scene can be rendered instead.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from .._checks import require_known
from .._io import open_own, open_regular, read_json, write_json
from .dataset import Progress

BLOCK = 2**20
SECONDS_OF_SILENCE = 60


@dataclass(frozen=True)
class PublishedFile:
    """The address of a file, and its MD5 if known, which detects damage but not forgery."""

    url: str
    md5: str | None = None


_MPI3D = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset"
#: What can be downloaded. The everyday objects of MPI3D, Falcor3D and Isaac3D have no permanent address.
PUBLISHED_FILES = {
    "shapes3d": PublishedFile(
        "https://storage.googleapis.com/3d-shapes/3dshapes.h5", "099a2078d58cec4daad0702c55d06868"
    ),
    "mpi3d-toy": PublishedFile(f"{_MPI3D}/mpi3d_toy.npz", "55889cb7c7dfc655d6e0277beee88868"),
    "mpi3d-realistic": PublishedFile(f"{_MPI3D}/mpi3d_realistic.npz", "59a6225b88b635365f70c91b3e52f70f"),
    "mpi3d-real": PublishedFile(f"{_MPI3D}/mpi3d_real.npz", "0f33f609918fb5c97996692f91129802"),
    "dsprites": PublishedFile(
        "https://github.com/google-deepmind/dsprites-dataset/raw/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    ),
}


def download(
    name: str, folder: str | Path, *, published: PublishedFile | None = None, progress: Progress | None = None
) -> Path:
    """Download the file of a data set, unless it is in the folder already.

    Args:
        name: one of `PUBLISHED_FILES`.
        folder: the folder for it; created if missing.
        published: another address.
        progress: called with (bytes done, number of bytes); the number is 0 if the server does not report it.

    Returns:
        The path of the file.

    Raises:
        ValueError: the name is unknown, the download was interrupted, or the checksum is wrong.
    """
    if published is None:
        if name in ("falcor3d", "isaac3d", "mpi3d"):
            kinds = ": choose one of mpi3d-toy, mpi3d-realistic, mpi3d-real" if name == "mpi3d" else ""
            raise ValueError(f"no permanent public address of {name} is known{kinds}; it can be rendered instead")
        published = PUBLISHED_FILES[require_known(name, PUBLISHED_FILES, "download")]
    target = Path(folder) / published.url.rsplit("/", 1)[-1].partition("?")[0]
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        _fetch(published.url, part, progress)
    except (OSError, http.client.HTTPException) as error:
        raise ValueError(
            f"the download of {published.url} was interrupted ({error}): run the same command again to resume it"
        ) from error
    if published.md5 is not None and _md5(part) != published.md5:
        part.unlink()
        raise ValueError(f"the file from {published.url} has a wrong checksum and was removed: download it again")
    os.replace(part, target)
    _version_path(part).unlink(missing_ok=True)
    return target


def _fetch(url: str, part: Path, progress: Progress | None) -> None:
    """Append what is missing to `part`, or start over if the file on the server has changed."""
    num_bytes, version = _partial_download(part)
    request = urllib.request.Request(url)
    if num_bytes:
        request.add_header("Range", f"bytes={num_bytes}-")
        request.add_header("If-Range", version)
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS_OF_SILENCE)
    except urllib.error.HTTPError as error:
        if error.code == 416 and error.headers.get("Content-Range", "").endswith(f"/{num_bytes}"):
            return  # the part was complete
        raise
    with response:
        if response.status != 206:
            num_bytes = 0
        total = num_bytes + int(response.headers.get("Content-Length") or 0)
        write_json(_version_path(part), {"version": response.headers.get("ETag") or ""})
        with open_own(part) as file:
            file.truncate(num_bytes)
            file.seek(num_bytes)
            while block := response.read(BLOCK):
                file.write(block)
                num_bytes += len(block)
                if progress is not None:
                    progress(num_bytes, total)
    if num_bytes < total:
        raise OSError(f"received {num_bytes:,} of {total:,} bytes")


def _partial_download(part: Path) -> tuple[int, str]:
    """Return the number of bytes received earlier and the version of their file; 0 if the version is unknown."""
    try:
        version = read_json(_version_path(part))["version"]
        return (part.stat().st_size, str(version)) if version else (0, "")
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""


def _version_path(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _md5(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
