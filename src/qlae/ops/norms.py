"""Leaky ReLU, instance norm and style as one operation.

With y = leaky(x + bias), mean μ and standard deviation σ of y over the pixels of each channel of each image,

    out = (y − μ) / σ · scale + shift.

Every layer of the networks ends so, the encoder's without scale and shift. Statistics are in float32 whatever the type
of x. The backward pass is written out: it keeps less and takes fewer passes over memory than one operation after the
other, and unlike torch's own norms it is as fast in channels-last memory, where convolutions are fastest. So is the
backward pass of the backward pass, which a gradient penalty takes. On a GPU each is one kernel
(``kernels/leaky_norm.py``).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import kernels

EPSILON = 1e-5


def leaky_norm(x: Tensor, slope: float, style: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """The norm of feature maps.

    Args:
        x: (b, c, h, w).
        slope: of the leaky ReLU; 1 for none.
        style: scales and shifts side by side, (b, 2c); with x of one image, which is then styled b times, (any, 2c).
        bias: (c,), for who leaves it out of the convolution before.

    Returns:
        (b, c, h, w), channels last.
    """
    if style is not None and x.shape[0] != style.shape[0]:  # one map for all images
        scale, shift = style.chunk(2, 1)
        return _maps(torch.addcmul(shift[:, None], _rows(leaky_norm(x, slope, None, bias)), scale[:, None]), x)
    if bias is not None and not kernels.usable(x):
        x, bias = x + bias[:, None, None], None
    out: Tensor = _LeakyNorm.apply(x, bias, style, slope)  # type: ignore[no-untyped-call]
    return out


def plain_leaky_norm(x: Tensor, slope: float, style: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """The same, operation by operation."""
    y = F.leaky_relu(_exact(x if bias is None else x + bias[:, None, None]), slope)
    centred = y - y.mean((2, 3), keepdim=True)
    out = centred * (centred.square().mean((2, 3), keepdim=True) + EPSILON).rsqrt()
    if style is not None:
        scale, shift = _exact(style)[:, :, None, None].chunk(2, 1)
        out = torch.addcmul(shift, out, scale)
    return out.to(x.dtype)


class _LeakyNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor | None, style: Tensor | None, slope: float) -> Tensor:
        if kernels.usable(x):
            from .kernels import leaky_norm as kernel

            out, centre, inverse = kernel.forward(x, bias, style, slope, EPSILON)
        else:
            out, centre, inverse = _forward(x, style, slope)
        ctx.save_for_backward(x, bias, style, centre, inverse)
        ctx.slope = slope
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, bias, style, centre, inverse = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again
            if style is None:
                return *_Gradient.apply(gradient, x, bias, centre, inverse, ctx.slope), None, None  # type: ignore[no-untyped-call]
            inputs = [t for t in (x, bias, style) if t is not None]
            out = plain_leaky_norm(x, ctx.slope, style, bias)
            found = iter(torch.autograd.grad(out, inputs, gradient, create_graph=True))
            return *(None if t is None else next(found) for t in (x, bias, style)), None
        return *_backward(gradient, x, bias, style, centre, inverse, ctx.slope), None


class _Gradient(torch.autograd.Function):
    """The backward pass without a style, as an operation of its own: it can be differentiated once more.

    With n = (y − μ) / σ and means over the pixels of a channel, the gradient of x is

        v = leaky'(x) · (g − mean(g) − n · mean(g · n)) / σ.

    For a cotangent of v, let w = leaky'(x) · cotangent. The expression is symmetric in g and w, so g's is
    (w − mean(w) − n · mean(w · n)) / σ, and that of y, with a = mean(w · n), b = mean(g · n) and
    c = mean(w · g) − mean(w) · mean(g), is −(n · (c − 3 a b) + a · (g − mean(g)) + b · (w − mean(w))) / σ².
    """

    @staticmethod
    def forward(
        ctx: Any, gradient: Tensor, x: Tensor, bias: Tensor | None, centre: Tensor, inverse: Tensor, slope: float
    ) -> tuple[Tensor | None, ...]:
        ctx.save_for_backward(gradient, x, bias, centre, inverse)
        ctx.slope = slope
        ctx.set_materialize_grads(False)
        x_gradient, bias_gradient, _ = _backward(gradient, x, bias, None, centre, inverse, slope)
        return x_gradient, bias_gradient

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor | None, bias_cotangent: Tensor | None = None) -> tuple[Tensor | None, ...]:
        gradient, x, bias, centre, inverse = ctx.saved_tensors
        if bias_cotangent is not None:  # the bias's gradient is the sum of that of x
            cotangent = bias_cotangent[:, None, None].expand_as(x) + (0 if cotangent is None else cotangent)
        if cotangent is None:
            return (None,) * 6
        if kernels.usable(x):
            from .kernels import leaky_norm as kernel
            from .kernels.sums import sum_rows

            found, x_found, sums = kernel.backward_again(cotangent, gradient, x, bias, centre, inverse, ctx.slope)
            of_bias = None if bias is None else sum_rows(sums, bias.dtype)
            return found, x_found, of_bias, None, None, None
        return *_backward_again(cotangent, gradient, x, centre, inverse, ctx.slope), None, None, None, None


def _backward(
    gradient: Tensor,
    x: Tensor,
    bias: Tensor | None,
    style: Tensor | None,
    centre: Tensor,
    inverse: Tensor,
    slope: float,
) -> tuple[Tensor | None, ...]:
    """The gradients of x, bias and style; ``centre`` is μ after a kernel's forward pass, y − μ after torch's."""
    if kernels.usable(x):
        from .kernels import leaky_norm as kernel
        from .kernels.sums import sum_rows

        x_gradient, sums, style_gradient = kernel.backward(gradient, x, bias, style, centre, inverse, slope)
        return x_gradient, None if bias is None else sum_rows(sums, bias.dtype), style_gradient
    x_gradient, style_gradient = _backward_by_torch(gradient, x, style, centre, inverse, slope)
    return x_gradient, None, style_gradient


def _forward(x: Tensor, style: Tensor | None, slope: float) -> tuple[Tensor, ...]:
    """out, y − μ (b, h·w, c) and 1 / σ (b, c)."""
    y = F.leaky_relu(_exact(_rows(x)), slope)
    centred = y.sub_(y.mean(1, keepdim=True))
    inverse = centred.square().mean(1).add_(EPSILON).rsqrt_()
    if style is None:
        out = centred * inverse[:, None]
    else:
        scale, shift = _exact(style).chunk(2, 1)
        out = torch.addcmul(shift[:, None], centred, (scale * inverse)[:, None])
    return _maps(out.to(x.dtype), x), centred, inverse


def _backward_by_torch(
    gradient: Tensor, x: Tensor, style: Tensor | None, centred: Tensor, inverse: Tensor, slope: float
) -> tuple[Tensor, Tensor | None]:
    """The gradients of x and of the style, which are the sums of g · n and g over pixels."""
    rows = _exact(_rows(gradient))
    plain = rows.sum(1)
    product = rows * centred
    along = product.sum(1) * inverse
    factor = inverse if style is None else inverse * style[:, : inverse.shape[1]]
    share = factor / -centred.shape[1]
    y_gradient = product  # whose memory is free again
    torch.addcmul((share * plain)[:, None], centred, (share * inverse * along)[:, None], out=y_gradient)
    y_gradient.addcmul_(rows, factor[:, None])
    entries = torch.ops.aten.leaky_relu_backward.grad_input(
        y_gradient, _exact(_rows(x)), slope, False, grad_input=y_gradient
    )
    style_gradient = None if style is None else torch.cat((along, plain), 1).to(style.dtype)
    return _maps(entries.to(x.dtype), x), style_gradient


def _backward_again(
    cotangent: Tensor, gradient: Tensor, x: Tensor, centred: Tensor, inverse: Tensor, slope: float
) -> tuple[Tensor, Tensor]:
    """The cotangents of the gradient and of x; see ``_Gradient``."""
    entries = _exact(_rows(x))
    g = _exact(_rows(gradient))
    w = torch.ops.aten.leaky_relu_backward(_exact(_rows(cotangent)), entries, slope, False)
    inverse = inverse[:, None]
    n = centred * inverse
    g, w = g - g.mean(1, keepdim=True), w - w.mean(1, keepdim=True)
    a, b, c = ((first * second).mean(1, keepdim=True) for first, second in ((w, n), (g, n), (w, g)))
    found = (w - n * a) * inverse
    y_found = (n * (3 * a * b - c) - a * g - b * w) * inverse.square()
    x_found = torch.ops.aten.leaky_relu_backward(y_found, entries, slope, False)
    return _maps(found.to(x.dtype), x), _maps(x_found.to(x.dtype), x)


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
