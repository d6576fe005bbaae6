"""InfoE, explicitness: how much of each source a linear model predicts from all latents together (paper, section 4.2).

    InfoE_i = 1 − H_V(s_i | z) / H_V(s_i | ∅)

For a discrete source H_V is the cross entropy of multinomial logistic regression, fitted in-sample without
regularisation; the null model is known in closed form, the entropy of the source. For a continuous source it is the R²
of linear regression, also in-sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np

from .discrete import entropy
from .inputs import Floats, Latents, Sources, plain_columns
from .lbfgs import DenseFeatures, Features, fit_balanced
from .logistic import fit_continuous, whiten
from .logistic_codes import fit_codes
from .many_samples import MANY
from .newton import Fit
from .one_hot import OneHotFeatures
from .protocols import Protocol
from .threads import available_threads, map_in_threads

_TOLERANCE = 2e-5  # of the entropy: the fit ends when a step is expected to gain less
Input = Literal["one-hot", "scalar"]


def explicitness_per_source(sources: Sources, latents: Latents, protocol: Protocol, how: Input) -> Floats:
    """Return the share of each source (n_s,) that a linear model of the latents explains; 0 for constant sources."""
    import scipy.linalg  # noqa: F401  # has a BLAS of its own, which is limited only if it is loaded
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):  # small matrices: threads would only wait for each other
        return _explicitness_per_source(sources, latents, protocol, how)


def _explicitness_per_source(sources: Sources, latents: Latents, protocol: Protocol, how: Input) -> Floats:
    result = np.zeros(sources.num_sources)
    varying = np.flatnonzero(sources.varying).tolist()
    classes = [i for i in varying if sources.discrete[i]]
    if len(classes) < len(varying):
        design = _design(latents, how)
        for i in (i for i in varying if not sources.discrete[i]):
            result[i] = _r_squared(design, plain_columns(sources.values[:, i]))
    if classes and protocol.solver == "converged":
        result[classes] = _converged(sources, latents, how, classes)
    elif classes:
        published = _published_features(latents, how)
        for i in classes:
            # Classes have equal weights in the fit and none in the score; the null model is uniform.
            loss = fit_balanced(published, sources.labels[:, i], sources.sizes[i])
            result[i] = 1.0 - loss / float(np.log(sources.sizes[i]))
    return np.clip(result, 0.0, 1.0)


def _converged(sources: Sources, latents: Latents, how: Input, indices: Sequence[int]) -> list[float]:
    """Return the explicitness of some discrete sources from converged fits to one-hot codes or whitened latents."""
    codes = latents.codes if how == "one-hot" else None
    features = whiten(latents.values) if codes is None else None
    nulls = [entropy(sources.labels[:, i]) for i in indices]

    def fit(place: int) -> Fit:
        i, tolerance = indices[place], _TOLERANCE * nulls[place]
        labels, size = sources.labels[:, i], sources.sizes[i]
        if codes is not None:
            return fit_codes(codes, latents.sizes, labels, size, tolerance=tolerance)
        assert features is not None
        return fit_continuous(features, labels, size, tolerance=tolerance)

    many = sources.labels.shape[0] > MANY  # fewer samples are fitted before threads pay off
    fits = map_in_threads(fit, range(len(indices)), available_threads() if many else 1)
    for i, fitted in zip(indices, fits, strict=True):
        if not fitted.converged:
            from sklearn.exceptions import ConvergenceWarning  # scikit-learn takes a second to import

            warnings.warn(
                f"the logistic regression of source {i} stopped after {fitted.iterations} iterations before it "
                "converged: InfoE is a lower bound.",
                ConvergenceWarning,
                stacklevel=2,
            )
    return [1.0 - fitted.loss / null for fitted, null in zip(fits, nulls, strict=True)]


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


def _published_features(latents: Latents, how: Input) -> Features:
    """Return the features of the authors' fit, without a dense matrix if they are one-hot codes."""
    if how == "one-hot" and latents.codes is not None:
        return OneHotFeatures(latents.codes, latents.sizes, double=True)
    return DenseFeatures(_design(latents, how))


def _r_squared(design: Floats, target: Floats) -> float:
    centred = design - design.mean(axis=0)
    residual = target - target.mean()
    total = float(residual @ residual)
    fitted = centred @ np.linalg.lstsq(centred, residual, rcond=1e-10)[0]
    return 1.0 - float(np.sum((residual - fitted) ** 2)) / total
