"""Which latents are informative at all: more than shuffled samples are.

InfoM and InfoC are ratios, and a ratio of two estimates that are both noise is not small: latents drawn at random score
InfoM 0.4 to 0.8. So each result says which latents are informative: their best estimate with any source exceeds the
mean of the estimates from shuffled samples by several standard deviations.
"""

from __future__ import annotations

import numpy as np

from .information import estimate
from .inputs import Bools, Floats, Latents, Sources

_CODE_SAMPLES, _CODE_SHUFFLES, _CODE_DEVIATIONS = 20_000, 20, 6.0
_KSG_SAMPLES, _KSG_SHUFFLES, _KSG_DEVIATIONS = 1_000, 5, 5.0


def informative_latents(sources: Sources, latents: Latents, nats: Floats, *, k: int, seed: int) -> Bools:
    """Return the mask (n_z,) of latents with more information about some source than shuffled samples have.

    Plug-in estimates of independent variables shrink as 1/n and those of KSG as 1/√n, so a part of a large sample
    suffices for the shuffles.

    Args:
        sources, latents: the checked sample.
        nats: (n_s, n_z) estimates of their mutual information, not clipped at 0.
        k: number of neighbours in the KSG estimators.
        seed: of the shuffles.
    """
    n = sources.num_samples
    random = np.random.default_rng(seed)
    plug_in = latents.discrete and all(sources.discrete)
    most = _CODE_SAMPLES if plug_in else max(_KSG_SAMPLES, 20 * max(sources.sizes), 20 * max(latents.sizes, default=0))
    part = min(n, most)
    num_shuffles = _CODE_SHUFFLES if plug_in else max(_KSG_SHUFFLES, 30 // latents.num_latents)
    shuffled = []
    for _ in range(num_shuffles):
        rows, others = random.permutation(n)[:part], random.permutation(n)[:part]
        shuffled.append(estimate(sources.rows(rows), latents.rows(others), k=k, seed=seed))
    null = np.stack(shuffled)  # (shuffles, n_s, n_z)
    if plug_in:
        limit = (null.mean(axis=0) + _CODE_DEVIATIONS * null.std(axis=0, ddof=1)) * (part / n)
    else:
        deviation = np.sqrt(null.var(axis=0, ddof=1).mean(axis=1, keepdims=True))  # one value for all latents
        limit = null.mean(axis=(0, 2))[:, None] + _KSG_DEVIATIONS * deviation * np.sqrt(part / n)
    return np.asarray(np.any((nats > limit) & (nats > 1e-12), axis=0))
