"""InfoE, explicitness: how much of each source a linear model predicts from all latents together (paper, section 4.2).

    InfoE_i = 1 − H_V(s_i | z) / H_V(s_i | ∅)

For a discrete source H_V is the cross entropy of multinomial logistic regression, fitted in-sample without
regularisation (logistic.py); the null model is known in closed form, the entropy of the source. For a continuous source
it is the R² of linear regression, also in-sample.

The authors' code uses L-BFGS with at most 100 iterations and gives classes equal weight. It stops before convergence,
so its scores depend on the path of the optimizer. `fit_balanced` follows the path of scikit-learn's
``LogisticRegression(C=inf, tol=1e-4, max_iter=100, class_weight="balanced")``: the same objective, start, order of the
weights and stopping rules. Only rounding differs, because the one-hot matrix is never stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np

from .information import entropy
from .inputs import Floats, Ints, Latents, Sources, plain_columns
from .logistic import OneHotFeatures, fit_codes, fit_continuous, whiten
from .newton import Reals

_TOLERANCE = 2e-5  # of the entropy: the fit ends when a step is expected to gain less
_ITERATIONS = 100
_GRADIENT = 1e-4
_SAFE = 500.0  # exp of logits up to this size does not overflow
Input = Literal["one-hot", "scalar"]
Solver = Literal["converged", "lbfgs-balanced"]


def explicitness_per_source(sources: Sources, latents: Latents, solver: Solver, how: Input) -> Floats:
    """Return the share of each source (n_s,) that a linear model of the latents explains; 0 for constant sources."""
    import scipy.linalg  # noqa: F401  # its BLAS is limited only if it is loaded
    from threadpoolctl import threadpool_limits

    result = np.zeros(sources.num_sources)
    varying = np.flatnonzero(sources.varying).tolist()
    classes = [i for i in varying if sources.discrete[i]]
    numbers = [i for i in varying if not sources.discrete[i]]
    with threadpool_limits(1, user_api="blas"):  # small matrices: threads would only wait for each other
        if numbers:
            design = _design(latents, how)
            result[numbers] = [_r_squared(design, plain_columns(sources.values[:, i])) for i in numbers]
        if classes:
            fit = _converged if solver == "converged" else _as_published
            result[classes] = fit(sources, latents, how, classes)
    return np.clip(result, 0.0, 1.0)


def _converged(sources: Sources, latents: Latents, how: Input, indices: Sequence[int]) -> list[float]:
    """Return the explicitness of some discrete sources from converged fits to one-hot codes or whitened latents."""
    codes = latents.codes if how == "one-hot" else None
    features = whiten(latents.values) if codes is None else np.zeros(0)
    shares = []
    for i in indices:
        labels, size, null = sources.labels[:, i], sources.sizes[i], entropy(sources.labels[:, i])
        if codes is None:
            fitted = fit_continuous(features, labels, size, tolerance=_TOLERANCE * null)
        else:
            fitted = fit_codes(codes, latents.sizes, labels, size, tolerance=_TOLERANCE * null)
        if not fitted.converged:
            from sklearn.exceptions import ConvergenceWarning  # scikit-learn takes a second to import

            warnings.warn(
                f"the logistic regression of source {i} stopped after {fitted.iterations} iterations before it "
                "converged: InfoE is a lower bound.",
                ConvergenceWarning,
                stacklevel=2,
            )
        shares.append(1.0 - fitted.loss / null)
    return shares


def _as_published(sources: Sources, latents: Latents, how: Input, indices: Sequence[int]) -> list[float]:
    """Return the explicitness of some discrete sources from the fits of the authors' code.

    Classes have equal weights in the fit and none in the score; the null model is uniform.
    """
    features: DenseFeatures | OneHotFeatures
    if how == "one-hot" and latents.codes is not None:
        features = OneHotFeatures(latents.codes, latents.sizes)
    else:
        features = DenseFeatures(_design(latents, how))
    losses = [fit_balanced(features, sources.labels[:, i], sources.sizes[i]) for i in indices]
    return [1.0 - loss / float(np.log(sources.sizes[i])) for i, loss in zip(indices, losses, strict=True)]


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


def _r_squared(design: Floats, target: Floats) -> float:
    centred = design - design.mean(axis=0)
    residual = target - target.mean()
    total = float(residual @ residual)
    fitted = centred @ np.linalg.lstsq(centred, residual, rcond=1e-10)[0]
    return 1.0 - float(np.sum((residual - fitted) ** 2)) / total


class DenseFeatures:
    """Products with a matrix (n, D)."""

    def __init__(self, X: Floats) -> None:
        self.X, self.num_features = X, X.shape[1]

    def forward(self, weights: Reals) -> Reals:
        return np.asarray(self.X @ weights)

    def backward(self, residuals: Reals) -> Reals:
        return np.asarray(self.X.T @ residuals)


def fit_balanced(features: DenseFeatures | OneHotFeatures, labels: Ints, size: int) -> float:
    """Return the cross entropy, in nats and with equal weights of all samples, where the optimizer stops.

    All labels (n,) from 0 to size − 1 must occur.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    num_features = features.num_features
    columns = 1 if size == 2 else size  # two classes have one logit
    ones = np.ones(labels.size)
    share = 1.0 / (size * np.bincount(labels, minlength=size))[labels]  # balanced weights, divided by their sum
    place = np.arange(labels.size) * columns + labels  # of the own class in (n, size) logits

    def logits_of(weights: Floats) -> Reals:
        table = weights.reshape(num_features + 1, columns)
        logits = features.forward(table[:-1])
        logits += table[-1]
        return logits

    def objective(weights: Floats) -> tuple[float, Floats]:
        logits = logits_of(weights)
        if size == 2:
            signed = np.where(labels == 1, -logits[:, 0], logits[:, 0])
            loss = float(share @ np.logaddexp(0.0, signed))
            residuals = (share * (expit(logits[:, 0]) - labels))[:, None]
        else:
            losses, residuals = _softmax(logits, place)
            loss = float(share @ losses)
            residuals *= share[:, None]
        gradient = np.empty((num_features + 1, columns))
        gradient[:-1] = features.backward(residuals)
        gradient[-1] = ones @ residuals
        return loss, gradient.reshape(-1)

    start = np.zeros((num_features + 1) * columns)
    options = {"maxiter": _ITERATIONS, "maxls": 50, "gtol": _GRADIENT, "ftol": 64 * np.finfo(float).eps}
    final = logits_of(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)
    if size == 2:
        return float(np.logaddexp(0.0, np.where(labels == 1, -final[:, 0], final[:, 0])).mean())
    return float(_softmax(final, place)[0].mean())


def _softmax(logits: Reals, place: Ints) -> tuple[Reals, Reals]:
    """Return the cross entropy of each sample (n,), and softmax − one-hot (n, classes), computed in place."""
    if max(float(logits.max()), -float(logits.min())) > _SAFE:
        logits -= logits.max(axis=1, keepdims=True)
    own = logits.reshape(-1)[place]
    np.exp(logits, out=logits)
    sums = logits @ np.ones(logits.shape[1])
    logits /= sums[:, None]
    logits.reshape(-1)[place] -= 1.0
    return np.log(sums) - own, logits
