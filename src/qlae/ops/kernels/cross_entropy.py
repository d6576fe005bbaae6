"""The cross entropy of ``ops/cross_entropy.py``: one pass over logits and images forward, and one backward."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch

ENTRIES = 4096  # per program


@triton.jit
def _cross_entropy_forward(logits_ptr, targets_ptr, part_ptr, num_entries, ENTRIES: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    here = places < num_entries
    logits = tl.load(logits_ptr + places, mask=here, other=0.0).to(tl.float32)
    targets = tl.load(targets_ptr + places, mask=here, other=0.0).to(tl.float32)
    softplus = tl.maximum(logits, 0.0) + tl.log(1 + tl.exp(-tl.abs(logits)))
    tl.store(part_ptr + tl.program_id(0), tl.sum(tl.where(here, softplus - logits * targets, 0.0), 0))


@triton.jit
def _cross_entropy_backward(logits_ptr, targets_ptr, gradient_ptr, found_ptr, num_entries, ENTRIES: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    here = places < num_entries
    logits = tl.load(logits_ptr + places, mask=here, other=0.0).to(tl.float32)
    targets = tl.load(targets_ptr + places, mask=here, other=0.0).to(tl.float32)
    found = (tl.sigmoid(logits) - targets) * (tl.load(gradient_ptr) / num_entries)
    tl.store(found_ptr + places, found.to(found_ptr.dtype.element_ty), mask=here)


def forward(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean binary cross entropy.

    Args:
        logits: contiguous, of any shape.
        targets: contiguous, of the same shape, in [0, 1].

    Returns:
        The mean over all entries, a scalar in float32.
    """
    parts = torch.empty(triton.cdiv(logits.numel(), ENTRIES), device=logits.device)
    launch(_cross_entropy_forward, (len(parts),), logits, targets, parts, logits.numel(), ENTRIES=ENTRIES, num_warps=8)
    return parts.sum() / logits.numel()


def backward(gradient: Tensor, logits: Tensor, targets: Tensor) -> Tensor:
    """Return the gradient of the logits.

    Args:
        gradient: scalar tensor, the gradient of the mean.
        logits: as in `forward`.
        targets: as in `forward`.

    Returns:
        The gradient, of the shape and type of the logits.
    """
    logits_gradient = torch.empty_like(logits)
    grid = (triton.cdiv(logits.numel(), ENTRIES),)
    launch(
        _cross_entropy_backward,
        grid,
        logits,
        targets,
        gradient,
        logits_gradient,
        logits.numel(),
        ENTRIES=ENTRIES,
        num_warps=8,
    )
    return logits_gradient
