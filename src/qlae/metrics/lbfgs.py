"""Logistic regression as the authors' code fits it: L-BFGS with at most 100 iterations, classes of equal weight.

The published protocols stop before convergence, so their scores depend on the path of the optimizer. `fit_balanced`
follows the path of scikit-learn's ``LogisticRegression(C=inf, tol=1e-4, max_iter=100, class_weight="balanced")``: the
same objective, start, order of the weights and stopping rules. Only rounding differs, because the features are a
`Features` object, which may know a faster product than that of a dense matrix: one-hot codes are never stored
(one_hot.py).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .inputs import Floats, Ints
from .one_hot import Reals

_ITERATIONS = 100
_GRADIENT = 1e-4
_SAFE = 500.0  # exp of logits up to this size does not overflow


class Features(Protocol):
    """n samples of D features, with one weight per feature and class."""

    @property
    def num_features(self) -> int:
        """D."""

    def forward(self, weights: Reals) -> Reals:
        """Return X W, (n, classes), for W (D, classes)."""

    def backward(self, residuals: Reals) -> Reals:
        """Return Xᵀ R, (D, classes), for R (n, classes)."""


class DenseFeatures:
    """The `Features` of a matrix (n, D)."""

    def __init__(self, X: Floats) -> None:
        self.X, self.num_features = X, X.shape[1]

    def forward(self, weights: Reals) -> Reals:
        return np.asarray(self.X @ weights)

    def backward(self, residuals: Reals) -> Reals:
        return np.asarray(self.X.T @ residuals)


def fit_balanced(features: Features, labels: Ints, size: int) -> float:
    """Return the cross entropy, in nats and with equal weights of all samples, where the optimizer stops.

    Args:
        features: (n, D).
        labels: (n,) 0 … size − 1, all of which occur.
        size: number of classes.
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
    """Return the cross entropy of each sample (n,), and softmax − one-hot (n, classes), which takes over the memory."""
    if max(float(logits.max()), -float(logits.min())) > _SAFE:
        logits -= logits.max(axis=1, keepdims=True)
    own = logits.reshape(-1)[place]
    np.exp(logits, out=logits)
    sums = logits @ np.ones(logits.shape[1])
    logits /= sums[:, None]
    logits.reshape(-1)[place] -= 1.0
    return np.log(sums) - own, logits
