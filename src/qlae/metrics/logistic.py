"""Multinomial logistic regression on continuous latents, to convergence: the least in-sample cross entropy.

    H_V(s | z) = min_{W, b} −(1/n) Σ_i log softmax(W z_i + b)_{s_i}      (paper, section 4.2; no regularisation)

The latents are centred and whitened, directions without variance dropped. The start is linear discriminant analysis,
scaled to the best of a few sizes; then Newton steps with Marquardt damping until the loss can fall by no more than
`tolerance`. If at any point every sample has its own label on top, scaling W up takes the loss to 0: it is exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from qlae.metrics.inputs import Floats, Ints

_ROWS = 4096  # rows of the Hessian's sum taken at a time


@dataclass(frozen=True)
class Fit:
    """The least cross entropy found, in nats, and whether it is the least there is."""

    loss: float
    converged: bool
    iterations: int


def fit_continuous(
    latents: Floats, labels: Ints, size: int, *, tolerance: float = 1e-7, max_iterations: int = 200
) -> Fit:
    """Least cross entropy of `labels` (n,) in 0 … size − 1 given `latents` (n, d), in nats."""
    X = _whitened(latents)  # (n, r + 1), the last column 1
    problem = _Problem(X, labels, size)
    weights = _discriminant_start(X, labels, size)
    state = problem.at(weights)
    for scale in (0.5, 0.25, 0.1, 0.0):
        other = problem.at(weights * scale + (1 - scale) * problem.null_weights)
        if other.loss < state.loss:
            state = other
    damping = 1e-3
    for iteration in range(max_iterations):
        if state.separated:
            return Fit(0.0, True, iteration)
        gradient, hessian = problem.derivatives(state)
        while True:
            step = _damped_step(gradient, hessian, damping)
            expected = -float(gradient @ step) - 0.5 * float(step @ hessian @ step)
            if expected <= tolerance:
                undamped = _damped_step(gradient, hessian, 1e-10)
                if -0.5 * float(gradient @ undamped) <= tolerance or damping > 1e6:
                    return Fit(state.loss, True, iteration)
            trial = problem.at(state.weights + problem.unpack(step))
            gain = (state.loss - trial.loss) / max(expected, 1e-300)
            if gain > 0.05:
                state = trial
                damping = max(damping * (0.1 if gain > 0.5 else 1.0), 1e-12)
                break
            damping = max(damping * 10, 1e-8)
            if damping > 1e10:
                return Fit(state.loss, False, iteration)
    return Fit(state.loss, False, max_iterations)


@dataclass(frozen=True, eq=False)
class _State:
    weights: Floats  # (r + 1, size)
    probabilities: Floats  # (n, size)
    loss: float
    separated: bool


class _Problem:
    """Loss, gradient and Hessian; the last class is the reference and keeps its weights."""

    def __init__(self, X: Floats, labels: Ints, size: int) -> None:
        self.X, self.labels, self.size = X, labels, size
        self.rows = np.arange(labels.size)
        counts = np.bincount(labels, minlength=size)
        self.null_weights = np.zeros((X.shape[1], size))
        self.null_weights[-1] = np.log(counts / labels.size)
        one_hot = np.zeros((labels.size, size))
        one_hot[self.rows, labels] = 1.0
        self.observed = X.T @ one_hot
        d = X.shape[1]
        self.upper = np.triu_indices(d)
        self.products = X[:, self.upper[0]] * X[:, self.upper[1]]  # (n, d (d + 1) / 2)

    def at(self, weights: Floats) -> _State:
        logits = self.X @ weights
        own = logits[self.rows, self.labels]
        logits[self.rows, self.labels] = -np.inf
        margin = own - logits.max(axis=1)
        logits[self.rows, self.labels] = own
        separated = bool(margin.min() > 1e-9 * max(1.0, float(np.abs(own).max())))
        logits -= logits.max(axis=1, keepdims=True)
        shifted = logits[self.rows, self.labels]
        np.exp(logits, out=logits)
        total = logits.sum(axis=1)
        loss = float(np.mean(np.log(total) - shifted))
        logits /= total[:, None]
        return _State(weights, logits, loss, separated)

    def derivatives(self, state: _State) -> tuple[Floats, Floats]:
        n, free, d = self.labels.size, self.size - 1, self.X.shape[1]
        P = state.probabilities
        gradient = ((self.X.T @ P - self.observed) / n)[:, :free]
        first, second = np.triu_indices(free)
        sums = np.zeros((self.upper[0].size, first.size))
        for start in range(0, n, _ROWS):
            part = P[start : start + _ROWS, :free]
            sums -= self.products[start : start + _ROWS].T @ (part[:, first] * part[:, second])
        sums[:, first == second] += self.products.T @ P[:, :free]
        sums /= n
        blocks = np.empty((free, free, d, d))
        square = np.empty((first.size, d, d))
        square[:, self.upper[0], self.upper[1]] = sums.T
        square[:, self.upper[1], self.upper[0]] = sums.T
        blocks[first, second] = square
        blocks[second, first] = square
        hessian = blocks.transpose(0, 2, 1, 3).reshape(free * d, free * d)
        return gradient.T.reshape(-1), hessian

    def unpack(self, step: Floats) -> Floats:
        full = np.zeros((self.X.shape[1], self.size))
        full[:, :-1] = step.reshape(self.size - 1, -1).T
        return full


def _damped_step(gradient: Floats, hessian: Floats, damping: float) -> Floats:
    diagonal = np.diag(hessian)
    for _ in range(60):
        damped = hessian.copy()
        damped[np.diag_indices_from(damped)] += damping * np.maximum(diagonal, 1e-12 * diagonal.max()) + 1e-300
        try:
            return np.asarray(-cho_solve(cho_factor(damped, overwrite_a=True, check_finite=False), gradient))
        except LinAlgError:
            damping *= 10
    raise FloatingPointError("the Hessian of the logistic regression is not finite")


def _whitened(latents: Floats) -> Floats:
    """Centred latents rotated to unit covariance, without directions that have no variance; a column of ones last."""
    centred = latents - latents.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    moving = spread > 1e-12 * np.maximum(1.0, np.abs(latents).max(axis=0))
    centred = centred[:, moving] / spread[moving]
    ones = np.ones((latents.shape[0], 1))
    if not moving.any():
        return ones
    values, vectors = np.linalg.eigh(centred.T @ centred / latents.shape[0])
    kept = values > 1e-10 * values.max()
    return np.hstack([centred @ (vectors[:, kept] / np.sqrt(values[kept])), ones])


def _discriminant_start(X: Floats, labels: Ints, size: int) -> Floats:
    """Weights of linear discriminant analysis: log priors and Gaussians of one covariance."""
    Z = X[:, :-1]
    counts = np.bincount(labels, minlength=size).astype(np.float64)
    means = np.zeros((size, Z.shape[1]))
    np.add.at(means, labels, Z)
    means /= counts[:, None]
    within = np.eye(Z.shape[1]) - (means.T * (counts / labels.size)) @ means  # total covariance is the identity
    within[np.diag_indices_from(within)] += 1e-4
    directions = np.linalg.solve(within, means.T)  # (r, size)
    bias = np.log(counts / labels.size) - 0.5 * np.sum(means.T * directions, axis=0)
    return np.vstack([directions, bias])
