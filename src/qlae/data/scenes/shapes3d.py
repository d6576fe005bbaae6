"""Shapes3D: an object in the middle of a coloured room, and a camera that orbits it.

The numbers were fitted to published pictures of the real set. z points up and the object stands at the origin. Only the
camera moves; room, object and light do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from .scene import Levels, Scene
from .solids import Box, Capsule, Frustum, Room, Solid, Sphere
from .tracing import Camera, Solids, Surface, box_average, first_surface, hue, sees_lamp, single
from .vectors import Scalar, Vec

FIELD_OF_VIEW = 50.0
CAMERA_RADIUS, CAMERA_HEIGHT = 2.5, 0.75
CAMERA_SWING = 30.0  # degrees to either side
WALL_DISTANCE, WALL_HEIGHT = 3.5, 2.0
SKY = tuple(value / 255 for value in (153, 226, 249))
LIGHT = Vec(-1.52, 0.42, 7.55)
AMBIENT, HEADLIGHT, SPOT, GLOSS = 0.342, 0.589, 0.957, 0.15
SCALES = (0.75, 1.25)

# The layers, which follow red, green and blue of the base among the planes that `trace` returns.
FLOOR, WALL, OBJECT = 0, 1, 2


class Shapes3D(Scene):
    """480 geometries (shape, scale, orientation), each in 10 × 10 × 10 colours."""

    name = "shapes3d"
    layers = ("floor hue", "wall hue", "object hue")
    geometry = ("shape", "scale", "orientation")
    shared = ("shape",)

    def colour(self, source: str, levels: Tensor) -> Tensor:
        return hue(levels / 10)  # not over 9, since hue 1 equals hue 0

    def develop(self, light: Tensor) -> Tensor:
        return light.clamp_(max=1.0)

    def trace(self, shared: Mapping[str, float], levels: Levels) -> Tensor:
        scale, orientation = levels["scale"], levels["orientation"]
        low, high = SCALES
        size = (low + (high - low) * scale / 7)[:, None]
        angle = torch.deg2rad(CAMERA_SWING * (orientation / 7 - 1))[:, None]
        sine, cosine = angle.sin(), angle.cos()
        camera = Camera(
            eye=Vec(CAMERA_RADIUS * sine, -CAMERA_RADIUS * cosine, CAMERA_HEIGHT),
            forward=Vec(-sine, cosine, torch.zeros_like(sine)),
            field_of_view=FIELD_OF_VIEW,
        )
        thing = object_solid(int(shared["shape"]), size)
        surface = first_surface(
            Solids([ROOM, thing], self.device),
            single(camera.eye, self.device),
            camera.rays(self.resolution, self.device),
            num_planes=6,
        )
        return box_average(shade_rays(surface, Solids([thing], self.device), single(camera.forward, self.device)))


def object_solid(kind: int, size: Scalar) -> Solid:
    """Return the object on the floor: cube, cylinder, sphere or capsule."""
    paint = _only(OBJECT)
    on_floor = Vec(0.0, 0.0, 0.0)
    if kind == 0:
        half = 0.35 * size
        return Box(paint, Vec(0.0, 0.0, half), Vec(half, half, half))
    if kind == 1:
        return Frustum(paint, on_floor, Vec(0.0, 0.0, 0.75 * size), 0.373 * size, 0.373 * size)
    if kind == 2:
        return Sphere(paint, Vec(0.0, 0.0, 0.424 * size), 0.424 * size)
    radius, height = 0.321 * size, 1.30 * size
    return Capsule(paint, Vec(0.0, 0.0, radius), Vec(0.0, 0.0, height - radius), radius)


def shade_rays(surface: Surface, thing: Solids, forward: Vec) -> Tensor:
    """Return the light of every ray: (g, 6, rays)."""
    normal = surface.normal
    to_light = (LIGHT - surface.point).unit()
    facing = normal.dot(to_light)
    height = to_light.z
    squared = height * height
    spot = squared * squared * squared * squared * squared  # the lamp points down and falls off as cos¹⁰
    on_object, on_floor = surface.paint[3 + OBJECT], surface.paint[3 + FLOOR]
    floor_in_light = sees_lamp([thing], surface, LIGHT, on_floor > 0)
    direct = SPOT * facing.clamp_min(0) * spot
    direct = torch.where((on_floor > 0) & ~floor_in_light, 0.0, direct)
    headlight = -normal.dot(forward)
    shade = AMBIENT + HEADLIGHT * headlight.clamp_min(0) + direct
    gloss = torch.where(facing > 0, GLOSS * spot, 0.0) * on_object
    base = [gloss + plane for plane in surface.paint[:3]]
    return torch.stack(base + [shade * plane for plane in surface.paint[3:]], dim=1)


def room_paint(room: Room, point: Vec) -> list[Scalar]:
    """Paint the floor, the walls and, above them, the sky."""
    x, y, z = (torch.as_tensor(part) for part in (point.x, point.y, point.z))
    floor = z < 1e-4
    wall = ~floor & (z <= WALL_HEIGHT)
    front = y.abs() >= x.abs()
    along = torch.where(front, x, y)
    zero = torch.zeros_like(x)
    sky = [torch.where(floor | wall, zero, part) for part in SKY]
    return [*sky, torch.where(floor, texture(x, y), zero), torch.where(wall, texture(along, z), zero), zero]


def texture(u: Tensor, v: Tensor) -> Tensor:
    """Return a faint lattice of dots and darker slanted blotches, as a factor on the shade."""
    dots = 1 + 0.02 * torch.cos(u * (2 * math.pi / 0.4)) * torch.cos(v * (2 * math.pi / 0.5))
    slanted = torch.remainder(u + 1.05 + 0.55 * (v - 1.1), 2.0) - 1.0
    blotch = (slanted.abs() < 0.17) & ((v - 1.08).abs() < 0.33)
    return torch.where(blotch, dots * 0.935, dots)


def _only(layer: int) -> tuple[float, ...]:
    return tuple(float(plane == 3 + layer) for plane in range(6))


# The box is so tall that no ray hits its top before a wall.
ROOM = Room(room_paint, Vec(0.0, 0.0, 50.0), Vec(WALL_DISTANCE, WALL_DISTANCE, 50.0))
