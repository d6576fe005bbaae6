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
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from .binning import equal_width_columns
from .discrete import discrete_mutual_information
from .inputs import Bools, Floats, check_pair, leave_out_constant, plain_columns, require_discrete, warn_of_order
from .mig import binned_labels
from .registry import UNIT, Score, register_metric
from .result import MetricResult

_BINS = {"disentanglement_lib": 20, "ubisoft": 10}


@register_metric(
    "modularity",
    scores=[Score("modularity", "modularity", meaning="modularity of Ridgeway & Mozer", bounds=UNIT)],
    validates=True,
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
    """Modularity (Ridgeway & Mozer 2018), in [0, 1]; `matrix` is the mutual information in nats.

    Continuous sources are cut into bins like the latents. With a single source every latent that tells of it has 1.

    Parameters
    ----------
    sources, latents : as for `infomec`.
    protocol : "disentanglement_lib" or "ubisoft".
    num_bins : bins of equal width, by default those of the protocol.

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2)
    >>> print(modularity(sources, sources))
    modularity 1.000  [disentanglement_lib; n = 16]
    """
    if protocol not in _BINS:
        raise ValueError(f"protocol is {protocol!r}; allowed are {', '.join(map(repr, _BINS))}.")
    checked, given = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(checked)
    num_bins = _BINS[protocol] if num_bins is None else num_bins
    labels, sizes = binned_labels(checked, num_bins)
    bins, bin_sizes = equal_width_columns(given.values, num_bins)
    matrix = discrete_mutual_information(labels, sizes, bins, bin_sizes)
    squared = matrix[varying] ** 2
    best = squared.max(axis=0)
    told = best > 0
    rest = max(squared.shape[0] - 1, 1)
    each = np.zeros(best.size)
    others = np.minimum((squared[:, told].sum(axis=0) - best[told]) / (best[told] * rest), 1.0)  # but for rounding
    each[told] = 1.0 - others
    counted = np.ptp(given.values, axis=0) > 0 if protocol == "ubisoft" else np.ones(best.size, dtype=bool)
    value = float(each[counted].mean()) if counted.any() else 0.0
    return MetricResult("modularity", value, matrix, protocol, checked.num_samples, {"modularity_per_latent": each})


@register_metric(
    "explicitness",
    scores=[Score("explicitness", "explicitness", meaning="area under the ROC curve, 0.5 by chance", bounds=UNIT)],
    needs_discrete=True,
    holds_rows_out=True,
    validates=True,
)
def explicitness(
    sources: Any,
    latents: Any,
    *,
    held_out: bool = True,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Explicitness (Ridgeway & Mozer 2018) by ROC area, in [0, 1] with 0.5 for chance, as in disentanglement_lib.

    Logistic regression with scikit-learn's defaults on standardised latents. Constant latents are left out, and so are
    classes that do not occur (or are alone) in the test rows.

    Parameters
    ----------
    sources, latents : as for `infomec`; continuous sources raise a `ValueError`.
    held_out : train on the first ⌈0.9 n⌉ rows and score the rest; False trains and scores on all rows.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 3, size=(300, 2))
    >>> print(explicitness(sources, np.eye(3)[sources].reshape(300, 6)))
    explicitness 1.000  [disentanglement_lib; n = 300]
    """
    checked, given = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(checked)
    require_discrete(checked, "explicitness")
    n = checked.num_samples
    cut = min(int(np.ceil(0.9 * n)), n - 1) if held_out else n
    fit_rows, test_rows = slice(0, cut), slice(cut if held_out else 0, n)
    if held_out:
        warn_of_order(checked, test_rows)
    moving = np.ptp(given.values[fit_rows], axis=0) > 0
    X = plain_columns(given.values[:, moving])
    if moving.any():
        X = (X - X[fit_rows].mean(axis=0)) / X[fit_rows].std(axis=0)
    train, test = np.full(checked.num_sources, 0.5), np.full(checked.num_sources, 0.5)
    for i in np.flatnonzero(varying).tolist():
        y = checked.labels[:, i]
        if not moving.any() or np.unique(y[fit_rows]).size < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression().fit(X[fit_rows], y[fit_rows])
        train[i] = _mean_roc_area(y[fit_rows], model.predict_proba(X[fit_rows]), model.classes_)
        test[i] = _mean_roc_area(y[test_rows], model.predict_proba(X[test_rows]), model.classes_)
    return MetricResult(
        "explicitness",
        float(test[varying].mean()),
        None,
        "disentanglement_lib",
        n,
        {"train": train, "test": test, "explicitness_train": float(train[varying].mean())},
    )


def _mean_roc_area(labels: Any, probabilities: Floats, classes: Any) -> float:
    """Mean over classes of P(score of a member > score of another), ties half."""
    areas = []
    for column, value in enumerate(classes):
        member: Bools = labels == value
        inside = int(member.sum())
        outside = member.size - inside
        if inside and outside:
            ranks = rankdata(probabilities[:, column])
            areas.append((ranks[member].sum() - inside * (inside + 1) / 2) / (inside * outside))
    return float(np.mean(areas)) if areas else 0.5
