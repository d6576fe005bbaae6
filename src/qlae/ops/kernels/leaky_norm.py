"""The norms of ``ops/norms.py``: one kernel forward, one backward, and one for the second derivative.

As separate operations, the norms read and write the feature maps a dozen times. Here the forward pass reads x and
writes the output; the backward pass reads the gradient and x and writes one gradient. Only x, μ and 1 / σ are saved for
the backward pass.

Each program handles a few channels of one image and passes over the pixels twice. A tile that fits into registers is
read once; larger maps come from the cache the second time. Statistics and sums are in float32. Memory is channels last.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch
from .sums import channels_last


@triton.jit
def _activated(x, bias, slope):
    y = x.to(tl.float32) + bias
    return tl.where(y > 0, y, y * slope)


@triton.jit
def _places(start, first, channels, num_channels, PIXELS: tl.constexpr):
    return first + (start + tl.arange(0, PIXELS))[:, None] * num_channels + channels[None, :]


@triton.jit
def _bias(bias_ptr, channels, BIASED: tl.constexpr):
    if BIASED:
        return tl.load(bias_ptr + channels).to(tl.float32)[None, :]
    else:
        return tl.zeros((1, 1), tl.float32)


@triton.jit
def _share(bias_ptr, num_channels, NUM_PIXELS: tl.constexpr, BIASED: tl.constexpr, CHANNELS: tl.constexpr):
    """Return the image and channels of a program, the offset of the image, and the biases of the channels."""
    image = tl.program_id(1)
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    return image, channels, image.to(tl.int64) * NUM_PIXELS * num_channels, _bias(bias_ptr, channels, BIASED)


@triton.jit
def _norm_forward(
    x_ptr,
    bias_ptr,
    style_ptr,
    out_ptr,
    mean_ptr,
    inverse_ptr,  # 1 / σ
    style_stride,
    num_channels,
    slope,
    epsilon,
    NUM_PIXELS: tl.constexpr,
    BIASED: tl.constexpr,
    STYLED: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    image, channels, first, bias = _share(bias_ptr, num_channels, NUM_PIXELS, BIASED, CHANNELS)

    if PIXELS == NUM_PIXELS:  # one tile holds the whole map, which is read once
        places = _places(0, first, channels, num_channels, PIXELS)
        y = _activated(tl.load(x_ptr + places), bias, slope)
        mean = tl.sum(y, 0) / NUM_PIXELS
        centred = y - mean[None, :]
        squares = tl.sum(centred * centred, 0)
    else:
        # Each position of the tile has its own running mean and sum of squares (Welford 1962), which are merged at the
        # end (Chan et al. 1979). This is numerically stable, and no chunk waits for a sum over the previous one.
        means = tl.zeros((PIXELS, CHANNELS), tl.float32)
        spreads = tl.zeros((PIXELS, CHANNELS), tl.float32)
        for start in range(0, NUM_PIXELS, PIXELS):
            y = _activated(tl.load(x_ptr + _places(start, first, channels, num_channels, PIXELS)), bias, slope)
            difference = y - means
            means += difference * (PIXELS / (start + PIXELS))
            spreads += difference * (y - means)
        mean = tl.sum(means, 0) / PIXELS
        centred = means - mean[None, :]
        squares = tl.sum(spreads, 0) + tl.sum(centred * centred, 0) * (NUM_PIXELS // PIXELS)
    inverse = 1 / tl.sqrt(squares / NUM_PIXELS + epsilon)
    factor = inverse
    offset = -mean * inverse
    if STYLED:
        styles = style_ptr + image * style_stride + channels
        factor = inverse * tl.load(styles).to(tl.float32)
        offset = tl.load(styles + num_channels).to(tl.float32) - mean * factor
    tl.store(mean_ptr + image * num_channels + channels, mean)
    tl.store(inverse_ptr + image * num_channels + channels, inverse)

    if PIXELS == NUM_PIXELS:
        tl.store(out_ptr + places, (y * factor[None, :] + offset[None, :]).to(out_ptr.dtype.element_ty))
    else:
        for start in range(0, NUM_PIXELS, PIXELS):
            places = _places(start, first, channels, num_channels, PIXELS)
            out = _activated(tl.load(x_ptr + places), bias, slope) * factor[None, :] + offset[None, :]
            tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty))


@triton.jit
def _norm_backward(
    gradient_ptr,
    x_ptr,
    bias_ptr,
    style_ptr,
    mean_ptr,
    inverse_ptr,
    x_gradient_ptr,
    total_ptr,  # (b, c): sum of the gradient of x over pixels
    style_gradient_ptr,  # (b, 2c): Σ g · n and Σ g, with g the gradient and n the normalised map
    style_stride,
    num_channels,
    slope,
    NUM_PIXELS: tl.constexpr,
    BIASED: tl.constexpr,
    STYLED: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    image, channels, first, bias = _share(bias_ptr, num_channels, NUM_PIXELS, BIASED, CHANNELS)
    row = image * num_channels + channels
    mean = tl.load(mean_ptr + row)[None, :]
    inverse = tl.load(inverse_ptr + row)[None, :]

    if PIXELS == NUM_PIXELS:
        places = _places(0, first, channels, num_channels, PIXELS)
        y = _activated(tl.load(x_ptr + places), bias, slope)
        gradient = tl.load(gradient_ptr + places).to(tl.float32)
        plain = tl.sum(gradient, 0)
        along = tl.sum(gradient * (y - mean) * inverse, 0)
    else:
        plains = tl.zeros((PIXELS, CHANNELS), tl.float32)
        alongs = tl.zeros((PIXELS, CHANNELS), tl.float32)
        for start in range(0, NUM_PIXELS, PIXELS):
            places = _places(start, first, channels, num_channels, PIXELS)
            y = _activated(tl.load(x_ptr + places), bias, slope)
            gradient = tl.load(gradient_ptr + places).to(tl.float32)
            plains += gradient
            alongs += gradient * (y - mean)
        plain = tl.sum(plains, 0)
        along = tl.sum(alongs * inverse, 0)
    factor = inverse
    if STYLED:
        style_gradients = style_gradient_ptr + 2 * image * num_channels + channels
        tl.store(style_gradients, along.to(style_gradient_ptr.dtype.element_ty))
        tl.store(style_gradients + num_channels, plain.to(style_gradient_ptr.dtype.element_ty))
        factor = inverse * tl.load(style_ptr + image * style_stride + channels).to(tl.float32)[None, :]
    plain = plain[None, :] / NUM_PIXELS
    along = along[None, :] / NUM_PIXELS * inverse

    if PIXELS == NUM_PIXELS:
        found = factor * (gradient - plain - (y - mean) * along)
        found = tl.where(y > 0, found, found * slope)
        total = tl.sum(found, 0)
        tl.store(x_gradient_ptr + places, found.to(x_gradient_ptr.dtype.element_ty))
    else:
        totals = tl.zeros((PIXELS, CHANNELS), tl.float32)
        for start in range(0, NUM_PIXELS, PIXELS):
            places = _places(start, first, channels, num_channels, PIXELS)
            y = _activated(tl.load(x_ptr + places), bias, slope)
            gradient = tl.load(gradient_ptr + places).to(tl.float32)
            found = factor * (gradient - plain - (y - mean) * along)
            found = tl.where(y > 0, found, found * slope)
            totals += found
            tl.store(x_gradient_ptr + places, found.to(x_gradient_ptr.dtype.element_ty))
        total = tl.sum(totals, 0)
    if BIASED:
        tl.store(total_ptr + row, total)


@triton.jit
def _norm_backward_again(
    cotangent_ptr,
    gradient_ptr,
    x_ptr,
    bias_ptr,
    mean_ptr,
    inverse_ptr,
    found_ptr,  # cotangent of the gradient
    x_found_ptr,  # cotangent of x
    total_ptr,  # (b, c): sum of the cotangent of x over pixels
    num_channels,
    slope,
    NUM_PIXELS: tl.constexpr,
    BIASED: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    image, channels, first, bias = _share(bias_ptr, num_channels, NUM_PIXELS, BIASED, CHANNELS)
    row = image * num_channels + channels
    mean = tl.load(mean_ptr + row)[None, :]
    inverse = tl.load(inverse_ptr + row)[None, :]

    g_sum = tl.zeros((PIXELS, CHANNELS), tl.float32)
    w_sum = tl.zeros((PIXELS, CHANNELS), tl.float32)
    gn_sum = tl.zeros((PIXELS, CHANNELS), tl.float32)
    wn_sum = tl.zeros((PIXELS, CHANNELS), tl.float32)
    wg_sum = tl.zeros((PIXELS, CHANNELS), tl.float32)
    for start in range(0, NUM_PIXELS, PIXELS):
        places = _places(start, first, channels, num_channels, PIXELS)
        y = _activated(tl.load(x_ptr + places), bias, slope)
        n = (y - mean) * inverse
        g = tl.load(gradient_ptr + places).to(tl.float32)
        w = tl.load(cotangent_ptr + places).to(tl.float32)
        w = tl.where(y > 0, w, w * slope)
        g_sum += g
        w_sum += w
        gn_sum += g * n
        wn_sum += w * n
        wg_sum += w * g
    g_mean = tl.sum(g_sum, 0)[None, :] / NUM_PIXELS
    w_mean = tl.sum(w_sum, 0)[None, :] / NUM_PIXELS
    a = tl.sum(wn_sum, 0)[None, :] / NUM_PIXELS
    b = tl.sum(gn_sum, 0)[None, :] / NUM_PIXELS
    c = tl.sum(wg_sum, 0)[None, :] / NUM_PIXELS - w_mean * g_mean

    totals = tl.zeros((PIXELS, CHANNELS), tl.float32)
    for start in range(0, NUM_PIXELS, PIXELS):
        places = _places(start, first, channels, num_channels, PIXELS)
        y = _activated(tl.load(x_ptr + places), bias, slope)
        n = (y - mean) * inverse
        g = tl.load(gradient_ptr + places).to(tl.float32) - g_mean
        w = tl.load(cotangent_ptr + places).to(tl.float32)
        w = tl.where(y > 0, w, w * slope) - w_mean
        tl.store(found_ptr + places, ((w - n * a) * inverse).to(found_ptr.dtype.element_ty))
        x_found = (n * (3 * a * b - c) - a * g - b * w) * inverse * inverse
        x_found = tl.where(y > 0, x_found, x_found * slope)
        totals += x_found
        tl.store(x_found_ptr + places, x_found.to(x_found_ptr.dtype.element_ty))
    if BIASED:
        tl.store(total_ptr + row, tl.sum(totals, 0))


def forward(
    x: Tensor, bias: Tensor | None, style: Tensor | None, slope: float, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply bias, leaky ReLU, norm and style.

    Args:
        x: (b, c, h, w) feature maps.
        bias: (c,), or None.
        style: (b, 2c) scales and shifts, or None.
        slope: slope of the leaky ReLU for negative inputs.
        epsilon: constant that is added to the variance.

    Returns:
        The output (b, c, h, w), and for the backward pass μ (b, c) and 1 / σ (b, c).
    """
    x = channels_last(x)
    num_images, num_channels = x.shape[:2]
    out = torch.empty_like(x)
    mean, inverse = (x.new_empty(num_images, num_channels, dtype=torch.float32) for _ in range(2))
    grid, sizes = _grid(x, FORWARD_TILES)
    launch(
        _norm_forward,
        grid,
        x,
        bias,
        style,
        out,
        mean,
        inverse,
        0 if style is None else _row_stride(style),
        num_channels,
        slope,
        epsilon,
        BIASED=bias is not None,
        STYLED=style is not None,
        **sizes,
    )
    return out, mean, inverse


def backward(
    gradient: Tensor,
    x: Tensor,
    bias: Tensor | None,
    style: Tensor | None,
    mean: Tensor,
    inverse: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Differentiate `forward`.

    Args:
        gradient: (b, c, h, w) gradient of the output.
        x: as in `forward`.
        bias: as in `forward`.
        style: as in `forward`.
        mean: (b, c) μ, as returned by `forward`.
        inverse: (b, c) 1 / σ, as returned by `forward`.
        slope: as in `forward`.

    Returns:
        The gradient of x (b, c, h, w); its sums over pixels (b, c), which are set only with a bias; and the gradient of
        the style (b, 2c), or None without a style.
    """
    x, gradient = channels_last(x), channels_last(gradient)
    x_gradient, total = torch.empty_like(x), torch.empty_like(mean)
    style_gradient = None if style is None else torch.empty(style.shape, dtype=style.dtype, device=style.device)
    grid, sizes = _grid(x, BACKWARD_TILES)
    launch(
        _norm_backward,
        grid,
        gradient,
        x,
        bias,
        style,
        mean,
        inverse,
        x_gradient,
        total,
        style_gradient,
        0 if style is None else _row_stride(style),
        x.shape[1],
        slope,
        BIASED=bias is not None,
        STYLED=style is not None,
        **sizes,
    )
    return x_gradient, total, style_gradient


def backward_again(
    cotangent: Tensor, gradient: Tensor, x: Tensor, bias: Tensor | None, mean: Tensor, inverse: Tensor, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Differentiate `backward` without a style, as a gradient penalty requires.

    Args:
        cotangent: (b, c, h, w) cotangent of the gradient of x.
        gradient: (b, c, h, w) gradient of the output.
        x: as in `forward`.
        bias: as in `forward`.
        mean: (b, c) μ, as returned by `forward`.
        inverse: (b, c) 1 / σ, as returned by `forward`.
        slope: as in `forward`.

    Returns:
        The cotangents of the gradient and of x, both (b, c, h, w), and the sums over pixels of the latter (b, c), which
        are set only with a bias.
    """
    cotangent, gradient, x = (channels_last(t) for t in (cotangent, gradient, x))
    gradient_cotangent, x_cotangent, total = torch.empty_like(x), torch.empty_like(x), torch.empty_like(mean)
    grid, sizes = _grid(x, AGAIN_TILES)
    launch(
        _norm_backward_again,
        grid,
        cotangent,
        gradient,
        x,
        bias,
        mean,
        inverse,
        gradient_cotangent,
        x_cotangent,
        total,
        x.shape[1],
        slope,
        BIASED=bias is not None,
        **sizes,
    )
    return gradient_cotangent, x_cotangent, total


# Smallest number of pixels of a map → pixels, channels and warps per tile, as measured to be fastest on an H200. A tile
# that holds the whole map is read once; smaller tiles are read twice.
FORWARD_TILES = {4096: (1024, 16, 16), 1024: (1024, 16, 8), 256: (256, 32, 4), 64: (64, 32, 1), 0: (16, 64, 1)}
BACKWARD_TILES = {4096: (512, 16, 16), 1024: (256, 32, 4), 256: (256, 32, 4), 64: (64, 32, 1), 0: (16, 64, 1)}
AGAIN_TILES = {256: (256, 16, 8), 64: (64, 32, 1), 0: (16, 64, 1)}


def _grid(x: Tensor, tiles: dict[int, tuple[int, int, int]]) -> tuple[tuple[int, int], dict[str, int]]:
    """Return the grid of programs and the compile-time constants of the kernels."""
    num_images, num_channels, height, width = x.shape
    num_pixels = height * width
    pixels, channels, warps = next(tile for least, tile in tiles.items() if num_pixels >= least)
    channels, pixels = min(channels, num_channels & -num_channels), min(pixels, num_pixels & -num_pixels)
    sizes = {"NUM_PIXELS": num_pixels, "PIXELS": pixels, "CHANNELS": channels, "num_warps": warps}
    return (num_channels // channels, num_images), sizes


def _row_stride(style: Tensor) -> int:
    """Return the number of entries from one image's style to the next; raise an error unless rows are contiguous."""
    if style.stride(1) != 1:
        raise ValueError(f"each row of style must be contiguous, got strides {style.stride()}; call .contiguous()")
    return style.stride(0)
