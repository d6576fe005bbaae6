"""Where tensors live."""

import ctypes
import platform

import torch


def pick_device(name: str = "auto") -> torch.device:
    """The device behind a name; ``auto`` takes a GPU where there is one. An error names what is there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        there = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        raise ValueError(f"no such device: {name!r}; this machine has {', '.join(there)}, or use 'auto'") from None
    return device


def told_device(device: torch.device) -> str:
    """A device in words: ``"cpu"``, or ``"cuda (NVIDIA H200)"``."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


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
