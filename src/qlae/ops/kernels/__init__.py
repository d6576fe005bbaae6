"""Kernels of our own for GPUs, in Triton: a few operations that would go over memory many times, each as one.

Each stands beside a plain form in torch, which is what runs on a CPU, where Triton is absent or cannot compile, and for
reference.
"""

import importlib.util
import warnings
from functools import cache

import torch
from torch import Tensor

TYPES = (torch.float32, torch.bfloat16, torch.float16)

enabled = True  # False: the plain forms everywhere


def usable(x: Tensor) -> bool:
    """Whether a kernel, rather than its plain form, is to work on a tensor; Triton launches on the current GPU only."""
    return x.is_cuda and enabled and x.dtype in TYPES and _is_current(x.device) and _compiles(x.device)


def _is_current(device: torch.device) -> bool:
    return device.index == torch.cuda.current_device()


@cache
def _compiles(device: torch.device) -> bool:
    """Whether Triton is there and makes a kernel that runs; it needs a C compiler, for one."""
    if importlib.util.find_spec("triton") is None:
        return False
    from .sums import sum_rows

    try:
        return bool((sum_rows(torch.ones(2, 16, device=device), torch.float32) == 2).all())
    except Exception as error:  # whatever a compiler may raise
        told = str(error).strip().splitlines() or [""]
        warnings.warn(
            f"Triton cannot make kernels for {device}, so torch's operations take their place, which are slower: "
            f"{type(error).__name__}: {told[0]}",
            stacklevel=2,
        )
        return False
