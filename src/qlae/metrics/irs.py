"""IRS: how little a latent changes when all sources except its own change.

Suter et al. (2019), "Robustly Disentangled Causal Mechanisms". For latent j and source i, over the values v of the
source,

    M_ij = 1 − mean_v q(|z_j − E[z_j | s_i = v]|) / max |z_j − E z_j|,       q a high quantile within s_i = v
    IRS = Σ_j w_j max_i M_ij / Σ_j w_j,       w_j = max |z_j − E z_j|.

Protocols: `disentanglement_lib` (google-research/disentanglement_lib): sources in 20 bins, quantile 0.99. `ubisoft`
(ubisoft/ubisoft-laforge-disentanglement-metrics): quantile 1 (the maximum); continuous sources in 10 bins, discrete
sources as they are. Constant latents are left out. A score below 0, which noise can have, becomes 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .information import equal_width
from .inputs import Floats, Ints, check_pair, leave_out_constant, require_choice
from .metric import UNIT, MetricResult, Score, register_metric

_PROTOCOLS = {"disentanglement_lib": (20, 0.99), "ubisoft": (10, 1.0)}


@register_metric(
    "irs", scores=[Score("irs", "IRS", meaning="robustness to interventions", bounds=UNIT)], takes_checked=True
)
def irs(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "disentanglement_lib",
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute the interventional robustness score (Suter et al. 2019), in [0, 1].

    `matrix` is M, with 0 for constant latents.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        protocol: "disentanglement_lib" or "ubisoft".

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2)
    >>> print(irs(sources, sources))
    IRS 1.000  [disentanglement_lib; n = 16]
    """
    require_choice("protocol", protocol, _PROTOCOLS)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    num_bins, quantile = _PROTOCOLS[protocol]
    moving = z.varying
    matrix = np.zeros((s.num_sources, z.num_latents))
    if not moving.any():
        return MetricResult("irs", 0.0, matrix, protocol, s.num_samples, {"unclipped": 0.0, "num_nonconstant": 0})
    kept = z.values[:, moving]
    weights = np.abs(kept - kept.mean(axis=0)).max(axis=0)
    for i in np.flatnonzero(varying).tolist():
        if protocol == "ubisoft" and s.discrete[i]:
            groups = s.labels[:, i]
        else:
            groups = equal_width(s.values[:, i], num_bins)
        matrix[i, moving] = 1.0 - _mean_deviation(kept, groups, quantile) / weights
    best = matrix[varying][:, moving].max(axis=0)
    average = float(np.average(best, weights=weights))
    details = {"unclipped": average, "num_nonconstant": int(moving.sum())}
    details |= {"score_per_latent": best, "max_deviation": weights}
    return MetricResult("irs", min(1.0, max(0.0, average)), matrix, protocol, s.num_samples, details)


def _mean_deviation(values: Floats, groups: Ints, quantile: float) -> Floats:
    """Return (n_z,) the mean over groups of the quantile, within a group, of the distance from the group's mean."""
    order = np.argsort(groups, kind="stable")
    borders = np.flatnonzero(np.diff(groups[order])) + 1
    parts = [
        np.quantile(np.abs(part - part.mean(axis=0)), quantile, axis=0) for part in np.split(values[order], borders)
    ]
    return np.asarray(np.mean(parts, axis=0))
