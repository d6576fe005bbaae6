"""The three parts of the KL term of ``ops/divergences.py`` (``decomposed_kl``): one kernel forward, two backward.

As separate operations, they need some forty small passes over all pairs of images. Here each program handles one image:
it iterates over the batch in chunks and accumulates the logarithms of its sums.

Let log q(z_ij | x_m) be the log density of latent j of image i under the posterior of image m. Let J_i be the logarithm
of the sum over m of the joint densities, and P_ij that of the densities of the single latents. The gradient of each
part with respect to log q(z_ij | x_m) is a mixture of exp(Σ_j log q − J_i) and exp(log q − P_ij).
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch

CHUNK = 64  # images per iteration
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@triton.jit
def _log_density(z, mean, deviation, here, HALF_LOG_2PI: tl.constexpr):
    """Return log N(z; mean, deviation²), or 0 for padded latents."""
    t = (z - mean) / deviation
    return tl.where(here, -0.5 * t * t - HALF_LOG_2PI - tl.log(deviation), 0.0)


@triton.jit
def _load(pointer, images, latents, num_images, num_latents, other: tl.constexpr):
    here = (images < num_images)[:, None] & (latents < num_latents)[None, :]
    return tl.load(pointer + images[:, None] * num_latents + latents[None, :], mask=here, other=other)


@triton.jit
def _kl_forward(
    z_ptr,
    mean_ptr,
    deviation_ptr,
    parts_ptr,  # (b, 3)
    joint_ptr,  # (b,): J
    single_ptr,  # (b, n): P
    num_images,
    num_latents,
    weight,
    LATENTS: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    HALF_LOG_2PI: tl.constexpr,
):
    image = tl.program_id(0)
    latents = tl.arange(0, LATENTS)
    here = latents < num_latents
    z = tl.load(z_ptr + image * num_latents + latents, mask=here, other=0.0)
    single_top = tl.full((LATENTS,), -1e30, tl.float32)
    single_sum = tl.zeros((LATENTS,), tl.float32)
    joint_tops = tl.full((LATENTS,), -1e30, tl.float32)  # all entries are equal
    joint_sums = tl.zeros((LATENTS,), tl.float32)
    for chunk in range(CHUNKS):
        images = chunk * CHUNK + tl.arange(0, CHUNK)
        mean = _load(mean_ptr, images, latents, num_images, num_latents, 0.0)
        deviation = _load(deviation_ptr, images, latents, num_images, num_latents, 1.0)
        density = _log_density(z[None, :], mean, deviation, here[None, :], HALF_LOG_2PI)
        there = (images < num_images)[:, None]
        together = tl.where(there, tl.sum(density, 1)[:, None], -1e30) + tl.zeros((CHUNK, LATENTS), tl.float32)
        density = tl.where(there, density, -1e30)
        top = tl.maximum(single_top, tl.max(density, 0))
        single_sum = single_sum * tl.exp(single_top - top) + tl.sum(tl.exp(density - top[None, :]), 0)
        single_top = top
        top = tl.maximum(joint_tops, tl.max(together, 0))
        joint_sums = joint_sums * tl.exp(joint_tops - top) + tl.sum(tl.exp(together - top[None, :]), 0)
        joint_tops = top
    single = single_top + tl.log(single_sum)
    joint = tl.max(joint_tops + tl.log(joint_sums), 0)
    tl.store(single_ptr + image * num_latents + latents, single, mask=here)
    tl.store(joint_ptr + image, joint)
    mean = tl.load(mean_ptr + image * num_latents + latents, mask=here, other=0.0)
    deviation = tl.load(deviation_ptr + image * num_latents + latents, mask=here, other=1.0)
    given = tl.sum(_log_density(z, mean, deviation, here, HALF_LOG_2PI), 0)
    prior = tl.sum(tl.where(here, -0.5 * z * z - HALF_LOG_2PI, 0.0), 0)
    product = tl.sum(tl.where(here, single - weight, 0.0), 0)
    tl.store(parts_ptr + 3 * image, given - (joint - weight))
    tl.store(parts_ptr + 3 * image + 1, joint - weight - product)
    tl.store(parts_ptr + 3 * image + 2, product - prior)


@triton.jit
def _shares(gradient_ptr, num_images):
    """Return the gradients of an image's log densities: under its own posterior, joint, single, and of the prior."""
    information = tl.load(gradient_ptr) / num_images
    correlation = tl.load(gradient_ptr + 1) / num_images
    dimensions = tl.load(gradient_ptr + 2) / num_images
    return information, correlation - information, dimensions - correlation, -dimensions


@triton.jit
def _kl_backward_z(
    gradient_ptr,  # (3,)
    z_ptr,
    mean_ptr,
    deviation_ptr,
    joint_ptr,
    single_ptr,
    z_gradient_ptr,
    num_images,
    num_latents,
    LATENTS: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    HALF_LOG_2PI: tl.constexpr,
):
    image = tl.program_id(0)
    latents = tl.arange(0, LATENTS)
    here = latents < num_latents
    row = image * num_latents + latents
    of_given, of_joint, of_single, of_prior = _shares(gradient_ptr, num_images)
    z = tl.load(z_ptr + row, mask=here, other=0.0)
    single = tl.load(single_ptr + row, mask=here, other=0.0)
    joint = tl.load(joint_ptr + image)
    found = tl.zeros((LATENTS,), tl.float32)
    for chunk in range(CHUNKS):
        images = chunk * CHUNK + tl.arange(0, CHUNK)
        there = (images < num_images)[:, None] & here[None, :]
        mean = _load(mean_ptr, images, latents, num_images, num_latents, 0.0)
        deviation = _load(deviation_ptr, images, latents, num_images, num_latents, 1.0)
        density = _log_density(z[None, :], mean, deviation, here[None, :], HALF_LOG_2PI)
        share = of_joint * tl.exp(tl.sum(density, 1) - joint)[:, None] + of_single * tl.exp(density - single[None, :])
        slope = (mean - z[None, :]) / (deviation * deviation)
        found += tl.sum(tl.where(there, share * slope, 0.0), 0)
    mean = tl.load(mean_ptr + row, mask=here, other=0.0)
    deviation = tl.load(deviation_ptr + row, mask=here, other=1.0)
    found += of_given * (mean - z) / (deviation * deviation) - of_prior * z
    tl.store(z_gradient_ptr + row, found, mask=here)


@triton.jit
def _kl_backward_q(
    gradient_ptr,
    z_ptr,
    mean_ptr,
    deviation_ptr,
    joint_ptr,
    single_ptr,
    mean_gradient_ptr,
    deviation_gradient_ptr,
    num_images,
    num_latents,
    LATENTS: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    HALF_LOG_2PI: tl.constexpr,
):
    image = tl.program_id(0)  # the image whose posterior q is differentiated
    latents = tl.arange(0, LATENTS)
    here = latents < num_latents
    row = image * num_latents + latents
    of_given, of_joint, of_single, _ = _shares(gradient_ptr, num_images)
    mean = tl.load(mean_ptr + row, mask=here, other=0.0)
    deviation = tl.load(deviation_ptr + row, mask=here, other=1.0)
    mean_found = tl.zeros((LATENTS,), tl.float32)
    deviation_found = tl.zeros((LATENTS,), tl.float32)
    for chunk in range(CHUNKS):
        images = chunk * CHUNK + tl.arange(0, CHUNK)
        there = (images < num_images)[:, None] & here[None, :]
        z = _load(z_ptr, images, latents, num_images, num_latents, 0.0)
        single = _load(single_ptr, images, latents, num_images, num_latents, 0.0)
        joint = tl.load(joint_ptr + images, mask=images < num_images, other=0.0)
        density = _log_density(z, mean[None, :], deviation[None, :], here[None, :], HALF_LOG_2PI)
        share = of_joint * tl.exp(tl.sum(density, 1) - joint)[:, None] + of_single * tl.exp(density - single)
        share = tl.where(there, share + tl.where((images == image)[:, None], of_given, 0.0), 0.0)
        t = (z - mean[None, :]) / deviation[None, :]
        mean_found += tl.sum(share * t, 0)
        deviation_found += tl.sum(share * (t * t - 1), 0)
    tl.store(mean_gradient_ptr + row, mean_found / deviation, mask=here)
    tl.store(deviation_gradient_ptr + row, deviation_found / deviation, mask=here)


def forward(z: Tensor, mean: Tensor, deviation: Tensor, num_images: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the three parts for each image.

    Args:
        z: (b, n) latents that were drawn from the posteriors.
        mean: (b, n) means of the posteriors.
        deviation: (b, n) standard deviations of the posteriors.
        num_images: size of the data set.

    Returns:
        The parts (b, 3), and for the backward pass J (b,) and P (b, n).
    """
    batch_size, num_latents = z.shape
    parts, joint = z.new_empty(batch_size, 3), z.new_empty(batch_size)
    single = torch.empty_like(z)
    weight = math.log(num_images * batch_size)
    launch(
        _kl_forward,
        (batch_size,),
        z,
        mean,
        deviation,
        parts,
        joint,
        single,
        batch_size,
        num_latents,
        weight,
        **_sizes(batch_size, num_latents),
    )
    return parts, joint, single


def backward(
    gradient: Tensor, z: Tensor, mean: Tensor, deviation: Tensor, joint: Tensor, single: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of z, mean and deviation, each (b, n).

    Args:
        gradient: (3,) gradients of the means of the three parts over the batch.
        z: as in `forward`.
        mean: as in `forward`.
        deviation: as in `forward`.
        joint: (b,) J, as returned by `forward`.
        single: (b, n) P, as returned by `forward`.
    """
    batch_size, num_latents = z.shape
    sizes = _sizes(batch_size, num_latents)
    z_gradient, mean_gradient, deviation_gradient = (torch.empty_like(z) for _ in range(3))
    inputs = (gradient, z, mean, deviation, joint, single)
    launch(_kl_backward_z, (batch_size,), *inputs, z_gradient, batch_size, num_latents, **sizes)
    launch(_kl_backward_q, (batch_size,), *inputs, mean_gradient, deviation_gradient, batch_size, num_latents, **sizes)
    return z_gradient, mean_gradient, deviation_gradient


def _sizes(batch_size: int, num_latents: int) -> dict[str, int | float]:
    """Return the compile-time constants of the kernels."""
    return {
        "LATENTS": max(16, triton.next_power_of_2(num_latents)),
        "CHUNK": CHUNK,
        "CHUNKS": triton.cdiv(batch_size, CHUNK),
        "HALF_LOG_2PI": HALF_LOG_2PI,
        "num_warps": 4,
    }
