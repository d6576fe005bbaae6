"""Multinomial logistic regression on continuous latents, to convergence: the minimal in-sample cross entropy.

    H_V(s | z) = inf_{W, b} −(1/n) Σ_i log softmax(W z_i + b)_{s_i}      (paper, section 4.2; no regularisation)

The latents are centred and whitened, without directions that have no variance, and then transformed to unit covariance
within the classes. Linear discriminant analysis, at the best of a few scales, is the start of Newton steps (newton.py),
which are preconditioned by the Hessian of a part of the samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .inputs import Floats, Ints, plain_columns
from .many_samples import BLOCK, MANY, fit_many
from .newton import EASY, Fit, Reals, Solve, Whole, minimise, working_type

_BLOCK = 512  # samples summed into the Hessian at a time
_HESSIAN_WORK = 10**9  # multiplications that one Hessian may cost; limits the number of samples in it
_FULL_HESSIAN = 800  # largest number of weights for a full Hessian; with more, it has one block per class


def fit_continuous(features: Floats, labels: Ints, size: int, *, tolerance: float = 1e-7) -> Fit:
    """Minimise the cross entropy, in nats, of labels given continuous features.

    Args:
        features: (n, r + 1) from `whiten`.
        labels: (n,) 0 … size − 1.
        size: number of classes.
        tolerance: the fit ends when a step is expected to gain no more nats than this.
    """
    X, means = _within(features, labels, size)
    start = _discriminant_start(X, means, labels, size)
    if labels.size > MANY:
        single = X.astype(np.float32)
        blocks = [_DenseBlock(single[i : i + BLOCK]) for i in range(0, labels.size, BLOCK)]
        return fit_many(blocks, lambda part: _Dense(X[part], size), labels, start, tolerance=tolerance)
    problem = Whole(_Dense(X, size), labels)
    return minimise(problem, start, working=working_type(labels.size, size), tolerance=tolerance)


class _DenseBlock:
    """Some rows of whitened features, in single precision."""

    def __init__(self, X: Reals) -> None:
        self.X = X

    def forward(self, weights: Reals) -> Reals:
        return (weights.T @ self.X.T).T  # transposed for the same reason as in `_Dense`

    def backward(self, residuals: Reals) -> Reals:
        return self.X.T @ residuals


class _Dense:
    """The `Design` of whitened features and a column of ones."""

    def __init__(self, X: Floats, size: int) -> None:
        self.X, self.size = X, size
        self.working = working_type(X.shape[0], size)
        self.narrow = X.astype(self.working, copy=False)
        self.weight = np.ones(X.shape[1])
        self.upper = np.triu_indices(X.shape[1])
        # A few samples suffice for most Hessians; if the first is too poor, use as many as the work allows.
        weights = X.shape[1] * size
        many = max(2000, _HESSIAN_WORK // weights**2)
        few = min(max(2000, 15 * weights), many)
        self.strides = (max(1, X.shape[0] // few), max(1, X.shape[0] // many))
        self._products: dict[int, Reals] = {}

    def products(self, stride: int) -> Reals:
        """Return (d (d + 1) / 2, m) products of two features, for every `stride`-th sample; computed once."""
        if stride not in self._products:
            part = np.ascontiguousarray(self.narrow[::stride].T)
            self._products[stride] = part[self.upper[0]]
            self._products[stride] *= part[self.upper[1]]
        return self._products[stride]

    def forward(self, weights: Reals) -> Reals:
        # Transposed, (classes, n), so that reductions over classes run along contiguous samples.
        X = self.narrow if weights.dtype == self.working else self.X
        return (weights.T @ X.T).T

    def backward(self, residuals: Reals) -> Reals:
        return (self.narrow if residuals.dtype == self.working else self.X).T @ residuals

    def preconditioner(self, probabilities: Reals, total: int, effort: int) -> Callable[[float], Solve]:
        stride = self.strides[effort > EASY]
        P, products = probabilities[::stride], self.products(stride)
        d = self.X.shape[1]
        if d * (self.size - 1) > _FULL_HESSIAN:
            sums = (products @ (P * (1 - P))).T
            return block_solver(self._squares(sums.astype(np.float64) / P.shape[0]), self.weight, self.working)
        free = self.size - 1  # the last class is the reference
        first, second = np.triu_indices(free)
        sums = np.zeros((first.size, self.upper[0].size), dtype=self.working)
        for start in range(0, P.shape[0], _BLOCK):
            part = np.ascontiguousarray(P[start : start + _BLOCK, :free].T)
            both = part[first]
            both *= part[second]
            sums -= both @ products[:, start : start + _BLOCK].T
        sums[first == second] += (products @ P[:, :free]).T
        return full_solver(self._squares(sums.astype(np.float64) / P.shape[0]), self.weight, self.working)

    def _squares(self, rows: Floats) -> Floats:
        """Return symmetric matrices (m, d, d) from their upper triangles (m, d (d + 1) / 2)."""
        d = self.X.shape[1]
        square = np.empty((rows.shape[0], d, d))
        square[:, self.upper[0], self.upper[1]] = rows
        square[:, self.upper[1], self.upper[0]] = rows
        return square


def block_solver(blocks: Floats, weight: Floats, working: type[np.floating]) -> Callable[[float], Solve]:
    """Return a function of λ that builds a solver with one (D, D) block per class, damped by λ diag(weight)."""
    diagonals = np.einsum("kii->ki", blocks)  # (classes, D)
    least = 1e-9 * max(float(diagonals.max()), 1e-9) * weight
    unit = 1.0 + (1e-5 if working is np.float32 else 1e-9)

    def build(damping: float) -> Solve:
        # Scaled to a unit diagonal, so that single precision suffices for the inverse.
        scale = 1.0 / np.sqrt(diagonals + damping * weight + least)
        scaled = blocks * scale[:, :, None] * scale[:, None, :]
        scaled[:, np.arange(weight.size), np.arange(weight.size)] = unit
        inverses = np.linalg.inv(scaled).astype(working)
        narrow = scale.astype(working)

        def solve(G: Reals) -> Reals:
            return np.ascontiguousarray((np.matmul(inverses, (G.T * narrow)[:, :, None])[:, :, 0] * narrow).T)

        return solve

    return build


def full_solver(
    squares: Floats, weight: Floats, working: type[np.floating], *, least: float = 0.0
) -> Callable[[float], Solve]:
    """Return a function of λ that builds a solver with the full Hessian, damped by λ diag(weight).

    Args:
        squares: (m, D, D) blocks of the Hessian for the pairs of all classes except the last, whose weights stay 0, in
            the order of ``np.triu_indices``.
        weight: (D,).
        working: precision of the solution.
        least: share of the largest curvature that is added to the diagonal.
    """
    from scipy.linalg import cho_factor, cho_solve

    D, free = weight.size, int((2 * squares.shape[0]) ** 0.5)
    first, second = np.triu_indices(free)
    blocks = np.empty((free, free, D, D))
    blocks[first, second] = squares
    blocks[second, first] = squares
    hessian = blocks.transpose(0, 2, 1, 3).reshape(free * D, free * D)
    largest = float(np.diag(hessian).max())

    def build(damping: float) -> Solve:
        # With the reference class at 0, a ridge on all classes is I − 11ᵀ/size on the others.
        ridge = np.kron(np.eye(free) - 1.0 / (free + 1), damping * np.diag(weight))
        extra = max(least, 1e-7 if working is np.float32 else 1e-14) * largest
        while True:
            try:
                factor = cho_factor(hessian + ridge + extra * np.eye(free * D), check_finite=False)
                break
            except np.linalg.LinAlgError:
                extra *= 10

        def solve(G: Reals) -> Reals:
            # The gradient sums to 0 over classes; let the step do the same.
            V = np.zeros((D, free + 1))
            V[:, :free] = cho_solve(factor, G[:, :free].T.reshape(-1), check_finite=False).reshape(free, D).T
            V -= V.mean(axis=1, keepdims=True)
            return V.astype(working)

        return solve

    return build


def whiten(latents: Floats) -> Floats:
    """Return centred latents (n, n_z) rotated to unit covariance, (n, r + 1), with a column of ones last.

    Directions without variance are dropped.
    """
    latents = plain_columns(latents)
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


def _within(features: Floats, labels: Ints, size: int) -> tuple[Floats, Floats]:
    """Return features transformed to unit covariance within classes, and the means of the classes (size, r)."""
    Z = features[:, :-1]
    counts = np.bincount(labels, minlength=size)
    means = np.zeros((size, Z.shape[1]))
    for column in range(Z.shape[1]):
        means[:, column] = np.bincount(labels, weights=Z[:, column], minlength=size) / counts
    within = np.eye(Z.shape[1]) - (means.T * (counts / labels.size)) @ means  # total covariance is the identity
    values, vectors = np.linalg.eigh(within)
    turn = vectors / np.sqrt(np.maximum(values, 1e-6))
    return np.hstack([Z @ turn, features[:, -1:]]), means @ turn


def _discriminant_start(X: Floats, means: Floats, labels: Ints, size: int) -> Floats:
    """Return weights of linear discriminant analysis (log priors, unit covariance) at the scale of least loss."""
    weights = np.vstack([means.T, -0.5 * np.sum(means**2, axis=1)])
    prior = np.zeros_like(weights)
    prior[-1] = np.log(np.bincount(labels, minlength=size) / labels.size)
    few = slice(None, None, max(1, labels.size // 2000))
    part, own = X[few], labels[few]

    def loss(scale: float) -> float:
        logits = part @ (prior + scale * weights)
        logits -= logits.max(axis=1, keepdims=True)
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(own.size), own]))

    best = min((1.0, 0.5, 0.2, 0.05, 0.0), key=loss)
    return np.asarray(prior + best * weights)
