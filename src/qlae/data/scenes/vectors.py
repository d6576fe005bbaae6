"""Three-vectors whose components are floats or tensors.

Components are separate tensors, so that each operation runs over contiguous rays. The tracer uses only +, −, ×, ÷,
square roots and comparisons. These are rounded in the same way on every device, in every batch and with any number of
threads, so a ray always falls on the same side of an edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

#: A float or a tensor. Arithmetic mixes the two freely, which a union type cannot express.
Scalar = Any


@dataclass(frozen=True, slots=True)
class Vec:
    """A vector or, with tensor components, many vectors; components broadcast against each other."""

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
        """Return the vector scaled. ``*`` does the same, but loses the type when it meets a `Scalar`."""
        return Vec(self.x * scale, self.y * scale, self.z * scale)

    def __neg__(self) -> Vec:
        return Vec(-self.x, -self.y, -self.z)

    def dot(self, other: Vec) -> Scalar:
        """Return the scalar product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec) -> Vec:
        """Return the vector product."""
        return Vec(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def length(self) -> Scalar:
        """Return the Euclidean norm."""
        return square_root(self.dot(self))

    def unit(self) -> Vec:
        """Return the unit vector in the same direction."""
        return self.times(1.0 / self.length())

    def map(self, change: Callable[[Scalar], Scalar]) -> Vec:
        """Apply a function to every component."""
        return Vec(change(self.x), change(self.y), change(self.z))


def square_root(value: Scalar) -> Scalar:
    """Return the square root of a float or a tensor."""
    return value.sqrt() if isinstance(value, Tensor) else math.sqrt(value)
