"""Open files with care: only regular ones for reading, and only our own for writing.

A pipe, a device or a socket in place of a file would block a reader or feed it without end. A link in place of a file
that we write would lead the writer to somebody else's file. Both are checked on the opened descriptor, so nothing can
change in between.
"""

import errno
import io
import os
import stat
from pathlib import Path

#: Flags that not every system has. Without waiting, opening a pipe returns at once.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file for reading. Links are followed.

    Raises:
        ValueError: ``path`` is a pipe, a device or a socket.
        OSError: the file is missing, is a folder, or cannot be read by the system; the error names it.
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


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file; see `open_regular` for the errors."""
    with open_regular(path) as file:
        return file.read()


def open_own(path: Path, *, append: bool = False) -> io.BufferedRandom:
    """Open a file of our own for reading and writing; it is created if it does not exist, and not emptied if it does.

    Args:
        path: the file.
        append: write at the end, wherever another process has moved it.

    Raises:
        ValueError: ``path`` is a link, or is not a regular file, or is also known under another name.
        OSError: the system cannot open it; the error names it.
    """
    flags = os.O_RDWR | os.O_CREAT | _NO_WAIT | _NO_LINKS | _COMMON | (os.O_APPEND if append else 0)
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _not_ours(path, "a symbolic link") from None
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise _not_ours(path, "not a regular file") from None
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
    if kind != stat.S_IFREG:
        os.close(descriptor)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise _irregular(path, KINDS.get(kind, "something else"))


def _irregular(path: str | os.PathLike[str], kind: str) -> ValueError:
    return ValueError(f"{os.fspath(path)} is {kind}, not a regular file; give a file")


def _not_ours(path: Path, kind: str) -> ValueError:
    return ValueError(f"{path} is {kind}, which would lead outside its folder; remove it")
