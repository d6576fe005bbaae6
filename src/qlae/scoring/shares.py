"""Explained shares of a variance, and intervals of scores from half samples. Nothing here imports torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.scores import half_sample_interval

CONFIDENCE = 0.95  # of intervals


def explained_share(errors: NDArray[Any], variances: NDArray[Any]) -> float:
    """Return the share of the variance that is explained; 0 where nothing varies."""
    total = float(variances.sum())
    return 1 - float(errors.sum()) / total if total > 0 else 0.0


def interval_of(score: Callable[[Any], float], count: int, num_halves: int) -> list[float]:
    """Return the 95% interval of a score of rows, computed from ``num_halves`` half-samples of ``count`` rows."""
    random = np.random.default_rng(0)
    halves = [score(random.permutation(count)[: max(1, count // 2)]) for _ in range(num_halves)]
    return list(half_sample_interval(score(slice(None)), halves, CONFIDENCE))
