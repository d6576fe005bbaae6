"""Downloads of the published files, where a public address is known.

A download goes on where it was interrupted, is checked against a known checksum and only then gets its name. Nothing
else needs these files: every scene can be rendered instead.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from .._checks import require_known
from .._files import write_json
from .dataset import Progress

BLOCK = 2**20
SECONDS_OF_SILENCE = 60


@dataclass(frozen=True)
class Published:
    """A file and what is known of it; an MD5 tells a damaged file, not a forged one."""

    url: str
    md5: str | None = None


_MPI3D = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset"
#: What can be downloaded. The everyday objects of MPI3D, Falcor3D and Isaac3D have no lasting address.
PUBLISHED = {
    "shapes3d": Published("https://storage.googleapis.com/3d-shapes/3dshapes.h5", "099a2078d58cec4daad0702c55d06868"),
    "mpi3d-toy": Published(f"{_MPI3D}/mpi3d_toy.npz", "55889cb7c7dfc655d6e0277beee88868"),
    "mpi3d-realistic": Published(f"{_MPI3D}/mpi3d_realistic.npz", "59a6225b88b635365f70c91b3e52f70f"),
    "mpi3d-real": Published(f"{_MPI3D}/mpi3d_real.npz", "0f33f609918fb5c97996692f91129802"),
    "dsprites": Published(
        "https://github.com/google-deepmind/dsprites-dataset/raw/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    ),
}


def download(
    name: str, folder: str | Path, *, published: Published | None = None, progress: Progress | None = None
) -> Path:
    """Download the file of a data set, or find it there.

    Args:
        name: one of `PUBLISHED`.
        folder: where to put it.
        published: another address.
        progress: called with (bytes done, bytes in all), the latter 0 if the server does not say.
    """
    if published is None:
        if name in ("falcor3d", "isaac3d", "mpi3d"):
            kinds = ": choose one of mpi3d-toy, mpi3d-realistic, mpi3d-real" if name == "mpi3d" else ""
            raise ValueError(f"no lasting public address of {name} is known{kinds}; it can be rendered instead")
        published = PUBLISHED[require_known(name, PUBLISHED, "download")]
    target = Path(folder) / published.url.rsplit("/", 1)[-1].partition("?")[0]
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        _fetch(published.url, part, progress)
    except (OSError, http.client.HTTPException) as error:
        raise ValueError(
            f"the download of {published.url} broke off ({error}): the same command goes on where it stopped"
        ) from error
    if published.md5 is not None and _md5(part) != published.md5:
        part.unlink()
        raise ValueError(f"what came from {published.url} does not have its checksum, and was removed: try again")
    os.replace(part, target)
    _version_of(part).unlink(missing_ok=True)
    return target


def _fetch(url: str, part: Path, progress: Progress | None) -> None:
    """Append what is missing to `part`; begin anew if the file on the server is another than before."""
    have, version = _begun(part)
    request = urllib.request.Request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version)
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS_OF_SILENCE)
    except urllib.error.HTTPError as error:
        if error.code == 416 and error.headers.get("Content-Range", "").endswith(f"/{have}"):
            return  # all of it was there
        raise
    with response:
        if response.status != 206:
            have = 0
        total = have + int(response.headers.get("Content-Length") or 0)
        write_json(_version_of(part), {"version": response.headers.get("ETag") or ""})
        with open(part, "r+b" if have else "wb") as file:
            file.seek(have)
            while block := response.read(BLOCK):
                file.write(block)
                have += len(block)
                if progress is not None:
                    progress(have, total)
    if have < total:
        raise OSError(f"{have:,} of {total:,} bytes came")


def _begun(part: Path) -> tuple[int, str]:
    """The bytes that came before, and the version they are of; nothing if the version is not known."""
    try:
        version = json.loads(_version_of(part).read_text())["version"]
        return (part.stat().st_size, str(version)) if version else (0, "")
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""


def _version_of(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
