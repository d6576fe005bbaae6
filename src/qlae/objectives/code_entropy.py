"""The entropy of codes: a penalty that leaves a latent only the values that it needs.

The sum over latents of the entropies of their codes, in nats:

    Σ_j H(z_j),    H(z_j) = −Σ_k p_jk log p_jk,

where p_jk is the share of the batch whose latent j has its k-th value. Minimising it while the observations stay
reconstructible leads to a code without redundancy, in which latents are independent (Barlow, Kaushal and Mitchison,
"Finding minimum entropy codes", Neural Computation 1989). Latents that repeat others or carry noise come to rest at one
value; of the others, each keeps as many values as it needs.

Counts have no gradient. The gradient is that of the expected code length of soft assignments: if encoder output x_j is
assigned to value k with weight a_jk (``LatentSpace.soft_codes``), it costs Σ_k a_jk · (−log p_jk) nats, as with an
entropy-constrained quantizer (Chou, Lookabaugh and Gray 1989). It moves the encoder only, towards values that are
frequent; codebooks and decoder get none. Shares are estimated with half a count more for every value, so that a value
that the batch lacks has a finite cost.
"""

import torch
from torch import Tensor


def code_entropy(weights: Tensor, codes: Tensor) -> Tensor:
    """Return the sum of the entropies of latents over a batch, in nats, with the gradient of soft assignments.

    Args:
        weights: soft assignments (b, num_latents, num_values); only their gradient is used.
        codes: the values that the latents have (b, num_latents) int64.

    >>> codes = torch.tensor([[0, 0], [1, 0], [0, 0], [1, 0]])
    >>> code_entropy(torch.zeros(4, 2, 3), codes).item()  # log 2 and 0
    0.6931471824645996
    """
    num_values = weights.shape[-1]
    counts = (codes.unsqueeze(-1) == torch.arange(num_values, device=codes.device)).to(weights.dtype).sum(0)
    shares = counts / len(codes)
    entropy: Tensor = -torch.special.xlogy(shares, shares).sum()
    lengths = -((counts + 0.5) / (len(codes) + 0.5 * num_values)).log()
    expected = (weights * lengths).sum((-2, -1)).mean()
    return entropy + (expected - expected.detach())
