"""Convolutions and dense layers whose backward passes are fast.

In their plain form they are PyTorch's own layers. On a GPU the backward pass computes weight gradients on a second
stream (``overlap.py``) and narrow convolutions by Triton kernels.

A gradient penalty differentiates the gradient of the inputs again, for which PyTorch convolves with kernels as large as
an image. Inside ``penalized()`` the second derivative uses the convolutions that are needed anyway.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import dispatch
from .norms import EPSILON, leaky_norm
from .overlap import Overlap, current_overlap

T = TypeVar("T")

_penalized: ContextVar[bool] = ContextVar("penalized", default=False)


@contextlib.contextmanager
def penalized() -> Iterator[None]:
    """Run a forward pass and the gradient of its inputs, and no others, that will be differentiated again."""
    token = _penalized.set(True)
    try:
        yield
    finally:
        _penalized.reset(token)


class Geometry(NamedTuple):
    """How a convolution moves over its input."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    transposed: bool


def conv_norm(
    conv: nn.Conv2d | nn.ConvTranspose2d,
    x: Tensor,
    slope: float,
    style: Tensor | None = None,
    *,
    epsilon: float = EPSILON,
) -> Tensor:
    """Return the convolution of x, with leaky ReLU and norm; see ``norms.leaky_norm``."""
    kernels = dispatch.uses_kernels(x)
    if dispatch.is_plain() or not (kernels or _penalized.get()):
        return leaky_norm(conv(x), slope, style, epsilon=epsilon)
    stride, padding = (conv.stride[0], conv.stride[1]), (int(conv.padding[0]), int(conv.padding[1]))
    geometry = Geometry(stride, padding, isinstance(conv, nn.ConvTranspose2d))
    overlap = current_overlap()
    if overlap is not None and kernels:
        overlap.note(conv.weight, conv.bias)
        out: Tensor = _ConvNorm.apply(  # type: ignore[no-untyped-call]
            x, conv.weight, conv.bias, style, geometry, slope, epsilon, overlap
        )
        return out
    maps = _Conv.apply(x, conv.weight, geometry, kernels, _penalized.get())  # type: ignore[no-untyped-call]
    return leaky_norm(maps, slope, style, conv.bias, epsilon=epsilon)  # adding the bias too saves a pass over memory


def pixel_conv(conv: nn.Conv2d, x: Tensor) -> Tensor:
    """Return a convolution to a few channels, (b, c, h, w) → (b, few, h, w); 1×1 ones by a kernel, in float32."""
    if dispatch.uses_kernels(x):
        from .kernels import pixel_conv as kernel

        if kernel.takes(conv.weight):
            out: Tensor = _PixelConv.apply(x, conv.weight, conv.bias)  # type: ignore[no-untyped-call]
            return out
    plain: Tensor = conv(x)
    return plain


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return a dense layer: x (b, n), weight (m, n), bias (m,) → (b, m)."""
    overlap = current_overlap()
    if overlap is None or not dispatch.uses_kernels(x):
        return F.linear(x, weight, bias)
    overlap.note(weight, bias)
    out: Tensor = _Linear.apply(x, weight, bias, overlap)  # type: ignore[no-untyped-call]
    return out


class _ConvNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        style: Tensor | None,
        geometry: Geometry,
        slope: float,
        epsilon: float,
        overlap: Overlap,
    ) -> Tensor:
        from .kernels import leaky_norm

        maps = _convolution(x, weight, geometry, kernels=True)
        if style is not None and len(style) != len(maps):  # one map for all images
            maps = maps.expand(len(style), -1, -1, -1).contiguous(memory_format=torch.channels_last)
        out, mean, inverse = leaky_norm.forward(maps, bias, style, slope, epsilon)
        ctx.save_for_backward(x, weight, bias, style, maps, mean, inverse)
        ctx.geometry, ctx.slope, ctx.overlap = geometry, slope, overlap
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from .kernels import leaky_norm
        from .kernels.sums import sum_rows

        x, weight, bias, style, maps, mean, inverse = ctx.saved_tensors
        geometry, overlap = ctx.geometry, ctx.overlap
        maps_grad, bias_rows, style_grad = leaky_norm.backward(gradient, maps, bias, style, mean, inverse, ctx.slope)
        if len(maps_grad) != len(x):
            maps_grad = sum_rows(maps_grad.permute(0, 2, 3, 1), maps_grad.dtype)[None].permute(0, 3, 1, 2)
        weight_grad = bias_grad = x_grad = None
        if ctx.needs_input_grad[1]:
            weight_grad = overlap.run(lambda: _weight_gradient(maps_grad, x, weight, geometry, True), maps_grad, x)
        if ctx.needs_input_grad[2]:
            bias_grad = overlap.sum_rows(bias_rows, bias.dtype)
        if ctx.needs_input_grad[0]:
            x_grad = _input_gradient(maps_grad, x, weight, geometry, True)
        return x_grad, weight_grad, bias_grad, style_grad, None, None, None, None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, overlap: Overlap) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.overlap = overlap
        return F.linear(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        weight_grad = bias_grad = None
        if ctx.needs_input_grad[1]:
            weight_grad = ctx.overlap.run(lambda: gradient.T @ x, gradient, x)
        if ctx.needs_input_grad[2]:
            bias_grad = ctx.overlap.sum_rows(gradient, gradient.dtype)
        return gradient @ weight if ctx.needs_input_grad[0] else None, weight_grad, bias_grad, None


class _Conv(torch.autograd.Function):
    """A convolution without a bias whose input gradient can be differentiated again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, geometry: Geometry, kernels: bool, penalized: bool) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry, ctx.kernels, ctx.penalized = geometry, kernels, penalized
        return _convolution(x, weight, geometry, kernels)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        nothing = (None, None, None)
        if torch.is_grad_enabled():
            if ctx.penalized:
                x_grad = _InputGradient.apply(gradient, x, weight, ctx.geometry, ctx.kernels)  # type: ignore[no-untyped-call]
                return x_grad, None, *nothing
            mask = [*ctx.needs_input_grad[:2], False]
            return *_convolution_backward(gradient, x, weight, ctx.geometry, mask)[:2], *nothing
        how = ctx.geometry, ctx.kernels
        x_grad = _input_gradient(gradient, x, weight, *how) if ctx.needs_input_grad[0] else None
        weight_grad = _weight_gradient(gradient, x, weight, *how) if ctx.needs_input_grad[1] else None
        return x_grad, weight_grad, *nothing


class _InputGradient(torch.autograd.Function):
    """The gradient of a convolution's input: linear in the gradient of the output, and the convolution's transpose.

    Hence ⟨v, it⟩ = ⟨convolution of v, gradient of the output⟩ for every v, from which its own derivatives follow.
    """

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, kernels: bool) -> Tensor:
        ctx.save_for_backward(gradient, weight)
        ctx.geometry, ctx.kernels = geometry, kernels
        return _input_gradient(gradient, x, weight, geometry, kernels)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        gradient, weight = ctx.saved_tensors
        gradient_grad = _convolution(cotangent, weight, ctx.geometry, ctx.kernels)
        weight_grad = _weight_gradient(gradient, cotangent, weight, ctx.geometry, ctx.kernels)
        return gradient_grad, None, weight_grad, None, None


class _PixelConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        from .kernels import pixel_conv

        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return pixel_conv.forward(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from .kernels import pixel_conv

        x_grad, weight_grad, bias_grad = pixel_conv.backward(gradient, *ctx.saved_tensors)
        return x_grad, weight_grad, bias_grad if ctx.has_bias else None


def _convolution(x: Tensor, weight: Tensor, geometry: Geometry, kernels: bool) -> Tensor:
    if kernels:
        from .kernels import image_conv, narrow_conv

        if image_conv.takes(weight, *geometry):
            return image_conv.forward(x, weight)
        if _divides_evenly(x, geometry) and narrow_conv.takes(x, weight, *geometry):
            return narrow_conv.forward(x, weight, geometry.transposed)
    convolve: Callable[..., Tensor] = F.conv_transpose2d if geometry.transposed else F.conv2d
    return convolve(x, weight, None, geometry.stride, geometry.padding)


def _weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, kernels: bool) -> Tensor:
    if kernels:
        from .kernels import image_conv, narrow_conv

        if image_conv.takes(weight, *geometry):
            return image_conv.weight_gradient(gradient, x, weight)
        if _divides_evenly(x, geometry) and narrow_conv.takes_weights(gradient, x, weight, *geometry):
            return narrow_conv.weight_gradient(gradient, x, weight, geometry.transposed)
    return _convolution_backward(gradient, x, weight, geometry, [False, True, False])[1]


def _input_gradient(gradient: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, kernels: bool) -> Tensor:
    if kernels:
        from .kernels import image_conv, narrow_conv

        if image_conv.takes(weight, *geometry):
            return image_conv.input_gradient(gradient, weight)
        reverse = geometry._replace(transposed=not geometry.transposed)
        if _divides_evenly(x, geometry) and narrow_conv.takes(gradient, weight, *reverse):
            return narrow_conv.forward(gradient, weight, reverse.transposed)
    return _convolution_backward(gradient, x, weight, geometry, [True, False, False])[0]


def _divides_evenly(x: Tensor, geometry: Geometry) -> bool:
    """Return whether the stride leaves no remainder, so that the output's size determines that of the input."""
    return geometry.transposed or all(n % s == 0 for n, s in zip(x.shape[2:], geometry.stride, strict=True))


def _convolution_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, mask: list[bool]
) -> tuple[Tensor, ...]:
    """Return the gradients of x, of the weights and of a bias, those that the mask asks for."""
    stride, padding, transposed = geometry
    gradients: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, stride, padding, (1, 1), transposed, (0, 0), 1, mask
    )
    return gradients
