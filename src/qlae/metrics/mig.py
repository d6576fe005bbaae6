"""MIG: the gap between the two latents that are most informative about each source.

Chen et al. (2018), "Isolating Sources of Disentanglement in Variational Autoencoders":

    MIG = (1/n_s) Σ_i (I(s_i; z_(1)) − I(s_i; z_(2))) / H(s_i)

with z_(1), z_(2) the latents with the most and second most information. Protocols:

* `disentanglement_lib` (google-research/disentanglement_lib): latents, including codes, in 20 bins of equal width;
  plug-in estimates.
* `ubisoft` (ubisoft/ubisoft-laforge-disentanglement-metrics): 10 bins, and each I is divided by the entropy of the
  *latent*, not of the source.
* `infomec`: the NMI of `qlae.metrics.nmi` (codes as they are, KSG for continuous latents) instead of binned estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .information import binned_information, entropy, estimate, normalise, top_two_gaps
from .inputs import Floats, Latents, Sources, check_pair, leave_out_constant, require_choice
from .metric import UNIT, MetricResult, Score, register_metric

_BINS = {"disentanglement_lib": 20, "ubisoft": 10, "infomec": None}


@register_metric(
    "mig",
    scores=[Score("mig", "MIG", meaning="gap between the two most informative latents", bounds=UNIT)],
    takes_checked=True,
)
def mig(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "disentanglement_lib",
    num_bins: int | None = None,
    seed: int = 0,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute the mutual information gap (Chen et al. 2018), in [0, 1]; `matrix` is the normalised information.

    Continuous sources are binned like the latents. With a single latent the second largest information is 0.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        protocol: "disentanglement_lib", "ubisoft" or "infomec"; see the top of the module.
        num_bins: number of bins of equal width; that of the protocol by default.
        seed: of the jitter of KSG estimates ("infomec").

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2)
    >>> print(mig(sources, sources))
    MIG 1.000  [disentanglement_lib; n = 16]
    """
    require_choice("protocol", protocol, _BINS)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    if protocol == "infomec":
        matrix = normalise(np.maximum(estimate(s, z, k=3, seed=seed), 0.0), s, z, k=3)
    else:
        matrix = _binned(s, z, (_BINS[protocol] or 20) if num_bins is None else num_bins, protocol)
    gaps = top_two_gaps(matrix)
    value = float(gaps[varying].mean())
    return MetricResult("mig", value, matrix, protocol, s.num_samples, {"gap_per_source": gaps})


def _binned(sources: Sources, latents: Latents, num_bins: int, protocol: str) -> Floats:
    """Return the normalised information (n_s, n_z) of binned latents."""
    nats, labels, bins = binned_information(sources, latents, num_bins)
    norms = np.array([entropy(column) for column in (bins if protocol == "ubisoft" else labels).T])
    norms = norms[None, :] if protocol == "ubisoft" else norms[:, None]
    shares = np.divide(nats, norms, out=np.zeros_like(nats), where=norms > 0)
    return np.asarray(np.minimum(shares, 1.0))
