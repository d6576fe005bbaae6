"""A penalty on the use of codes, ``entropy``, for autoencoders that round each latent to a value.

It is multiplied by the variance of the batch per entry (pixel and channel, or feature), which is not differentiated.
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
"""

from collections.abc import Collection

import torch
from torch import Tensor

from ..models.latents import LatentOutput, LatentSpace
from .objective import Terms

# Names of the terms as config weights, log keys and columns.
ENTROPY = "entropy"
PENALTIES = (ENTROPY,)


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
