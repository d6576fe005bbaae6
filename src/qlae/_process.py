"""The settings of the process that a training needs, and their restoration.

A training runs with cuDNN reproducible, with the number of threads that was asked for, in float32, with gradients and
without autocast, whatever the caller's settings are. Afterwards they are as the caller left them.
"""

import contextlib
from collections.abc import Iterator

import torch

from .ops.dispatch import Implementation, implementation


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
    before = cudnn.benchmark, cudnn.deterministic, torch.get_num_threads(), torch.get_default_dtype()
    with contextlib.ExitStack() as stack:
        if on_gpu and device.index is not None:
            stack.enter_context(torch.cuda.device(device))  # where kernels are launched and graphs recorded
        stack.enter_context(torch.random.fork_rng(devices=[device] if on_gpu else []))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        stack.enter_context(implementation(Implementation.KERNELS if compile else Implementation.PLAIN))
        try:
            cudnn.benchmark = on_gpu and compile
            cudnn.deterministic = on_gpu  # costs nothing here and makes runs reproducible
            torch.set_default_dtype(torch.float32)
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            cudnn.benchmark, cudnn.deterministic = before[:2]
            torch.set_num_threads(before[2])
            torch.set_default_dtype(before[3])


@contextlib.contextmanager
def evaluation_process() -> Iterator[None]:
    """Run PyTorch's own operations as they are: a few forward passes end before choosing and compiling would pay.

    Scores after a training are then also the same as scores from the run directory later.
    """
    benchmark = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        with implementation(Implementation.FUSED):
            yield
    finally:
        torch.backends.cudnn.benchmark = benchmark
