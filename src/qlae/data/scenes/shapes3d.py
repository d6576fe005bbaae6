"""Shapes3D: an object in the middle of a coloured room, seen by a camera that goes round it.

The numbers were fitted to published pictures of the real set. z is up and the object stands at the origin. The camera
orbits; room, object and light stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from .palette import hue
from .scene import Levels, Scene
from .solids import Box, Capsule, Frustum, Room, Solid, Sphere
from .tracing import Camera, Solids, Surface, box_average, first_surface, lit, single
from .vectors import Scalar, Vec

FIELD_OF_VIEW = 50.0
CAMERA_RADIUS, CAMERA_HEIGHT = 2.5, 0.75
CAMERA_SWING = 30.0  # degrees to either side
WALL_DISTANCE, WALL_HEIGHT = 3.5, 2.0
SKY = tuple(value / 255 for value in (153, 226, 249))
LIGHT = Vec(-1.52, 0.42, 7.55)
AMBIENT, HEADLIGHT, SPOT, GLOSS = 0.342, 0.589, 0.957, 0.15
SCALES = (0.75, 1.25)

# Planes that `trace` returns: the base's red, green, blue, then the layers.
FLOOR, WALL, OBJECT = 0, 1, 2


class Shapes3D(Scene):
    """480 geometries (shape, scale, orientation), each in 10 × 10 × 10 colours."""

    name = "shapes3d"
    layers = ("floor hue", "wall hue", "object hue")
    geometry = ("shape", "scale", "orientation")
    traced_together = ("shape",)

    def colour(self, source: str, levels: Tensor) -> Tensor:
        return hue(levels / 10)  # not over 9: hue 1 is hue 0 again

    def develop(self, light: Tensor) -> Tensor:
        return light.clamp_(max=1.0)

    def trace(self, together: Mapping[str, float], levels: Levels) -> Tensor:
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
        thing = standing(int(together["shape"]), size)
        seen = first_surface(
            Solids([ROOM, thing], self.device),
            single(camera.eye, self.device),
            camera.rays(self.resolution, self.device),
            num_planes=6,
        )
        return box_average(shaded(seen, Solids([thing], self.device), single(camera.forward, self.device)))


def standing(kind: int, size: Scalar) -> Solid:
    """The object: cube, cylinder, sphere or capsule, standing on the floor."""
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


def shaded(seen: Surface, thing: Solids, forward: Vec) -> Tensor:
    """The light of every ray: (g, 6, rays)."""
    normal = seen.normal
    to_light = (LIGHT - seen.point).unit()
    facing = normal.dot(to_light)
    height = to_light.z
    squared = height * height
    spot = squared * squared * squared * squared * squared  # the lamp points down and narrows as cos¹⁰
    on_object, on_floor = seen.paint[3 + OBJECT], seen.paint[3 + FLOOR]
    floor_in_light = lit([thing], seen, LIGHT, on_floor > 0)
    direct = SPOT * facing.clamp_min(0) * spot
    direct = torch.where((on_floor > 0) & ~floor_in_light, 0.0, direct)
    headlight = -normal.dot(forward)
    shade = AMBIENT + HEADLIGHT * headlight.clamp_min(0) + direct
    gloss = torch.where(facing > 0, GLOSS * spot, 0.0) * on_object
    base = [gloss + plane for plane in seen.paint[:3]]
    return torch.stack(base + [shade * plane for plane in seen.paint[3:]], dim=1)


def room_paint(room: Room, point: Vec) -> list[Scalar]:
    """Floor, walls and, above them, the sky."""
    x, y, z = (torch.as_tensor(part) for part in (point.x, point.y, point.z))
    floor = z < 1e-4
    wall = ~floor & (z <= WALL_HEIGHT)
    front = y.abs() >= x.abs()
    along = torch.where(front, x, y)
    zero = torch.zeros_like(x)
    sky = [torch.where(floor | wall, zero, part) for part in SKY]
    return [*sky, torch.where(floor, texture(x, y), zero), torch.where(wall, texture(along, z), zero), zero]


def texture(u: Tensor, v: Tensor) -> Tensor:
    """A faint lattice of dots and darker slanted blotches, as a factor on the shade."""
    dots = 1 + 0.02 * torch.cos(u * (2 * math.pi / 0.4)) * torch.cos(v * (2 * math.pi / 0.5))
    slanted = torch.remainder(u + 1.05 + 0.55 * (v - 1.1), 2.0) - 1.0
    blotch = (slanted.abs() < 0.17) & ((v - 1.08).abs() < 0.33)
    return torch.where(blotch, dots * 0.935, dots)


def _only(layer: int) -> tuple[float, ...]:
    return tuple(float(plane == 3 + layer) for plane in range(6))


# No ceiling: the box is tall enough that no ray meets its top before a wall.
ROOM = Room(room_paint, Vec(0.0, 0.0, 50.0), Vec(WALL_DISTANCE, WALL_DISTANCE, 50.0))
