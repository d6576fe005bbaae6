"""Logistic regression on very many samples: a part of them shows where the minimum is, all of them decide.

Every some samples, 15,000 to 60,000 in all, give the start and, at each step, the Hessian. Loss and gradient come from
all samples, in one pass over blocks that fit into the cache and without storing probabilities. The Hessian of a part
differs from that of the whole by about √(weights / samples of the part), so the distance to the minimum shrinks by that
factor with each step, and its share of the loss by the square: a few passes are enough.

If classes are nearly separated, few samples have any curvature, and such a part has hardly any of them. The Hessian
then comes from the samples that are predicted with doubt, all of them.

The fit ends by the same rule as one that uses all samples throughout (newton.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from .inputs import Bools, Floats, Ints
from .newton import Design, Fit, Reals, State, Whole, minimise, softmax_in_place

MANY = 500_000  # with more samples, fits use a part of them; with fewer, that saves no time
BLOCK = 1 << 14  # samples per block
_PART, _LEAST_PART = 60_000, 15_000  # about this many at most and at least
_SAMPLES_PER_WEIGHT = 50  # between these bounds
_ROUGH = 50.0  # the fit of the part need not be better than its distance from the whole; in tolerances
_LOGITS = 5.0  # largest logit of the start
_DOUBT = 1e-3  # a sample whose own class has a smaller probability than 1 minus this is predicted with doubt
_DOUBTFUL = 2 * _PART  # classes with at most this many such samples are nearly separated
_ROUNDS, _STEPS = 3, 8  # how often such samples are chosen anew, after how many steps at most


class Block(Protocol):
    """Some samples of D features, with one weight per feature and class."""

    def forward(self, weights: Reals) -> Reals:
        """Return X W, (n, classes)."""

    def backward(self, residuals: Reals) -> Reals:
        """Return Xᵀ R, (D, classes)."""


def fit_many(
    blocks: Sequence[Block],
    design_of: Callable[[Any], Design],
    labels: Ints,
    start: Floats,
    *,
    allowed: Bools | None = None,
    total: int | None = None,
    least_damping: float = 0.0,
    tolerance: float,
) -> Fit:
    """Minimise the mean cross entropy over `total` samples, of which those without a label here cost nothing.

    Args:
        blocks: the features of all samples, `BLOCK` samples at a time.
        design_of: returns the features of some samples, given an index of them.
        labels: (n,) classes.
        start: (D, classes) weights to start from.
        allowed: (n, classes) False for a class that is ruled out for a sample.
        total: number of samples in the mean; n by default.
        least_damping: λ that keeps steps short in directions which the part may know nothing about.
        tolerance: the fit ends when a step is expected to gain no more nats than this.
    """
    total = labels.size if total is None else total
    options: dict[str, Any] = {"working": np.float64}  # Hessians of nearly separated classes are nearly singular

    def part(rows: Any, of: int) -> Whole:
        return Whole(design_of(rows), labels[rows], allowed=None if allowed is None else allowed[rows], total=of)

    stride = max(1, labels.size // min(_PART, max(_LEAST_PART, _SAMPLES_PER_WEIGHT * start.size)))
    every = slice(None, None, stride)
    few = part(every, total // stride)
    logits = few.design.forward(start)
    logits -= logits.mean(axis=1, keepdims=True)
    start = start * min(1.0, _LOGITS / max(float(np.abs(logits).max()), _LOGITS))  # Newton steps leave certainty slowly
    fit = minimise(few, start, tolerance=_ROUGH * tolerance, **options)
    problem = _Many(blocks, few, labels, allowed, total)
    doubtful = problem.doubtful(fit.weights)
    if doubtful.size > _DOUBTFUL:
        return minimise(problem, fit.weights, tolerance=tolerance, least_damping=least_damping, **options)
    chosen = np.zeros(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        chosen, before = np.union1d(chosen, doubtful), chosen.size
        if chosen.size <= 1.01 * before and fit.converged:
            return fit
        problem.few = part(chosen, total)
        fit = minimise(problem, fit.weights, tolerance=tolerance, max_iterations=_STEPS, **options)
        if not fit.converged:
            break
        doubtful = problem.doubtful(fit.weights)
    return minimise(part(slice(None), total), fit.weights, tolerance=tolerance, **options)  # without a shortcut


class _Many:
    """The `Problem` of all samples, with the Hessian of a few."""

    def __init__(self, blocks: Sequence[Block], few: Whole, labels: Ints, allowed: Bools | None, total: int) -> None:
        self.blocks, self.few, self.labels, self.allowed, self.total = blocks, few, labels, allowed, total

    def _logits(self, weights: Floats) -> Iterator[tuple[Block, slice, Reals]]:
        single = weights.astype(np.float32)
        for number, block in enumerate(self.blocks):
            rows = slice(number * BLOCK, (number + 1) * BLOCK)
            logits = block.forward(single)
            if self.allowed is not None:
                logits[~self.allowed[rows]] = -np.inf
            yield block, rows, logits

    def evaluate(self, weights: Floats) -> State:
        gradient = np.zeros_like(weights)
        loss, margin, scale = 0.0, np.inf, 1.0
        for block, rows, logits in self._logits(weights):
            labels = self.labels[rows]
            own_loss, own_margin, own_scale = softmax_in_place(logits, labels)
            logits[np.arange(labels.size), labels] -= 1.0
            gradient += block.backward(logits)
            loss, margin, scale = loss + own_loss, min(margin, own_margin), max(scale, own_scale)
        return State(weights, loss / self.total, margin > 1e-4 * scale, gradient=gradient / self.total)

    def doubtful(self, weights: Floats) -> Ints:
        """Return the numbers of the samples that are predicted with doubt."""
        found = []
        for _, rows, logits in self._logits(weights):
            labels = self.labels[rows]
            softmax_in_place(logits, labels)
            found.append(rows.start + np.flatnonzero(logits[np.arange(labels.size), labels] < 1.0 - _DOUBT))
        return np.concatenate(found)

    def gradient(self, state: State) -> Floats:
        assert state.gradient is not None
        return state.gradient

    def curvature(self, state: State, working: type[np.floating]) -> tuple[Design, Reals, int]:
        return self.few.curvature(self.few.evaluate(state.weights), working)
