"""The 3×3 convolution of images (the first layer of an encoder) and its gradients.

For 3 input channels, libraries pad their tiles with zeros or copy the input. Here the 27 inputs of a pixel (3×3
neighbours of 3 channels) form one row of a matrix product. These rows are gathered on the fly and never written to
memory.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch
from .sums import channels_last, split_tiles, sum_rows

PIXELS = 128  # per tile
TAPS = 32  # 27, padded to a power of two


@triton.jit
def _neighbours(x_ptr, pixels, num_pixels, height, width, TAPS: tl.constexpr):
    """Load (pixels, taps): rows, columns and colours of the 3×3 neighbourhoods, 0 outside of the image."""
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
    COLOURS: tl.constexpr,  # 3, padded
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
    """Return whether these kernels support a convolution.

    Args:
        weight: (out, in, height, width) weights.
        stride: of the convolution.
        padding: of the convolution.
        transposed: whether it is a transposed convolution.
    """
    num_channels = weight.shape[0]
    fits = weight.shape[1:] == (3, 3, 3) and num_channels >= 16 and num_channels & (num_channels - 1) == 0
    return fits and not transposed and (*stride, *padding) == (1, 1, 1, 1)


def forward(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve images.

    Args:
        x: (b, 3, h, w) images.
        weight: (c, 3, 3, 3) weights.

    Returns:
        Feature maps (b, c, h, w), channels last.
    """
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
    """Return the gradient of the weights.

    Args:
        gradient: (b, c, h, w) gradient of the outputs.
        x: (b, 3, h, w) images.
        weight: (c, 3, 3, 3) weights; only their type is used.

    Returns:
        The gradient (c, 3, 3, 3).
    """
    x, gradient = channels_last(x), channels_last(gradient)
    num_images, num_channels, height, width = gradient.shape
    num_pixels = num_images * height * width
    programs, chunks = split_tiles(num_pixels, PIXELS)
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
    """Return the gradient of the images, (b, 3, h, w).

    Args:
        gradient: (b, c, h, w) gradient of the outputs.
        weight: (c, 3, 3, 3) weights.
    """
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
