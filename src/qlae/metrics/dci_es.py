"""DCI-ES: the explicitness and the size that Eastwood et al. (2023) add to DCI.

**Explicitness E** asks how much capacity a predictor needs. The predictors are the random forests of DCI at each depth
κ, and ℓ(κ) is the least held-out loss up to that depth: the error rate, or 1 − R² for continuous sources. With ℓ₀ the
loss of guessing (the most frequent class, or the mean) and the area under the curve above its minimum ℓ*,

    E = 1 − 2 / ((κ_max − κ_min) ℓ₀) ∫ (ℓ(κ) − ℓ*) dκ,

averaged over sources, as in andreinicolicioiu/DCI-ES. E is 1 if trees of depth 1 do as well as deep ones, and 0 if the
loss falls in a straight line from ℓ₀ to 0. It is 1 for noise, too, because no capacity helps: read it together with I.

**Size S** is the number of sources divided by the number of latents, at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .dci import DEPTHS, dci
from .inputs import Floats, check_pair
from .metric import UNIT, MetricResult, Score, register_metric


@register_metric(
    "dci_es",
    scores=[
        Score("dci_e", "E of DCI-ES", meaning="small trees predict the sources as well as large ones", bounds=UNIT),
        Score("dci_s", "S of DCI-ES", meaning="sources per latent", bounds=UNIT),
    ],
    takes_checked=True,
    in_all=False,
)
def dci_es(
    sources: Any,
    latents: Any,
    *,
    depths: Sequence[int] = DEPTHS,
    num_trees: int = 100,
    max_features: Any = "sqrt",
    seed: int = 0,
    n_jobs: int | None = None,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute explicitness E and size S of DCI-ES (Eastwood et al. 2023), in [0, 1].

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        depths: capacities of the forests, ascending, at least two.
        num_trees, max_features, seed, n_jobs: of the forests; see `dci`.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 2, size=(400, 2))
    >>> print(dci_es(sources, sources, num_trees=10, max_features="all"))
    E of DCI-ES 1.000  S of DCI-ES 1.000  [forests; n = 400]
    """
    capacities = np.asarray(depths)
    if capacities.ndim != 1 or capacities.size < 2 or (np.diff(capacities) <= 0).any():
        raise ValueError(f"depths are {list(depths)}; give at least two, in ascending order.")
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    options: dict[str, Any] = {"num_trees": num_trees, "max_features": max_features, "seed": seed, "n_jobs": n_jobs}
    forests = dci(s, z, depths=depths, **options)
    assert forests.accuracy_by_depth is not None
    per_source = np.zeros(s.num_sources)
    for i in np.flatnonzero(s.varying).tolist():
        guess = 1.0 - (forests.chance[i] if s.discrete[i] else 0.0)
        per_source[i] = curve_explicitness(capacities, 1.0 - forests.accuracy_by_depth[i], guess)
    explicit = float(per_source[s.varying].mean())
    details = {"dci_s": min(1.0, float(s.varying.sum()) / z.num_latents), "explicitness_per_source": per_source}
    return MetricResult("dci_e", explicit, None, "forests", s.num_samples, details)


def curve_explicitness(capacities: Any, losses: Any, guess: float) -> float:
    """Return E of one curve of losses (m,) over ascending capacities (m,), clipped to [0, 1].

    Args:
        capacities: ascending, such as the depths of trees.
        losses: at each capacity.
        guess: the loss without input.

    >>> curve_explicitness([0, 1, 2], [1.0, 0.5, 0.0], 1.0), curve_explicitness([0, 1, 2], [0.25, 0.25, 0.25], 1.0)
    (0.0, 1.0)
    """
    x: Floats = np.asarray(capacities, dtype=np.float64)
    least = np.minimum.accumulate(np.asarray(losses, dtype=np.float64))
    if guess <= 0.0:  # guessing makes no error
        return 1.0
    above = least - least[-1]
    area = float(np.sum((above[1:] + above[:-1]) / 2 * np.diff(x)))
    return float(np.clip(1.0 - 2.0 * area / ((x[-1] - x[0]) * guess), 0.0, 1.0))
