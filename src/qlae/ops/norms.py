"""Leaky ReLU, instance norm and style as one operation.

With y = leaky(x + bias), mean μ and variance v of y over the pixels of each channel of each image, and σ² = v + ε,

    out = (y − μ) / σ · scale + shift.

Every layer of the networks ends this way, the encoder's without scale and shift. Statistics are computed in float32,
whatever the type of x.

The fused form writes the backward pass out: it stores less and goes over memory fewer times than automatic
differentiation of the plain form, and unlike PyTorch's own norms it is as fast in channels-last memory, where
convolutions are fastest. The same holds for the backward pass of the backward pass, which a gradient penalty needs. On
a GPU each is one kernel (``kernels/leaky_norm.py``).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import dispatch

EPSILON = 1e-5


def leaky_norm(
    x: Tensor,
    slope: float,
    style: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = EPSILON,
) -> Tensor:
    """Return the norm of feature maps.

    Args:
        x: (b, c, h, w); or (1, c, h, w), one map that is styled b times.
        slope: of the leaky ReLU; 1 for none.
        style: scales and shifts side by side, (b, 2c).
        bias: (c,), for callers whose preceding convolution has no bias.
        epsilon: constant that is added to the variance.

    Returns:
        (b, c, h, w), channels last.
    """
    if dispatch.is_plain():
        return plain_leaky_norm(x, slope, style, bias, epsilon=epsilon)
    if style is not None and x.shape[0] != style.shape[0]:  # one map for all images
        scale, shift = style.chunk(2, 1)
        normed = _rows(leaky_norm(x, slope, None, bias, epsilon=epsilon))
        return _maps(torch.addcmul(shift[:, None], normed, scale[:, None]), x)
    kernels = dispatch.uses_kernels(x)
    if bias is not None and not kernels:
        x, bias = x + bias[:, None, None], None
    out: Tensor = _LeakyNorm.apply(x, bias, style, slope, epsilon, kernels)  # type: ignore[no-untyped-call]
    return out


def plain_leaky_norm(
    x: Tensor,
    slope: float,
    style: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = EPSILON,
) -> Tensor:
    """Return the same result with one PyTorch operation after the other; this is the definition."""
    y = F.leaky_relu(_exact(x if bias is None else x + bias[:, None, None]), slope)
    centred = y - y.mean((2, 3), keepdim=True)
    out = centred * (centred.square().mean((2, 3), keepdim=True) + epsilon).rsqrt()
    if style is not None:
        scale, shift = _exact(style)[:, :, None, None].chunk(2, 1)
        out = torch.addcmul(shift, out, scale)
    return out.to(x.dtype)


class _LeakyNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        bias: Tensor | None,
        style: Tensor | None,
        slope: float,
        epsilon: float,
        kernels: bool,
    ) -> Tensor:
        if kernels:
            from .kernels import leaky_norm as kernel

            out, centre, inverse = kernel.forward(x, bias, style, slope, epsilon)
        else:
            out, centre, inverse = _forward(x, style, slope, epsilon)
        ctx.save_for_backward(x, bias, style, centre, inverse)
        ctx.slope, ctx.epsilon, ctx.kernels = slope, epsilon, kernels
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, bias, style, centre, inverse = ctx.saved_tensors
        how = ctx.slope, ctx.kernels
        nothing = (None, None, None)
        if torch.is_grad_enabled():  # to be differentiated again
            if style is None:
                return *_Gradient.apply(gradient, x, bias, centre, inverse, *how), None, *nothing  # type: ignore[no-untyped-call]
            inputs = [t for t in (x, bias, style) if t is not None]
            out = plain_leaky_norm(x, ctx.slope, style, bias, epsilon=ctx.epsilon)
            gradients = iter(torch.autograd.grad(out, inputs, gradient, create_graph=True))
            return *(None if t is None else next(gradients) for t in (x, bias, style)), *nothing
        return *_backward(gradient, x, bias, style, centre, inverse, *how), *nothing


class _Gradient(torch.autograd.Function):
    """The backward pass without a style, as an operation that can be differentiated once more.

    With n = (y − μ) / σ and means over the pixels of a channel, the gradient of x is

        v = leaky'(x) · (g − mean(g) − n · mean(g · n)) / σ.

    For a cotangent of v, let w = leaky'(x) · cotangent. The expression is symmetric in g and w, so g's is
    (w − mean(w) − n · mean(w · n)) / σ, and that of y, with a = mean(w · n), b = mean(g · n) and
    c = mean(w · g) − mean(w) · mean(g), is −(n · (c − 3 a b) + a · (g − mean(g)) + b · (w − mean(w))) / σ².
    """

    @staticmethod
    def forward(
        ctx: Any,
        gradient: Tensor,
        x: Tensor,
        bias: Tensor | None,
        centre: Tensor,
        inverse: Tensor,
        slope: float,
        kernels: bool,
    ) -> tuple[Tensor | None, ...]:
        ctx.save_for_backward(gradient, x, bias, centre, inverse)
        ctx.slope, ctx.kernels = slope, kernels
        ctx.set_materialize_grads(False)
        x_grad, bias_grad, _ = _backward(gradient, x, bias, None, centre, inverse, slope, kernels)
        return x_grad, bias_grad

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor | None, bias_cotangent: Tensor | None = None) -> tuple[Tensor | None, ...]:
        gradient, x, bias, centre, inverse = ctx.saved_tensors
        if bias_cotangent is not None:  # the bias's gradient is the sum of that of x
            cotangent = bias_cotangent[:, None, None].expand_as(x) + (0 if cotangent is None else cotangent)
        if cotangent is None:
            return (None,) * 7
        if ctx.kernels:
            from .kernels import leaky_norm as kernel
            from .kernels.sums import sum_rows

            g_grad, x_grad, sums = kernel.backward_again(cotangent, gradient, x, bias, centre, inverse, ctx.slope)
            bias_grad = None if bias is None else sum_rows(sums, bias.dtype)
            return g_grad, x_grad, bias_grad, None, None, None, None
        return *_backward_again(cotangent, gradient, x, centre, inverse, ctx.slope), None, None, None, None, None


def _backward(
    gradient: Tensor,
    x: Tensor,
    bias: Tensor | None,
    style: Tensor | None,
    centre: Tensor,
    inverse: Tensor,
    slope: float,
    kernels: bool,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, bias and style; ``centre`` is μ after a kernel's forward pass, y − μ otherwise."""
    if kernels:
        from .kernels import leaky_norm as kernel
        from .kernels.sums import sum_rows

        x_grad, sums, style_grad = kernel.backward(gradient, x, bias, style, centre, inverse, slope)
        return x_grad, None if bias is None else sum_rows(sums, bias.dtype), style_grad
    x_grad, style_grad = _backward_fused(gradient, x, style, centre, inverse, slope)
    return x_grad, None, style_grad


def _forward(x: Tensor, style: Tensor | None, slope: float, epsilon: float) -> tuple[Tensor, ...]:
    """Return out, y − μ (b, h·w, c) and 1 / σ (b, c)."""
    y = F.leaky_relu(_exact(_rows(x)), slope)
    centred = y.sub_(y.mean(1, keepdim=True))
    inverse = centred.square().mean(1).add_(epsilon).rsqrt_()
    if style is None:
        out = centred * inverse[:, None]
    else:
        scale, shift = _exact(style).chunk(2, 1)
        out = torch.addcmul(shift[:, None], centred, (scale * inverse)[:, None])
    return _maps(out.to(x.dtype), x), centred, inverse


def _backward_fused(
    gradient: Tensor, x: Tensor, style: Tensor | None, centred: Tensor, inverse: Tensor, slope: float
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of x and of the style; the latter are the sums of g · n and g over pixels."""
    rows = _exact(_rows(gradient))
    plain = rows.sum(1)
    product = rows * centred
    along = product.sum(1) * inverse
    factor = inverse if style is None else inverse * style[:, : inverse.shape[1]]
    share = factor / -centred.shape[1]
    y_gradient = product  # reuses its memory
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
    """Return the cotangents of the gradient and of x; see ``_Gradient``."""
    entries = _exact(_rows(x))
    g = _exact(_rows(gradient))
    w = torch.ops.aten.leaky_relu_backward(_exact(_rows(cotangent)), entries, slope, False)
    inverse = inverse[:, None]
    n = centred * inverse
    g, w = g - g.mean(1, keepdim=True), w - w.mean(1, keepdim=True)
    a, b, c = ((first * second).mean(1, keepdim=True) for first, second in ((w, n), (g, n), (w, g)))
    g_grad = (w - n * a) * inverse
    y_grad = (n * (3 * a * b - c) - a * g - b * w) * inverse.square()
    x_grad = torch.ops.aten.leaky_relu_backward(y_grad, entries, slope, False)
    return _maps(g_grad.to(x.dtype), x), _maps(x_grad.to(x.dtype), x)


def _exact(x: Tensor) -> Tensor:
    """Return x in float32 at least."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _rows(x: Tensor) -> Tensor:
    """Return (b, c, h, w) as (b, h·w, c), a view if memory is channels last."""
    return x.permute(0, 2, 3, 1).flatten(1, 2).contiguous()


def _maps(rows: Tensor, like: Tensor) -> Tensor:
    """Return (b, h·w, c) as (b, c, h, w), channels last."""
    num_images, _, num_channels = rows.shape
    return rows.view(num_images, *like.shape[2:], num_channels).permute(0, 3, 1, 2)
