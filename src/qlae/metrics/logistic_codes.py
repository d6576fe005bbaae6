"""Multinomial logistic regression on one-hot codes, to convergence: the minimal in-sample cross entropy.

    H_V(s | z) = inf_W −(1/n) Σ_i log softmax_c(Σ_j W[j, z_ij, c])_{s_i}      (paper, section 4.2; no regularisation)

**Reduction.** If code l of latent j never occurs with class c, W[j, l, c] → −∞ harms no sample: class c is ruled out
for every sample with that code. A sample with one class left costs nothing and is removed; classes that its codes then
no longer occur with are ruled out in turn (at a slower rate to −∞, so that removed samples still cost nothing). What
remains is a smaller problem with the same infimum, and if nothing remains the infimum is exactly 0.

**Start.** Naive Bayes with a power for each latent: W[j, l, c] = α_j log p(l | c) / p(l), α by a few Newton steps.

**Solution.** Newton steps (newton.py), preconditioned by the exact diagonal block of the Hessian of each class, or by
the full Hessian if that is not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .inputs import Bools, Floats, Ints
from .logistic import block_solver, full_solver
from .many_samples import BLOCK, MANY, fit_many
from .newton import Fit, Reals, Solve, Whole, minimise, working_type
from .one_hot import OneHotFeatures, indicator

if TYPE_CHECKING:
    from scipy import sparse

_BLOCK_WORK = 10**9  # multiplications to invert all blocks of the preconditioner; with more, it is diagonal
_BLOCK_SAMPLES = 20_000  # at most this many samples build the preconditioner
_HARD = 20  # after a step with more conjugate gradient iterations, the preconditioner is the full Hessian
_FULL_HESSIAN = 2500  # largest number of weights for a full Hessian
_LEAST = 1e-10  # share of the largest curvature added to the diagonal: one-hot codes have flat directions
_LEAST_DAMPING = 1e-5  # of many samples: a part of them lacks rare codes
_START_SAMPLES = 2_000  # at most this many samples fit the start


def fit_codes(codes: Ints, code_sizes: Sequence[int], labels: Ints, size: int, *, tolerance: float = 1e-6) -> Fit:
    """Minimise the cross entropy, in nats, of labels given one-hot codes.

    Args:
        codes: (n, n_z), 0 … size − 1 in each column.
        code_sizes: n_z sizes.
        labels: (n,) 0 … size − 1.
        size: number of classes.
        tolerance: the fit ends when a step is expected to gain no more nats than this.
    """
    rows, allowed = reduce_exactly(codes, code_sizes, labels, size)
    if not rows.size:
        return Fit(0.0, True, 0, np.zeros((sum(code_sizes), size)))
    kept, own = codes[rows], labels[rows]
    total = labels.size
    if rows.size > MANY:  # a reduced problem is worth no shortcut
        features = OneHotFeatures(kept, code_sizes, double=False)
        start = _naive_bayes(kept, features.offsets, own, size, allowed)
        return fit_many(
            features.blocks(BLOCK),
            lambda part: _OneHot(kept[part], code_sizes),
            own,
            start,
            allowed=allowed,
            total=total,
            least_damping=_LEAST_DAMPING,
            tolerance=tolerance,
        )
    design = _OneHot(kept, code_sizes)
    start = _naive_bayes(kept, design.offsets, own, size, allowed)
    problem = Whole(design, own, allowed=allowed, total=total)
    return minimise(problem, start, working=working_type(own.size, size), tolerance=tolerance)


def reduce_exactly(codes: Ints, code_sizes: Sequence[int], labels: Ints, size: int) -> tuple[Ints, Bools]:
    """Return the rows of samples with more than one possible class, and the mask (rows, classes) of those classes."""
    rows = np.arange(labels.size)
    allowed = np.ones((labels.size, size), dtype=bool)
    while True:
        kept, now = codes[rows], labels[rows]
        for j, code_size in enumerate(code_sizes):
            met = np.bincount(kept[:, j] * size + now, minlength=code_size * size).reshape(code_size, size) > 0
            if not met.all():
                allowed &= met[kept[:, j]]
        choice = allowed.sum(axis=1) > 1
        if choice.all():
            return rows, allowed
        rows, allowed = rows[choice], allowed[choice]
        if not rows.size:
            return rows, allowed


class _OneHot:
    """The `Design` of one-hot codes, with preconditioners that know its structure."""

    def __init__(self, codes: Ints, code_sizes: Sequence[int]) -> None:
        self.codes, self.sizes = codes, list(code_sizes)
        n = codes.shape[0]
        features = OneHotFeatures(codes, code_sizes, double=n <= _BLOCK_SAMPLES)
        self.forward, self.backward, self.offsets = features.forward, features.backward, features.offsets
        weight = [np.bincount(codes[:, j], minlength=s) for j, s in enumerate(code_sizes)]
        self.weight = np.maximum(np.concatenate(weight), 1) / n

    def preconditioner(self, probabilities: Reals, total: int, effort: int) -> Callable[[float], Solve]:
        size, D = probabilities.shape[1], int(self.offsets[-1])
        if size * D**3 > _BLOCK_WORK:
            return self._diagonal(probabilities, total)
        stride = -(-self.codes.shape[0] // _BLOCK_SAMPLES)
        codes, P = self.codes[::stride], probabilities[::stride]
        if effort > _HARD and D * (size - 1) <= _FULL_HESSIAN:
            first, second = np.triu_indices(size - 1)  # the last class is the reference
            both = -P[:, first] * P[:, second]
            both[:, first == second] += P[:, :-1]
            squares = self._squares(codes, both) * (stride / total)
            return full_solver(squares, self.weight, P.dtype.type, least=_LEAST)
        return block_solver(self._squares(codes, P * (1 - P)) * (stride / total), self.weight, P.dtype.type)

    def _squares(self, codes: Ints, weights: Reals) -> Floats:
        """Return sums over samples of the products of two features, (m, D, D), with weights (n, m)."""
        sums = self._pairs(codes).T @ weights
        squares = np.zeros((weights.shape[1], int(self.offsets[-1]), int(self.offsets[-1])))
        place = 0
        for a in range(len(self.sizes)):
            for b in range(a + 1):
                cells = self.sizes[a] * self.sizes[b]
                part = sums[place : place + cells].reshape(self.sizes[a], self.sizes[b], -1).transpose(2, 0, 1)
                rows, columns = (slice(self.offsets[j], self.offsets[j + 1]) for j in (a, b))
                squares[:, rows, columns] = part
                squares[:, columns, rows] = part.transpose(0, 2, 1)
                place += cells
        return squares

    def _diagonal(self, P: Reals, total: int) -> Callable[[float], Solve]:
        curvature = self.backward(P * (1 - P)) / total
        least = 1e-9 * float(curvature.max()) * self.weight

        def build(damping: float) -> Solve:
            inverse = (1.0 / (curvature + (damping * self.weight + least)[:, None])).astype(P.dtype)

            def solve(G: Reals) -> Reals:
                return np.asarray(inverse * G)

            return solve

        return build

    def _pairs(self, codes: Ints) -> sparse.csr_matrix:
        """Return the indicator (n, all pairs of codes) of the codes of two latents in each sample; computed once."""
        if not hasattr(self, "_pair_matrix"):
            columns, place = [], 0
            for a in range(len(self.sizes)):
                for b in range(a + 1):
                    columns.append(place + codes[:, a] * self.sizes[b] + codes[:, b])
                    place += self.sizes[a] * self.sizes[b]
            self._pair_matrix = indicator(np.column_stack(columns).astype(np.int32), place)
        return self._pair_matrix


def _naive_bayes(codes: Ints, offsets: Ints, labels: Ints, size: int, allowed: Bools) -> Floats:
    """Return weights (D, size): the log prior, and the log odds of each code times a fitted factor per latent."""
    n, num_latents = codes.shape
    prior = np.bincount(labels, minlength=size) / n
    known = prior > 0
    log_prior = np.log(np.where(known, prior, 1.0))
    odds = np.zeros((int(offsets[-1]), size))
    for j in range(num_latents):
        levels = int(offsets[j + 1] - offsets[j])
        counts = np.bincount(codes[:, j] * size + labels, minlength=levels * size).reshape(levels, size)
        met = counts > 0
        share = counts.sum(axis=1, keepdims=True) * prior
        odds[offsets[j] : offsets[j + 1]][met] = np.log(counts[met] / share[met])
    few = slice(None, None, -(-n // _START_SAMPLES))
    features = np.stack([odds[offsets[j] + codes[few, j]] for j in range(num_latents)], axis=-1)  # (m, size, n_z)
    ruled_out = ~allowed[few]
    own = labels[few]
    power = np.full(num_latents, 0.3)
    best, best_loss = power, np.inf
    for _ in range(5):
        logits = log_prior + features @ power
        logits[ruled_out] = -np.inf
        logits -= logits.max(axis=1, keepdims=True)
        P = np.exp(logits)
        sums = P.sum(axis=1)
        P /= sums[:, None]
        loss = float(np.mean(np.log(sums) - logits[np.arange(own.size), own]))
        if loss < best_loss:
            best, best_loss = power, loss
        mean = np.einsum("nk,nkj->nj", P, features)
        observed = features[np.arange(own.size), own]
        weighted = (features * P[:, :, None]).reshape(-1, num_latents)
        hessian = weighted.T @ features.reshape(-1, num_latents) - mean.T @ mean
        hessian += (1e-3 * np.trace(hessian) / num_latents + 1e-9) * np.eye(num_latents)
        power = power - np.clip(np.linalg.solve(hessian, (mean - observed).sum(axis=0)), -1.0, 1.0)
    weights = odds * np.repeat(best, np.diff(offsets))[:, None]
    weights[: offsets[1]] += log_prior
    return np.asarray(weights)
