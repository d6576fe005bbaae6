"""Rays: from the camera to the nearest surface, and from there to the light.

Every picture takes four rays a pixel (a 2×2 box). They are ordered (4, pixels), so that averaging them adds four
contiguous blocks. Rays of one camera, or towards one light, all pass through one point; so a solid's bounding sphere is
a cone of directions there, and the few rays inside the cone are found by a scalar product and traced alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .solids import Solid
from .vectors import Scalar, Vec

SUBSAMPLES = 4


@dataclass(frozen=True)
class Camera:
    """An upright pinhole camera: `eye` and unit `forward` are floats or (b, 1); the field of view is in degrees."""

    eye: Vec
    forward: Vec
    field_of_view: float

    def rays(self, resolution: int, device: torch.device) -> Vec:
        """Unit directions (b, r), r = 4 · resolution²."""
        right = self.forward.cross(Vec(0.0, 0.0, 1.0)).unit()
        up = right.cross(self.forward)
        across, height = pixel_grid(resolution, self.field_of_view, device)
        forward, right, up = (single(v, device) for v in (self.forward, right, up))
        return (forward + right * across + up * height).unit()


def pixel_grid(resolution: int, field_of_view: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where the rays cross a screen at distance one: right and up, each (1, r)."""
    fine = 2 * resolution
    step = math.tan(math.radians(field_of_view / 2)) * 2 / fine
    places = (torch.arange(fine, dtype=torch.float64) + 0.5 - fine / 2) * step
    # (pixel row, sub row, pixel column, sub column) → (sub row, sub column, pixel row, pixel column)
    across, down = places.expand(fine, fine), places[:, None].expand(fine, fine)
    order = [t.reshape(resolution, 2, resolution, 2).permute(1, 3, 0, 2).reshape(1, -1) for t in (across, -down)]
    return order[0].float().to(device), order[1].float().to(device)


def box_average(rays: Tensor) -> Tensor:
    """(..., 4 · pixels) → (..., pixels). Sums in a fixed order, so that no batch or device rounds differently."""
    a, b, c, d = rays.view(*rays.shape[:-1], SUBSAMPLES, -1).unbind(-2)
    return ((a + b) + (c + d)) * 0.25


def single(vector: Vec, device: torch.device) -> Vec:
    """Components in single precision on the device; floats stay floats."""
    return vector.map(lambda part: part.float().to(device) if isinstance(part, Tensor) else part)


def placed(solids: Sequence[Solid], device: torch.device) -> list[Solid]:
    """Solids whose sizes were worked out in double precision, ready to be traced."""
    return [solid.map(lambda value: value.float().to(device)) for solid in solids]


@dataclass(frozen=True)
class Surface:
    """What rays met: all tensors (b, r). `paint` has a plane for red, green, blue and each colour layer."""

    distance: Tensor
    owner: Tensor
    point: Vec
    normal: Vec
    paint: list[Tensor]

    def expand(self, num: int) -> Surface:
        """A single picture's surface, repeated for `num` pictures that share a camera."""

        def repeat(plane: Tensor) -> Tensor:
            return plane.expand(num, -1).contiguous()

        point, normal, paint = self.point.map(repeat), self.normal.map(repeat), [repeat(p) for p in self.paint]
        return Surface(repeat(self.distance), repeat(self.owner), point, normal, paint)


def first_surface(
    solids: Sequence[Solid], eye: Vec, rays: Vec, num_planes: int, behind: Surface | None = None
) -> Surface:
    """The nearest surface along each ray from `eye`.

    `owner` is the index of its solid. With `behind`, what those rays met before is kept where it is nearer, and the new
    solids are numbered on from −1 downwards, so that the two kinds stay apart.
    """
    shape, device = rays.x.shape, rays.x.device
    if behind is None:
        distance = torch.full(shape, math.inf, device=device)
        owner = torch.zeros(shape, dtype=torch.int16, device=device)
    else:
        distance, owner = behind.distance.clone(), behind.owner.clone()
    marks = [i if behind is None else -1 - i for i in range(len(solids))]
    for mark, solid in zip(marks, solids, strict=True):
        at = rays_towards(solid, eye, rays)
        t = _select(solid, at, shape).hit(_take(eye, at, shape), _take(rays, at, shape))
        old = distance.view(-1)[at]
        closer = t < old
        distance.view(-1)[at] = torch.where(closer, t, old)
        owner.view(-1)[at[closer]] = mark
    point = eye + rays * distance
    return _surface_at(solids, marks, distance, owner, point, num_planes, behind)


def _surface_at(
    solids: Sequence[Solid],
    marks: Sequence[int],
    distance: Tensor,
    owner: Tensor,
    point: Vec,
    num_planes: int,
    behind: Surface | None,
) -> Surface:
    """Normals and paint at the points met, worked out solid by solid at its own points only."""
    if behind is None:
        planes = [torch.zeros_like(distance) for _ in range(3 + num_planes)]
    else:
        planes = [t.clone() for t in (behind.normal.x, behind.normal.y, behind.normal.z, *behind.paint)]
    for mark, solid in zip(marks, solids, strict=True):
        at = (owner.view(-1) == mark).nonzero()[:, 0]
        if len(at) == 0:
            continue
        own = _select(solid, at, distance.shape)
        where = _take(point, at, distance.shape)
        normal = own.normal(where)
        paint = own.paint(own, where) if callable(own.paint) else own.paint
        for plane, value in zip(planes, (normal.x, normal.y, normal.z, *paint), strict=True):
            plane.view(-1)[at] = value
    return Surface(distance, owner, point, Vec(*planes[:3]), planes[3:])


def lit(solids: Sequence[Solid], surface: Surface, light: Vec, candidates: Tensor) -> Tensor:
    """Which of the candidate points (b, r) see the point light: none of the solids stands between."""
    start = surface.point + surface.normal * 0.004
    to_light = light - start
    away = to_light.length()
    direction = to_light * (1.0 / away)
    shape = candidates.shape
    seen = candidates.clone()
    for solid in solids:
        at = rays_towards(solid, light, -direction, seen)
        if len(at) == 0:
            continue
        t = _select(solid, at, shape).hit(_take(start, at, shape), _take(direction, at, shape))
        seen.view(-1)[at] = t >= away.reshape(-1)[at]
    return seen


def rays_towards(solid: Solid, apex: Vec, rays: Vec, among: Tensor | None = None) -> Tensor:
    """Flat indices of the rays from `apex` that may meet the solid: those inside the cone about its bounding sphere.

    The cone is a little wider than the sphere, so that leaving the others out changes nothing.
    """
    near = torch.ones(rays.x.shape, dtype=torch.bool, device=rays.x.device) if among is None else among
    sphere = solid.bound()
    if sphere is not None:
        center, radius = sphere
        offset = center - apex
        wide = radius * 1.02 + 0.01
        away = offset.length()
        share = wide * (1.0 / away)
        cosine = 1.0 - share * share
        # An apex inside the sphere looks everywhere. Squares would lose the sign, hence the root.
        if isinstance(cosine, Tensor):
            limit: Scalar = torch.where(cosine > 0, cosine.clamp_min(0).sqrt(), -2.0)
        else:
            limit = math.sqrt(cosine) if cosine > 0 else -2.0
        near = (rays.dot(offset * (1.0 / away)) > limit) & near
    return near.reshape(-1).nonzero()[:, 0]


def _select(solid: Solid, at: Tensor, shape: torch.Size) -> Solid:
    return solid.pick(at // shape[1])


def _take(vector: Vec, at: Tensor, shape: torch.Size) -> Vec:
    """A vector of rays (b, r), or of pictures (b, 1), at flat ray indices: (k,)."""

    def pick(part: Scalar) -> Scalar:
        if not isinstance(part, Tensor):
            return part
        return part.expand(shape).reshape(-1)[at] if part.shape[1] == shape[1] else part[:, 0][at // shape[1]]

    return vector.map(pick)
