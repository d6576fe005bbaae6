"""AdamW in one pass over a flat buffer.

One kernel updates the moments, applies weight decay and the step, and writes the rounded copy that the networks use.
"""

import math

import triton
import triton.language as tl
from torch import Tensor

from .launching import launch

ENTRIES = 1024  # per program


@triton.jit
def _adamw_step(
    values_ptr,
    gradients_ptr,
    first_ptr,
    second_ptr,
    copies_ptr,
    moves_ptr,
    factors_ptr,  # (2,): on the learning rate and on the weight decay
    num_entries,
    learning_rate,
    log_beta1,
    log_beta2,
    weight_decay,
    epsilon,
    clip,
    CLIPPED: tl.constexpr,
    COPIED: tl.constexpr,
    ENTRIES: tl.constexpr,
):
    places = tl.program_id(0) * ENTRIES + tl.arange(0, ENTRIES)
    here = places < num_entries
    moves = tl.load(moves_ptr)
    learning_rate *= tl.load(factors_ptr)
    weight_decay *= tl.load(factors_ptr + 1)
    beta1 = tl.exp(log_beta1)
    beta2 = tl.exp(log_beta2)
    gradient = tl.load(gradients_ptr + places, mask=here, other=0.0).to(tl.float32)
    if CLIPPED:
        gradient = tl.minimum(tl.maximum(gradient, -clip), clip)
    first = tl.load(first_ptr + places, mask=here, other=0.0)
    second = tl.load(second_ptr + places, mask=here, other=0.0)
    value = tl.load(values_ptr + places, mask=here, other=0.0)
    first += (gradient - first) * (1 - beta1)
    second += (gradient * gradient - second) * (1 - beta2)
    deviation = tl.sqrt(second / (1 - tl.exp(log_beta2 * moves))) + epsilon
    value -= learning_rate * weight_decay * value
    value -= learning_rate / (1 - tl.exp(log_beta1 * moves)) * (first / deviation)
    tl.store(first_ptr + places, first, mask=here)
    tl.store(second_ptr + places, second, mask=here)
    tl.store(values_ptr + places, value, mask=here)
    if COPIED:
        tl.store(copies_ptr + places, value.to(copies_ptr.dtype.element_ty), mask=here)


def step(
    values: Tensor,
    gradients: Tensor,
    first: Tensor,
    second: Tensor,
    copies: Tensor | None,
    moves: Tensor,
    factors: Tensor,
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    epsilon: float,
    clip: float | None,
) -> None:
    """Update the values, moments and copies by one step.

    Args:
        values: (entries,) float32 parameters.
        gradients: (entries,) gradients, of any floating-point type.
        first: (entries,) first moments.
        second: (entries,) second moments.
        copies: (entries,) rounded copies of the values, of any floating-point type; None if there are none.
        moves: scalar tensor, the number of this step (from 1).
        factors: (2,) factors on the learning rate and the weight decay.
        learning_rate: step size.
        beta1: decay rate of the first moments.
        beta2: decay rate of the second moments.
        weight_decay: decoupled weight decay; it is multiplied by the learning rate.
        epsilon: constant that is added to the denominator.
        clip: bound on the absolute value of each gradient entry; None for no clipping.
    """
    launch(
        _adamw_step,
        (triton.cdiv(len(values), ENTRIES),),
        values,
        gradients,
        first,
        second,
        copies,
        moves,
        factors,
        len(values),
        learning_rate,
        _log(beta1),
        _log(beta2),
        weight_decay,
        epsilon,
        0.0 if clip is None else clip,
        CLIPPED=clip is not None,
        COPIED=copies is not None,
        ENTRIES=ENTRIES,
        num_warps=4,
    )


def _log(beta: float) -> float:
    """Return log β, or for β = 0 a number whose exponential is 0 in float32."""
    return math.log(beta) if beta > 0 else -1e4
