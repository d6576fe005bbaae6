"""A 1×1 convolution to a few channels, as at the end of a decoder: a product with a narrow matrix.

Libraries pad the narrow side or copy the input. Here the maps are read once in the forward pass and once in the
backward pass, which computes all three gradients together. Outputs are in float32, so that the logits from which the
loss is computed are not rounded.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch
from .sums import channels_last, split_tiles, sum_rows

PIXELS = 128  # per tile
FEW = 16  # output channels, padded


@triton.jit
def _pixel_conv_forward(
    x_ptr,
    weight_ptr,  # (few, c)
    bias_ptr,
    out_ptr,
    num_pixels,
    num_outputs,
    BIASED: tl.constexpr,
    CHANNELS: tl.constexpr,
    PIXELS: tl.constexpr,
    FEW: tl.constexpr,
):
    pixels = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channels = tl.arange(0, CHANNELS)
    outputs = tl.arange(0, FEW)
    places = pixels[:, None].to(tl.int64) * CHANNELS + channels[None, :]
    x = tl.load(x_ptr + places, mask=(pixels < num_pixels)[:, None], other=0.0)
    weight = tl.load(
        weight_ptr + outputs[None, :] * CHANNELS + channels[:, None], mask=(outputs < num_outputs)[None, :], other=0.0
    )
    out = tl.dot(x, weight)
    if BIASED:
        out += tl.load(bias_ptr + outputs, mask=outputs < num_outputs, other=0.0).to(tl.float32)[None, :]
    places = pixels[:, None].to(tl.int64) * num_outputs + outputs[None, :]
    tl.store(out_ptr + places, out, mask=(pixels < num_pixels)[:, None] & (outputs < num_outputs)[None, :])


@triton.jit
def _pixel_conv_backward(
    gradient_ptr,
    x_ptr,
    weight_ptr,
    x_gradient_ptr,
    weight_part_ptr,  # (programs, few, c)
    bias_part_ptr,  # (programs, few)
    num_pixels,
    num_outputs,
    CHANNELS: tl.constexpr,
    PIXELS: tl.constexpr,
    FEW: tl.constexpr,
    CHUNKS: tl.constexpr,
):
    channels = tl.arange(0, CHANNELS)
    outputs = tl.arange(0, FEW)
    weight = tl.load(
        weight_ptr + outputs[:, None] * CHANNELS + channels[None, :], mask=(outputs < num_outputs)[:, None], other=0.0
    )
    weight_total = tl.zeros((FEW, CHANNELS), tl.float32)
    bias_total = tl.zeros((FEW,), tl.float32)
    for chunk in range(CHUNKS):
        pixels = (tl.program_id(0) * CHUNKS + chunk) * PIXELS + tl.arange(0, PIXELS)
        here = (pixels < num_pixels)[:, None]
        places = pixels[:, None].to(tl.int64) * num_outputs + outputs[None, :]
        gradient = tl.load(gradient_ptr + places, mask=here & (outputs < num_outputs)[None, :], other=0.0)
        bias_total += tl.sum(gradient.to(tl.float32), 0)
        gradient = gradient.to(weight.dtype)
        places = pixels[:, None].to(tl.int64) * CHANNELS + channels[None, :]
        x = tl.load(x_ptr + places, mask=here, other=0.0)
        weight_total += tl.dot(tl.trans(gradient), x)
        tl.store(x_gradient_ptr + places, tl.dot(gradient, weight).to(x_gradient_ptr.dtype.element_ty), mask=here)
    places = (tl.program_id(0) * FEW + outputs[:, None]) * CHANNELS + channels[None, :]
    tl.store(weight_part_ptr + places, weight_total)
    tl.store(bias_part_ptr + tl.program_id(0) * FEW + outputs, bias_total)


def takes(weight: Tensor) -> bool:
    """Return whether these kernels support a convolution with weights (few, c, height, width)."""
    num_outputs, num_channels = weight.shape[:2]
    return (
        weight.shape[2:] == (1, 1)
        and num_outputs <= FEW
        and 16 <= num_channels <= 256
        and num_channels & (num_channels - 1) == 0
    )


def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolve feature maps.

    Args:
        x: (b, c, h, w) feature maps.
        weight: (few, c, 1, 1) weights.
        bias: (few,), or None.

    Returns:
        (b, few, h, w) in float32, channels last.
    """
    x = channels_last(x)
    num_images, num_channels, height, width = x.shape
    num_pixels, num_outputs = num_images * height * width, weight.shape[0]
    out = torch.empty(num_images, height, width, num_outputs, device=x.device)
    launch(
        _pixel_conv_forward,
        (triton.cdiv(num_pixels, PIXELS),),
        x,
        weight.reshape(num_outputs, num_channels),
        bias,
        out,
        num_pixels,
        num_outputs,
        BIASED=bias is not None,
        CHANNELS=num_channels,
        PIXELS=PIXELS,
        FEW=FEW,
    )
    return out.permute(0, 3, 1, 2)


def backward(gradient: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, of the weights and of the bias.

    Args:
        gradient: (b, few, h, w) gradient of the outputs.
        x: as in `forward`.
        weight: as in `forward`.

    Returns:
        The gradients of x (b, c, h, w), of the weights (few, c, 1, 1) and of the bias (few,). The last is computed even
        if there is no bias.
    """
    x, gradient = channels_last(x), channels_last(gradient)
    num_images, num_channels, height, width = x.shape
    num_pixels, num_outputs = num_images * height * width, weight.shape[0]
    programs, chunks = split_tiles(num_pixels, PIXELS)
    x_gradient = torch.empty_like(x)
    weight_parts = torch.empty(programs, FEW, num_channels, device=x.device)
    bias_parts = torch.empty(programs, FEW, device=x.device)
    launch(
        _pixel_conv_backward,
        (programs,),
        gradient,
        x,
        weight.reshape(num_outputs, num_channels),
        x_gradient,
        weight_parts,
        bias_parts,
        num_pixels,
        num_outputs,
        CHANNELS=num_channels,
        PIXELS=PIXELS,
        FEW=FEW,
        CHUNKS=chunks,
    )
    weight_gradient = sum_rows(weight_parts, weight.dtype)[:num_outputs].view(weight.shape)
    return x_gradient, weight_gradient, sum_rows(bias_parts, weight.dtype)[:num_outputs]
