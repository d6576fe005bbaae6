"""One step of AdamW (Loshchilov & Hutter 2019) over a flat buffer of parameters.

With gradient g, moments m and v, step number t, learning rate η and weight decay λ,

    m ← β1 m + (1 − β1) g        v ← β2 v + (1 − β2) g²
    θ ← θ − η λ θ − η · m / (1 − β1^t) / (√(v / (1 − β2^t)) + ε)

η and λ are constants times factors on the device, which schedules fill in. So a recorded CUDA graph stays valid, and
nothing has to be read back.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..config import OptimizerConfig
from . import dispatch

EPSILON = 1e-8


class AdamWBuffers(NamedTuple):
    """The tensors of one step, all (n,) and of the same layout."""

    values: Tensor  # the parameters
    gradients: Tensor  # in float32; overwritten by clipping
    raw_gradients: Tensor  # as the backward pass returned them, in any precision; read by the kernel
    first: Tensor  # the moments
    second: Tensor
    copies: Tensor | None  # rounded copies of the parameters, written by the kernel


def adamw_step(
    buffers: AdamWBuffers, number: Tensor, factors: Tensor, config: OptimizerConfig, *, scheduled: bool = False
) -> None:
    """Descend the gradients by one step.

    Args:
        buffers: parameters, gradients and moments; overwritten.
        number: of the step, from 1, a scalar on the device.
        factors: on the learning rate and the weight decay, (2,) on the device.
        config: the constants; gradients of all parameters are clipped, and all parameters are decayed.
        scheduled: whether the factors can differ from 1.
    """
    if dispatch.uses_kernels(buffers.values):
        from .kernels import adamw

        adamw.step(
            *(buffers.values, buffers.raw_gradients, buffers.first, buffers.second, buffers.copies, number, factors),
            learning_rate=config.learning_rate,
            beta1=config.beta1,
            beta2=config.beta2,
            weight_decay=config.weight_decay,
            epsilon=EPSILON,
            clip=config.clip,
        )
        return
    if config.clip is not None:
        buffers.gradients.clamp_(-config.clip, config.clip)
    if dispatch.is_plain() or not hasattr(torch, "_fused_adamw_"):
        _step_plain(buffers, number, factors, config)
    else:
        _step_fused(buffers, number, factors, config, scheduled)


def _step_plain(buffers: AdamWBuffers, number: Tensor, factors: Tensor, config: OptimizerConfig) -> None:
    values, gradients = buffers.values, buffers.gradients
    learning_rate, weight_decay = config.learning_rate * factors[0], config.weight_decay * factors[1]
    buffers.first.lerp_(gradients, 1 - config.beta1)
    buffers.second.lerp_(gradients.square(), 1 - config.beta2)
    mean = buffers.first / (1 - config.beta1**number)
    deviation = (buffers.second / (1 - config.beta2**number)).sqrt() + EPSILON
    values.mul_(1 - learning_rate * weight_decay)
    values.sub_(learning_rate * mean / deviation)


def _step_fused(
    buffers: AdamWBuffers, number: Tensor, factors: Tensor, config: OptimizerConfig, scheduled: bool
) -> None:
    """Take the step by PyTorch's fused operation, which has no public name for flat buffers."""
    learning_rate: float | Tensor = config.learning_rate
    weight_decay = config.weight_decay
    if scheduled:  # the operation takes a learning rate on the device, but no weight decay
        learning_rate = config.learning_rate * factors[0]
        buffers.values.mul_(1 - learning_rate * weight_decay * factors[1])
        weight_decay = 0.0
    torch._fused_adamw_(
        *([buffers.values], [buffers.gradients], [buffers.first], [buffers.second], [], [number]),
        lr=learning_rate,
        beta1=config.beta1,
        beta2=config.beta2,
        weight_decay=weight_decay,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )
