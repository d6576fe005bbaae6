"""Leaky ReLU, instance norm and style as one operation.

With y = leaky(x), mean μ and standard deviation σ of y over the pixels of each channel of each image,

    out = (y − μ) / σ · scale + shift.

Every layer of the networks ends so, the encoder's without scale and shift. Statistics are in float32 whatever the type
of x. The backward pass is written out: it keeps less and takes fewer passes over memory than one operation after the
other, and unlike torch's own norms it is as fast in channels-last memory, where convolutions are fastest.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

EPSILON = 1e-5


def leaky_norm(x: Tensor, slope: float, scale: Tensor | None = None, shift: Tensor | None = None) -> Tensor:
    """x (b, c, h, w), slope of the leaky ReLU (1 for none), scale and shift (b, c) → (b, c, h, w), channels last."""
    if scale is not None and shift is not None and x.shape[0] != scale.shape[0]:  # one map for all images
        normed = _rows(leaky_norm(x, slope))
        return _maps(torch.addcmul(shift[:, None], normed, scale[:, None]), x)
    out: Tensor = _LeakyNorm.apply(x, scale, shift, slope)  # type: ignore[no-untyped-call]
    return out


def plain_leaky_norm(x: Tensor, slope: float, scale: Tensor | None = None, shift: Tensor | None = None) -> Tensor:
    """The same, operation by operation: what can be differentiated twice."""
    y = F.leaky_relu(_exact(x), slope)
    centred = y - y.mean((2, 3), keepdim=True)
    out = centred * (centred.square().mean((2, 3), keepdim=True) + EPSILON).rsqrt()
    if scale is not None and shift is not None:
        out = torch.addcmul(_exact(shift)[:, :, None, None], out, _exact(scale)[:, :, None, None])
    return out.to(x.dtype)


class _LeakyNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor | None, shift: Tensor | None, slope: float) -> Tensor:
        rows = _rows(x)
        y = F.leaky_relu(_exact(rows), slope)
        centred = y.sub_(y.mean(1, keepdim=True))
        inverse = centred.square().mean(1).add_(EPSILON).rsqrt_()  # 1 / σ, (b, c)
        if scale is None or shift is None:
            out = centred * inverse[:, None]
        else:
            out = torch.addcmul(_exact(shift)[:, None], centred, (scale * inverse)[:, None])
        ctx.save_for_backward(x, scale, shift, centred, inverse)
        ctx.slope = slope
        return _maps(out.to(x.dtype), x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, scale, shift, centred, inverse = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again
            inputs = [t for t in (x, scale, shift) if t is not None]
            out = plain_leaky_norm(x, ctx.slope, scale, shift)
            found = torch.autograd.grad(out, inputs, gradient, create_graph=True)
            return found[0], *(found[1:] or (None, None)), None
        rows = _exact(_rows(gradient))
        plain = rows.sum(1)  # Σ g, (b, c)
        product = rows * centred
        along = product.sum(1) * inverse  # Σ g · (y − μ) / σ
        factor = inverse if scale is None else inverse * scale
        share = factor / -centred.shape[1]
        y_gradient = product  # whose memory is free again
        torch.addcmul((share * plain)[:, None], centred, (share * inverse * along)[:, None], out=y_gradient)
        y_gradient.addcmul_(rows, factor[:, None])
        entries = torch.ops.aten.leaky_relu_backward.grad_input(
            y_gradient, _exact(_rows(x)), ctx.slope, False, grad_input=y_gradient
        )
        x_gradient = _maps(entries.to(x.dtype), x)
        if scale is None:
            return x_gradient, None, None, None
        return x_gradient, along.to(scale.dtype), plain.to(scale.dtype), None


def _exact(x: Tensor) -> Tensor:
    """In float32 at least."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _rows(x: Tensor) -> Tensor:
    """(b, c, h, w) → (b, h·w, c), a view where memory is channels last."""
    return x.permute(0, 2, 3, 1).flatten(1, 2).contiguous()


def _maps(rows: Tensor, like: Tensor) -> Tensor:
    """(b, h·w, c) → (b, c, h, w), channels last."""
    num_images, _, num_channels = rows.shape
    return rows.view(num_images, *like.shape[2:], num_channels).permute(0, 3, 1, 2)
