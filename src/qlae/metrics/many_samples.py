"""Logistic regression on very many samples: all of them give the loss and its gradient, some of them the Hessian.

A step needs a Hessian that is good, not exact, because loss and gradient correct what it gets wrong. It comes from
about 60,000 samples, drawn by their leverage, the part that they have in the diagonal of the Hessian,

    Σ_f Σ_c x_if² p_ic (1 − p_ic) / Σ_k x_kf² p_kc (1 − p_kc)      (features f, classes c)

and weighted by the inverse of their probability of being drawn. So none is left out that decides about a weight alone:
neither the few with any curvature where classes are nearly separated, nor those of a code and a class that rarely meet.
Such a Hessian differs from that of all samples by about √(weights / samples drawn), so the distance to the minimum
shrinks by that factor with each step, and its share of the loss by the square: a few passes over all samples suffice.

A pass works on blocks that fit into the cache, in single precision, with one row per class, so that sums and maxima
over classes run along contiguous samples. The start is the fit to as many samples, drawn uniformly.

The fit ends by the same rule as one that uses the Hessian of all samples (newton.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from .inputs import Bools, Floats, Ints
from .newton import Design, Fit, Reals, State, Whole, minimise

MANY = 200_000  # with more samples, a fit takes its Hessian from some of them; with fewer, that saves no time
BLOCK = 1 << 13  # samples per block
_DRAWN = 60_000  # about this many samples give the start, and the Hessian
_SEED = 0x51AE_D4A3_0B5E_77C1  # no small number, with which the sample itself may have been generated
_UNIFORM = 0.1  # share of the samples that are drawn whatever their leverage
_ROUGH, _NEAR = 50.0, 0.25  # the start need not be better than this, in tolerances, or in distances from the minimum
_LOGITS = 5.0  # largest logit from which the start is fitted
_DAMPING = 1e-4  # λ of the first step: the start is near the minimum
_CHANGED = 0.9  # samples are drawn anew when the loss has fallen to this share of what it was


class Block(Protocol):
    """Some samples of D features, with one weight per feature and class."""

    def forward(self, table: Reals) -> Reals:
        """Return (X W)ᵀ, (classes, n), contiguous, for weights W in the form of `Blocks.expand`."""

    def backward(self, residuals: Reals) -> Reals:
        """Return Xᵀ Rᵀ for residuals R (classes, n), in a form that `Blocks.collapse` turns into (D, classes)."""

    def squared(self) -> Block:
        """Return the same samples with squared features."""


class Blocks(Protocol):
    """All samples, `BLOCK` at a time, and what their products share."""

    @property
    def blocks(self) -> Sequence[Block]:
        """The samples, in order."""

    def expand(self, weights: Reals) -> Reals:
        """Return weights (D, classes) in the form that blocks take."""

    def collapse(self, sums: Reals) -> Reals:
        """Return the sum of what blocks return, as (D, classes)."""


def fit_many(
    samples: Blocks,
    design_of: Callable[[Ints, Reals | None], Design],
    labels: Ints,
    start: Floats,
    *,
    allowed: Bools | None = None,
    total: int | None = None,
    tolerance: float,
) -> Fit:
    """Minimise the mean cross entropy over `total` samples, of which those without a label here cost nothing.

    Args:
        samples: the features of all samples.
        design_of: returns the features of some samples, given their numbers and, if they represent others, weights.
        labels: (n,) classes.
        start: (D, classes) weights to start from.
        allowed: (n, classes) False for a class that is ruled out for a sample.
        total: number of samples in the mean; n by default.
        tolerance: the fit ends when a step is expected to gain no more nats than this.
    """
    total = labels.size if total is None else total
    options: dict[str, Any] = {"working": np.float64}  # Hessians of nearly separated classes are nearly singular
    rng = np.random.default_rng(_SEED)
    rows = np.flatnonzero(rng.random(labels.size, dtype=np.float32) < _DRAWN / labels.size)
    few = Whole(
        design_of(rows, None),
        labels[rows],
        allowed=None if allowed is None else allowed[rows],
        total=max(1, round(rows.size * total / labels.size)),
    )
    logits = few.design.forward(start)
    logits -= logits.mean(axis=1, keepdims=True)
    start = start * min(1.0, _LOGITS / max(float(np.abs(logits).max()), _LOGITS))  # Newton steps leave certainty slowly
    distance = start.size / (2 * rows.size)  # of the two minima, expected in nats
    fit = minimise(few, start, tolerance=max(_ROUGH * tolerance, _NEAR * distance), **options)
    problem = _Many(samples, design_of, labels, allowed, total, rng)
    return minimise(problem, fit.weights, tolerance=tolerance, damping=_DAMPING, **options)


class _Many:
    """The `Problem` of all samples, with the Hessian of some."""

    def __init__(
        self,
        samples: Blocks,
        design_of: Callable[[Ints, Reals | None], Design],
        labels: Ints,
        allowed: Bools | None,
        total: int,
        rng: np.random.Generator,
    ) -> None:
        self.samples, self.design_of, self.labels, self.total = samples, design_of, labels, total
        self.allowed, self.rng = allowed, rng
        self.ruled_out = None if allowed is None or allowed.all() else np.ascontiguousarray(~allowed.T)
        self.drawn: Whole | None = None
        self.loss_when_drawn = np.inf

    def _logits(self, weights: Floats) -> Iterator[tuple[Block, slice, Reals]]:
        table = self.samples.expand(weights.astype(np.float32))
        for number, block in enumerate(self.samples.blocks):
            rows = slice(number * BLOCK, (number + 1) * BLOCK)
            logits = block.forward(table)
            if self.ruled_out is not None:
                np.copyto(logits, -np.inf, where=self.ruled_out[:, rows])
            yield block, rows, logits

    def evaluate(self, weights: Floats) -> State:
        sums: Any = 0.0
        loss, least_own, scale = 0.0, 1.0, 1.0
        for block, rows, logits in self._logits(weights):
            labels = self.labels[rows]
            samples = np.arange(labels.size)
            own = logits[labels, samples]
            top = logits.max(axis=0)
            scale = max(scale, float(top.max()), -float(own.min()))
            own -= top
            logits -= top
            probabilities = np.exp(logits, out=logits)
            scales = probabilities.sum(axis=0)
            loss += float(np.sum(np.log(scales) - own, dtype=np.float64))
            least_own = min(least_own, float((np.exp(own) / scales).min()))
            probabilities /= scales
            probabilities[labels, samples] -= 1.0
            sums = sums + block.backward(probabilities)
        # A class with more than half of the probability is on top, by at least this much.
        margin = np.log(least_own / (1.0 - least_own)) if 0.5 < least_own < 1.0 else np.inf if least_own == 1.0 else 0.0
        return State(
            weights, loss / self.total, margin > 1e-4 * scale, gradient=self.samples.collapse(sums) / self.total
        )

    def gradient(self, state: State) -> Floats:
        assert state.gradient is not None
        return state.gradient

    def curvature(self, state: State, working: type[np.floating]) -> tuple[Design, Reals, int]:
        if self.drawn is None or state.loss < _CHANGED * self.loss_when_drawn:
            self._draw(state)
        assert self.drawn is not None
        return self.drawn.curvature(self.drawn.evaluate(state.weights), working)

    def _draw(self, state: State) -> None:
        """Draw the samples that give the Hessian."""
        share = self._leverage(state.weights)
        share *= (1.0 - _UNIFORM) / max(float(share.mean(dtype=np.float64)), 1e-30)
        share += np.float32(_UNIFORM)
        share *= _DRAWN / self.labels.size
        rows = np.flatnonzero(self.rng.random(self.labels.size, dtype=np.float32) < share)
        represented = 1.0 / np.minimum(share[rows], 1.0).astype(np.float64)
        allowed = None if self.ruled_out is None or self.allowed is None else self.allowed[rows]
        self.drawn = Whole(self.design_of(rows, represented), self.labels[rows], allowed=allowed, total=self.total)
        self.loss_when_drawn = state.loss

    def _leverage(self, weights: Floats) -> Reals:
        """Return the part (n,) that each sample has in the diagonal of the Hessian, summed over the diagonal."""
        sums: Any = 0.0
        variances = []
        for block, _, logits in self._logits(weights):
            logits -= logits.max(axis=0)
            probabilities = np.exp(logits, out=logits)
            probabilities /= probabilities.sum(axis=0)
            variances.append(probabilities * (1.0 - probabilities))
            sums = sums + block.squared().backward(variances[-1])
        inverse = 1.0 / np.maximum(self.samples.collapse(sums), 1e-30)
        table = self.samples.expand(inverse.astype(np.float32))
        leverage = np.empty(self.labels.size, dtype=np.float32)
        for number, (block, variance) in enumerate(zip(self.samples.blocks, variances, strict=True)):
            variance *= block.squared().forward(table)
            variance.sum(axis=0, out=leverage[number * BLOCK : (number + 1) * BLOCK])
        return leverage
