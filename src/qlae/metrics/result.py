"""What metrics return: one score with the matrix behind it, or the plain numbers of a metric registered by a user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .inputs import Floats
from .registry import find_score


@dataclass(frozen=True, eq=False)
class MetricResult:
    """One score in [0, 1], the matrix it was computed from and the protocol.

    >>> print(MetricResult("mig", 0.25, None, "disentanglement_lib", 100))
    MIG 0.250  [disentanglement_lib; n = 100]
    """

    name: str
    score: float
    matrix: Floats | None
    """(n_s, n_z) what the score was computed from."""
    protocol: str
    """The published implementation whose definition and defaults were used."""
    num_samples: int
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, by name."""

    def __float__(self) -> float:
        return self.score

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON."""
        plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in self.details.items()}
        return {self.name: self.score, "protocol": self.protocol, "num_samples": self.num_samples, **plain}

    def __str__(self) -> str:
        described = find_score(self.name)
        return f"{described.title} {described.format(self.score)}  [{self.protocol}; n = {self.num_samples:,}]"

    def __repr__(self) -> str:
        return f"MetricResult({self})"


@dataclass(frozen=True, eq=False)
class ScoreValues:
    """The scores of a metric whose function returns plain numbers, by key."""

    values: Mapping[str, float]
    num_samples: int
    protocol: str = "custom"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, suitable for JSON."""
        return {**self.values, "protocol": self.protocol, "num_samples": self.num_samples}

    def __str__(self) -> str:
        numbers = "  ".join(
            f"{find_score(key).title} {find_score(key).format(value)}" for key, value in self.values.items()
        )
        return f"{numbers}  [{self.protocol}; n = {self.num_samples:,}]"
