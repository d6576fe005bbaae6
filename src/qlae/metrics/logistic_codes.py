"""Multinomial logistic regression on one-hot codes, to convergence: the least in-sample cross entropy.

    H_V(s | z) = inf_W −(1/n) Σ_i log softmax_c(Σ_j W[j, z_ij, c])_{s_i}      (paper, section 4.2; no regularisation)

**Reduction.** Where code l of latent j never meets class c, W[j, l, c] → −∞ harms no sample: class c is ruled out for
every sample with that code. A sample with one class left costs nothing and leaves; what its code then no longer meets
is ruled out in turn (at a slower rate to −∞, so the samples that left still cost nothing). What remains is a smaller
problem with the same infimum, and if nothing remains the infimum is exactly 0.

**Solution.** Newton's method by preconditioned conjugate gradients over the pairs (sample, class) that are left; stops
when the loss can fall by no more than `tolerance`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from qlae.metrics.inputs import Bools, Floats, Ints
from qlae.metrics.logistic import Fit


def fit_codes(
    codes: Ints,
    code_sizes: Sequence[int],
    labels: Ints,
    size: int,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 200,
) -> Fit:
    """Least cross entropy of `labels` (n,) in 0 … size − 1 given one-hot `codes` (n, n_z), in nats."""
    rows, allowed = _reduce(codes, code_sizes, labels, size)
    if not rows.size:
        return Fit(0.0, True, 0)
    pairs = _Pairs(codes[rows], code_sizes, labels[rows], allowed, labels.size)
    return _newton(pairs, tolerance, max_iterations)


def _reduce(codes: Ints, code_sizes: Sequence[int], labels: Ints, size: int) -> tuple[Ints, Bools]:
    """The samples that still have a choice, and (samples, classes) what they may choose."""
    rows = np.arange(labels.size)
    allowed = np.ones((labels.size, size), dtype=bool)
    while True:
        kept, now = codes[rows], labels[rows]
        for j, code_size in enumerate(code_sizes):
            met = np.bincount(kept[:, j] * size + now, minlength=code_size * size).reshape(code_size, size) > 0
            allowed &= met[kept[:, j]]
        choice = allowed.sum(axis=1) > 1
        if choice.all():
            return rows, allowed
        rows, allowed = rows[choice], allowed[choice]
        if not rows.size:
            return rows, allowed


class _Pairs:
    """Samples and the classes left to each, as rows of a sparse design whose columns are (latent, code, class)."""

    def __init__(self, codes: Ints, code_sizes: Sequence[int], labels: Ints, allowed: Bools, total: int) -> None:
        size = allowed.shape[1]
        sample, klass = np.nonzero(allowed)
        offsets = np.concatenate([[0], np.cumsum(code_sizes)])[:-1] * size
        columns = offsets + codes[sample] * size + klass[:, None]  # (pairs, n_z)
        used, index = np.unique(columns, return_inverse=True)
        num_latents = codes.shape[1]
        pointers = np.arange(0, columns.size + 1, num_latents)
        self.A = sparse.csr_matrix(
            (np.ones(columns.size), index.reshape(-1).astype(np.int32), pointers), shape=(sample.size, used.size)
        )
        self.AT = self.A.T.tocsr()
        self.sample = sample
        self.starts = np.searchsorted(sample, np.arange(labels.size))
        self.own = np.flatnonzero(klass == labels[sample])
        self.observed = np.bincount(self.own, minlength=sample.size).astype(np.float64)
        self.total = total

    def softmax(self, logits: Floats) -> tuple[Floats, float]:
        """Probabilities of the pairs and the cross entropy in nats a sample (of all samples)."""
        logits = logits - np.maximum.reduceat(logits, self.starts)[self.sample]
        own = logits[self.own]
        p = np.exp(logits)
        sums = np.add.reduceat(p, self.starts)
        return p / sums[self.sample], float((np.log(sums) - own).sum()) / self.total

    def separated(self, logits: Floats) -> bool:
        others = logits.copy()
        others[self.own] = -np.inf
        margin = logits[self.own] - np.maximum.reduceat(others, self.starts)
        return bool(margin.min() > 1e-9 * max(1.0, float(np.abs(logits).max())))

    def centre(self, p: Floats, u: Floats) -> Floats:
        """(diag p − p pᵀ) u within each sample."""
        weighted = p * u
        return weighted - p * np.add.reduceat(weighted, self.starts)[self.sample]


def _newton(pairs: _Pairs, tolerance: float, max_iterations: int) -> Fit:
    logits = np.zeros(pairs.A.shape[0])
    p, loss = pairs.softmax(logits)
    for iteration in range(max_iterations):
        if pairs.separated(logits):
            return Fit(0.0, True, iteration)
        gradient = pairs.AT @ (p - pairs.observed) / pairs.total
        step, expected = _conjugate_gradients(pairs, p, gradient)
        if expected <= tolerance:
            return Fit(loss, True, iteration)
        direction = pairs.A @ step
        logits, p, loss = _line_search(pairs, logits, direction, loss, p)
    return Fit(loss, False, max_iterations)


def _conjugate_gradients(pairs: _Pairs, p: Floats, gradient: Floats) -> tuple[Floats, float]:
    """An inexact Newton step and the decrease that the quadratic model expects of it."""
    scale = pairs.AT @ (p * (1 - p)) / pairs.total
    inverse = 1.0 / np.maximum(scale, 1e-10 * scale.max())
    step = np.zeros_like(gradient)
    residual = -gradient
    z = inverse * residual
    direction = z.copy()
    rz = float(residual @ z)
    decrease = 0.0
    for i in range(1, 500):
        curved = pairs.AT @ pairs.centre(p, pairs.A @ direction) / pairs.total
        curvature = float(direction @ curved)
        if curvature <= 0:
            break
        alpha = rz / curvature
        step += alpha * direction
        gain = 0.5 * alpha * rz
        decrease += gain
        if i * gain <= 0.1 * decrease:
            break
        residual -= alpha * curved
        z = inverse * residual
        rz, previous = float(residual @ z), rz
        direction = z + (rz / previous) * direction
    return step, decrease


def _line_search(
    pairs: _Pairs, logits: Floats, direction: Floats, loss: float, p: Floats
) -> tuple[Floats, Floats, float]:
    """The least loss along a direction, by a few Newton steps in one variable that never go uphill."""
    t = 1.0
    while t > 1e-12:
        trial_logits = logits + t * direction
        trial_p, trial = pairs.softmax(trial_logits)
        if trial < loss:
            break
        t *= 0.5
    else:
        return logits, p, loss
    return trial_logits, trial_p, trial
