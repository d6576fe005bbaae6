"""Set up the process for a training or an evaluation, and restore its settings afterwards.

A training runs with cuDNN reproducible, with the number of threads that was asked for, in float32, with gradients and
without autocast, whatever the caller's settings are. An evaluation, too, runs in float32 and without autocast.
Afterwards the settings are as the caller left them.
"""

import contextlib
import ctypes
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from .ops.dispatch import Implementation, implementation

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
    """Return a description of a device: ``"cpu"``, or ``"cuda (NVIDIA H200)"``."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


#: glibc's parameters M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD, in bytes.
MALLOPT = {-1: 2**29, -2: 2**26, -3: 2**25}


def keep_freed_memory() -> None:
    """Let the C library keep up to 512 MB that the process has freed, if it is glibc.

    By default glibc returns such memory to the system, and each page costs a fault when the next update asks for it
    again. The setting cannot be read or restored, so only programs that own their process call this: the command line
    and the workers of a study, not the library.
    """
    if platform.libc_ver()[0] == "glibc":
        for parameter, value in MALLOPT.items():
            ctypes.CDLL(None).mallopt(parameter, value)


def usual_errors() -> np.errstate:
    """Return a decorator that restores NumPy's default handling of floating-point errors during a call."""
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")


def settings_in_force() -> dict[str, Any]:
    """Return the caller's settings that a training does not change, although they affect the last bits of results."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "mkldnn": bool(getattr(torch.backends.mkldnn, "enabled", True)),
    }


@contextlib.contextmanager
def plain_tensors() -> Iterator[None]:
    """Make new tensors float32 tensors on the CPU inside the block, whatever the caller's defaults are."""
    dtype = torch.get_default_dtype()
    # Entering a device slows every operation down a little.
    with contextlib.nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu"):
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@contextlib.contextmanager
def training_process(device: torch.device, *, compile: bool, threads: int | None = None) -> Iterator[None]:
    """Set up the process for a training inside the block, and restore its settings afterwards.

    ``compile`` chooses the fast path (kernels and fused operations) instead of the plain operations. ``threads`` is the
    number of torch's threads on the CPU; None keeps it.
    """
    on_gpu = device.type == "cuda"
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic, torch.get_num_threads()
    with contextlib.ExitStack() as stack:
        if on_gpu and device.index is not None:
            stack.enter_context(torch.cuda.device(device))  # where kernels are launched and graphs recorded
        stack.enter_context(torch.random.fork_rng(devices=[device] if on_gpu else []))
        stack.enter_context(plain_tensors())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        stack.enter_context(implementation(Implementation.KERNELS if compile else Implementation.PLAIN))
        try:
            cudnn.benchmark = on_gpu and compile
            cudnn.deterministic = on_gpu  # costs nothing here and makes runs reproducible
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before[:2]
            torch.set_num_threads(before[2])


@contextlib.contextmanager
def evaluation_process(threads: int | None = None) -> Iterator[None]:
    """Run PyTorch's own operations, since choosing and compiling kernels does not pay for a few forward passes.

    Scores after a training are then also the same as scores from the run directory later. ``threads`` is the number of
    torch's threads on the CPU; None keeps their number.
    """
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, torch.get_num_threads()
    with (
        plain_tensors(),
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
        implementation(Implementation.FUSED),
    ):
        try:
            cudnn.benchmark = False
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            cudnn.benchmark = before[0]
            if threads is not None:
                torch.set_num_threads(before[1])
