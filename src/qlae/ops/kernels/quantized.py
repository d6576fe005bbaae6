"""Latent quantization in two kernels.

One finds the nearest values and their distances; the other computes the gradients of inputs and codebook.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch

ROWS = 16  # images per program


@triton.jit
def _quantize(
    x_ptr,
    codebook_ptr,  # (n_z, n_v), rows `stride` apart
    sizes_ptr,  # (n_z,): number of values of each codebook
    z_ptr,
    codes_ptr,
    part_ptr,  # (programs,): squared distances, summed and scaled
    num_images,
    num_latents,
    num_values,
    stride,
    share,
    ROWS: tl.constexpr,
    LATENTS: tl.constexpr,
    VALUES: tl.constexpr,
):
    images = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    latents = tl.arange(0, LATENTS)
    here = (images < num_images)[:, None] & (latents < num_latents)[None, :]
    places = images[:, None] * num_latents + latents[None, :]
    x = tl.load(x_ptr + places, mask=here, other=0.0).to(tl.float32)
    sizes = tl.load(sizes_ptr + latents, mask=latents < num_latents, other=1.0)
    best = tl.full((ROWS, LATENTS), float("inf"), tl.float32)
    z = tl.zeros((ROWS, LATENTS), tl.float32)
    codes = tl.zeros((ROWS, LATENTS), tl.int64)
    for value in range(VALUES):
        candidate = tl.load(codebook_ptr + latents * stride + value, mask=(latents < num_latents), other=0.0)
        distance = tl.abs(x - candidate[None, :])
        closer = (distance < best) & (value < sizes)[None, :]
        best = tl.where(closer, distance, best)
        z = tl.where(closer, candidate[None, :], z)
        codes = tl.where(closer, value, codes)
    tl.store(z_ptr + places, z, mask=here)
    tl.store(codes_ptr + places, codes, mask=here)
    squares = tl.where(here, (x - z) * (x - z), 0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(tl.sum(squares, 1), 0) * share)


@triton.jit
def _quantize_backward(
    x_ptr,
    z_ptr,
    codes_ptr,
    of_z_ptr,
    of_quantize_ptr,
    of_commit_ptr,
    of_x_ptr,
    of_codebook_ptr,  # (n_z, n_v)
    num_images,
    num_latents,
    num_values,
    share,
    ROWS: tl.constexpr,
    CHUNKS: tl.constexpr,
    VALUES: tl.constexpr,
):
    latent = tl.program_id(0)
    values = tl.arange(0, VALUES)
    of_quantize = tl.load(of_quantize_ptr)
    of_commit = tl.load(of_commit_ptr)
    total = tl.zeros((VALUES,), tl.float32)
    for chunk in range(CHUNKS):
        images = chunk * ROWS + tl.arange(0, ROWS)
        here = images < num_images
        places = images * num_latents + latent
        slope = tl.load(x_ptr + places, mask=here, other=0.0).to(tl.float32)
        slope = 2 * share * (slope - tl.load(z_ptr + places, mask=here, other=0.0))
        of_z = tl.load(of_z_ptr + places, mask=here, other=0.0).to(tl.float32)
        of_x = of_z + slope * of_commit
        tl.store(of_x_ptr + places, of_x.to(of_x_ptr.dtype.element_ty), mask=here)
        codes = tl.load(codes_ptr + places, mask=here, other=-1)
        used = codes[:, None] == values[None, :]
        total -= tl.sum(tl.where(used, (slope * of_quantize)[:, None], 0.0), 0)
    tl.store(of_codebook_ptr + latent * num_values + values, total, mask=values < num_values)


def forward(x: Tensor, codebook: Tensor, sizes: Tensor, share: float) -> tuple[Tensor, Tensor, Tensor]:
    """Quantize each latent to the nearest value of its codebook.

    Args:
        x: (b, n_z) encoder outputs, contiguous.
        codebook: (n_z, n_v) values; a shared codebook may be expanded, so that all rows are the same memory.
        sizes: (n_z,) floats, the number of values of each codebook.
        share: factor of the summed squared distances.

    Returns:
        The values z (b, n_z) in float32, the codes (b, n_z) in int64, and the scalar ``share`` · Σ (x − z)².
    """
    batch_size, num_latents = x.shape
    num_values = codebook.shape[1]
    z = torch.empty(x.shape, device=x.device)
    codes = torch.empty(x.shape, dtype=torch.int64, device=x.device)
    parts = torch.empty(triton.cdiv(batch_size, ROWS), device=x.device)
    launch(
        _quantize,
        (len(parts),),
        x,
        codebook,
        sizes,
        z,
        codes,
        parts,
        batch_size,
        num_latents,
        num_values,
        codebook.stride(0),
        share,
        ROWS=ROWS,
        LATENTS=max(8, triton.next_power_of_2(num_latents)),
        VALUES=num_values,
    )
    return z, codes, parts.sum()


def backward(
    x: Tensor,
    z: Tensor,
    codes: Tensor,
    of_z: Tensor,
    of_quantize: Tensor,
    of_commit: Tensor,
    num_values: int,
    share: float,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the encoder outputs and of the codebook.

    Args:
        x: as in `forward`.
        z: (b, n_z) values, as returned by `forward`.
        codes: (b, n_z) codes, as returned by `forward`.
        of_z: (b, n_z) gradient of z.
        of_quantize: scalar tensor, the gradient of the quantize loss.
        of_commit: scalar tensor, the gradient of the commit loss.
        num_values: n_v.
        share: as in `forward`.

    Returns:
        The gradients of x (b, n_z) and of the codebook (n_z, n_v).
    """
    batch_size, num_latents = x.shape
    x_gradient, codebook_gradient = torch.empty_like(x), torch.empty(num_latents, num_values, device=x.device)
    launch(
        _quantize_backward,
        (num_latents,),
        x,
        z,
        codes,
        of_z.contiguous(),
        of_quantize,
        of_commit,
        x_gradient,
        codebook_gradient,
        batch_size,
        num_latents,
        num_values,
        share,
        ROWS=128,
        CHUNKS=triton.cdiv(batch_size, 128),
        VALUES=max(16, triton.next_power_of_2(num_values)),
    )
    return x_gradient, codebook_gradient
