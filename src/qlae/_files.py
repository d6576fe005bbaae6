"""Read and write small files: files are always written completely, and damaged ones raise one clear error.

Writing goes to a new file with an unpredictable name, is flushed to disk and then renamed, so a reader sees the old
content or the new content, never a part of it. Of two writers, the last one wins. Reading takes regular files only
and never unpickles.
"""

import contextlib
import errno
import glob
import json
import lzma
import os
import re
import secrets
import struct
import time
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ._locks import try_lock
from ._opening import create_new, open_regular, read_regular

TEMPORARY = ".tmp"
#: A temporary file that nobody holds open and that is older than this belongs to a process that was killed.
ABANDONED_SECONDS = 60
#: An archive may expand to this many bytes, or to this many times its size if that is more.
MAX_EXPANDED, MAX_EXPANSION = 2**28, 20

#: What may be half of a character in JSON: valid if its other half follows.
HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")

#: What Python's readers of archives and arrays raise for damaged content, other than ``ValueError``.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    KeyError,
    IndexError,
    OverflowError,
    UnicodeDecodeError,
    SystemError,  # from the tokenizer of Python 3.12, for some headers of .npy
)


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file that appears at ``path`` only once it is complete.

    Args:
        path: the file. It is replaced if it exists, and left as it was if writing fails.
        write: called with an open, empty file, which it fills.

    Raises:
        OSError: the file cannot be written; the error always has a file name.
    """
    remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with create_new(temporary) as file:
            try:
                try_lock(file)  # tells it apart from what a killed process left
                write(file)
                file.flush()
                os.fsync(file.fileno())
                if os.name == "nt":  # Windows cannot rename an open file
                    file.close()
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


def remove_abandoned(path: Path) -> None:
    """Remove the temporary files that killed writers of ``path`` left behind."""
    with contextlib.suppress(OSError):
        for leftover in path.parent.glob(f".{glob.escape(path.name)}.*{TEMPORARY}"):
            with contextlib.suppress(OSError, ValueError), open_regular(leftover) as file:
                is_old = time.time() - os.fstat(file.fileno()).st_mtime > ABANDONED_SECONDS
                if is_old and try_lock(file):
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


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write a compressed ``.npz`` with `write_whole`."""
    write_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def read_npz(path: Path, *, remedy: str = "") -> dict[str, NDArray[Any]]:
    """Read all arrays of an ``.npz`` into memory.

    Args:
        path: the file; its name may have any suffix.
        remedy: what the user can do about a damaged file. It ends the error message.

    Returns:
        The arrays by name, in the order of the file.

    Raises:
        ValueError: the content is not an ``.npz`` of plain arrays. It may be damaged, cut short, of another format (an
            ``.npy`` too), or hold pickled objects. The message is ``PATH cannot be read (REASON); REMEDY``.
        OSError: the file is missing or the system cannot read it; the error names it.
    """
    with open_regular(path) as file:
        with explain_damage(path, remedy):
            require_modest(file, path, remedy)
        return _load_npz(file, path, remedy)


def _load_npz(file: BinaryIO, path: Path, remedy: str) -> dict[str, NDArray[Any]]:
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
    """Raise a ``ValueError`` if a small archive would expand to far more than its own size.

    Args:
        file: an open file at its beginning, where it is left. Files that are not zip archives pass.
        name: what the error calls the file.
        remedy: it ends the message.
    """
    if zipfile.is_zipfile(file):
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            expanded = sum(info.file_size for info in archive.infolist())
        size = file.seek(0, os.SEEK_END)
        if expanded > max(MAX_EXPANDED, MAX_EXPANSION * size):
            reason = f"its {size:,} bytes would expand to {expanded:,}, which looks like an attack or an accident"
            raise _unreadable(name, reason, remedy)
    file.seek(0)


def read_npy(path: Path, *, remedy: str = "") -> NDArray[Any]:
    """Read the array of an ``.npy`` into memory. See `read_npz` for the arguments and the errors."""
    with open_regular(path) as file:
        return load_npy(file, path, remedy=remedy)


def load_npy(file: BinaryIO, name: object, *, remedy: str = "") -> NDArray[Any]:
    """Read an array from an open file, such as a member of an archive; errors call the file ``name``."""
    with explain_damage(name, remedy, "it is not an .npy file of a plain array"):
        array = np.load(file, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("an archive")
        return array


def read_json(path: Path, *, remedy: str = "") -> dict[str, Any]:
    """Read a JSON object.

    Args:
        path: the file, in UTF-8.
        remedy: as for `read_npz`.

    Raises:
        ValueError: the content is not UTF-8, not JSON, or JSON of another kind than an object. The message is
            ``PATH cannot be read (REASON); REMEDY``.
        OSError: the file is missing or the system cannot read it; the error names it.
    """
    text = read_regular(path)
    try:
        content = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"it is not JSON: {error}", remedy) from error
    if not isinstance(content, dict):
        raise _unreadable(path, f"it must hold a JSON object, got {type(content).__name__}", remedy)
    if HALF_PAIR.search(text):
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise _unreadable(path, "it holds text that is not Unicode, which could not be shown", remedy) from None
    return content


@contextlib.contextmanager
def explain_damage(name: object, remedy: str, reason: str | None = None) -> Iterator[None]:
    """Turn what readers of archives and arrays raise for damaged content into one clear ``ValueError``.

    Args:
        name: what the error calls the file, usually its path.
        remedy: what the user can do about it; it ends the message.
        reason: how a ``ValueError`` of the reader is explained; ``None`` lets it pass unchanged.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # of a decompressor
            raise _unreadable(name, f"it is damaged: {error or type(error).__name__}", remedy) from error
        if error.errno == errno.EINVAL:
            raise _unreadable(name, "it is damaged: its index points outside it", remedy) from error
        error.filename = error.filename or str(name)  # all else concerns the system
        raise
    except DAMAGE as error:
        raise _unreadable(name, f"it is damaged or incomplete: {error or type(error).__name__}", remedy) from error
    except (ValueError, TypeError, SyntaxError, MemoryError) as error:
        if reason is None:
            raise
        raise _unreadable(name, reason, remedy) from error


def _unreadable(name: object, reason: str, remedy: str) -> ValueError:
    return ValueError(f"{name} cannot be read ({reason})" + (f"; {remedy}" if remedy else ""))
