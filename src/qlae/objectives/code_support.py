"""Factorized support: a penalty on pairs of latents of which some combinations never occur.

If sources vary independently, any value of one occurs with any value of another, and so it should be with latents that
encode one source each. Two latents that are rotated against two sources, or repeat each other, leave corners empty:
when one is at its end, the other cannot be at its own. For each pair of latents i, j and each of the four corners of
the box that the batch spans, the gap is the squared distance from the corner to the nearest member of the batch,

    g = min_b ((x_bi − e_i) / r_i)² + ((x_bj − e_j) / r_j)²,

where e are ends of the latents' ranges over the batch, and r the lengths of these ranges (at least the distance between
two values of the codebook). The penalty is the mean over pairs of the sum of max(0, g − slack) over the corners.

This follows Roth, Ibrahim, Akata, Vincent and Bouchacourt, "Disentanglement of correlated factors via Hausdorff
factorized support" (ICLR 2023). Deviations:

- They compare all combinations of values that occur with those that occur together. A source that is a circle, as a hue
  is, needs two latents whose support is a circle; its hole is their largest gap, which a model closes by mixing in
  another source. The corners of a circle are nearer: (√2 − 1)² / 4 = 0.043 from it, which the slack of 0.05 permits.
- Ends and ranges are not differentiated: members of the batch move towards the corners, and not the corners inwards.
- The encoder's outputs are compared before they are rounded, so that there is a gradient.
"""

import torch
from torch import Tensor

SLACK = 0.05  # squared distance of a corner, in ranges of the latents, that costs nothing


def support_gap(x: Tensor, least_range: Tensor, *, slack: float = SLACK) -> Tensor:
    """Return the mean over pairs of latents of the gaps in the corners of their support.

    Args:
        x: latents before rounding (b, n).
        least_range: of each latent (n,); smaller ranges are not enlarged to this.
        slack: squared distance that costs nothing.

    >>> square = torch.cartesian_prod(torch.linspace(0, 1, 5), torch.linspace(0, 1, 5))
    >>> support_gap(square, torch.zeros(2)).item()
    0.0
    >>> diagonal = torch.linspace(0, 1, 5)[:, None].expand(-1, 2)
    >>> round(support_gap(diagonal, torch.zeros(2)).item(), 6)  # two corners, half a squared range from it
    0.9
    """
    num_latents = x.shape[1]
    if num_latents < 2:
        return x.sum() * 0
    low, high = x.detach().amin(0), x.detach().amax(0)
    ranges = (high - low).maximum(least_range).clamp(min=torch.finfo(x.dtype).eps)
    ends = torch.stack(((x - low) / ranges, (high - x) / ranges), -1).square().flatten(1)  # (b, 2n)
    gaps = (ends.unsqueeze(-1) + ends.unsqueeze(-2)).amin(0)  # (2n, 2n), each pair of latents twice
    beyond = (gaps - slack).relu().view(num_latents, 2, num_latents, 2).sum((1, 3))
    return beyond.triu(1).sum() * (2 / (num_latents * (num_latents - 1)))
