"""Minimise the cross entropy of a linear softmax model by damped Newton steps: shared by both logistic regressions.

    loss(W) = −(1/N) Σ_i log softmax(x_i W)_{y_i}

The Hessian H acts on a step V as Xᵀ[P ⊙ U − P (P ⊙ U)1], U = X V. Each step solves (H + λ R) V = −gradient by conjugate
gradients, preconditioned by the design, which knows its structure. R weighs V by the mean square of the logits that it
changes, so that λ bounds the change of the probabilities; λ follows the gain of the last step (Levenberg). The fit ends
when a step that λ hardly shortens is expected to gain little. If every sample has its own class on top, scaling W up
takes the loss to 0, so the infimum is exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .inputs import Bools, Floats, Ints

Reals = NDArray[np.floating]
Solve = Callable[[Reals], Reals]

_DOUBLE_ENTRIES = 1 << 23  # up to this many logits are computed in double precision
EASY = 6  # a step with at most this many conjugate gradient iterations had a good preconditioner
_FAST_ROWS = 1 << 14  # from this many rows on, sums over classes use BLAS, whose order of additions is its own
_BLOCK_ENTRIES = 1 << 22  # logits of a block of samples, if there are more than LARGE
LARGE = 1 << 24  # logits from which on a problem is solved block by block
_DOUBLE_STEPS = 1 << 18  # up to this many logits, steps are computed in double precision, too


def working_type(num_samples: int, size: int) -> type[np.floating]:
    """Return the precision in which steps are first computed: double, if the problem is small enough.

    If classes are nearly separated, the Hessian is nearly singular, and conjugate gradients fail in single precision.
    """
    return np.float64 if num_samples * size <= _DOUBLE_STEPS else np.float32


class Fit(NamedTuple):
    """The minimal cross entropy, in nats, and whether the fit converged."""

    loss: float
    converged: bool
    iterations: int


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


class State(NamedTuple):
    """The loss at some weights (D, classes), and whether every sample has its own class on top."""

    weights: Floats
    loss: float
    separated: bool
    probabilities: Reals  # (n, classes)


class Problem:
    """The mean cross entropy over `total` samples, of which those not in the design cost nothing.

    `labels` (n,) are classes; `allowed` (n, classes) is False for a class that is ruled out for a sample.
    """

    def __init__(self, design: Design, labels: Ints, allowed: Bools | None, total: int) -> None:
        self.design, self.labels, self.allowed, self.total = design, labels, allowed, total

    def evaluate(self, weights: Floats) -> State:
        double = self.labels.size * weights.shape[1] <= _DOUBLE_ENTRIES
        logits = self.design.forward(weights if double else weights.astype(np.float32))
        if self.allowed is not None:
            logits[~self.allowed] = -np.inf
        loss, margin, scale = softmax_in_place(logits, self.labels)
        separated = margin > (1e-9 if double else 1e-4) * max(1.0, scale)
        return State(weights, loss / self.total, separated, logits)

    def gradient(self, state: State) -> Floats:
        residuals = state.probabilities.copy(order="K")
        residuals[np.arange(self.labels.size), self.labels] -= 1.0
        return np.asarray(self.design.backward(residuals).astype(np.float64) / self.total)


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
    design: Design,
    labels: Ints,
    start: Floats,
    *,
    allowed: Bools | None = None,
    total: int | None = None,
    tolerance: float,
    max_iterations: int = 100,
) -> Fit:
    """Minimise the mean cross entropy over `total` samples, of which those without a label here cost nothing.

    Args:
        design: the features of the samples with a label.
        labels, allowed, total: as for `Problem`; by default all samples have labels, and every class is possible.
        start: (D, classes) weights.
        tolerance: the fit ends when a step is expected to gain no more nats than this.
        max_iterations: at most so many steps.
    """
    total = labels.size if total is None else total
    problem, working = Problem(design, labels, allowed, total), working_type(labels.size, start.shape[1])
    state = problem.evaluate(start)
    damping, patience = 1e-2, 0.1
    build: Callable[[float], Solve] | None = None
    effort = hardest = 0
    for iteration in range(max_iterations):
        if state.separated:
            return Fit(0.0, True, iteration)
        floor = 1e-12 if working is np.float32 else 1e-17
        gradient = problem.gradient(state)
        probabilities = state.probabilities.astype(working, copy=False)
        fresh = build is None or effort > EASY  # an older Hessian is kept while it is good enough
        if build is None or fresh:
            build = design.preconditioner(probabilities, total, hardest)
        step, expected, bound, effort = _conjugate_gradients(
            design, probabilities, gradient, damping, build(damping), total, patience
        )
        hardest = max(hardest, effort)
        if not expected > 0.0:  # the step is lost in rounding
            if fresh and working is np.float64:
                return Fit(state.loss, bool(np.abs(gradient).max() < 1e-9), iteration)
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
                return Fit(0.0 if state.separated else state.loss, True, iteration + 1)
            build = None
        patience = 0.1 if expected > 30 * tolerance else 0.02  # solve the last steps well
        if gain > 0.75:
            damping = max((0.01 if 0.9 < gain < 1.5 else 0.1) * damping, floor)
        elif gain < 0.25 and (expected > tolerance or not taken):
            damping = min(10.0 * damping, 1e6)
    return Fit(state.loss, False, max_iterations)


def minimise_in_blocks(
    make_design: Callable[[slice], Design],
    labels: Ints,
    start: Floats,
    *,
    allowed: Bools | None = None,
    total: int | None = None,
    tolerance: float,
    max_iterations: int = 100,
) -> Fit:
    """Minimise the mean cross entropy like `minimise`, with little memory and fewer passes over very many samples.

    Losses and gradients are those of all samples, summed over blocks. The Hessian is that of every so many-th sample,
    which costs little; its error makes steps a little longer or shorter, and does not move the minimum.

    Args:
        make_design: returns the features of some samples.
        labels, start, allowed, total, tolerance, max_iterations: as for `minimise`.
    """
    n, total = labels.size, labels.size if total is None else total
    size = start.shape[1]

    def problem(rows: slice, total: int) -> Problem:
        return Problem(make_design(rows), labels[rows], None if allowed is None else allowed[rows], total)

    length = max(1, _BLOCK_ENTRIES // size)
    blocks = [problem(slice(first, first + length), total) for first in range(0, n, length)]
    part = slice(None, None, -(-n * size // _BLOCK_ENTRIES))
    sample = problem(part, max(1, round(total * labels[part].size / n)))

    def evaluate(weights: Floats) -> tuple[float, Floats, bool]:
        loss, gradient, separated = 0.0, np.zeros_like(weights), True
        for block in blocks:
            state = block.evaluate(weights.astype(np.float32))
            loss, separated = loss + state.loss, separated and state.separated
            gradient += block.gradient(state)
        return loss, gradient, separated

    weights, (loss, gradient, separated) = start, evaluate(start)
    damping, hardest = 1e-2, 0
    for iteration in range(max_iterations):
        if separated:
            return Fit(0.0, True, iteration)
        probabilities = sample.evaluate(weights.astype(np.float32)).probabilities
        solve = sample.design.preconditioner(probabilities, sample.total, hardest)(damping)
        step, expected, _, effort = _conjugate_gradients(
            sample.design, probabilities, gradient, damping, solve, sample.total, 0.05
        )
        hardest = max(hardest, effort)
        if expected <= tolerance:
            return Fit(loss, True, iteration)
        shorter = 1.0
        trial = evaluate(weights + step)
        gain = (loss - trial[0]) / expected
        while trial[0] > loss - 0.1 * shorter * expected and shorter > 1e-3:
            shorter *= 0.5
            trial = evaluate(weights + shorter * step)
        if trial[0] >= loss:
            damping *= 10.0
            if damping > 1e6:
                return Fit(loss, False, iteration)
            continue
        weights, (loss, gradient, separated) = weights + shorter * step, trial
        damping = max(0.03 * damping, 1e-9) if gain > 0.7 else 5.0 * damping if gain < 0.25 else damping
    return Fit(loss, False, max_iterations)


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
