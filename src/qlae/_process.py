"""Set up the process for a training or an evaluation, and restore its settings afterwards.

A training runs with cuDNN reproducible, with the number of threads that was asked for, in float32, with gradients and
without autocast, whatever the caller's settings are. An evaluation, too, runs in float32 and without autocast.
Afterwards the settings are as the caller left them.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .ops.dispatch import Implementation, implementation


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
    with contextlib.ExitStack() as stack:
        if torch.get_default_device().type != "cpu":  # entering a device slows every operation down a little
            stack.enter_context(torch.device("cpu"))
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@contextlib.contextmanager
def training_process(device: torch.device, *, compile: bool, threads: int | None = None) -> Iterator[None]:
    """Set up the process for a training inside the block, and restore its settings afterwards.

    Args:
        device: of the training.
        compile: whether to use the fast path (kernels and fused operations) or the plain operations.
        threads: of torch on the CPU; None to keep their number.
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
def evaluation_process() -> Iterator[None]:
    """Run PyTorch's own operations, since choosing and compiling kernels does not pay for a few forward passes.

    Scores after a training are then also the same as scores from the run directory later.
    """
    benchmark = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        with plain_tensors(), _without_autocast(), implementation(Implementation.FUSED):
            yield
    finally:
        torch.backends.cudnn.benchmark = benchmark


@contextlib.contextmanager
def _without_autocast() -> Iterator[None]:
    with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        yield
