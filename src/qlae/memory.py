"""Memory that is freed and taken again at every update, on a CPU."""

import ctypes
import platform

# Parameters of glibc's mallopt and what they are set to, in bytes.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
KEPT = 1 << 29
GROWTH = 1 << 26
LARGEST = 1 << 25


def keep_freed_memory() -> None:
    """Let the C library keep up to 512 MB that the process has freed, where it is glibc.

    By default it returns them to the system, and each page costs a fault when the next update asks for it again.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter, value in ((TRIM_THRESHOLD, KEPT), (TOP_PAD, GROWTH), (MMAP_THRESHOLD, LARGEST)):
            libc.mallopt(parameter, value)
