"""Set up the process for a training or an evaluation, and restore its settings afterwards.

A training runs with cuDNN reproducible, with the number of threads that was asked for, in float32, with gradients and
without autocast, whatever the caller's settings are. An evaluation, too, runs in float32 and without autocast.
Afterwards the settings are as the caller left them.
"""

import contextlib
import ctypes
import os
import platform
import sys
import threading
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


def size_for(device: str) -> str:
    """Return the size of networks that suits a device: ``"small"`` on a CPU, where full ones take weeks."""
    return "small" if pick_device(device).type == "cpu" else "full"


def describe_device(device: torch.device) -> str:
    """Return a description of a device: ``"cpu"``, or ``"cuda (NVIDIA H200)"``."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


LARGEST_BLOCK = 2**25 - 2**16  # bytes that glibc still takes into account
ENOUGH_FOR_THREADS = 2**20  # elements of a tensor that torch fills on several threads
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # variables that decide how threads wait
#: glibc's parameters M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD, in bytes.
MALLOPT = {-1: 2**29, -2: 2**26, -3: 2**25}


def keep_freed_memory() -> None:
    """Let the C library keep up to 512 MB that the process has freed, if it is glibc.

    By default glibc returns such memory to the system, and each page costs a fault when the next update asks for it
    again. The setting cannot be read or restored, so only programs that own their process call this: the command line
    and the workers of a study. The library calls `keep_some_freed_memory`.
    """
    if platform.libc_ver()[0] == "glibc":
        for parameter, value in MALLOPT.items():
            ctypes.CDLL(None).mallopt(parameter, value)


def keep_some_freed_memory() -> None:
    """Free a block of 32 MB, after which glibc keeps up to 64 MB of freed memory by its own rule.

    glibc raises its thresholds to the size of the largest block that was freed, up to 32 MB. So this sets nothing:
    any program that frees an array of this size has the same effect.
    """
    np.empty(LARGEST_BLOCK, np.uint8)


@contextlib.contextmanager
def idle_threads_sleep() -> Iterator[None]:
    """Let torch's idle threads sleep inside the block, instead of spinning while they wait for the next operation.

    Threads that spin next to another busy process take the core from those that compute: an update becomes 20 to 60
    times slower. The command line sets ``OMP_WAIT_POLICY`` before torch is loaded, which is too late here, and GNU's
    OpenMP has no function for it. But its threads stop spinning while the process has more of them than there are
    cores. So a second pool of sleeping threads is kept until the block ends.
    """
    if sys.platform != "linux" or any(name in os.environ for name in WAITING):
        yield
        return
    with _second_pool_lock:
        _second_pool.enter()
    try:
        yield
    finally:
        with _second_pool_lock:
            _second_pool.leave()


class _SecondPool:
    """A thread with a pool of one OpenMP thread more than there are cores, for as long as a block needs it."""

    def __init__(self) -> None:
        self.num_blocks = 0
        self.thread, self.is_ready, self.is_over = threading.Thread(), threading.Event(), threading.Event()

    def enter(self) -> None:
        """Start the thread if this is the first block."""
        self.num_blocks += 1
        if self.num_blocks == 1:
            before = torch.get_num_threads()
            self.is_ready.clear()
            self.is_over.clear()
            self.thread = threading.Thread(target=self._keep, name="qlae-second-pool", daemon=True)
            self.thread.start()
            self.is_ready.wait()
            torch.set_num_threads(before)  # a thread's setting becomes the default of later threads

    def leave(self) -> None:
        """End the thread if this was the last block."""
        self.num_blocks -= 1
        if not self.num_blocks:
            self.is_over.set()
            self.thread.join()

    def _keep(self) -> None:
        try:
            with torch.inference_mode():
                torch.set_num_threads((os.cpu_count() or 1) + 1)
                torch.empty(ENOUGH_FOR_THREADS, dtype=torch.uint8, device="cpu").fill_(1)
        finally:
            self.is_ready.set()
        self.is_over.wait()


_second_pool, _second_pool_lock = _SecondPool(), threading.Lock()


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
        if device.type == "cpu":
            keep_some_freed_memory()
            stack.enter_context(idle_threads_sleep())
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
        contextlib.nullcontext() if threads == 1 else idle_threads_sleep(),
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
