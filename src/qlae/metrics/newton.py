"""Least cross entropy of a linear softmax model, by damped Newton steps: what both logistic regressions share.

    loss(W) = −(1/N) Σ_i log softmax(x_i W)_{y_i}

The Hessian H acts on a step V as Xᵀ[P ⊙ U − P (P ⊙ U)1], U = X V. Each step solves (H + λ R) V = −gradient by conjugate
gradients, preconditioned by the design (which knows its own structure); R weighs V by the mean square of the logits it
moves, so that λ bounds how far the probabilities are moved, and follows the gain of the last step (Levenberg). The end
is near when a step that λ hardly shortened promises little. If at any point every sample has its own class on top,
scaling W up takes the loss to 0: the infimum is exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .inputs import Bools, Floats, Ints

Reals = NDArray[np.floating]
Solve = Callable[[Reals], Reals]

_DOUBLE_ENTRIES = 1 << 23  # logits in double precision up to this many
EASY = 6  # conjugate gradients in a step, up to which its preconditioner serves well
_DOUBLE_STEPS = 1 << 18  # steps, too, up to this many


def working_type(num_samples: int, size: int) -> type[np.floating]:
    """Precision that steps are first computed in: classes that are nearly separated ask for double, if it is to be had.

    Their Hessian is nearly singular, and in single precision conjugate gradients get nowhere.
    """
    return np.float64 if num_samples * size <= _DOUBLE_STEPS else np.float32


@dataclass(frozen=True)
class Fit:
    """The least cross entropy found, in nats, and whether it is the least there is."""

    loss: float
    converged: bool
    iterations: int


class Design(Protocol):
    """n samples of D features, one weight a feature and class."""

    weight: Floats
    """(D,) mean square of each feature: R in the text above."""

    def forward(self, weights: Reals) -> Reals:
        """X W, (n, classes), in the precision of W."""

    def backward(self, residuals: Reals) -> Reals:
        """Xᵀ R, (D, classes), in the precision of R."""

    def preconditioner(self, probabilities: Reals, total: int, effort: int) -> Callable[[float], Solve]:
        """λ → approximate solution of (H + λ R) V = G, for G (D, classes); effort of the hardest step so far."""


@dataclass(frozen=True, eq=False)
class _State:
    weights: Floats  # (D, classes)
    probabilities: Reals  # (n, classes)
    loss: float
    separated: bool


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
    """Least mean cross entropy over `total` samples, of which those not in the design cost nothing.

    `allowed` (n, classes) rules out classes for samples. Stops once a step promises no more than `tolerance` nats.
    """
    total = labels.size if total is None else total
    state = _evaluate(design, labels, start, allowed, total)
    damping, patience = 1e-2, 0.1
    build: Callable[[float], Solve] | None = None
    effort = hardest = 0
    rows = np.arange(labels.size)
    working = working_type(labels.size, start.shape[1])
    for iteration in range(max_iterations):
        if state.separated:
            return Fit(0.0, True, iteration)
        floor = 1e-12 if working is np.float32 else 1e-17
        residuals = state.probabilities.copy(order="K")
        residuals[rows, labels] -= 1.0
        gradient = design.backward(residuals).astype(np.float64) / total
        del residuals
        probabilities = state.probabilities.astype(working, copy=False)
        fresh = build is None or effort > EASY  # an older Hessian will do while it serves well
        if build is None or fresh:
            build = design.preconditioner(probabilities, total, hardest)
        step, expected, bound, effort = _conjugate_gradients(
            design, probabilities, gradient, damping, build(damping), total, patience
        )
        hardest = max(hardest, effort)
        if not expected > 0.0:  # rounding has eaten the step
            if fresh and working is np.float64:
                return Fit(state.loss, bool(np.abs(gradient).max() < 1e-9), iteration)
            working = np.float64 if fresh else working
            build = None
            continue
        trial = _evaluate(design, labels, state.weights + step, allowed, total)
        gain = (state.loss - trial.loss) / expected
        shorter = 1.0
        while trial.loss > state.loss - 0.1 * shorter * expected and expected > tolerance and shorter > 1e-3:
            shorter *= 0.5
            trial = _evaluate(design, labels, state.weights + shorter * step, allowed, total)
        taken = trial.loss <= state.loss or trial.separated
        if taken:
            state = trial
        elif fresh:  # as good as the step can be in this precision
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


def _evaluate(design: Design, labels: Ints, weights: Floats, allowed: Bools | None, total: int) -> _State:
    double = labels.size * weights.shape[1] <= _DOUBLE_ENTRIES
    logits = design.forward(weights if double else weights.astype(np.float32))
    if allowed is not None:
        logits[~allowed] = -np.inf
    rows = np.arange(labels.size)
    own = logits[rows, labels].copy()
    logits[rows, labels] = -np.inf
    other = logits.max(axis=1)
    scale = max(1.0, float(np.abs(own).max()))
    separated = bool((own - other).min() > (1e-9 if double else 1e-4) * scale)
    logits[rows, labels] = own
    top = np.maximum(own, other)
    logits -= top[:, None]
    np.exp(logits, out=logits)
    sums = logits.sum(axis=1)
    loss = float(np.sum(np.log(sums) - (own - top), dtype=np.float64)) / total
    logits /= sums[:, None]
    return _State(weights, logits, loss, separated)


def _conjugate_gradients(
    design: Design, P: Reals, gradient: Floats, damping: float, solve: Solve, total: int, patience: float
) -> tuple[Floats, float, bool, int]:
    """An inexact solution V of (H + λ R) V = −gradient: V, the decrease it promises, whether λ shortened it, effort."""
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
        U -= (P * U).sum(axis=1)[:, None]
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
