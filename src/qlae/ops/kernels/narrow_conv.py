"""Convolutions with few channels at high resolution, and their gradients: 3×3, and 4×4 of stride 2, also transposed.

Each output of a 3×3 convolution depends on nine pixels. Libraries load every pixel nine times from the cache, and with
few channels there is not enough arithmetic to hide these loads. Here a program moves down the rows of an image and
loads each row once. The products of an input row are added to all output rows that it contributes to: the row above is
completed, and the row below is started. The next input row is prefetched meanwhile.

A row is loaded in one of two ways. As windows, each pixel comes together with its left and right neighbours, which are
adjacent in memory. Where windows would pad the products with zeros, the pixels, their left neighbours and their right
neighbours are loaded separately.

Memory is channels last. A tile is one row of pixels, or the same row of several images if a row is narrower than a
tile.
"""

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch
from .sums import PROGRAMS, channels_last, sum_rows

PIXELS = 64  # per tile

# Convolutions that were measured to be faster than in a library. Keys: the side of the kernel, the number of moving
# channels (those that are shifted over the positions of the kernel), and the number of output channels or, for
# gradients of weights, of still channels. Values: the widths of rows.
FORWARD = {
    (3, 32, 32): (32, 64),
    (3, 32, 64): (32, 64),
    (3, 64, 32): (32,),
    (3, 64, 64): (32,),
    (4, 32, 32): (32, 64),
}
WEIGHTS = {kind: widths for kind, widths in FORWARD.items() if kind[1] == 32}


@triton.jit
def _place(unit, bands, WIDTH: tl.constexpr, ROWS: tl.constexpr, PIXELS: tl.constexpr):
    """Return the images and columns of a tile's pixels, and the first of its rows."""
    pixels = tl.arange(0, PIXELS)
    images = unit // bands * (PIXELS // WIDTH) + pixels // WIDTH
    return images, pixels % WIDTH, unit % bands * ROWS


@triton.jit
def _starts(images, row, columns, height, WIDTH: tl.constexpr, CHANNELS: tl.constexpr):
    """Return the offsets of pixels in memory."""
    return ((images.to(tl.int64) * height + row) * WIDTH + columns) * CHANNELS


@triton.jit
def _window(
    x_ptr,
    images,
    row,
    columns,  # the first of each window
    num_images,
    end,  # of the requested rows
    height,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    TAPS: tl.constexpr,
    LENGTH: tl.constexpr,
):
    """Load (pixels, length): ``TAPS`` adjacent pixels for each, padded with zeros; 0 outside of the images."""
    k = tl.arange(0, LENGTH)
    there = (images < num_images) & (row >= 0) & (row < tl.minimum(end, height))
    column = columns[:, None] + (k // CHANNELS)[None, :]
    inside = there[:, None] & (column >= 0) & (column < WIDTH) & (k < TAPS * CHANNELS)[None, :]
    starts = _starts(images, row, columns, height, WIDTH, CHANNELS)
    return tl.load(x_ptr + starts[:, None] + k[None, :], mask=inside, other=0.0)


@triton.jit
def _pixels(x_ptr, images, row, columns, num_images, first, end, height, WIDTH: tl.constexpr, CHANNELS: tl.constexpr):
    """Load (pixels, channels); 0 outside of the images and of the requested rows."""
    channels = tl.arange(0, CHANNELS)
    there = (images < num_images) & (row >= tl.maximum(first, 0)) & (row < tl.minimum(end, height))
    inside = there & (columns >= 0) & (columns < WIDTH)
    starts = _starts(images, row, columns, height, WIDTH, CHANNELS)
    return tl.load(x_ptr + starts[:, None] + channels[None, :], mask=inside[:, None], other=0.0)


@triton.jit
def _store_row(
    out_ptr, out, images, row, columns, num_images, wanted, height, WIDTH: tl.constexpr, CHANNELS: tl.constexpr
):
    channels = tl.arange(0, CHANNELS)
    starts = _starts(images, row, columns, height, WIDTH, CHANNELS)
    here = ((images < num_images) & wanted)[:, None]
    tl.store(out_ptr + starts[:, None] + channels[None, :], out.to(out_ptr.dtype.element_ty), mask=here)


@triton.jit
def _weights(weight_ptr, down, CHANNELS: tl.constexpr, OUT: tl.constexpr, SIDE: tl.constexpr, LENGTH: tl.constexpr):
    """Load (length, out): one row of kernels that are stored as (out, side, side, channels)."""
    k = tl.arange(0, LENGTH)
    out = tl.arange(0, OUT)
    places = out[None, :] * (SIDE * SIDE * CHANNELS) + down * SIDE * CHANNELS + k[:, None]
    return tl.load(weight_ptr + places, mask=(k < SIDE * CHANNELS)[:, None], other=0.0)


@triton.jit
def _tap_weights(
    weight_ptr, down: tl.constexpr, right: tl.constexpr, TURNED: tl.constexpr, CHANNELS: tl.constexpr, OUT: tl.constexpr
):
    """Load (channels, out): one position of 3×3 kernels, stored as (out, side, side, channels).

    Turned kernels are rotated by 180° and stored as (channels, side, side, out).
    """
    channels = tl.arange(0, CHANNELS)[:, None]
    out = tl.arange(0, OUT)[None, :]
    place: tl.constexpr = down * 3 + right
    if TURNED:
        return tl.load(weight_ptr + (channels * 9 + 8 - place) * OUT + out)
    else:
        return tl.load(weight_ptr + (out * 9 + place) * CHANNELS + channels)


@triton.jit
def _pair_weights(weight_ptr, down, CHANNELS: tl.constexpr, OUT: tl.constexpr, LENGTH: tl.constexpr):
    """Load (length, 2 · out): one row of 4×4 kernels (channels, side, side, out), from three inputs to two outputs."""
    k = tl.arange(0, LENGTH)
    n = tl.arange(0, 2 * OUT)
    right = 3 - 2 * (k // CHANNELS)[:, None] + (n // OUT)[None, :]
    places = ((k % CHANNELS)[:, None] * 16 + down * 4 + right) * OUT + (n % OUT)[None, :]
    here = (k < 3 * CHANNELS)[:, None] & (right >= 0) & (right < 4)
    return tl.load(weight_ptr + places, mask=here, other=0.0)


@triton.jit
def _same(
    x_ptr,
    weight_ptr,
    out_ptr,
    num_images,
    height,
    bands,
    TURNED: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    OUT: tl.constexpr,
    ROWS: tl.constexpr,
    PIXELS: tl.constexpr,
):
    images, columns, first = _place(tl.program_id(0), bands, WIDTH, ROWS, PIXELS)
    w00 = _tap_weights(weight_ptr, 0, 0, TURNED, CHANNELS, OUT)
    w01 = _tap_weights(weight_ptr, 0, 1, TURNED, CHANNELS, OUT)
    w02 = _tap_weights(weight_ptr, 0, 2, TURNED, CHANNELS, OUT)
    w10 = _tap_weights(weight_ptr, 1, 0, TURNED, CHANNELS, OUT)
    w11 = _tap_weights(weight_ptr, 1, 1, TURNED, CHANNELS, OUT)
    w12 = _tap_weights(weight_ptr, 1, 2, TURNED, CHANNELS, OUT)
    w20 = _tap_weights(weight_ptr, 2, 0, TURNED, CHANNELS, OUT)
    w21 = _tap_weights(weight_ptr, 2, 1, TURNED, CHANNELS, OUT)
    w22 = _tap_weights(weight_ptr, 2, 2, TURNED, CHANNELS, OUT)
    start = first - 1
    end = first + ROWS + 1
    above = tl.zeros((PIXELS, OUT), tl.float32)  # output row above the input row; ``level`` is the row of the input
    level = tl.zeros((PIXELS, OUT), tl.float32)
    left_ahead = _pixels(x_ptr, images, start, columns - 1, num_images, start, end, height, WIDTH, CHANNELS)
    mid_ahead = _pixels(x_ptr, images, start, columns, num_images, start, end, height, WIDTH, CHANNELS)
    right_ahead = _pixels(x_ptr, images, start, columns + 1, num_images, start, end, height, WIDTH, CHANNELS)
    for step in range(ROWS + 2):
        row = start + step
        left = left_ahead
        mid = mid_ahead
        right = right_ahead
        left_ahead = _pixels(x_ptr, images, row + 1, columns - 1, num_images, start, end, height, WIDTH, CHANNELS)
        mid_ahead = _pixels(x_ptr, images, row + 1, columns, num_images, start, end, height, WIDTH, CHANNELS)
        right_ahead = _pixels(x_ptr, images, row + 1, columns + 1, num_images, start, end, height, WIDTH, CHANNELS)
        done = tl.dot(right, w22, tl.dot(mid, w21, tl.dot(left, w20, above)))
        above = tl.dot(right, w12, tl.dot(mid, w11, tl.dot(left, w10, level)))
        level = tl.dot(right, w02, tl.dot(mid, w01, tl.dot(left, w00)))
        wanted = (row > first) & (row <= height)
        _store_row(out_ptr, done, images, row - 1, columns, num_images, wanted, height, WIDTH, OUT)


@triton.jit
def _down(
    x_ptr,
    weight_ptr,
    out_ptr,
    num_images,
    height,  # of the output, like the width
    bands,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    OUT: tl.constexpr,
    ROWS: tl.constexpr,
    PIXELS: tl.constexpr,
):
    LENGTH: tl.constexpr = 4 * CHANNELS
    WIDE: tl.constexpr = 2 * WIDTH
    images, columns, first = _place(tl.program_id(0), bands, WIDTH, ROWS, PIXELS)
    w0 = _weights(weight_ptr, 0, CHANNELS, OUT, 4, LENGTH)
    w1 = _weights(weight_ptr, 1, CHANNELS, OUT, 4, LENGTH)
    w2 = _weights(weight_ptr, 2, CHANNELS, OUT, 4, LENGTH)
    w3 = _weights(weight_ptr, 3, CHANNELS, OUT, 4, LENGTH)
    left = 2 * columns - 1
    end = 2 * (first + ROWS) + 1
    begun = tl.zeros((PIXELS, OUT), tl.float32)
    high = 2 * height
    upper_ahead = _window(x_ptr, images, 2 * first - 1, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH)
    lower_ahead = _window(x_ptr, images, 2 * first, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH)
    for step in range(ROWS + 1):
        row = first - 1 + step
        upper = upper_ahead
        lower = lower_ahead
        upper_ahead = _window(x_ptr, images, 2 * row + 3, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH)
        lower_ahead = _window(x_ptr, images, 2 * row + 4, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH)
        done = tl.dot(lower, w3, tl.dot(upper, w2, begun))
        begun = tl.dot(lower, w1, tl.dot(upper, w0))
        wanted = (row >= first) & (row < height)
        _store_row(out_ptr, done, images, row, columns, num_images, wanted, height, WIDTH, OUT)


@triton.jit
def _up(
    x_ptr,
    weight_ptr,
    out_ptr,
    num_images,
    height,  # of the input, like the width
    bands,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    OUT: tl.constexpr,
    ROWS: tl.constexpr,
    PIXELS: tl.constexpr,
):
    LENGTH: tl.constexpr = 4 * CHANNELS
    images, columns, first = _place(tl.program_id(0), bands, WIDTH, ROWS, PIXELS)
    w0 = _pair_weights(weight_ptr, 0, CHANNELS, OUT, LENGTH)
    w1 = _pair_weights(weight_ptr, 1, CHANNELS, OUT, LENGTH)
    w2 = _pair_weights(weight_ptr, 2, CHANNELS, OUT, LENGTH)
    w3 = _pair_weights(weight_ptr, 3, CHANNELS, OUT, LENGTH)
    left = columns - 1
    end = first + ROWS + 1
    odd = tl.zeros((PIXELS, 2 * OUT), tl.float32)  # outputs of rows 2 · row − 1 and 2 · row
    even = tl.zeros((PIXELS, 2 * OUT), tl.float32)
    ahead = _window(x_ptr, images, first - 1, left, num_images, end, height, WIDTH, CHANNELS, 3, LENGTH)
    for step in range(ROWS + 2):
        row = first - 1 + step
        x = ahead
        ahead = _window(x_ptr, images, row + 1, left, num_images, end, height, WIDTH, CHANNELS, 3, LENGTH)
        # Two outputs are adjacent in memory, so they are stored as one with twice the channels.
        odd = tl.dot(x, w0, odd)
        wanted = (row > first) & (row <= height)
        _store_row(out_ptr, odd, images, 2 * row - 1, columns, num_images, wanted, 2 * height, WIDTH, 2 * OUT)
        even = tl.dot(x, w1, even)
        wanted = (row >= first) & (row < first + ROWS) & (row < height)
        _store_row(out_ptr, even, images, 2 * row, columns, num_images, wanted, 2 * height, WIDTH, 2 * OUT)
        odd = tl.dot(x, w2)
        even = tl.dot(x, w3)


@triton.jit
def _same_weights(
    still_ptr,
    moving_ptr,
    part_ptr,
    num_images,
    height,
    bands,
    UNITS: tl.constexpr,
    WIDTH: tl.constexpr,
    STILL: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    PIXELS: tl.constexpr,
):
    LENGTH: tl.constexpr = 4 * CHANNELS
    t0 = tl.zeros((LENGTH, STILL), tl.float32)
    t1 = tl.zeros((LENGTH, STILL), tl.float32)
    t2 = tl.zeros((LENGTH, STILL), tl.float32)
    for unit in range(UNITS):
        images, columns, first = _place(tl.program_id(0) * UNITS + unit, bands, WIDTH, ROWS, PIXELS)
        left = columns - 1
        last = first + ROWS
        end = last + 1
        above = tl.zeros((PIXELS, STILL), still_ptr.dtype.element_ty)
        level = tl.zeros((PIXELS, STILL), still_ptr.dtype.element_ty)
        below_ahead = _pixels(still_ptr, images, first, columns, num_images, first, last, height, WIDTH, STILL)
        ahead = _window(moving_ptr, images, first - 1, left, num_images, end, height, WIDTH, CHANNELS, 3, LENGTH)
        for step in range(ROWS + 2):
            row = first - 1 + step
            below = below_ahead
            moving = tl.trans(ahead)
            below_ahead = _pixels(still_ptr, images, row + 2, columns, num_images, first, last, height, WIDTH, STILL)
            ahead = _window(moving_ptr, images, row + 1, left, num_images, end, height, WIDTH, CHANNELS, 3, LENGTH)
            t0 = tl.dot(moving, below, t0)
            t1 = tl.dot(moving, level, t1)
            t2 = tl.dot(moving, above, t2)
            above = level
            level = below
    k = tl.arange(0, LENGTH)
    still = tl.arange(0, STILL)
    places = part_ptr + (tl.program_id(0) * STILL + still[None, :]) * (9 * CHANNELS) + k[:, None]
    here = (k < 3 * CHANNELS)[:, None]
    tl.store(places, t0, mask=here)
    tl.store(places + 3 * CHANNELS, t1, mask=here)
    tl.store(places + 6 * CHANNELS, t2, mask=here)


@triton.jit
def _strided_weights(
    still_ptr,
    moving_ptr,
    part_ptr,
    num_images,
    height,  # of the still tensor, like the width
    bands,
    UNITS: tl.constexpr,
    WIDTH: tl.constexpr,
    STILL: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    PIXELS: tl.constexpr,
):
    LENGTH: tl.constexpr = 4 * CHANNELS
    WIDE: tl.constexpr = 2 * WIDTH
    t0 = tl.zeros((LENGTH, STILL), tl.float32)
    t1 = tl.zeros((LENGTH, STILL), tl.float32)
    t2 = tl.zeros((LENGTH, STILL), tl.float32)
    t3 = tl.zeros((LENGTH, STILL), tl.float32)
    high = 2 * height
    for unit in range(UNITS):
        images, columns, first = _place(tl.program_id(0) * UNITS + unit, bands, WIDTH, ROWS, PIXELS)
        left = 2 * columns - 1
        last = first + ROWS
        end = 2 * last + 1
        above = tl.zeros((PIXELS, STILL), still_ptr.dtype.element_ty)
        level_ahead = _pixels(still_ptr, images, first, columns, num_images, first, last, height, WIDTH, STILL)
        upper_ahead = _window(moving_ptr, images, 2 * first - 1, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH)
        lower_ahead = _window(moving_ptr, images, 2 * first, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH)
        for step in range(ROWS + 1):
            row = first + step
            level = level_ahead
            upper = tl.trans(upper_ahead)
            lower = tl.trans(lower_ahead)
            level_ahead = _pixels(still_ptr, images, row + 1, columns, num_images, first, last, height, WIDTH, STILL)
            upper_ahead = _window(
                moving_ptr, images, 2 * row + 1, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH
            )
            lower_ahead = _window(
                moving_ptr, images, 2 * row + 2, left, num_images, end, high, WIDE, CHANNELS, 4, LENGTH
            )
            t0 = tl.dot(upper, level, t0)
            t1 = tl.dot(lower, level, t1)
            t2 = tl.dot(upper, above, t2)
            t3 = tl.dot(lower, above, t3)
            above = level
    k = tl.arange(0, LENGTH)
    still = tl.arange(0, STILL)
    places = part_ptr + (tl.program_id(0) * STILL + still[None, :]) * (16 * CHANNELS) + k[:, None]
    tl.store(places, t0)
    tl.store(places + LENGTH, t1)
    tl.store(places + 2 * LENGTH, t2)
    tl.store(places + 3 * LENGTH, t3)


def takes(x: Tensor, weight: Tensor, stride: tuple[int, int], padding: tuple[int, int], transposed: bool) -> bool:
    """Return whether a convolution was measured to be faster here than in a library.

    Args:
        x: (b, c, h, w) inputs.
        weight: (out, c, side, side) weights, or (c, out, side, side) if transposed.
        stride: of the convolution.
        padding: of the convolution.
        transposed: whether it is a transposed convolution.
    """
    num_out = weight.shape[1 if transposed else 0]
    width = x.shape[3] if transposed else x.shape[3] // stride[1]
    return _is_faster(FORWARD, weight, stride, padding, width, x, num_out)


def takes_weights(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: tuple[int, int],
    padding: tuple[int, int],
    transposed: bool,
) -> bool:
    """Return whether the gradient of a convolution's weights was measured to be faster here than in a library.

    Args:
        gradient: (b, out, …) gradient of the outputs.
        x: (b, c, h, w) inputs.
        weight: (out, c, side, side) weights, or (c, out, side, side) if transposed.
        stride: of the convolution.
        padding: of the convolution.
        transposed: whether it is a transposed convolution.
    """
    still, moving = (x, gradient) if transposed else (gradient, x)
    return _is_faster(WEIGHTS, weight, stride, padding, still.shape[3], moving, still.shape[1])


def _is_faster(
    faster: dict[tuple[int, int, int], tuple[int, ...]],
    weight: Tensor,
    stride: tuple[int, int],
    padding: tuple[int, int],
    width: int,
    moving: Tensor,
    num_out: int,
) -> bool:
    """Return whether ``faster``, a table such as ``FORWARD``, lists a convolution, and its type and GPU fit."""
    geometry = (*weight.shape[2:], *stride, *padding)
    return (
        geometry in ((3, 3, 1, 1, 1, 1), (4, 4, 2, 2, 1, 1))
        and width in faster.get((geometry[0], moving.shape[1], num_out), ())
        and moving.shape[2] == moving.shape[3]  # as in all measurements
        and moving.dtype == torch.bfloat16
        and _is_measured(moving.device)
    )


@cache
def _is_measured(device: torch.device) -> bool:
    """Return whether a GPU is of the kind on which these kernels were measured (Hopper)."""
    return torch.cuda.get_device_capability(device)[0] == 9


def forward(x: Tensor, weight: Tensor, transposed: bool) -> Tensor:
    """Convolve feature maps.

    The gradient of a convolution's inputs is the transposed convolution of the gradient of its outputs, and vice versa.

    Args:
        x: (b, c, h, w) feature maps.
        weight: (out, c, side, side) weights, or (c, out, side, side) if transposed.
        transposed: whether to compute the transposed convolution.

    Returns:
        Feature maps (b, out, …), channels last.
    """
    x, weight = channels_last(x), channels_last(weight)
    num_images, num_channels, height, width = x.shape
    num_out = weight.shape[1 if transposed else 0]
    constants = {"CHANNELS": num_channels, "OUT": num_out, "num_warps": 4}
    strided = weight.shape[2] == 4
    if strided and not transposed:
        height, width = height // 2, width // 2
    scale = 2 if strided and transposed else 1
    out = torch.empty(num_images, scale * height, scale * width, num_out, dtype=x.dtype, device=x.device)
    if not strided:
        constants["TURNED"] = transposed
    kernel = (_up if transposed else _down) if strided else _same
    rows = width // 4
    pieces = _num_pieces(num_images, height, width, rows)
    _launch(kernel, pieces, (x, weight, out), num_images, height, width, rows, **constants)
    return out.permute(0, 3, 1, 2)


def weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor, transposed: bool) -> Tensor:
    """Return the gradient of the weights, of their shape and type.

    Args:
        gradient: (b, out, …) gradient of the outputs.
        x: (b, c, h, w) inputs.
        weight: (out, c, side, side) weights, or (c, out, side, side) if transposed; only shape and type are used.
        transposed: whether it is a transposed convolution.
    """
    still, moving = (x, gradient) if transposed else (gradient, x)
    still, moving = channels_last(still), channels_last(moving)
    num_images, num_still, height, width = still.shape
    strided = weight.shape[2] == 4
    # Few pieces with many rows load fewer rows twice; many pieces with few rows keep more multiprocessors busy.
    rows = width // (4 if strided or (width < 64 and num_still < 64) else 2)
    pieces = _num_pieces(num_images, height, width, rows)
    units = triton.cdiv(pieces, PROGRAMS)
    parts = torch.empty(triton.cdiv(pieces, units), num_still, *weight.shape[2:], moving.shape[1], device=x.device)
    _launch(
        _strided_weights if strided else _same_weights,
        len(parts),
        (still, moving, parts),
        num_images,
        height,
        width,
        rows,
        UNITS=units,
        STILL=num_still,
        CHANNELS=moving.shape[1],
        num_warps=4 if strided else 8,
    )
    return sum_rows(parts, weight.dtype).permute(0, 3, 1, 2)


def _num_pieces(num_images: int, height: int, width: int, rows: int) -> int:
    """Return the number of pieces (a tile that moves down ``rows`` rows) that cover all images."""
    return int(triton.cdiv(num_images, PIXELS // width) * triton.cdiv(height, rows))


def _launch(
    kernel: Any,
    programs: int,
    tensors: tuple[Tensor, ...],
    num_images: int,
    height: int,
    width: int,
    rows: int,
    **constants: int,
) -> None:
    """Launch a kernel with the arguments that all kernels of this module share."""
    launch(
        kernel,
        (programs,),
        *tensors,
        num_images,
        height,
        triton.cdiv(height, rows),
        WIDTH=width,
        ROWS=rows,
        PIXELS=PIXELS,
        num_stages=1,  # the kernels prefetch the next row themselves
        **constants,
    )
