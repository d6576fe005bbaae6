"""SAP: how much better the best latent alone predicts a source than the second best.

Kumar et al. (2018), "Variational Inference of Disentangled Latent Concepts from Unlabeled Observations", as in
google-research/disentanglement_lib:

    SAP = (1/n_s) Σ_i (S_i(1) − S_i(2))

with S_ij the held-out accuracy of a linear support vector classifier (C = 0.01, balanced classes) of source i on
latent j, or for continuous sources the squared correlation. The first ⌈0.9 n⌉ rows train, the rest test.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .information import top_two_gaps
from .inputs import Floats, check_pair, leave_out_constant, require_choice, train_size, warn_if_ordered
from .metric import UNIT, MetricResult, Score, register_metric


@register_metric(
    "sap",
    scores=[Score("sap", "SAP", meaning="gap between the two most predictive latents", bounds=UNIT)],
    holds_rows_out=True,
    takes_checked=True,
)
def sap(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "disentanglement_lib",
    continuous: bool | None = None,
    dual: bool = False,
    seed: int = 0,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute separated attribute predictability (Kumar et al. 2018), in [0, 1]; `matrix` holds the S_ij.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        protocol: "disentanglement_lib", or "ubisoft" (squared correlations of all sources, over all rows).
        continuous: True treats all sources as numbers and uses squared correlations; None does so for continuous ones.
        dual: solve the support vector problem in its dual form, which was scikit-learn's default when the reference was
            written; its random coordinate order depends on `seed`, and it may stop before it converges.
        seed: of the dual solver.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 2, size=(500, 2))
    >>> round(sap(sources, sources.astype(float), continuous=True).score, 1)
    1.0
    """
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    require_choice("protocol", protocol, ("disentanglement_lib", "ubisoft"))
    cut = train_size(s.num_samples)
    if protocol == "ubisoft":
        cut, continuous = s.num_samples, True
    else:
        warn_if_ordered(s, slice(cut, None))
    matrix = np.zeros((s.num_sources, z.num_latents))
    for i in np.flatnonzero(varying).tolist():
        as_numbers = not s.discrete[i] if continuous is None else continuous
        for j, latent in enumerate(z.values.T):
            if as_numbers:
                matrix[i, j] = _squared_correlation(latent[:cut], s.values[:cut, i])
            else:
                matrix[i, j] = _accuracy(latent, s.labels[:, i], cut, dual, seed)
    gaps = top_two_gaps(matrix)
    value = float(gaps[varying].mean())
    return MetricResult("sap", value, matrix, protocol, s.num_samples, {"gap_per_source": gaps})


def _squared_correlation(x: Floats, y: Floats) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    x, y = ((values - values.mean()) / np.ptp(values) for values in (x, y))
    return float(x @ y) ** 2 / (float(x @ x) * float(y @ y))


def _accuracy(latent: Floats, labels: Any, cut: int, dual: bool, seed: int) -> float:
    """Return the accuracy, in the rows from `cut` on, of a support vector classifier fitted to the rows before."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    if np.unique(labels[:cut]).size < 2:
        return float(np.mean(labels[cut:] == labels[0]))
    model = LinearSVC(C=0.01, class_weight="balanced", dual=dual, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(latent[:cut, None], labels[:cut])
    return float(np.mean(model.predict(latent[cut:, None]) == labels[cut:]))
