"""Choose the implementation of operations, in one place.

Every operation of this package has a **plain** form, ordinary PyTorch with automatic differentiation, which is its
definition. There is also a **fused** form, the same in PyTorch with a backward pass written out, and often Triton
**kernels** for a GPU.

    with implementation(Implementation.PLAIN):
        loss = objective(images)

The choice holds inside the ``with`` block, in this thread, like PyTorch's own ``no_grad``. An operation makes it once,
in its forward pass, and stores it for its backward pass, which PyTorch may run in another thread.
"""

import contextlib
import enum
import importlib.util
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor


class Implementation(enum.Enum):
    """How operations are carried out."""

    PLAIN = "plain"  # the definitions
    FUSED = "fused"  # PyTorch, with backward passes written out
    KERNELS = "kernels"  # Triton kernels where they can run, else fused


_current: ContextVar[Implementation] = ContextVar("implementation", default=Implementation.FUSED)

KERNEL_TYPES = (torch.float32, torch.bfloat16, torch.float16)


@contextlib.contextmanager
def implementation(choice: Implementation) -> Iterator[None]:
    """Use this implementation of all operations inside the block."""
    token = _current.set(choice)
    try:
        yield
    finally:
        _current.reset(token)


def is_plain() -> bool:
    """Return whether operations use their plain forms."""
    return _current.get() is Implementation.PLAIN


def uses_kernels(x: Tensor) -> bool:
    """Return whether operations on a tensor use kernels. Triton launches on the current GPU only."""
    return (
        _current.get() is Implementation.KERNELS
        and x.is_cuda
        and x.dtype in KERNEL_TYPES
        and x.device.index == torch.cuda.current_device()
        and compiles_kernels(x.device)
    )


@cache
def compiles_kernels(device: torch.device) -> bool:
    """Return whether Triton is installed and can compile a kernel that runs; it needs a C compiler, for one."""
    if importlib.util.find_spec("triton") is None:
        return False
    from .kernels.sums import sum_rows

    try:
        return bool((sum_rows(torch.ones(2, 16, device=device), torch.float32) == 2).all())
    except Exception as error:  # a compiler may raise anything
        first_line = (str(error).strip().splitlines() or [""])[0]
        warnings.warn(
            f"Triton cannot compile kernels for {device}, so PyTorch's slower operations are used instead: "
            f"{type(error).__name__}: {first_line}",
            stacklevel=2,
        )
        return False
