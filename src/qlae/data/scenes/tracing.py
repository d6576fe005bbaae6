"""Rays: from the camera to the nearest surface, and from there to the light.

A picture has four rays per pixel (a 2×2 box). They are ordered (4, pixels), so that averaging them adds four contiguous
blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .crowds import Crowd, group_solids
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

    def pick(self, crowd: Crowd, solids: Tensor, pictures: Tensor) -> Solid:
        """Return k solids of a crowd, given by their indices among all solids, as they are in k pictures."""
        return crowd.pick(self.place_of[solids], pictures)


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
        solid = solids.pick(crowd, numbers[members], flat // num_rays)
        normal = solid.normal(_take(point, flat // num_rays, flat))
        for plane, value in zip(planes, (normal.x, normal.y, normal.z), strict=False):
            plane.view(-1)[flat] = value
    for k, plane in enumerate(planes[3:]):
        plane.view(-1)[new] = solids.paint[:, k][numbers]
    for number, painter in solids.painters.items():
        flat = new[(numbers == number).nonzero()[:, 0]]
        crowd = solids.crowds[int(solids.crowd_of[number])]
        solid = solids.pick(crowd, torch.full_like(flat, number), flat // num_rays)
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
