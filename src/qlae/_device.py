"""Choose a device, and let a CPU process keep the memory that every update frees and allocates again."""

import ctypes
import platform

import torch

DEVICES = ("cpu", "cuda", "mps")


def pick_device(name: str = "auto") -> torch.device:
    """Return the device with this name; ``"auto"`` means a CUDA GPU if there is one, else the CPU.

    Raises:
        ValueError: if the machine does not have the device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        available = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        if torch.backends.mps.is_available():
            available.append("mps")
        raise ValueError(f"no such device: {name!r}; this machine has {', '.join(available)}, or use 'auto'") from None
    if device.type not in DEVICES:
        raise ValueError(f"device must be auto, {', '.join(DEVICES)} or cuda:N, got {name!r}")
    return device


def describe_device(device: torch.device) -> str:
    """Return a device in words: ``"cpu"``, or ``"cuda (NVIDIA H200)"``."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


# Parameters of glibc's mallopt and their values, in bytes.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
KEPT = 1 << 29
GROWTH = 1 << 26
LARGEST = 1 << 25


def keep_freed_memory() -> None:
    """Let the C library keep up to 512 MB that the process has freed, if it is glibc.

    By default glibc returns such memory to the system, and each page costs a fault when the next update asks for it
    again. The setting cannot be read or restored, so only programs that own their process call this: the command line
    and the workers of a study, not the library.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter, value in ((TRIM_THRESHOLD, KEPT), (TOP_PAD, GROWTH), (MMAP_THRESHOLD, LARGEST)):
            libc.mallopt(parameter, value)
