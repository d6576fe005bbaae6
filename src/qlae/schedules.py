"""How the learning rate, the weight decay and the weights of loss terms change over a run.

Every schedule is a factor on a constant, as a function of the number of the update (from 1). Factors are computed by
operations on a tensor that holds this number on the device, so that nothing is read back or sent and a recorded CUDA
graph stays valid.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ._checks import require_known, shortened, whole_number

Curve = tuple[tuple[int, float], ...]  # (update, factor): linear in between, constant before and after

DECAYS = ("constant", "linear", "cosine")


@dataclass(frozen=True)
class LearningRateSchedule:
    """A constant learning rate, or one that rises at the start and falls over the last part of a run.

    Attributes:
        kind: ``"constant"``, or how the rate falls: ``"linear"`` or ``"cosine"``.
        decay_steps: number of updates at the end of the run over which it falls.
        floor: the share of the learning rate that is left at the end.
        warm_up: number of updates at the start over which it rises linearly.
    """

    kind: str = "constant"
    decay_steps: int = 0
    floor: float = 0.0
    warm_up: int = 0

    def __post_init__(self) -> None:
        require_known(self.kind, DECAYS, "schedule")
        whole_number("decay_steps", self.decay_steps, at_least=0)
        whole_number("learning_rate_warm_up", self.warm_up, at_least=0)
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor must lie in [0, 1], as a share of the learning rate, got {self.floor}")

    @property
    def is_constant(self) -> bool:
        return self.kind == "constant" and not self.warm_up

    @property
    def ends(self) -> bool:
        """Whether the schedule depends on the number of updates of the run."""
        return self.kind != "constant"

    def factor(self, number: Tensor, steps: int) -> Tensor:
        """Return the factor for update ``number`` (a scalar tensor, from 1) of a run of ``steps`` updates.

        The first update of the decay has the full rate; the one after the last would have ``floor``.
        """
        factor = number * 0 + 1
        if self.warm_up:
            factor = (number / self.warm_up).clamp(max=1)
        if self.ends:
            start = steps - self.decay_steps + 1
            share = ((number - start) / self.decay_steps).clamp(0, 1)
            fallen = share if self.kind == "linear" else (1 - (share * math.pi).cos()) / 2
            factor = factor * (1 - (1 - self.floor) * fallen)
        return factor


def curve_factor(curve: Curve, number: Tensor) -> Tensor:
    """Return the factor of a curve at update ``number`` (a scalar tensor, from 1).

    Two points at the same update make a jump: the first factor holds up to and including that update.
    """
    factor = number * 0 + curve[0][1]
    for (start, low), (end, high) in itertools.pairwise(curve):
        share = ((number - start) / (end - start)).clamp(0, 1) if end > start else (number > start).to(number.dtype)
        factor = factor + (high - low) * share
    return factor


def check_curve(name: str, curve: Any) -> Curve:
    """Return a curve as a tuple of pairs; raise an error if it is not valid.

    >>> check_curve("schedule", [[0, 0], [100, 1]]), check_curve("schedule", "0:0,100:1")
    (((0, 0.0), (100, 1.0)), ((0, 0.0), (100, 1.0)))
    """
    try:
        if isinstance(curve, str):
            pairs = (point.split(":") for point in curve.split(","))
            curve = [(int(step), factor) for step, factor in pairs]
        points = tuple((whole_number("update", step, at_least=0), float(factor)) for step, factor in curve)
    except (TypeError, ValueError):
        points = ()
    if not points or any(not 0 <= factor < math.inf for _, factor in points):
        raise ValueError(
            f"{name} must list pairs of an update and a factor that is not negative, such as [[0, 0.0], [5000, 1.0]] "
            f'or "0:0,5000:1", got {shortened(curve)}'
        )
    if any(first[0] > second[0] for first, second in itertools.pairwise(points)):
        raise ValueError(f"{name} must list its updates in ascending order, got {shortened(curve)}")
    return points


def warm_up_curve(num_updates: int) -> Curve:
    """Return the curve that rises linearly from 0 to 1 over so many updates."""
    return ((0, 0.0), (whole_number("warm_up", num_updates), 1.0))


def step_curve(steps: int) -> Curve:
    """Return the paper's step schedule: 0 for the first half of a run of ``steps`` updates, then 1."""
    return ((0, 0.0), (steps // 2, 0.0), (steps // 2, 1.0))
