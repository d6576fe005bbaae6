"""MIG-sup, JEMMIG and DCIMIG: gaps of mutual information like MIG's, which ask for other structures.

With I(s_i; z_j) from latents in bins of equal width, and (1), (2) the largest and second largest:

    MIG-sup = mean_j (I(s_(1); z_j) − I(s_(2); z_j)) / H(z_j)                          Li et al. 2020
    JEMMIG  = mean_i 1 − (H(s_i, z_(1)) − I(s_i; z_(1)) + I(s_i; z_(2))) / (H(s_i) + log B)   Do & Tran 2020
    DCIMIG  = Σ_i max over latents whose best source is i of (I(s_i; z_j) − I(s_(2); z_j)) / Σ_i H(s_i)
                                                                                       Sepliarskaia et al. 2019

MIG-sup takes the gap between *sources* for each latent, so it rewards modularity where MIG rewards compactness. JEMMIG
adds the joint entropy, so it also punishes latents with irrelevant detail. DCIMIG counts for each source its best
modular latent. All follow ubisoft/ubisoft-laforge-disentanglement-metrics, with its 10 bins. A discrete source keeps
its classes; a continuous one is binned. With a single source or latent, the second largest information is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .information import binned_information, entropy, top_two_gaps
from .inputs import Floats, check_pair, leave_out_constant
from .metric import UNIT, MetricResult, Score, register_metric

_BINS = 10
_PROTOCOL = "ubisoft"


def _entropies(columns: Any) -> Floats:
    return np.array([entropy(column) for column in columns.T])


@register_metric(
    "mig_sup",
    scores=[
        Score(
            "mig_sup", "MIG-sup", meaning="gap between the two sources a latent is most informative about", bounds=UNIT
        )
    ],
    in_all=False,
    takes_checked=True,
)
def mig_sup(
    sources: Any,
    latents: Any,
    *,
    num_bins: int = _BINS,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute MIG-sup (Li et al. 2020), in [0, 1]; `matrix` is the information divided by the latent's entropy.

    A latent that is constant counts as 0.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        num_bins: number of bins of equal width.

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2)
    >>> print(mig_sup(sources, sources))
    MIG-sup 1.000  [ubisoft; n = 16]
    """
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    nats, _, bins = binned_information(s, z, num_bins)
    norms = _entropies(bins)[None, :]
    matrix = np.minimum(np.divide(nats, norms, out=np.zeros_like(nats), where=norms > 0), 1.0)
    gaps = top_two_gaps(matrix[varying].T)
    return MetricResult("mig_sup", float(gaps.mean()), matrix, _PROTOCOL, s.num_samples, {"gap_per_latent": gaps})


@register_metric(
    "jemmig",
    scores=[
        Score("jemmig", "JEMMIG", meaning="MIG minus the detail of the best latent that the source lacks", bounds=UNIT)
    ],
    in_all=False,
    takes_checked=True,
)
def jemmig(
    sources: Any,
    latents: Any,
    *,
    num_bins: int = _BINS,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute JEMMIG (Do & Tran 2020), normalised to [0, 1]; `matrix` is the information in nats.

    A copy has less than 1 if a source has fewer values than bins: with B bins, log B − log K is missing for K equally
    frequent values. Pass `num_bins` = K to compare sources of one size.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        num_bins: number of bins of equal width.

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2)
    >>> print(jemmig(sources, sources, num_bins=4))
    JEMMIG 1.000  [ubisoft; n = 16]
    """
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    nats, labels, bins = binned_information(s, z, num_bins)
    own, alone = _entropies(labels), _entropies(bins)
    best = nats.argmax(axis=1)
    joint = own + alone[best] - nats.max(axis=1)  # H(s, z) = H(s) + H(z) − I(s; z)
    per_source = 1.0 - (joint - top_two_gaps(nats)) / (own + np.log(num_bins))
    value = float(np.clip(per_source[varying].mean(), 0.0, 1.0))
    return MetricResult("jemmig", value, nats, _PROTOCOL, s.num_samples, {"jemmig_per_source": per_source})


@register_metric(
    "dcimig",
    scores=[Score("dcimig", "DCIMIG", meaning="share of the sources that modular latents encode", bounds=UNIT)],
    in_all=False,
    takes_checked=True,
)
def dcimig(
    sources: Any,
    latents: Any,
    *,
    num_bins: int = _BINS,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute DCIMIG, also called 3CharM (Sepliarskaia et al. 2019), in [0, 1]; `matrix` is the information in nats.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        num_bins: number of bins of equal width.

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2)
    >>> print(dcimig(sources, sources))
    DCIMIG 1.000  [ubisoft; n = 16]
    """
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    nats, labels, _ = binned_information(s, z, num_bins)
    gaps = top_two_gaps(nats[varying].T)
    best = np.flatnonzero(varying)[nats[varying].argmax(axis=0)]
    per_source = np.zeros(s.num_sources)
    np.maximum.at(per_source, best, gaps)
    value = float(min(1.0, per_source.sum() / _entropies(labels)[varying].sum()))
    return MetricResult("dcimig", value, nats, _PROTOCOL, s.num_samples, {"gap_per_source": per_source})
