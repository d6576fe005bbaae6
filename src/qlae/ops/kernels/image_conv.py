"""The 3×3 convolution of images, the first of an encoder, and its gradients.

With 3 channels in, libraries fill their tiles with zeros, or copy. Here a pixel's 27 neighbours are one row of a
product of matrices; the rows are gathered where they are needed and never written.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch
from .sums import channels_last, shared_out, sum_rows

PIXELS = 128  # of a tile
TAPS = 32  # 27, filled up


@triton.jit
def _neighbours(x_ptr, pixels, num_pixels, height, width, TAPS: tl.constexpr):
    """(pixels, taps): rows, columns and colours of the 3×3 neighbourhood; 0 outside of the image."""
    taps = tl.arange(0, TAPS)
    down, right = taps // 9 - 1, taps // 3 % 3 - 1
    row = (pixels // width % height)[:, None] + down[None, :]
    column = (pixels % width)[:, None] + right[None, :]
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    inside &= (taps < 27)[None, :] & (pixels < num_pixels)[:, None]
    places = pixels[:, None].to(tl.int64) * 3 + ((down * width + right) * 3 + taps % 3)[None, :]
    return tl.load(x_ptr + places, mask=inside, other=0.0)


@triton.jit
def _image_conv_forward(
    x_ptr,
    weight_ptr,  # (c, 27)
    out_ptr,
    num_pixels,
    height,
    width,
    CHANNELS: tl.constexpr,
    PIXELS: tl.constexpr,
    TAPS: tl.constexpr,
):
    pixels = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channels = tl.arange(0, CHANNELS)
    taps = tl.arange(0, TAPS)
    weight = tl.load(weight_ptr + channels[None, :] * 27 + taps[:, None], mask=(taps < 27)[:, None], other=0.0)
    out = tl.dot(_neighbours(x_ptr, pixels, num_pixels, height, width, TAPS), weight)
    places = pixels[:, None].to(tl.int64) * CHANNELS + channels[None, :]
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=(pixels < num_pixels)[:, None])


@triton.jit
def _image_conv_weights(
    gradient_ptr,
    x_ptr,
    part_ptr,  # (programs, c, taps)
    num_pixels,
    height,
    width,
    CHANNELS: tl.constexpr,
    PIXELS: tl.constexpr,
    TAPS: tl.constexpr,
    CHUNKS: tl.constexpr,
):
    channels = tl.arange(0, CHANNELS)
    total = tl.zeros((CHANNELS, TAPS), tl.float32)
    for chunk in range(CHUNKS):
        pixels = (tl.program_id(0) * CHUNKS + chunk) * PIXELS + tl.arange(0, PIXELS)
        places = pixels[:, None].to(tl.int64) * CHANNELS + channels[None, :]
        gradient = tl.load(gradient_ptr + places, mask=(pixels < num_pixels)[:, None], other=0.0)
        total += tl.dot(tl.trans(gradient), _neighbours(x_ptr, pixels, num_pixels, height, width, TAPS))
    taps = tl.arange(0, TAPS)
    places = (tl.program_id(0) * CHANNELS + channels[:, None]) * 27 + taps[None, :]
    tl.store(part_ptr + places, total, mask=(taps < 27)[None, :])


@triton.jit
def _image_conv_inputs(
    gradient_ptr,
    weight_ptr,
    out_ptr,
    num_pixels,
    height,
    width,
    CHANNELS: tl.constexpr,
    PIXELS: tl.constexpr,
    COLOURS: tl.constexpr,  # 3, filled up
):
    pixels = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channels = tl.arange(0, CHANNELS)
    colours = tl.arange(0, COLOURS)
    total = tl.zeros((PIXELS, COLOURS), tl.float32)
    for tap in tl.static_range(9):
        down = tap // 3 - 1
        right = tap % 3 - 1
        row = pixels // width % height - down
        column = pixels % width - right
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (pixels < num_pixels)
        places = (pixels - (down * width + right))[:, None].to(tl.int64) * CHANNELS + channels[None, :]
        gradient = tl.load(gradient_ptr + places, mask=inside[:, None], other=0.0)
        places = channels[:, None] * 27 + tap * 3 + colours[None, :]
        total += tl.dot(gradient, tl.load(weight_ptr + places, mask=(colours < 3)[None, :], other=0.0))
    places = pixels[:, None].to(tl.int64) * 3 + colours[None, :]
    here = (pixels < num_pixels)[:, None] & (colours < 3)[None, :]
    tl.store(out_ptr + places, total.to(out_ptr.dtype.element_ty), mask=here)


def takes(weight: Tensor, stride: tuple[int, int], padding: tuple[int, int], transposed: bool) -> bool:
    """Whether these kernels do a convolution."""
    num_channels = weight.shape[0]
    fits = weight.shape[1:] == (3, 3, 3) and num_channels >= 16 and num_channels & (num_channels - 1) == 0
    return fits and not transposed and (*stride, *padding) == (1, 1, 1, 1)


def forward(x: Tensor, weight: Tensor) -> Tensor:
    """Images (b, 3, h, w) and weights (c, 3, 3, 3) → (b, c, h, w), channels last."""
    x = channels_last(x)
    num_images, _, height, width = x.shape
    num_pixels, num_channels = num_images * height * width, weight.shape[0]
    out = torch.empty(
        num_images, num_channels, height, width, dtype=x.dtype, device=x.device, memory_format=torch.channels_last
    )
    launch(
        _image_conv_forward,
        (triton.cdiv(num_pixels, PIXELS),),
        x,
        channels_last(weight),
        out,
        num_pixels,
        height,
        width,
        CHANNELS=num_channels,
        PIXELS=PIXELS,
        TAPS=TAPS,
    )
    return out


def weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the weights, from those of the outputs."""
    x, gradient = channels_last(x), channels_last(gradient)
    num_images, num_channels, height, width = gradient.shape
    num_pixels = num_images * height * width
    programs, chunks = shared_out(num_pixels, PIXELS)
    parts = torch.empty(programs, num_channels, 3, 3, 3, device=x.device)
    launch(
        _image_conv_weights,
        (programs,),
        gradient,
        x,
        parts,
        num_pixels,
        height,
        width,
        CHANNELS=num_channels,
        PIXELS=PIXELS,
        TAPS=TAPS,
        CHUNKS=chunks,
    )
    return sum_rows(parts, weight.dtype).permute(0, 3, 1, 2)


def input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the images (b, 3, h, w)."""
    gradient = channels_last(gradient)
    num_images, num_channels, height, width = gradient.shape
    num_pixels = num_images * height * width
    out = torch.empty(num_images, height, width, 3, dtype=gradient.dtype, device=gradient.device)
    launch(
        _image_conv_inputs,
        (triton.cdiv(num_pixels, PIXELS),),
        gradient,
        channels_last(weight),
        out,
        num_pixels,
        height,
        width,
        CHANNELS=num_channels,
        PIXELS=PIXELS,
        COLOURS=16,
    )
    return out.permute(0, 3, 1, 2)
