"""The layers' operations, arranged so that their backward passes are fast.

A layer's backward pass has two parts: the gradient of its input, on which all earlier layers wait, and that of its
weights, on which nothing waits before the optimizer. Inside ``all_at_once()`` a GPU does the second beside the first,
on a stream of its own. Many layers are too small to fill it, so the two overlap.

A gradient penalty differentiates the gradient of the inputs again, which torch does by convolutions with kernels as
large as an image. Inside ``penalised()`` it takes those that it needs anyway.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import kernels
from .norms import EPSILON, leaky_norm

T = TypeVar("T")


class Beside:
    """A second stream, for work that nothing waits for until ``join``."""

    def __init__(self, device: torch.device):
        self._stream = torch.cuda.Stream(device)
        self._held: list[Tensor] = []
        self._sums: list[tuple[Tensor, Tensor]] = []  # rows, and where their sum goes

    def run(self, work: Callable[[], T], *used: Tensor) -> T:
        """Start work on tensors that are ready on the current stream; they are kept until it is done."""
        self._stream.wait_stream(torch.cuda.current_stream())
        self._held += used
        with torch.cuda.stream(self._stream):
            return work()

    def sum_rows(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """(n, m) → (m,), at ``join``: the sums of all layers at once, since each alone hardly takes longer to do than
        to launch."""
        out = torch.empty(rows.shape[1:], dtype=dtype, device=rows.device)
        self._sums.append((rows, out))
        return out

    def join(self) -> None:
        """Take the sums, and let the current stream wait for all the rest."""
        from .kernels.sums import sum_rows

        sums, self._sums = self._sums, []
        for dtype in dict.fromkeys(rows.dtype for rows, _ in sums):
            rows, outs = zip(*(pair for pair in sums if pair[0].dtype == dtype), strict=True)
            found = sum_rows(torch.cat(rows, 1), torch.float32)
            torch._foreach_copy_(outs, found.split([len(out) for out in outs]))
        torch.cuda.current_stream().wait_stream(self._stream)
        self._held.clear()


_beside_on = cache(Beside)  # by device
_beside: Beside | None = None
_penalised = False


@contextlib.contextmanager
def all_at_once(device: torch.device) -> Iterator[None]:
    """For a forward and a backward pass in which every weight is used once, and its gradient is wanted.

    Gradients may be used after it, not within.
    """
    global _beside
    if device.type != "cuda" or not kernels.enabled:
        yield
        return
    _beside = _beside_on(device)
    try:
        yield
    finally:
        _beside.join()
        _beside = None


@contextlib.contextmanager
def penalised() -> Iterator[None]:
    """For a forward pass and the gradient of its inputs, and no others, that is to be differentiated again."""
    global _penalised
    _penalised = True
    try:
        yield
    finally:
        _penalised = False


class Arrangement(NamedTuple):
    """How a convolution goes over its input."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    transposed: bool


def conv_norm(conv: nn.Conv2d | nn.ConvTranspose2d, x: Tensor, slope: float, style: Tensor | None = None) -> Tensor:
    """Convolution, leaky ReLU and norm; see ``norms.leaky_norm``."""
    if not kernels.usable(x) and not _penalised:
        return leaky_norm(conv(x), slope, style)
    stride, padding = (conv.stride[0], conv.stride[1]), (int(conv.padding[0]), int(conv.padding[1]))
    arrangement = Arrangement(stride, padding, isinstance(conv, nn.ConvTranspose2d))
    if _beside is not None:
        out: Tensor = _ConvNorm.apply(x, conv.weight, conv.bias, style, arrangement, slope)  # type: ignore[no-untyped-call]
        return out
    maps = _Conv.apply(x, conv.weight, arrangement)  # type: ignore[no-untyped-call]
    return leaky_norm(maps, slope, style, conv.bias)  # which takes the bias along and saves a pass over memory


def pixel_conv(conv: nn.Conv2d, x: Tensor) -> Tensor:
    """A convolution to a few channels, (b, c, h, w) → (b, few, h, w); over single pixels by a kernel, in float32."""
    if kernels.usable(x):
        from .kernels import pixel_conv as kernel

        if kernel.takes(conv.weight):
            out: Tensor = _PixelConv.apply(x, conv.weight, conv.bias)  # type: ignore[no-untyped-call]
            return out
    plain: Tensor = conv(x)
    return plain


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x (b, n), weight (m, n), bias (m,) → (b, m)."""
    if _beside is None:
        return F.linear(x, weight, bias)
    out: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


class _ConvNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        style: Tensor | None,
        arrangement: Arrangement,
        slope: float,
    ) -> Tensor:
        from .kernels import leaky_norm

        maps = _convolution(x, weight, arrangement)
        if style is not None and len(style) != len(maps):  # one map for all images
            maps = maps.expand(len(style), -1, -1, -1).contiguous(memory_format=torch.channels_last)
        out, mean, inverse = leaky_norm.forward(maps, bias, style, slope, EPSILON)
        ctx.save_for_backward(x, weight, bias, style, maps, mean, inverse)
        ctx.arrangement, ctx.slope = arrangement, slope
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from .kernels import leaky_norm
        from .kernels.sums import sum_rows

        x, weight, bias, style, maps, mean, inverse = ctx.saved_tensors
        found, total, of_style = leaky_norm.backward(gradient, maps, bias, style, mean, inverse, ctx.slope)
        if len(found) != len(x):
            found = sum_rows(found.permute(0, 2, 3, 1), found.dtype)[None].permute(0, 3, 1, 2)
        of_weight = _aside(lambda: _weight_gradient(found, x, weight, ctx.arrangement), found, x)
        of_bias = None if bias is None else _sum_later(total, bias.dtype)
        of_x = _input_gradient(found, x, weight, ctx.arrangement) if ctx.needs_input_grad[0] else None
        return of_x, of_weight, of_bias, of_style, None, None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_weight = _aside(lambda: gradient.T @ x, gradient, x)
        of_bias = _sum_later(gradient, gradient.dtype)
        return gradient @ weight if ctx.needs_input_grad[0] else None, of_weight, of_bias


def _aside(work: Callable[[], T], *used: Tensor) -> T:
    return work() if _beside is None else _beside.run(work, *used)


def _sum_later(rows: Tensor, dtype: torch.dtype) -> Tensor:
    """The sum (m,) of rows (n, m), which may not be used before the work aside is joined."""
    return rows.sum(0).to(dtype) if _beside is None else _beside.sum_rows(rows, dtype)


class _Conv(torch.autograd.Function):
    """A convolution without a bias, the gradient of whose input can be differentiated again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, arrangement: Arrangement) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.arrangement = arrangement
        return _convolution(x, weight, arrangement)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            if _penalised:
                return _InputGradient.apply(gradient, x, weight, ctx.arrangement), None, None  # type: ignore[no-untyped-call]
            mask = [*ctx.needs_input_grad[:2], False]
            return *_convolution_backward(gradient, x, weight, ctx.arrangement, mask)[:2], None
        of_x = _input_gradient(gradient, x, weight, ctx.arrangement) if ctx.needs_input_grad[0] else None
        of_weight = _weight_gradient(gradient, x, weight, ctx.arrangement) if ctx.needs_input_grad[1] else None
        return of_x, of_weight, None


class _InputGradient(torch.autograd.Function):
    """The gradient of a convolution's input: a linear map of that of the output, and the convolution's transpose.

    Hence ⟨v, it⟩ = ⟨convolution of v, gradient of the output⟩ for every v, which says what its own derivatives are.
    """

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, x: Tensor, weight: Tensor, arrangement: Arrangement) -> Tensor:
        ctx.save_for_backward(gradient, weight)
        ctx.arrangement = arrangement
        return _input_gradient(gradient, x, weight, arrangement)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        gradient, weight = ctx.saved_tensors
        of_gradient = _convolution(cotangent, weight, ctx.arrangement)
        return of_gradient, None, _weight_gradient(gradient, cotangent, weight, ctx.arrangement), None


class _PixelConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        from .kernels import pixel_conv

        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return pixel_conv.forward(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from .kernels import pixel_conv

        of_x, of_weight, of_bias = pixel_conv.backward(gradient, *ctx.saved_tensors)
        return of_x, of_weight, of_bias if ctx.biased else None


def _convolution(x: Tensor, weight: Tensor, arrangement: Arrangement) -> Tensor:
    if kernels.usable(x):
        from .kernels import image_conv, narrow_conv

        if image_conv.takes(weight, *arrangement):
            return image_conv.forward(x, weight)
        if _is_even(x, arrangement) and narrow_conv.takes(x, weight, *arrangement):
            return narrow_conv.forward(x, weight, arrangement.transposed)
    convolve = F.conv_transpose2d if arrangement.transposed else F.conv2d
    return convolve(x, weight, None, arrangement.stride, arrangement.padding)


def _weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor, arrangement: Arrangement) -> Tensor:
    if kernels.usable(x):
        from .kernels import image_conv, narrow_conv

        if image_conv.takes(weight, *arrangement):
            return image_conv.weight_gradient(gradient, x, weight)
        if _is_even(x, arrangement) and narrow_conv.takes_weights(gradient, x, weight, *arrangement):
            return narrow_conv.weight_gradient(gradient, x, weight, arrangement.transposed)
    return _convolution_backward(gradient, x, weight, arrangement, [False, True, False])[1]


def _input_gradient(gradient: Tensor, x: Tensor, weight: Tensor, arrangement: Arrangement) -> Tensor:
    if kernels.usable(x):
        from .kernels import image_conv, narrow_conv

        if image_conv.takes(weight, *arrangement):
            return image_conv.input_gradient(gradient, weight)
        back = arrangement._replace(transposed=not arrangement.transposed)
        if _is_even(x, arrangement) and narrow_conv.takes(gradient, weight, *back):
            return narrow_conv.forward(gradient, weight, back.transposed)
    return _convolution_backward(gradient, x, weight, arrangement, [True, False, False])[0]


def _is_even(x: Tensor, arrangement: Arrangement) -> bool:
    """Whether a stride leaves no rest, so that a convolution's output tells the size of its input."""
    return arrangement.transposed or all(n % s == 0 for n, s in zip(x.shape[2:], arrangement.stride, strict=True))


def _convolution_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, arrangement: Arrangement, mask: list[bool]
) -> tuple[Tensor, ...]:
    """The gradients of x, of the weights and of a bias, those that the mask says."""
    stride, padding, transposed = arrangement
    found: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, stride, padding, (1, 1), transposed, (0, 0), 1, mask
    )
    return found
