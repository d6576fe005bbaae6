"""Penalties on the use of codes: ``entropy`` and ``support``, for autoencoders that round each latent to a value.

Both are multiplied by the variance of the batch per entry (pixel and channel, or feature), which is not differentiated.
The factor makes a weight mean the same for all data and resolutions: with a weight of 0.02 of ``entropy``, the first
nat of a latent must lower the error of the reconstruction by a hundredth of the variance. Without it, a weight that
suits images with bright walls of any hue would erase a small object in front of a constant background.

**The entropy of codes** leaves latents at rest that are not needed. It is a concave function of the entropies of the
latents, summed over them, in nats:

    Σ_j h log(1 + H_j / h),    H_j = −Σ_k p_jk log p_jk,

where p_jk is the share of the batch whose latent j has its k-th value, and h is half a nat. Minimising the sum of the
entropies while the observations stay reconstructible leads to a code without redundancy, in which latents are
independent (Barlow, Kaushal and Mitchison, "Finding minimum entropy codes", Neural Computation 1989). The logarithm
makes it a question of few latents rather than of coarse ones: near rest, a nat costs its full price, and for a latent
that has two nats a fifth of it. So latents that repeat others, or carry little, come to rest at one value, and those
that are needed keep their values (as with the log-sum penalty of Candès, Wakin and Boyd, "Enhancing sparsity by
reweighted ℓ1 minimization", 2008).

Counts have no gradient. The gradient is that of the expected code length of soft assignments: if encoder output x_j is
assigned to value k with weight a_jk (``LatentSpace.soft_codes``), it costs Σ_k a_jk · (−log p_jk) nats, as with an
entropy-constrained quantizer (Chou, Lookabaugh and Gray 1989), times the latent's price 1 / (1 + H_j / h). It moves the
encoder only, towards values that are frequent; codebooks and decoder get none. Shares are estimated with half a count
more for every value, so that a value that the batch lacks has a finite cost.

**Factorized support** penalises pairs of latents of which extreme combinations never occur. If sources vary
independently, any value of one occurs with any value of another, and so it should be with latents that encode one
source each. Two latents that are rotated against two sources, or that repeat each other, leave corners empty: when one
is at its end, the other cannot be at its own. For latents i and j, take the combinations that would occur if the two
were independent, u_i of one image with u_j of another. The gap is how far the images of the batch fall short of the
most remote of them,

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

from collections.abc import Collection

import torch
from torch import Tensor

from ..models.latents import LatentOutput, LatentSpace
from .objective import Terms

# Names of the terms as config weights, log keys and columns.
ENTROPY = "entropy"
SUPPORT = "support"
PENALTIES = (ENTROPY, SUPPORT)


def penalty_terms(
    names: Collection[str], latent: LatentSpace, x: Tensor, output: LatentOutput, images: Tensor
) -> Terms:
    """Return the unweighted penalties of these names on a batch of ``images`` (b, …).

    ``x`` (b, num_inputs) are the encoder's outputs for them, and ``output`` is that of the latent space for ``x``.
    """
    terms: Terms = {}
    if ENTROPY in names:
        assert output.codes is not None
        terms[ENTROPY] = code_entropy(latent.soft_codes(x), output.codes)
    if SUPPORT in names:
        terms[SUPPORT] = support_gap(latent.unrounded(x), latent.value_distances())
    if terms:
        variance = images.detach().var(0, correction=0).mean()
        terms = {name: variance * term for name, term in terms.items()}
    return terms


def require_scalar_codes(latent: LatentSpace, names: Collection[str]) -> None:
    """Raise an error if there are penalties on codes, and the latent space does not round each latent."""
    if names and not latent.has_scalar_codes:
        raise ValueError(
            f"the loss term {sorted(names)[0]!r} needs latents that are rounded to one of a few values each, as those "
            f"of qlae and fsq-ae are, which {type(latent).__name__} does not do; remove its weight"
        )


HALF_PRICE = 0.5  # the entropy h, in nats, at which a nat costs half as much as near rest


def code_entropy(weights: Tensor, codes: Tensor) -> Tensor:
    """Return the sum over latents of h log(1 + entropy / h) over a batch, with the gradient of soft assignments.

    Args:
        weights: soft assignments (b, num_latents, num_values); only their gradient is used.
        codes: the values that the latents have (b, num_latents) int64.

    >>> codes = torch.tensor([[0, 0], [1, 0], [0, 0], [1, 0]])  # entropies log 2 and 0
    >>> round(code_entropy(torch.zeros(4, 2, 3), codes).item(), 4)  # ½ log(1 + 2 log 2)
    0.4349
    """
    num_values = weights.shape[-1]
    counts = (codes.unsqueeze(-1) == torch.arange(num_values, device=codes.device)).to(weights.dtype).sum(0)
    shares = counts / len(codes)
    entropies: Tensor = -torch.special.xlogy(shares, shares).sum(-1)  # (num_latents,)
    lengths = -((counts + 0.5) / (len(codes) + 0.5 * num_values)).log()
    expected = (weights * lengths).sum(-1).mean(0) / (1 + entropies / HALF_PRICE)
    costs = HALF_PRICE * (entropies / HALF_PRICE).log1p()
    return (costs + (expected - expected.detach())).sum()


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
