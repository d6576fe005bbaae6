"""Kernels of our own for GPUs, in Triton: a few operations that would go over memory many times, each as one.

Each stands beside a plain form in torch, which is what runs on a CPU, where Triton is absent, and for reference.
"""

import importlib.util
from functools import cache

import torch
from torch import Tensor

TYPES = (torch.float32, torch.bfloat16, torch.float16)

enabled = True  # False: the plain forms everywhere


def usable(x: Tensor) -> bool:
    """Whether a kernel, rather than its plain form, is to work on a tensor."""
    return x.is_cuda and enabled and x.dtype in TYPES and _triton_is_here()


@cache
def _triton_is_here() -> bool:
    return importlib.util.find_spec("triton") is not None
