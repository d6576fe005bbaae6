"""Rays: from the camera to the nearest surface, and from there to the light.

Every picture takes four rays a pixel (a 2×2 box). They are ordered (4, pixels), so that averaging them adds four
contiguous blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .crowds import Crowd, crowds
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


class Solids:
    """Solids ready to be traced. What does not move is worth building once."""

    def __init__(self, solids: Sequence[Solid], device: torch.device) -> None:
        self.crowds = crowds(solids, device)
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

    def pick(self, crowd: Crowd, solids: Tensor, pictures: Tensor) -> Solid:
        """Each of k solids of a crowd, by their number among all, as it is in each of k pictures."""
        return crowd.pick(self.place_of[solids], pictures)


def first_surface(solids: Solids, eye: Vec, rays: Vec, num_planes: int, behind: Surface | None = None) -> Surface:
    """The nearest surface along each ray from `eye`.

    `owner` is the number of its solid. With `behind`, what the rays met before stays where it is at least as near, and
    the new solids are numbered downwards from −1, so that the two kinds stay apart.
    """
    shape, device = rays.x.shape, rays.x.device
    limit = torch.full(shape, math.inf, dtype=torch.float32, device=device) if behind is None else behind.distance
    distance = limit.clone()
    hits = []
    for crowd in solids.crowds:
        pictures, members, at = crowd.pairs(eye, rays)
        flat = pictures * shape[1] + at
        t = crowd.pick(members, pictures).hit(_take(eye, pictures, flat), _take(rays, pictures, flat))
        distance.view(-1).scatter_reduce_(0, flat, t, "amin")
        hits.append((flat, t, crowd.indices[members]))
    # Where two surfaces are equally near, the solid with the smaller number has it, on any device and in any batch.
    owner = torch.full(shape, 2**15 - 1, dtype=torch.int32, device=device)
    for flat, t, numbers in hits:
        won = ((t == distance.view(-1)[flat]) & (t < limit.reshape(-1)[flat])).nonzero()[:, 0]
        owner.view(-1).scatter_reduce_(0, flat[won], numbers[won].int(), "amin")
    if behind is not None:
        owner = torch.where(distance < limit, -1 - owner, behind.owner)
    return _painted(solids, distance, owner, eye + rays * distance, num_planes, behind)


def _painted(
    solids: Solids, distance: Tensor, owner: Tensor, point: Vec, num_planes: int, behind: Surface | None
) -> Surface:
    """Normals and paint at the points met, worked out crowd by crowd at its own points only."""
    num_rays = distance.shape[1]
    if behind is None:
        planes = [torch.empty_like(distance) for _ in range(3 + num_planes)]
        mine = torch.arange(distance.numel(), device=distance.device)
        numbers = owner.view(-1).long()
    else:
        planes = [t.clone() for t in (behind.normal.x, behind.normal.y, behind.normal.z, *behind.paint)]
        mine = (owner.view(-1) < 0).nonzero()[:, 0]
        numbers = -1 - owner.view(-1)[mine].long()
    kinds = solids.crowd_of[numbers]
    for i, crowd in enumerate(solids.crowds):
        some = (kinds == i).nonzero()[:, 0]
        flat = mine[some]
        own = solids.pick(crowd, numbers[some], flat // num_rays)
        normal = own.normal(_take(point, flat // num_rays, flat))
        for plane, value in zip(planes, (normal.x, normal.y, normal.z), strict=False):
            plane.view(-1)[flat] = value
    for k, plane in enumerate(planes[3:]):
        plane.view(-1)[mine] = solids.paint[:, k][numbers]
    for number, painter in solids.painters.items():
        flat = mine[(numbers == number).nonzero()[:, 0]]
        crowd = solids.crowds[int(solids.crowd_of[number])]
        own = solids.pick(crowd, torch.full_like(flat, number), flat // num_rays)
        for plane, value in zip(planes[3:], painter(own, _take(point, flat // num_rays, flat)), strict=True):
            plane.view(-1)[flat] = value
    return Surface(distance, owner, point, Vec(*planes[:3]), planes[3:])


def lit(solids: Sequence[Solids], surface: Surface, lamp: Vec, candidates: Tensor) -> Tensor:
    """Which of the candidate points (b, r) see the lamp: none of the solids stands between."""
    start = surface.point + surface.normal * 0.004
    to_lamp = lamp - start
    away = to_lamp.length()
    direction = to_lamp * (1.0 / away)
    back = -direction
    seen = candidates.clone()
    for crowd in (crowd for group in solids for crowd in group.crowds):
        pictures, members, at = crowd.pairs(lamp, back, seen)
        flat = pictures * candidates.shape[1] + at
        t = crowd.pick(members, pictures).hit(_take(start, pictures, flat), _take(direction, pictures, flat))
        seen.view(-1)[flat[(t < away.view(-1)[flat]).nonzero()[:, 0]]] = False
    return seen


def _take(vector: Vec, pictures: Tensor, flat: Tensor) -> Vec:
    """A vector of rays (b, r), of pictures (b, 1) or of floats, for k pairs: (k,)."""

    def pick(part: Scalar) -> Scalar:
        if not isinstance(part, Tensor):
            return part
        return part[:, 0][pictures] if part.shape[1] == 1 else part.reshape(-1)[flat]

    return vector.map(pick)
