"""The solids of which scenes are built, each with its exact intersection.

A solid answers three questions: where a ray hits it first (`hit`), which way its surface faces there (`normal`), and
which sphere contains it (`bound`, for skipping rays that cannot hit it). Its sizes and places are floats, or tensors
(b, 1) with one value for each of b pictures; rays are tensors (b, r) or, once selected, (k,).

`paint` is how the surface reflects: numbers in the order of the scene's planes (red, green, blue, then one weight for
each colour layer), or a function from the solid and a point to such numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

from .vectors import Scalar, Vec, square_root

Paint = Sequence[Scalar] | Callable[[Any, Vec], Sequence[Scalar]]

#: A ray that starts on a surface does not hit it again within this distance.
NEAR = 1e-3


@dataclass(frozen=True)
class Solid(ABC):
    """A closed surface.

    Attributes:
        paint: see the module.
        frame: further directions that a paint function may need.
    """

    paint: Paint
    frame: tuple[Vec, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def hit(self, origin: Vec, direction: Vec) -> Tensor:
        """Return the distance along unit `direction` to the first hit beyond `NEAR`; infinite if there is none."""

    @abstractmethod
    def normal(self, point: Vec) -> Vec:
        """Return the outward unit normal at points of the surface."""

    @abstractmethod
    def bound(self) -> tuple[Vec, Scalar] | None:
        """Return center and radius of a sphere around the solid; ``None`` if no ray can miss it."""

    def sizes(self) -> list[str]:
        """Return the names of all fields except the paint."""
        return [f.name for f in fields(self) if f.name != "paint"]

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Return the solid with a function applied to every tensor among its sizes and places."""
        return replace(self, **{name: _map(getattr(self, name), change) for name in self.sizes()})


def _map(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Vec):
        return value.map(lambda part: change(part) if isinstance(part, Tensor) else part)
    if isinstance(value, tuple):
        return tuple(_map(part, change) for part in value)
    return value


@dataclass(frozen=True)
class Sphere(Solid):
    """A ball."""

    center: Vec
    radius: Scalar

    def hit(self, origin: Vec, direction: Vec) -> Tensor:
        to_center = self.center - origin
        along = to_center.dot(direction)
        inside = along * along - (to_center.dot(to_center) - self.radius * self.radius)
        return _hit_distance(along - _root(inside), inside > 0)

    def normal(self, point: Vec) -> Vec:
        return (point - self.center).times(1.0 / self.radius)

    def bound(self) -> tuple[Vec, Scalar]:
        return self.center, self.radius


@dataclass(frozen=True)
class Box(Solid):
    """A box along the axes of the world, or along three orthogonal unit vectors `axes`."""

    center: Vec
    half: Vec
    axes: tuple[Vec, Vec, Vec] | None = None

    def hit(self, origin: Vec, direction: Vec) -> Tensor:
        start, heading = self._local(origin - self.center), self._local(direction)
        spans = []
        for o, d, h in _components(start, heading, self.half):
            step = _inverse(d)
            middle, reach = -o * step, step.abs() * h
            spans.append((middle - reach, middle + reach))
        return _entry_distance(spans)

    def normal(self, point: Vec) -> Vec:
        local = _face_normal(self._local(point - self.center), self.half)
        if self.axes is None:
            return local
        a, b, c = self.axes
        return a.times(local.x) + b.times(local.y) + c.times(local.z)

    def bound(self) -> tuple[Vec, Scalar]:
        return self.center, self.half.length()

    def _local(self, vector: Vec) -> Vec:
        return vector if self.axes is None else Vec(*(axis.dot(vector) for axis in self.axes))


@dataclass(frozen=True)
class Room(Solid):
    """The inside of a box along the axes of the world: every ray that starts in it hits it."""

    center: Vec
    half: Vec

    def hit(self, origin: Vec, direction: Vec) -> Tensor:
        walls = []
        for o, d, h in _components(origin - self.center, direction, self.half):
            step = _inverse(d)
            walls.append(step.abs() * h - o * step)
        return torch.minimum(walls[0], torch.minimum(walls[1], walls[2]))

    def normal(self, point: Vec) -> Vec:
        return -_face_normal(point - self.center, self.half)

    def bound(self) -> None:
        return None


@dataclass(frozen=True)
class Capsule(Solid):
    """All points within `radius` of the segment from `start` to `end`."""

    start: Vec
    end: Vec
    radius: Scalar

    def hit(self, origin: Vec, direction: Vec) -> Tensor:
        axis = self.end - self.start
        height = axis.length()
        axis = axis * (1.0 / height)
        offset = origin - self.start
        along, slope = offset.dot(axis), direction.dot(axis)
        # The infinite cylinder about the axis; its discriminant is also positive wherever a cap is hit.
        a = 1.0 - slope * slope
        b = offset.dot(direction) - along * slope
        c = offset.dot(offset) - along * along - self.radius * self.radius
        inside = b * b - a * c
        side = (-b - _root(inside)) * _inverse(a)
        place = along + side * slope
        caps = [Sphere((), at, self.radius).hit(origin, direction) for at in (self.start, self.end)]
        body = torch.where((inside > 0) & (place > 0) & (place < height) & (side > NEAR), side, math.inf)
        return torch.minimum(body, torch.minimum(*caps))

    def normal(self, point: Vec) -> Vec:
        axis = self.end - self.start
        offset = point - self.start
        share = (offset.dot(axis) * (1.0 / axis.dot(axis))).clamp(0, 1)
        return (offset - axis.times(share)).times(1.0 / self.radius)

    def bound(self) -> tuple[Vec, Scalar]:
        return (self.start + self.end) * 0.5, (self.end - self.start).length() * 0.5 + self.radius


@dataclass(frozen=True)
class Frustum(Solid):
    """A capped cone from `start` with radius `start_radius` to `end` with `end_radius`; a cylinder if these agree."""

    start: Vec
    end: Vec
    start_radius: Scalar
    end_radius: Scalar

    def hit(self, origin: Vec, direction: Vec) -> Tensor:
        axis, height, taper = self._shape()
        offset = origin - self.start
        along, slope = offset.dot(axis), direction.dot(axis)
        # On the side, the distance from the axis is start_radius + taper · place along it.
        wide, widen = self.start_radius + taper * along, taper * slope
        a = 1.0 - slope * slope - widen * widen
        b = offset.dot(direction) - along * slope - wide * widen
        c = offset.dot(offset) - along * along - wide * wide
        inside = b * b - a * c
        root, over = _root(inside), _inverse(a)
        best = torch.full_like(root, math.inf)
        for side in ((-b - root) * over, (-b + root) * over):  # along the axis, the second may be the nearer one
            place = along + side * slope
            valid = (inside > 0) & (place > 0) & (place < height) & (side > NEAR)
            best = torch.where(valid & (side < best), side, best)
        fall = _inverse(slope)
        for cap, radius in ((0.0, self.start_radius), (height, self.end_radius)):
            t = (cap - along) * fall
            from_axis = offset + direction * t - axis * cap
            valid = (from_axis.dot(from_axis) < radius * radius) & (t > NEAR)
            best = torch.where(valid & (t < best), t, best)
        return best

    def normal(self, point: Vec) -> Vec:
        axis, height, taper = self._shape()
        offset = point - self.start
        place = offset.dot(axis)
        from_axis = offset - axis * place
        side = (from_axis.unit() - axis * taper).unit()
        # A point is on a cap if that is nearer than the side; both distances are zero only on the rim.
        from_side = (from_axis.length() - (self.start_radius + taper * place)).abs()
        low, high = place.abs() < from_side, (place - height).abs() < from_side
        cap = torch.where(high, 1.0, -1.0)
        flat = low | high
        return Vec(*(torch.where(flat, cap * a, s) for a, s in ((axis.x, side.x), (axis.y, side.y), (axis.z, side.z))))

    def bound(self) -> tuple[Vec, Scalar]:
        half = (self.end - self.start).length() * 0.5
        radius = _radius_bound(self.start_radius, self.end_radius)
        return (self.start + self.end) * 0.5, square_root(half * half + radius * radius)

    def _shape(self) -> tuple[Vec, Scalar, Scalar]:
        axis = self.end - self.start
        height = axis.length()
        return axis * (1.0 / height), height, (self.end_radius - self.start_radius) * (1.0 / height)


@dataclass(frozen=True)
class Polytope(Solid):
    """The points whose distance from `center` along every unit normal of `faces` is at most `depth`."""

    center: Vec
    faces: tuple[Vec, ...]
    depth: Scalar
    radius: Scalar

    def hit(self, origin: Vec, direction: Vec) -> Tensor:
        offset = origin - self.center
        spans = []
        for face in self.faces:
            away = face.dot(direction)
            t = (self.depth - face.dot(offset)) * _inverse(away)
            spans.append((torch.where(away < 0, t, -math.inf), torch.where(away < 0, math.inf, t)))
        return _entry_distance(spans)

    def normal(self, point: Vec) -> Vec:
        offset = point - self.center
        out = torch.stack([face.dot(offset) for face in self.faces])  # (faces, k)
        nearest = out.argmax(dim=0)
        facing = Vec(0.0, 0.0, 0.0)
        for i, face in enumerate(self.faces):
            facing = facing + face * (nearest == i)
        return facing

    def bound(self) -> tuple[Vec, Scalar]:
        return self.center, self.radius


def _components(*vectors: Vec) -> list[tuple[Any, ...]]:
    return [tuple(getattr(v, axis) for v in vectors) for axis in "xyz"]


def _entry_distance(spans: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return where a ray enters a convex solid, given its spans between pairs of faces, or inside each face."""
    enter, leave = spans[0]
    for near, far in spans[1:]:
        enter, leave = torch.maximum(enter, near), torch.minimum(leave, far)
    return _hit_distance(enter, enter < leave)


def _hit_distance(distance: Tensor, is_hit: Tensor) -> Tensor:
    """Return `distance` where the solid is hit ahead of the start of the ray, else infinity."""
    return torch.where((distance > NEAR) & is_hit, distance, math.inf)


def _root(value: Tensor) -> Tensor:
    return value.clamp_min(0).sqrt()


def _inverse(value: Tensor) -> Tensor:
    """Return 1 / value, bounded for rays that run along a face."""
    return 1.0 / torch.where(value.abs() < 1e-9, 1e-9, value)


def _radius_bound(one: Scalar, other: Scalar) -> Scalar:
    """Return an upper bound of two radii: the larger one or, for a float and a tensor, the root of their squares."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.maximum(one, other)
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return square_root(one * one + other * other)
    return max(one, other)


def _face_normal(local: Vec, half: Vec) -> Vec:
    """Return the signed axis of the box face on which a point lies; on an edge x before y before z."""
    out = local.map(abs) - half
    x = (out.x >= out.y) & (out.x >= out.z)
    y = ~x & (out.y >= out.z)
    z = ~x & ~y
    return Vec(*(torch.where(on, torch.sign(part), 0.0) for on, part in ((x, local.x), (y, local.y), (z, local.z))))
