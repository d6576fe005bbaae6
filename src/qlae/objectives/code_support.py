"""Factorized support: a penalty on pairs of latents of which some combinations never occur.

If sources vary independently, any value of one occurs with any value of another, and so it should be with latents that
encode one source each. Two latents that are rotated against two sources, or that repeat each other, leave gaps: when
one is at its end, the other cannot be at its own. For latents i and j, take the combinations that would occur if the
two were independent, x_i of one image with x_j of another. The gap is the squared distance from the most remote of them
to the nearest image of the batch,

    g_ij = max_a min_b (u_ai − u_bi)² + (u_a'j − u_bj)²,    u = x / √(variance of x + δ² / 12),

where a' is another image than a. Dividing by the deviation makes the gap independent of scale; δ, the distance between
two values of the codebook, keeps latents at rest from being enlarged. The penalty is the mean of g over all pairs.

Paper: Roth, Ibrahim, Akata, Vincent and Bouchacourt, "Disentanglement of correlated factors via Hausdorff factorized
support" (ICLR 2023). Deviations from it:

- Combinations are drawn, one per pair of images, instead of forming all b².
- Latents are divided by their deviations, and compared before they are rounded, so that there is a gradient.

A source that is a circle, as a hue is, needs two latents whose support is a circle. Its hole is a gap that the penalty
cannot distinguish from others, so weights that are too large mix other sources into it.
"""

import torch
from torch import Tensor

NUM_COMBINATIONS = 64  # per pair of latents
MAX_ENTRIES = 2**26  # of the largest tensor; with more latents there are fewer combinations


def support_gap(x: Tensor, distances: Tensor) -> Tensor:
    """Return the mean over pairs of latents of the largest gap in their common support.

    Args:
        x: latents before rounding (b, n), of images in random order.
        distances: between neighbouring values of each latent (n,).

    >>> square = torch.cartesian_prod(torch.linspace(0, 1, 5), torch.linspace(0, 1, 5))
    >>> support_gap(square, torch.zeros(2)).item()
    0.0
    >>> diagonal = square[:, :1].expand(-1, 2)
    >>> support_gap(diagonal, torch.zeros(2)).item() > 0
    True
    """
    batch_size, num_latents = x.shape
    if num_latents < 2:
        return x.sum() * 0
    floor = (distances.square() / 12).clamp(min=torch.finfo(x.dtype).eps)
    u = x / (x.var(0, correction=0) + floor).sqrt()
    # Image a lends latent j from image a + j: images are in random order, so this is a shuffle, and needs no generator.
    count = max(1, min(NUM_COMBINATIONS, batch_size, MAX_ENTRIES // (batch_size * num_latents**2)))
    first = torch.arange(count, device=x.device).unsqueeze(1)
    combined = u.gather(0, (first + torch.arange(num_latents, device=x.device)) % batch_size)  # (count, n)
    squared = (combined.unsqueeze(1) - u).square()  # (count, b, n)
    nearest = (squared.unsqueeze(-1) + squared.unsqueeze(-2)).amin(1)  # (count, n, n)
    return nearest.amax(0).triu(1).sum() * (2 / (num_latents * (num_latents - 1)))
