"""Rays: from the camera to the nearest surface, and from there to the light; and how lamps light surfaces.

A picture has four rays per pixel (a 2×2 box). They are ordered (4, pixels), so that averaging them adds four contiguous
blocks.

A scene has many solids, and few rays hit each of them. The rays of one camera, or to one lamp, all pass through one
point, where the bounding sphere of a solid is a cone of directions. A scalar product selects the (ray, solid) pairs
inside the cones; only these are intersected exactly, all solids of a kind at once. Solids of one kind are a ``Crowd``:
stacked tensors, so that intersecting fifty boxes takes the calls of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .solids import Solid
from .vectors import Scalar, Vec

SUBSAMPLES = 4
#: Scalar products computed at once in the search for pairs: few enough to stay in a core's cache.
PAIRS_AT_ONCE = {"cpu": 2**20, "cuda": 2**27}


@dataclass(frozen=True)
class Camera:
    """An upright pinhole camera: `eye` and unit `forward` are floats or (b, 1); the field of view is in degrees."""

    eye: Vec
    forward: Vec
    field_of_view: float

    def rays(self, resolution: int, device: torch.device) -> Vec:
        """Return unit directions (b, r) with r = 4 · resolution²."""
        right = self.forward.cross(Vec(0.0, 0.0, 1.0)).unit()
        up = right.cross(self.forward)
        across, height = pixel_grid(resolution, self.field_of_view, device)
        forward, right, up = (single(v, device) for v in (self.forward, right, up))
        return (forward + right * across + up * height).unit()


def pixel_grid(resolution: int, field_of_view: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return where the rays cross a screen at distance one: to the right and up, each (1, r)."""
    fine = 2 * resolution
    step = math.tan(math.radians(field_of_view / 2)) * 2 / fine
    places = (torch.arange(fine, dtype=torch.float64) + 0.5 - fine / 2) * step
    # (pixel row, sub row, pixel column, sub column) → (sub row, sub column, pixel row, pixel column)
    across, down = places.expand(fine, fine), places[:, None].expand(fine, fine)
    order = [t.reshape(resolution, 2, resolution, 2).permute(1, 3, 0, 2).reshape(1, -1) for t in (across, -down)]
    return order[0].float().to(device), order[1].float().to(device)


def box_average(rays: Tensor) -> Tensor:
    """Average the rays of each pixel: (..., 4 · pixels) → (..., pixels).

    The order of summation is fixed, so that no batch or device rounds differently.
    """
    a, b, c, d = rays.view(*rays.shape[:-1], SUBSAMPLES, -1).unbind(-2)
    return ((a + b) + (c + d)) * 0.25


def single(vector: Vec, device: torch.device) -> Vec:
    """Return a vector with components in single precision on the device; floats stay floats."""
    return vector.map(lambda part: part.float().to(device) if isinstance(part, Tensor) else part)


@dataclass(frozen=True)
class Surface:
    """The points that rays hit. All tensors are (b, r).

    Attributes:
        distance: the distance from the start of the ray.
        owner: the index of the solid.
        point, normal: position and outward unit normal.
        paint: one plane each for red, green, blue and every colour layer.
    """

    distance: Tensor
    owner: Tensor
    point: Vec
    normal: Vec
    paint: list[Tensor]

    def expand(self, num: int) -> Surface:
        """Repeat the surface of a single picture for `num` pictures with the same camera."""

        def repeat(plane: Tensor) -> Tensor:
            return plane.expand(num, -1).contiguous()

        point, normal, paint = self.point.map(repeat), self.normal.map(repeat), [repeat(p) for p in self.paint]
        return Surface(repeat(self.distance), repeat(self.owner), point, normal, paint)


class Solids:
    """Solids in the form that tracing needs. For solids that do not move, build it once."""

    def __init__(self, solids: Sequence[Solid], device: torch.device) -> None:
        self.crowds = group_solids(solids, device)
        self.painters = {i: solid.paint for i, solid in enumerate(solids) if callable(solid.paint)}
        plain = [() if callable(solid.paint) else solid.paint for solid in solids]
        num_planes = max(map(len, plain))
        # (s, planes)
        self.paint = torch.tensor([paint or (0.0,) * num_planes for paint in plain], dtype=torch.float32, device=device)
        self.crowd_of = torch.zeros(len(solids), dtype=torch.int64, device=device)
        self.place_of = torch.zeros(len(solids), dtype=torch.int64, device=device)
        for i, crowd in enumerate(self.crowds):
            self.crowd_of[crowd.indices] = i
            self.place_of[crowd.indices] = torch.arange(len(crowd.indices), device=device)


def first_surface(solids: Solids, eye: Vec, rays: Vec, num_planes: int, behind: Surface | None = None) -> Surface:
    """Return the nearest surface along each ray.

    Args:
        solids: the solids.
        eye: the start of the rays.
        rays: unit directions (b, r).
        num_planes: the number of planes of paint.
        behind: a surface that the rays have already hit, which stays where it is at least as near. The `owner` of a new
            point is then −1 minus the index of its solid, which distinguishes new solids from earlier ones.
    """
    shape, device = rays.x.shape, rays.x.device
    limit = torch.full(shape, math.inf, dtype=torch.float32, device=device) if behind is None else behind.distance
    distance = limit.clone()
    hits = []
    for crowd in solids.crowds:
        pictures, members, ray = crowd.pairs(eye, rays)
        flat = pictures * shape[1] + ray
        t = crowd.pick(members, pictures).hit(_take(eye, pictures, flat), _take(rays, pictures, flat))
        distance.view(-1).scatter_reduce_(0, flat, t, "amin")
        hits.append((flat, t, crowd.indices[members]))
    # Of two equally near surfaces, the solid with the smaller index wins, on any device and in any batch.
    owner = torch.full(shape, 2**15 - 1, dtype=torch.int32, device=device)
    for flat, t, numbers in hits:
        nearest = ((t == distance.view(-1)[flat]) & (t < limit.reshape(-1)[flat])).nonzero()[:, 0]
        owner.view(-1).scatter_reduce_(0, flat[nearest], numbers[nearest].int(), "amin")
    if behind is not None:
        owner = torch.where(distance < limit, -1 - owner, behind.owner)
    return _surface_at(solids, distance, owner, eye + rays * distance, num_planes, behind)


def _surface_at(
    solids: Solids, distance: Tensor, owner: Tensor, point: Vec, num_planes: int, behind: Surface | None
) -> Surface:
    """Add normals and paint to hit points, computing them crowd by crowd at the points of that crowd only."""
    num_rays = distance.shape[1]
    if behind is None:
        planes = [torch.empty_like(distance) for _ in range(3 + num_planes)]
        new = torch.arange(distance.numel(), device=distance.device)
        numbers = owner.view(-1).long()
    else:
        planes = [t.clone() for t in (behind.normal.x, behind.normal.y, behind.normal.z, *behind.paint)]
        new = (owner.view(-1) < 0).nonzero()[:, 0]
        numbers = -1 - owner.view(-1)[new].long()
    kinds = solids.crowd_of[numbers]
    for i, crowd in enumerate(solids.crowds):
        members = (kinds == i).nonzero()[:, 0]
        flat = new[members]
        solid = crowd.pick(solids.place_of[numbers[members]], flat // num_rays)
        normal = solid.normal(_take(point, flat // num_rays, flat))
        for plane, value in zip(planes, (normal.x, normal.y, normal.z), strict=False):
            plane.view(-1)[flat] = value
    for k, plane in enumerate(planes[3:]):
        plane.view(-1)[new] = solids.paint[:, k][numbers]
    for number, painter in solids.painters.items():
        flat = new[(numbers == number).nonzero()[:, 0]]
        crowd = solids.crowds[int(solids.crowd_of[number])]
        solid = crowd.pick(solids.place_of[number].expand_as(flat), flat // num_rays)
        for plane, value in zip(planes[3:], painter(solid, _take(point, flat // num_rays, flat)), strict=True):
            plane.view(-1)[flat] = value
    return Surface(distance, owner, point, Vec(*planes[:3]), planes[3:])


def sees_lamp(solids: Sequence[Solids], surface: Surface, lamp: Vec, candidates: Tensor) -> Tensor:
    """Return the mask (b, r) of the candidate points (b, r) that no solid separates from the lamp."""
    start = surface.point + surface.normal * 0.004
    to_lamp = lamp - start
    distance = to_lamp.length()
    direction = to_lamp * (1.0 / distance)
    back = -direction
    visible = candidates.clone()
    for crowd in (crowd for group in solids for crowd in group.crowds):
        pictures, members, ray = crowd.pairs(lamp, back, visible)
        flat = pictures * candidates.shape[1] + ray
        t = crowd.pick(members, pictures).hit(_take(start, pictures, flat), _take(direction, pictures, flat))
        visible.view(-1)[flat[(t < distance.view(-1)[flat]).nonzero()[:, 0]]] = False
    return visible


def _take(vector: Vec, pictures: Tensor, flat: Tensor) -> Vec:
    """Select k pairs from a vector of rays (b, r), of pictures (b, 1) or of floats: (k,)."""

    def pick(part: Scalar) -> Scalar:
        if not isinstance(part, Tensor):
            return part
        return part[:, 0][pictures] if part.shape[1] == 1 else part.reshape(-1)[flat]

    return vector.map(pick)


@dataclass(frozen=True)
class Crowd:
    """Solids of one kind.

    Attributes:
        stack: a solid whose sizes and places are tensors (s, 1), or (s, b) for b pictures.
        indices: (s,) the index of each solid in the list they came from.
    """

    stack: Solid
    indices: Tensor

    def pick(self, solids: Tensor, pictures: Tensor) -> Solid:
        """Return the solid of each of k pairs, with sizes (k,)."""
        return self.stack.map(lambda value: value[solids, pictures] if value.shape[1] > 1 else value[:, 0][solids])

    def pairs(self, apex: Vec, rays: Vec, among: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the pairs of rays and solids that may intersect.

        Args:
            apex: the point where all rays start, as floats or (b, 1).
            rays: unit directions (b, r).
            among: a mask (b, r) of the rays to consider; all by default.

        Returns:
            The indices of pictures, solids and rays, each (k,).
        """
        num_pictures, num_rays = rays.x.shape
        cones = self._cones(apex)
        pairs = []
        at_once = PAIRS_AT_ONCE["cpu" if rays.x.device.type == "cpu" else "cuda"]
        step = 1 if cones is None else max(1, at_once // (num_pictures * num_rays))
        for first in range(0, len(self.indices), step):
            if cones is None:
                near = torch.ones(num_pictures, 1, num_rays, dtype=torch.bool, device=rays.x.device)
            else:
                axis, limit = cones  # (s, b or 1)
                chunk = slice(first, first + step)
                x, y, z = (part[chunk].T[:, :, None] for part in (axis.x, axis.y, axis.z))  # (b or 1, s, 1)
                cosine = x * rays.x[:, None]
                cosine = cosine.addcmul_(y, rays.y[:, None]).addcmul_(z, rays.z[:, None])  # (b, s, r)
                near = cosine > limit[chunk].T[:, :, None]
            if among is not None:
                near &= among[:, None]
            pictures, solids, ray = near.nonzero(as_tuple=True)
            pairs.append((pictures, solids + first, ray))
        pictures, solids, ray = (torch.cat(parts) for parts in zip(*pairs, strict=True))
        return pictures, solids, ray

    def _cones(self, apex: Vec) -> tuple[Vec, Tensor] | None:
        """Return unit axis and cosine of the cone around each solid at the apex, each (s, b or 1).

        ``None`` if the solids have no bounding sphere.
        """
        sphere = self.stack.bound()
        if sphere is None:
            return None
        center, radius = sphere
        offset = center - apex.map(lambda part: part.T if isinstance(part, Tensor) else part)
        distance = offset.length()
        # A little wider than the solid, so that leaving out the other rays changes nothing.
        sine = (radius * 1.02 + 0.01) * (1.0 / distance)
        squared = 1.0 - sine * sine
        # From inside the sphere, the solid may be in any direction.
        return offset * (1.0 / distance), torch.where(squared > 0, squared.clamp_min(0).sqrt() - 1e-6, -2.0)


def group_solids(solids: Sequence[Solid], device: torch.device) -> list[Crowd]:
    """Group solids by kind and stack each group, in single precision on the device."""
    kinds: dict[Any, list[int]] = {}
    for i, solid in enumerate(solids):
        kinds.setdefault(_kind(solid), []).append(i)
    return [_stack_solids([solids[i] for i in members], members, device) for members in kinds.values()]


def _kind(solid: Solid) -> Any:
    """Return a key that is equal for solids with the same class and the same structure of sizes."""
    return type(solid), *(_structure(getattr(solid, name)) for name in solid.sizes())


def _structure(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_structure(part) for part in value)
    return type(value) if value is None or isinstance(value, Vec) else "number"


def _stack_solids(members: list[Solid], indices: list[int], device: torch.device) -> Crowd:
    parts = {name: _stack_values([getattr(solid, name) for solid in members], device) for name in members[0].sizes()}
    return Crowd(replace(members[0], paint=(), **parts), torch.tensor(indices, device=device))


def _stack_values(values: list[Any], device: torch.device) -> Any:
    """Stack s numbers, each a float or (b, 1), to (s, b or 1); vectors and tuples component by component."""
    first = values[0]
    if first is None:
        return None
    if isinstance(first, Vec):
        return Vec(*(_stack_values([getattr(v, axis) for v in values], device) for axis in "xyz"))
    if isinstance(first, tuple):
        return tuple(_stack_values([v[i] for v in values], device) for i in range(len(first)))
    if not any(isinstance(v, Tensor) for v in values):
        return torch.tensor(values, dtype=torch.float32, device=device)[:, None]
    num = max(len(v) for v in values if isinstance(v, Tensor))
    rows = [v[:, 0] if isinstance(v, Tensor) else torch.full((num,), v, dtype=torch.float64) for v in values]
    return torch.stack([row.float().to(device) for row in rows])


# Light on surfaces, its conversion to brightness, and colours from the levels of a source. A lamp is a point. A surface
# reflects its paint times the light that it receives, plus a highlight in the colour of the lamp.


def lamp_light(
    surface: Surface, lamp: Vec, solids: Sequence[Solids], among: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return how a lamp lights a surface.

    Args:
        surface: the points.
        lamp: the position of the lamp.
        solids: the solids that may cast a shadow.
        among: a mask of the points that nothing else shadows; all by default.

    Returns:
        The cosine between the normal and the direction of the lamp, 0 in shadow, and the squared distance to the lamp,
        each (b, r).
    """
    to_lamp = lamp - surface.point
    squared: Tensor = to_lamp.dot(to_lamp)
    cosine: Tensor = surface.normal.dot(to_lamp) * (1.0 / squared.sqrt())
    facing = cosine > 0 if among is None else (cosine > 0) & among
    return torch.where(sees_lamp(solids, surface, lamp, facing), cosine, 0.0), squared


def highlight(surface: Surface, lamp: Vec, rays: Vec, doublings: int) -> Tensor:
    """Return the cosine between the normal and the half-way vector to the power of 2 ** `doublings`: (b, r)."""
    half = (lamp - surface.point).unit() - rays
    value: Tensor = surface.normal.dot(half.unit()).clamp_min(0)
    for _ in range(doublings):
        value = value * value
    return value


def film(light: Tensor) -> Tensor:
    """Map light from [0, ∞) to brightness in [0, 1): steep in the dark, saturating in the bright, like a film.

    Close to (1 − exp(−light)) ** (2/3), from operations that every device rounds in the same way.
    """
    exposed = 1.0 - 1.0 / (light * (light * 0.5 + 1.0) + 1.0)
    return exposed.sqrt().mul_(0.6).add_(exposed.mul_(0.4))


def hue(turn: Tensor) -> Tensor:
    """Return fully saturated colours (k, 3) at hues (k,), where 0 and 1 are both red.

    >>> hue(torch.tensor([0.0, 1 / 3])).round(decimals=3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    # In sixths of the circle, each channel is a trapezoid: on for two, falling for one, off for two, rising for one.
    place = torch.stack([(turn * 6 + start) % 6 for start in (0, 4, 2)], dim=-1)
    return ((place - 3).abs() - 1).clamp(0, 1)


def between(values: Sequence[float] | Sequence[Sequence[float]], levels: Tensor) -> Tensor:
    """Interpolate linearly in a table with one value per level, at levels (k,); exact at integers.

    >>> between([10.0, 20.0, 40.0], torch.tensor([0.0, 1.5])).tolist()
    [10.0, 30.0]
    """
    table = torch.tensor(values, dtype=torch.float64)
    low = levels.floor().long().clamp(0, len(table) - 1)
    high = (low + 1).clamp(max=len(table) - 1)
    share = (levels - low).reshape(-1, *[1] * (table.ndim - 1))
    return table[low] + (table[high] - table[low]) * share
