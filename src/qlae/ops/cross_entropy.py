"""Binary cross entropy of logits against images, averaged over all entries.

−t · log σ(l) − (1 − t) · log(1 − σ(l)) = softplus(l) − l · t, and its derivative in l is σ(l) − t. The fused form
stores nothing but its inputs and takes half the passes over memory; on a GPU each direction is one kernel.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import dispatch


def cross_entropy(logits: Tensor, images: Tensor) -> Tensor:
    """Return the cross entropy of logits and images in [0, 1], both (b, c, h, w), as a scalar.

    Channels-last inputs are not copied.
    """
    if dispatch.is_plain():
        return F.binary_cross_entropy_with_logits(logits, images)
    entries = logits.permute(0, 2, 3, 1).contiguous(), images.permute(0, 2, 3, 1).contiguous()
    loss: Tensor = _CrossEntropy.apply(*entries, dispatch.uses_kernels(logits))  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, kernels: bool) -> Tensor:
        ctx.save_for_backward(logits, targets)
        ctx.kernels = kernels
        if kernels:
            from .kernels import cross_entropy

            return cross_entropy.forward(logits, targets)
        return (F.softplus(logits).sum() - torch.dot(logits.flatten(), targets.flatten())) / logits.numel()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        logits, targets = ctx.saved_tensors
        if ctx.kernels:
            from .kernels import cross_entropy

            return cross_entropy.backward(gradient, logits, targets), None, None
        return logits.sigmoid().sub_(targets).mul_(gradient / logits.numel()), None, None
