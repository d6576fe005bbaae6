"""Three-vectors whose components are floats or tensors.

Components stay separate tensors, so that each operation runs over contiguous rays. The tracer decides with nothing but
+, −, ×, ÷, square roots and comparisons: these are rounded the same way on every device, in every batch and under any
number of threads, so a ray never falls on another side of an edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

#: A float, or a tensor of them. Arithmetic mixes the two freely, which is more than a union type can say.
Scalar = Any


@dataclass(frozen=True, slots=True)
class Vec:
    """A vector or, with tensor components, many: components broadcast against each other."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(self, other: Vec) -> Vec:
        return Vec(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec) -> Vec:
        return Vec(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, scale: Scalar) -> Vec:
        return self.times(scale)

    def times(self, scale: Scalar) -> Vec:
        """The vector scaled. ``*`` says the same, but its type is lost on a `Scalar`."""
        return Vec(self.x * scale, self.y * scale, self.z * scale)

    def __neg__(self) -> Vec:
        return Vec(-self.x, -self.y, -self.z)

    def dot(self, other: Vec) -> Scalar:
        """The scalar product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec) -> Vec:
        """The vector product."""
        return Vec(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def length(self) -> Scalar:
        """The Euclidean norm."""
        return square_root(self.dot(self))

    def unit(self) -> Vec:
        """The same direction at length one."""
        return self.times(1.0 / self.length())

    def map(self, change: Callable[[Scalar], Scalar]) -> Vec:
        """`change` applied to every component."""
        return Vec(change(self.x), change(self.y), change(self.z))


def square_root(value: Scalar) -> Scalar:
    """The square root of a float or a tensor."""
    return value.sqrt() if isinstance(value, Tensor) else math.sqrt(value)
