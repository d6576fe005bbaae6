"""Modularity and explicitness.

Ridgeway & Mozer (2018), "Learning Deep Disentangled Embeddings with the F-Statistic Loss".

With m_ij the mutual information of source i and latent j, and best_j = max_i m_ij²,

    modularity = mean_j (1 − (Σ_i m_ij² − best_j) / (best_j (n_s − 1))),   0 for a latent without information;
    explicitness = mean_i of the area under the ROC curve, one class against the rest, of logistic regression on all
    latents.

Protocols for modularity: `disentanglement_lib` (google-research/disentanglement_lib): latents in 20 bins of equal
width; `ubisoft` (ubisoft/ubisoft-laforge-disentanglement-metrics): 10 bins, constant latents left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .information import binned_information
from .inputs import (
    Bools,
    Floats,
    check_pair,
    leave_out_constant,
    plain_columns,
    require_choice,
    require_discrete,
    train_size,
    warn_if_ordered,
)
from .metric import UNIT, MetricResult, Score, register_metric

_BINS = {"disentanglement_lib": 20, "ubisoft": 10}


@register_metric(
    "modularity",
    scores=[Score("modularity", "modularity", meaning="modularity of Ridgeway & Mozer", bounds=UNIT)],
    takes_checked=True,
)
def modularity(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "disentanglement_lib",
    num_bins: int | None = None,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute modularity (Ridgeway & Mozer 2018), in [0, 1]; `matrix` is the mutual information in nats.

    Continuous sources are binned like the latents. With a single source every informative latent has 1.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        protocol: "disentanglement_lib" or "ubisoft".
        num_bins: number of bins of equal width; that of the protocol by default.

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2)
    >>> print(modularity(sources, sources))
    modularity 1.000  [disentanglement_lib; n = 16]
    """
    require_choice("protocol", protocol, _BINS)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    matrix = binned_information(s, z, _BINS[protocol] if num_bins is None else num_bins)[0]
    squared = matrix[varying] ** 2
    best = squared.max(axis=0)
    some = best > 0
    rest = max(squared.shape[0] - 1, 1)
    per_latent = np.zeros(best.size)
    others = np.minimum((squared[:, some].sum(axis=0) - best[some]) / (best[some] * rest), 1.0)  # rounding aside
    per_latent[some] = 1.0 - others
    counted = z.varying if protocol == "ubisoft" else np.ones(best.size, dtype=bool)
    value = float(per_latent[counted].mean()) if counted.any() else 0.0
    return MetricResult("modularity", value, matrix, protocol, s.num_samples, {"modularity_per_latent": per_latent})


@register_metric(
    "explicitness",
    scores=[Score("explicitness", "explicitness", meaning="area under the ROC curve, 0.5 by chance", bounds=UNIT)],
    needs_discrete=True,
    holds_rows_out=True,
    takes_checked=True,
)
def explicitness(
    sources: Any,
    latents: Any,
    *,
    held_out: bool = True,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute explicitness by ROC area (Ridgeway & Mozer 2018), in [0, 1] with 0.5 for chance.

    As in disentanglement_lib: logistic regression with scikit-learn's defaults on standardised latents. Constant
    latents are left out, and so are classes without members, or without others, in the test rows.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`; continuous sources raise a `ValueError`.
        held_out: train on the first ⌈0.9 n⌉ rows and score the rest; False trains and scores on all rows.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 3, size=(300, 2))
    >>> print(explicitness(sources, np.eye(3)[sources].reshape(300, 6)))
    explicitness 1.000  [disentanglement_lib; n = 300]
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    require_discrete(s, "explicitness")
    n = s.num_samples
    cut = train_size(n) if held_out else n
    fit_rows, test_rows = slice(0, cut), slice(cut if held_out else 0, n)
    if held_out:
        warn_if_ordered(s, test_rows)
    moving = np.ptp(z.values[fit_rows], axis=0) > 0
    X = plain_columns(z.values[:, moving])
    if moving.any():
        X = (X - X[fit_rows].mean(axis=0)) / X[fit_rows].std(axis=0)
    train, test = np.full(s.num_sources, 0.5), np.full(s.num_sources, 0.5)
    for i in np.flatnonzero(varying).tolist():
        y = s.labels[:, i]
        if not moving.any() or np.unique(y[fit_rows]).size < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression().fit(X[fit_rows], y[fit_rows])
        train[i] = _mean_roc_area(y[fit_rows], model.predict_proba(X[fit_rows]), model.classes_)
        test[i] = _mean_roc_area(y[test_rows], model.predict_proba(X[test_rows]), model.classes_)
    details = {"train": train, "test": test, "explicitness_train": float(train[varying].mean())}
    return MetricResult("explicitness", float(test[varying].mean()), None, "disentanglement_lib", n, details)


def _mean_roc_area(labels: Any, probabilities: Floats, classes: Any) -> float:
    """Return the mean over classes of P(score of a member > score of another), ties counted half."""
    from scipy.stats import rankdata

    areas = []
    for column, value in enumerate(classes):
        member: Bools = labels == value
        inside = int(member.sum())
        outside = member.size - inside
        if inside and outside:
            ranks = rankdata(probabilities[:, column])
            areas.append((ranks[member].sum() - inside * (inside + 1) / 2) / (inside * outside))
    return float(np.mean(areas)) if areas else 0.5
