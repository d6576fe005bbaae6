"""Minimise the cross entropy of a linear softmax model by damped Newton steps: shared by both logistic regressions.

    loss(W) = −(1/N) Σ_i log softmax(x_i W)_{y_i}

The Hessian H acts on a step V as Xᵀ[P ⊙ U − P (P ⊙ U)1], U = X V. Each step solves (H + λ R) V = −gradient by conjugate
gradients, preconditioned by the design, which knows its structure. R weighs V by the mean square of the logits that it
changes, so that λ bounds the change of the probabilities; λ follows the gain of the last step (Levenberg). The fit ends
when a step that λ hardly shortens is expected to gain little. If every sample has its own class on top, scaling W up
takes the loss to 0, so the infimum is exactly 0.

**Very many samples**: a subset of 15,000 to 60,000 samples provides the starting point and, at each step,
the Hessian. Loss and gradient come from all samples, in one pass over blocks that fit into the cache and without
storing probabilities. The Hessian of the subset differs from that of all samples by about √(weights / samples of the
subset), so the distance to the minimum shrinks by that factor with each step, and its share of the loss by the square:
a few passes are enough. If classes are nearly separated, few samples have any curvature, and such a subset has hardly
any of them. The Hessian then comes from all samples that are predicted with doubt. The fit ends by the same rule as one
that uses all samples throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .inputs import Bools, Floats, Ints

Reals = NDArray[np.floating]
Solve = Callable[[Reals], Reals]

_DOUBLE_ENTRIES = 1 << 23  # up to this many logits are computed in double precision
EASY = 6  # a step with at most this many conjugate gradient iterations had a good preconditioner
_FAST_ROWS = 1 << 14  # from this many rows on, sums over classes use BLAS, whose order of additions is its own
_DOUBLE_STEPS = 1 << 18  # up to this many logits, steps are computed in double precision, too

MANY = 500_000  # with more samples, fits use a part of them; with fewer, that saves no time
BLOCK = 1 << 14  # samples per block
_PART, _LEAST_PART = 60_000, 15_000  # samples in the subset, about this many at most and at least
_SAMPLES_PER_WEIGHT = 50  # between these bounds
_ROUGH = 50.0  # the fit of the part need not be better than its distance from the whole; in tolerances
_LOGITS = 5.0  # largest logit of the start
_DOUBT = 1e-3  # a sample whose own class has a smaller probability than 1 minus this is predicted with doubt
_DOUBTFUL = 2 * _PART  # classes with at most this many such samples are nearly separated
_ROUNDS, _STEPS = 3, 8  # how often such samples are chosen anew, after how many steps at most


def working_type(num_samples: int, size: int) -> type[np.floating]:
    """Return the precision in which steps are first computed: double, if the problem is small enough.

    If classes are nearly separated, the Hessian is nearly singular, and conjugate gradients fail in single precision.
    """
    return np.float64 if num_samples * size <= _DOUBLE_STEPS else np.float32


@dataclass(frozen=True)
class Fit:
    """The minimal cross entropy, in nats, and whether the fit converged."""

    loss: float
    converged: bool
    iterations: int
    weights: Floats  # (D, classes); if the loss is 0, of a finite scale at which it is not yet


class Design(Protocol):
    """n samples of D features, with one weight per feature and class, and a preconditioner for Newton steps."""

    weight: Floats
    """(D,) mean square of each feature: R in the text above."""

    def forward(self, weights: Reals) -> Reals:
        """Return X W, (n, classes), in the precision of W (D, classes)."""

    def backward(self, residuals: Reals) -> Reals:
        """Return Xᵀ R, (D, classes), in the precision of R (n, classes)."""

    def preconditioner(self, probabilities: Reals, total: int, effort: int) -> Callable[[float], Solve]:
        """Return a function of λ that builds an approximate solver of (H + λ R) V = G, for G (D, classes).

        Args:
            probabilities: (n, classes).
            total: number of samples in the mean.
            effort: conjugate gradient iterations of the hardest step so far.
        """


@dataclass(frozen=True, eq=False)
class State:
    """The loss at some weights (D, classes), and whether every sample has its own class on top."""

    weights: Floats
    loss: float
    separated: bool
    probabilities: Reals | None = None  # (n, classes), if the problem keeps them
    gradient: Floats | None = None  # (D, classes), if the problem computes it with the loss


class Whole:
    """The mean cross entropy over `total` samples, of which those not in the design cost nothing.

    `labels` (n,) are classes; `allowed` (n, classes) is False for a class that is ruled out for a sample.
    """

    def __init__(self, design: Design, labels: Ints, allowed: Bools | None, total: int) -> None:
        self.design, self.labels, self.allowed, self.total = design, labels, allowed, total
        self.rows = np.arange(labels.size)

    def evaluate(self, weights: Floats) -> State:
        double = self.labels.size * weights.shape[1] <= _DOUBLE_ENTRIES
        logits = self.design.forward(weights if double else weights.astype(np.float32))
        if self.allowed is not None:
            logits[~self.allowed] = -np.inf
        loss, margin, scale = softmax_in_place(logits, self.labels)
        separated = margin > (1e-9 if double else 1e-4) * max(1.0, scale)
        return State(weights, loss / self.total, separated, probabilities=logits)

    def gradient(self, state: State) -> Floats:
        assert state.probabilities is not None
        residuals = state.probabilities.copy(order="K")
        residuals[self.rows, self.labels] -= 1.0
        return np.asarray(self.design.backward(residuals).astype(np.float64) / self.total)

    def curvature(self, state: State, working: type[np.floating]) -> tuple[Design, Reals, int]:
        """Return samples that represent the Hessian, their probabilities, and the number of samples in the mean."""
        assert state.probabilities is not None
        return self.design, state.probabilities.astype(working, copy=False), self.total


def softmax_in_place(logits: Reals, labels: Ints) -> tuple[float, float, float]:
    """Turn logits (n, classes) into probabilities.

    Return the sum of the cross entropies of the labels (n,), by how much the smallest own logit exceeds all others, and
    the size of the largest own logit.
    """
    rows = np.arange(labels.size)
    own = logits[rows, labels].copy()
    logits[rows, labels] = -np.inf
    other = logits.max(axis=1) if logits.flags.f_contiguous else np.ascontiguousarray(logits.T).max(axis=0)
    margin, scale = float((own - other).min()), float(np.abs(own).max())
    logits[rows, labels] = own
    top = np.maximum(own, other)
    logits -= top[:, None]
    np.exp(logits, out=logits)
    sums = _sum_over_classes(logits)
    loss = float(np.sum(np.log(sums) - (own - top), dtype=np.float64))
    logits /= sums[:, None]
    return loss, margin, scale


def _sum_over_classes(array: Reals) -> Reals:
    """Return the sums of the rows of (n, classes): NumPy adds short rows one number at a time, BLAS many at once."""
    if array.flags.f_contiguous or array.shape[0] < _FAST_ROWS:
        return np.asarray(array.sum(axis=1))
    return np.asarray(array @ np.ones(array.shape[1], array.dtype))


def minimise(
    problem: Whole | _Many,
    start: Floats,
    *,
    working: type[np.floating],
    tolerance: float,
    least_damping: float = 0.0,
    max_iterations: int = 100,
) -> Fit:
    """Minimise the loss of a problem from weights (D, classes), with steps first computed in the working precision.

    The fit ends when a step is expected to gain no more nats than the tolerance. λ does not fall below `least_damping`.
    """
    state = problem.evaluate(start)
    damping, patience = 1e-2, 0.1
    build: Callable[[float], Solve] | None = None
    effort = hardest = 0
    for iteration in range(max_iterations):
        if state.separated:
            return Fit(0.0, True, iteration, state.weights)
        floor = max(least_damping, 1e-12 if working is np.float32 else 1e-17)
        gradient = problem.gradient(state)
        design, probabilities, total = problem.curvature(state, working)
        fresh = build is None or effort > EASY  # an older Hessian is kept while it is good enough
        if build is None or fresh:
            build = design.preconditioner(probabilities, total, hardest)
        step, expected, bound, effort = _conjugate_gradients(
            design, probabilities, gradient, damping, build(damping), total, patience
        )
        hardest = max(hardest, effort)
        if not expected > 0.0:  # the step is lost in rounding
            if fresh and working is np.float64:
                return Fit(state.loss, bool(np.abs(gradient).max() < 1e-9), iteration, state.weights)
            working = np.float64 if fresh else working
            build = None
            continue
        trial = problem.evaluate(state.weights + step)
        gain = (state.loss - trial.loss) / expected
        shorter = 1.0
        while trial.loss > state.loss - 0.1 * shorter * expected and expected > tolerance and shorter > 1e-3:
            shorter *= 0.5
            trial = problem.evaluate(state.weights + shorter * step)
        taken = trial.loss <= state.loss or trial.separated
        if taken:
            state = trial
        elif fresh:  # this precision allows no better step
            working = np.float64
        if expected <= tolerance:
            settled = patience < 0.1 and not (bound and damping > floor)
            if fresh and (settled or expected <= 1e-4 * tolerance):
                return Fit(0.0 if state.separated else state.loss, True, iteration + 1, state.weights)
            build = None
        patience = 0.1 if expected > 30 * tolerance else 0.02  # solve the last steps well
        if gain > 0.75:
            damping = max((0.01 if 0.9 < gain < 1.5 else 0.1) * damping, floor)
        elif gain < 0.25 and (expected > tolerance or not taken):
            damping = min(10.0 * damping, 1e6)
    return Fit(state.loss, False, max_iterations, state.weights)


def _conjugate_gradients(
    design: Design, P: Reals, gradient: Floats, damping: float, solve: Solve, total: int, patience: float
) -> tuple[Floats, float, bool, int]:
    """Solve (H + λ R) V = −gradient inexactly.

    Return V (D, classes), the expected decrease of the loss, whether λ shortened the step, and the iterations taken.
    """
    working = P.dtype.type
    ridge = (damping * design.weight)[:, None].astype(working)
    step = np.zeros_like(gradient)
    residual = (-gradient).astype(working)
    z = solve(residual).astype(working, copy=False)
    direction = z.copy()
    rz = float(np.vdot(residual, z))
    decrease = 0.0
    for i in range(1, 200):
        U = design.forward(direction)
        U -= _sum_over_classes(P * U)[:, None]
        U *= P
        curved = design.backward(U) / working(total) + ridge * direction
        curvature = float(np.vdot(direction, curved))
        if not curvature > 0.0 or not rz > 0.0:
            break
        alpha = rz / curvature
        step += alpha * direction
        gain = 0.5 * alpha * rz
        decrease += gain
        if i * gain <= patience * decrease:  # Nash's rule: more iterations would add little
            break
        residual -= working(alpha) * curved
        z = solve(residual).astype(working, copy=False)
        rz, previous = float(np.vdot(residual, z)), rz
        direction = z + working(rz / previous) * direction
    bound = float(np.sum(ridge * step**2)) > 0.1 * decrease
    return step, decrease, bound, i


def fit(
    blocks: Callable[[], Sequence[Any]],
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
        blocks: returns the features of all samples, `BLOCK` samples at a time; called if there are very many.
        design_of: returns the features of some samples, given an index of them.
        labels, allowed, total: as for `Whole`.
        start, tolerance: as for `minimise`.
        least_damping: λ that keeps steps short in directions which a subset of very many samples may know nothing
            about.
    """
    total = labels.size if total is None else total

    def part(rows: Any, of: int) -> Whole:
        return Whole(design_of(rows), labels[rows], None if allowed is None else allowed[rows], of)

    if labels.size <= MANY:
        working = working_type(labels.size, start.shape[1])
        return minimise(part(slice(None), total), start, working=working, tolerance=tolerance)
    options: dict[str, Any] = {"working": np.float64}  # Hessians of nearly separated classes are nearly singular
    stride = max(1, labels.size // min(_PART, max(_LEAST_PART, _SAMPLES_PER_WEIGHT * start.size)))
    few = part(slice(None, None, stride), total // stride)
    logits = few.design.forward(start)
    logits -= logits.mean(axis=1, keepdims=True)
    start = start * min(1.0, _LOGITS / max(float(np.abs(logits).max()), _LOGITS))  # Newton steps leave certainty slowly
    fitted = minimise(few, start, tolerance=_ROUGH * tolerance, **options)
    problem = _Many(blocks(), few, labels, allowed, total)
    doubtful = problem.doubtful(fitted.weights)
    if doubtful.size > _DOUBTFUL:
        return minimise(problem, fitted.weights, tolerance=tolerance, least_damping=least_damping, **options)
    chosen = np.zeros(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        chosen, before = np.union1d(chosen, doubtful), chosen.size
        if chosen.size <= 1.01 * before and fitted.converged:
            return fitted
        problem.few = part(chosen, total)
        fitted = minimise(problem, fitted.weights, tolerance=tolerance, max_iterations=_STEPS, **options)
        if not fitted.converged:
            break
        doubtful = problem.doubtful(fitted.weights)
    return minimise(part(slice(None), total), fitted.weights, tolerance=tolerance, **options)  # without a shortcut


class _Many:
    """The loss of all samples as in `Whole`, computed in blocks, with the Hessian of a few."""

    def __init__(self, blocks: Sequence[Any], few: Whole, labels: Ints, allowed: Bools | None, total: int) -> None:
        self.blocks, self.few, self.labels, self.allowed, self.total = blocks, few, labels, allowed, total

    def _logits(self, weights: Floats) -> Iterator[tuple[Any, slice, Reals]]:
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
