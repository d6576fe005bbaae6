"""Open, read, write and lock files.

*Open* only regular files for reading, and only our own for writing. A pipe, a device or a socket in place of a file
would block a reader or feed it without end; a link in place of a file that we write would lead to another file. Both
are checked on the opened descriptor, so nothing can change in between.

*Read* a bounded amount, never unpickle, and raise one clear error for damaged content.

*Write* to a new file with an unpredictable name, flush it to disk and rename it, so that a reader sees the old content
or the new content, never a part of it. Of two writers, the last one wins.

*Lock* a directory against a second writer, or wait for another process. The system releases a lock however the process
that holds it ends.
"""

import contextlib
import csv
import errno
import glob
import hashlib
import io
import json
import lzma
import os
import secrets
import stat
import struct
import sys
import tarfile
import time
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from ._parsing import decode_json

#: Flags that not every system has. Without waiting, opening a pipe returns at once.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

TEMPORARY = ".tmp"
#: A temporary file that nobody has written to for this long belongs to a process that was killed.
ABANDONED_SECONDS = 3600
#: The entry of a JSON file that holds its checksum.
SEAL = "sha256"
#: The largest JSON file that is read, in bytes.
MAX_JSON = 2**28
#: An archive may expand to this many bytes, or to this many times its size if that is more.
MAX_EXPANDED, MAX_EXPANSION = 2**28, 20
#: Data read whole may take this many bytes in memory, or this many times the size of their file if that is more.
MAX_LOADED, MAX_LOADED_PER_BYTE = 2**28, 200
#: A table or sources in a file may have this many cells, or one for each of its bytes if that is more.
MAX_CELLS = 2**22
#: What NumPy, pandas and Python's readers of archives raise for damaged content, besides an ``OSError``.
DAMAGE = (
    *(ValueError, TypeError, SyntaxError, LookupError, EOFError, OverflowError, MemoryError, RuntimeError),
    *(csv.Error, lzma.LZMAError, struct.error, tarfile.TarError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file for reading; links are followed.

    A pipe, a device or a socket is a ``ValueError``; errors of the system name the file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_WAIT | _COMMON)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):  # as for a socket
            raise _irregular(path, "a socket or a device") from None
        raise
    _require_regular(descriptor, path)
    return os.fdopen(descriptor, "rb")


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise the errors of `open_regular`, for a reader that opens the file itself."""
    open_regular(path).close()


def read_regular(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> bytes:
    """Return the content of a regular file; one larger than ``max_bytes`` is a ``ValueError`` as well."""
    with open_regular(path) as file:
        content = file.read(-1 if max_bytes is None else max_bytes + 1)
    if max_bytes is not None and len(content) > max_bytes:
        raise ValueError(f"{os.fspath(path)} is larger than {max_bytes:,} bytes")
    return content


def open_own(path: Path, *, append: bool = False) -> io.BufferedRandom:
    """Open a file of our own for reading and writing; it is created if it does not exist, and not emptied if it does.

    With ``append``, everything is written at the end, wherever another process has moved it. A link, a file with a
    second name, or anything but a regular file is a ``ValueError``.
    """
    flags = os.O_RDWR | os.O_CREAT | _NO_WAIT | _NO_LINKS | _COMMON | (os.O_APPEND if append else 0)
    kinds = {errno.ELOOP: "a symbolic link", errno.EMLINK: "a symbolic link"}
    kinds |= dict.fromkeys((errno.ENXIO, errno.EISDIR), "not a regular file")
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in kinds:
            raise _not_ours(path, kinds[error.errno]) from None
        raise
    _require_regular(descriptor, path)
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise _not_ours(path, "a hard link to another file")
    return os.fdopen(descriptor, "r+b")


def create_new(path: Path) -> io.BufferedRandom:
    """Create a file for writing where there is nothing yet, not even a link."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINKS | _COMMON, 0o666), "w+b")


def _require_regular(descriptor: int, path: str | os.PathLike[str]) -> None:
    """Close the descriptor and raise an error unless it is of a regular file."""
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFREG:
        return
    os.close(descriptor)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise _irregular(path, "a named pipe" if kind == stat.S_IFIFO else "a device")


def _irregular(path: str | os.PathLike[str], kind: str) -> ValueError:
    return ValueError(f"{os.fspath(path)} is {kind}, not a regular file; give a file")


def _not_ours(path: Path, kind: str) -> ValueError:
    return ValueError(f"{path} is {kind}, which would lead outside its folder; remove it")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file that appears at ``path`` only once it is complete; ``write`` is called with an open, empty file.

    An existing file is replaced, or left as it was if writing fails. Errors of the system name the file.
    """
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
    try:
        try:
            with create_new(temporary) as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        if error.filename in (None, str(temporary)):  # as for a full disk
            error.filename = str(path)
        raise


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files that killed writers of ``path`` left behind."""
    with contextlib.suppress(OSError):
        for leftover in path.parent.glob(f".{glob.escape(path.name)}.*{TEMPORARY}"):
            with contextlib.suppress(OSError):
                if time.time() - leftover.lstat().st_mtime > ABANDONED_SECONDS:
                    leftover.unlink()


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, so that a rename survives a power failure, if the system allows it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def require_new(path: Path) -> None:
    """Raise a ``ValueError`` unless a file can be created at ``path`` without overwriting anything."""
    if path.exists():
        raise ValueError(f"{path} exists already; choose another path or remove it")
    if not path.parent.is_dir():
        raise ValueError(f"the folder {path.parent} does not exist; create it first")


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes with `write_whole`."""
    write_whole(path, lambda file: file.write(content))


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON with `write_whole`; NaN and infinity raise a ``ValueError``, since JSON has neither."""
    write_bytes(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a JSON file with its own SHA-256, under ``sha256``."""
    body = {key: value for key, value in content.items() if key != SEAL}
    return {**body, SEAL: hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}


def read_sealed(path: Path, *, remedy: str = "", required: bool = False) -> dict[str, Any]:
    """Read a JSON file that was written with `seal`, without its checksum.

    Altered content is damage, as in `read_json`. A file without a checksum is read as it is, unless it is required.
    """
    content = read_json(path, remedy=remedy)
    if (required or SEAL in content) and content.get(SEAL) != seal(content)[SEAL]:
        raise _unreadable(path, "it was altered after it was written: its checksum does not match", remedy)
    content.pop(SEAL, None)
    return content


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write a compressed ``.npz`` with `write_whole`."""
    write_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def write_columns(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write arrays under any names to a compressed npz file; `write_npz` cannot name one "file"."""

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_whole(path, write)


def read_npz(path: Path, *, remedy: str = "") -> dict[str, NDArray[Any]]:
    """Read all arrays of an ``.npz`` of any suffix into memory, by name and in the order of the file.

    Content that is damaged, cut short, of another format (an ``.npy`` too) or pickled is a ``ValueError``: ``PATH
    cannot be read (REASON); REMEDY``, where ``remedy`` is what the user can do about it.
    """
    with open_regular(path) as file:
        with explain_damage(path, remedy):
            require_modest(file, path, remedy)
        with explain_damage(path, remedy, "it is not an .npz file of plain arrays"):
            content = np.load(file, allow_pickle=False)
            if not isinstance(content, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            with content:
                arrays = {name: content[name] for name in content.files}
            if not all(isinstance(array, np.ndarray) for array in arrays.values()):
                raise ValueError("a member that is not an array")
            return arrays


def require_modest(file: BinaryIO, name: object, remedy: str = "") -> None:
    """Raise a ``ValueError`` if a small zip archive, open at its beginning, would expand to far more than its size."""
    if zipfile.is_zipfile(file):
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            expanded = sum(info.file_size for info in archive.infolist())
        size = file.seek(0, os.SEEK_END)
        if expanded > max(MAX_EXPANDED, MAX_EXPANSION * size):
            reason = f"its {size:,} bytes would expand to {expanded:,}, which looks like an attack or an accident"
            raise _unreadable(name, reason, remedy)
    file.seek(0)


def require_loadable(path: Path, *, num_bytes: int = 0, num_cells: int = 0) -> None:
    """Raise a ``ValueError`` if the content of a small file would take far more memory than its size suggests.

    Args:
        path: of the file.
        num_bytes: that arrays in the file take in memory.
        num_cells: of tables and sources, each of which may become an object.
    """
    size = path.stat().st_size
    if num_bytes > max(MAX_LOADED, MAX_LOADED_PER_BYTE * size):
        raise ValueError(
            f"{path} has {size:,} bytes, and its content would take {num_bytes:,} in memory, which looks like an "
            "attack or an accident: write the data without compression"
        )
    if num_cells > max(MAX_CELLS, size):
        raise ValueError(
            f"{path} has {size:,} bytes for {num_cells:,} cells, which looks like an attack or an accident: write the "
            "data without compression"
        )


def read_npy(path: Path) -> NDArray[Any]:
    """Read the array of an ``.npy`` into memory. See `read_npz` for the errors."""
    with open_regular(path) as file:
        return load_npy(file, path)


def load_npy(file: BinaryIO, name: object, *, remedy: str = "") -> NDArray[Any]:
    """Read an array from an open file, such as a member of an archive; errors call the file ``name``."""
    with explain_damage(name, remedy, "it is not an .npy file of a plain array"):
        array = np.load(file, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("an archive")
        return array


def read_json(path: Path, *, remedy: str = "") -> dict[str, Any]:
    """Read a JSON object in UTF-8 of at most ``MAX_JSON`` bytes; see `read_npz` for the arguments and the errors."""
    text = read_regular(path, max_bytes=MAX_JSON)
    try:
        content = decode_json(text)
    except ValueError as error:
        raise _unreadable(path, str(error), remedy) from None
    if not isinstance(content, dict):
        raise _unreadable(path, f"it must hold a JSON object, got {type(content).__name__}", remedy)
    return content


@contextlib.contextmanager
def explain_damage(name: object, remedy: str, reason: str | None = None) -> Iterator[None]:
    """Turn the errors that readers of archives and arrays raise for damaged content into one clear ``ValueError``.

    The message calls the file ``name`` and ends with ``remedy``. ``reason`` explains a ``ValueError`` of the reader;
    with None it passes unchanged.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # of a decompressor
            raise _unreadable(name, f"it is damaged or incomplete: {error}", remedy) from error
        if error.errno == errno.EINVAL:
            raise _unreadable(name, "it is damaged: its index points outside it", remedy) from error
        error.filename = error.filename or str(name)  # all else concerns the system
        raise
    except DAMAGE as error:
        if reason is None and isinstance(error, ValueError) and not isinstance(error, UnicodeDecodeError):
            raise
        if reason is None or not isinstance(error, ValueError | TypeError | SyntaxError | MemoryError):
            reason = f"it is damaged or incomplete: {str(error) or type(error).__name__}"
        raise _unreadable(name, reason, remedy) from error


def _unreadable(name: object, reason: str, remedy: str) -> ValueError:
    return ValueError(f"{name} cannot be read ({reason})" + (f"; {remedy}" if remedy else ""))


LOCK_FILE = ".lock"
#: A lock that is only looked at is held for an instant, so a lock counts as held after this long.
GRACE_SECONDS = 0.5


@contextlib.contextmanager
def locked_directory(path: Path, busy_message: str) -> Iterator[None]:
    """Hold the lock of a directory in a ``with`` block, so that one process at a time writes into it.

    If another process holds it, the ``ValueError`` ``busy_message`` is raised, with that process, such as ``process
    4711``, in the place of ``{holder}``. A directory that does not exist is created.
    """
    path.mkdir(parents=True, exist_ok=True)
    with _locked(path / LOCK_FILE, GRACE_SECONDS) as holder:
        if holder:
            raise ValueError(busy_message.replace("{holder}", holder))
        yield


def is_locked(path: Path) -> bool:
    """Return whether some process on this machine holds the lock of a directory."""
    file = path / LOCK_FILE
    if file.is_symlink() or not file.is_file():
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # not ours to lock
        return False


@contextlib.contextmanager
def waiting_lock(path: Path, task: str, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file in a ``with`` block, so that a task such as ``"preparing holiday"`` is done once.

    While another process holds it, wait, after one line on standard error that says so; Ctrl-C ends the waiting.
    Without ``wait``, that is a ``ValueError``. A file that does not exist is created.
    """
    with contextlib.ExitStack() as stack:
        if holder := stack.enter_context(_locked(path, 0)):
            if not wait:
                raise ValueError(f"{holder} is {task}: wait until it ends, or stop it")
            print(f"qlae: {holder} is {task}; waiting until it ends", file=sys.stderr, flush=True)
            stack.enter_context(_locked(path, -1))
        yield


@contextlib.contextmanager
def _locked(path: Path, timeout: float) -> Iterator[str]:
    """Hold the lock of a file, which then names this process; a negative timeout waits without end.

    Yields:
        The process that holds the lock instead, such as ``process 4711``; empty if this one does.
    """
    open_own(path).close()
    try:
        lock = FileLock(path, mode=0o666).acquire(timeout=timeout, poll_interval=0.05)
    except Timeout:
        holder = ""
        with contextlib.suppress(OSError), open_regular(path) as file:
            file.seek(1)  # Windows locks the first byte
            holder = file.read(100).decode(errors="replace")
        yield holder or "another process"
        return
    with lock:
        with open_own(path) as file:
            file.seek(1)
            file.truncate()
            file.write(f"process {os.getpid()}".encode())
        yield ""
