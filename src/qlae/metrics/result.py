"""What a metric with one number returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .inputs import Floats


@dataclass(frozen=True, eq=False)
class Score:
    """One score in [0, 1], the matrix behind it and the protocol that made it.

    >>> print(Score("mig", 0.25, None, "disentanglement_lib", 100))
    mig 0.250  [disentanglement_lib; n = 100]
    """

    name: str
    score: float
    matrix: Floats | None
    """(n_s, n_z) what the score was made from."""
    protocol: str
    """The published implementation whose definition and defaults were taken."""
    num_samples: int
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, by name."""

    def __float__(self) -> float:
        return self.score

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, fit for JSON."""
        plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in self.details.items()}
        return {self.name: self.score, "protocol": self.protocol, "num_samples": self.num_samples, **plain}

    def __str__(self) -> str:
        return f"{self.name} {self.score:.3f}  [{self.protocol}; n = {self.num_samples:,}]"

    def __repr__(self) -> str:
        return f"Score({self})"
