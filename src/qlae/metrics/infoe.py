"""InfoE, explicitness: how much of each source a linear model predicts from all latents together (paper, section 4.2).

    InfoE_i = 1 − H_V(s_i | z) / H_V(s_i | ∅)

For a discrete source H_V is the cross entropy of multinomial logistic regression, fitted in-sample without
regularisation; the null model is known in closed form, the entropy of the source. For a continuous source it is the R²
of linear regression, also in-sample.
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from .discrete import entropy
from .inputs import Floats, Ints, Latents, Sources, plain_columns
from .logistic import fit_continuous, whiten
from .logistic_codes import fit_codes
from .protocols import Protocol

_TOLERANCE = 2e-5  # of the entropy: the fit ends when a step is expected to gain less
Input = Literal["one-hot", "scalar"]


def explicitness_per_source(sources: Sources, latents: Latents, protocol: Protocol, how: Input) -> Floats:
    """Return the share of each source (n_s,) that a linear model of the latents explains; 0 for constant sources."""
    with threadpool_limits(1, user_api="blas"):  # small matrices: threads would only wait for each other
        return _explicitness_per_source(sources, latents, protocol, how)


def _explicitness_per_source(sources: Sources, latents: Latents, protocol: Protocol, how: Input) -> Floats:
    design = features = None
    result = np.zeros(sources.num_sources)
    for i in np.flatnonzero(sources.varying).tolist():
        if not sources.discrete[i]:
            design = _design(latents, how) if design is None else design
            result[i] = _r_squared(design, plain_columns(sources.values[:, i]))
        elif protocol.solver == "converged":
            if features is None and not (how == "one-hot" and latents.discrete):
                features = whiten(latents.values)
            result[i] = _converged(latents, features, sources.labels[:, i], sources.sizes[i], source=i)
        else:
            design = _design(latents, how) if design is None else design
            result[i] = _lbfgs_balanced(design, sources.labels[:, i], sources.sizes[i])
    return np.clip(result, 0.0, 1.0)


def _converged(latents: Latents, features: Floats | None, labels: Ints, size: int, *, source: int) -> float:
    """Return the explicitness of one source from a converged fit to whitened features; if None, to one-hot codes."""
    null = entropy(labels)
    if features is None and latents.codes is not None:
        fit = fit_codes(latents.codes, latents.sizes, labels, size, tolerance=_TOLERANCE * null)
    else:
        assert features is not None
        fit = fit_continuous(features, labels, size, tolerance=_TOLERANCE * null)
    if not fit.converged:
        warnings.warn(
            f"the logistic regression of source {source} stopped after {fit.iterations} iterations before it "
            "converged: InfoE is a lower bound.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return 1.0 - fit.loss / null


def _design(latents: Latents, how: Input) -> Floats:
    """Return (n, d) one-hot codes, or centred latents in units of their standard deviation."""
    if how == "one-hot" and latents.codes is not None:
        offsets = np.concatenate([[0], np.cumsum(latents.sizes)])
        design = np.zeros((latents.codes.shape[0], offsets[-1]))
        design[np.arange(latents.codes.shape[0])[:, None], offsets[:-1] + latents.codes] = 1.0
        return design
    values = plain_columns(latents.values)
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    constant = np.ptp(values, axis=0) == 0
    return np.asarray(np.where(constant, 0.0, centred / np.where(spread > 0, spread, 1.0)))


def _lbfgs_balanced(design: Floats, labels: Ints, size: int) -> float:
    """Return the explicitness of one source by the authors' fit.

    L-BFGS with at most 100 iterations; classes are weighted to equal sums, and the null model is uniform.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=np.inf, tol=1e-4, max_iter=100, class_weight="balanced").fit(design, labels)
    logits = model.decision_function(design)
    if size == 2:
        logits = np.column_stack([np.zeros_like(logits), logits])
    own = logits[np.arange(labels.size), labels]
    return 1.0 - float(np.mean(logsumexp(logits, axis=1) - own)) / float(np.log(size))


def _r_squared(design: Floats, target: Floats) -> float:
    centred = design - design.mean(axis=0)
    residual = target - target.mean()
    total = float(residual @ residual)
    fitted = centred @ np.linalg.lstsq(centred, residual, rcond=1e-10)[0]
    return 1.0 - float(np.sum((residual - fitted) ** 2)) / total
