"""Factorized support: a penalty on pairs of latents of which extreme combinations never occur.

If sources vary independently, any value of one occurs with any value of another, and so it should be with latents that
encode one source each. Two latents that are rotated against two sources, or that repeat each other, leave corners
empty: when one is at its end, the other cannot be at its own. For latents i and j, take the combinations that would
occur if the two were independent, u_i of one image with u_j of another. The gap is how far the images of the batch fall
short of the most remote of them,

    g_ij = max_a min_b Σ_k max(0, |c_ak| − sign(c_ak) u_bk)²,    k = i, j,    c_a = (u_ai, u_a'j),

where u = (x − mean) / √(variance + δ² / 12) are the latents and a' is another image than a. An image that lies in the
same direction from the mean as the combination, and farther out, leaves no gap. Dividing by the deviation makes the gap
independent of scale; δ, the distance between two values of the codebook, keeps latents at rest from being enlarged. The
penalty is the mean of g over all pairs.

Paper: Roth, Ibrahim, Akata, Vincent and Bouchacourt, "Disentanglement of correlated factors via Hausdorff factorized
support" (ICLR 2023). Deviations from it:

- They measure the distance to the nearest image in any direction. A source that is a circle, as a hue is, needs two
  latents whose support is a circle, and its hole is a larger gap than its missing corners: 1.3 in a batch of 128
  images, as much as of a square that is turned by 45°. Counting only what falls short, a circle has 0.3.
- Combinations are drawn, one per pair of images, instead of forming all b².
- Latents are divided by their deviations, and compared before they are rounded, so that there is a gradient.
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
    u = (x - x.mean(0)) / (x.var(0, correction=0) + floor).sqrt()
    # Image a lends latent j from image a + j: images are in random order, so this is a shuffle, and needs no generator.
    count = max(1, min(NUM_COMBINATIONS, batch_size, MAX_ENTRIES // (batch_size * num_latents**2)))
    first = torch.arange(count, device=x.device).unsqueeze(1)
    combined = u.gather(0, (first + torch.arange(num_latents, device=x.device)) % batch_size).unsqueeze(1)
    squared = (combined.abs() - combined.sign() * u).relu().square()  # (count, b, n)
    nearest = (squared.unsqueeze(-1) + squared.unsqueeze(-2)).amin(1)  # (count, n, n)
    return nearest.amax(0).triu(1).sum() * (2 / (num_latents * (num_latents - 1)))
