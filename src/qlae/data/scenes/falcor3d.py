"""Falcor3D: a living room whose lamp and camera move.

Modelled on published pictures of the real set: a white sofa with pink cushions under a group of picture frames, a low
table on a red rug, a vase of branches. x points to the right, y away from the camera, z up. Nothing in the room moves,
so its surfaces are traced once for each camera and then lit from every lamp position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import torch
from torch import Tensor

from .scene import CACHE_BYTES, Levels, Scene
from .solids import Box, Capsule, Frustum, Room, Solid, Sphere
from .tracing import SUBSAMPLES, Camera, Solids, Surface, between, box_average, film, first_surface, lamp_light
from .vectors import Scalar, Vec

FIELD_OF_VIEW = 55.0
EYE, EYE_RANGE = Vec(-0.2, -2.0, 1.45), (0.55, 0.5, 0.35)
LAMP_X, LAMP_Y, LAMP_Z = (-1.8, 1.8), (-1.4, 0.9), (1.05, 2.55)
INTENSITIES = (0.5, 0.75, 1.1, 1.6, 2.3)

WHITE, DARK, RED, PINK = (0.80, 0.80, 0.80), (0.12, 0.10, 0.10), (0.62, 0.07, 0.08), (0.80, 0.42, 0.46)
RUG, TABLE_TOP, TWIG, APPLE, BACKING = (
    (0.66, 0.08, 0.09),
    (0.86, 0.86, 0.88),
    (0.22, 0.12, 0.10),
    (0.25, 0.04, 0.05),
    (0.20, 0.20, 0.20),
)


class Falcor3D(Scene):
    """46,656 geometries (camera and lamp), each in 5 intensities."""

    name = "falcor3d"
    layers = ()
    exposure = "lighting intensity"
    geometry = ("camera x", "camera y", "camera z", "lighting x", "lighting y", "lighting z")
    shared = ("camera x", "camera y", "camera z")

    def __init__(self, resolution: int, device: str = "cpu") -> None:
        super().__init__(resolution, device)
        self._furniture = Solids(FURNITURE, self.device)
        self._everything = Solids([ROOM, *FURNITURE], self.device)
        view_bytes = 11 * 4 * SUBSAMPLES * resolution**2
        self._view = lru_cache(maxsize=max(8, CACHE_BYTES // 2 // view_bytes))(self._trace_view)

    def exposures(self, levels: Tensor) -> Tensor:
        return 1.9 * between(INTENSITIES, levels)

    def develop(self, light: Tensor) -> Tensor:
        return film(light)

    def trace(self, shared: Mapping[str, float], levels: Levels) -> Tensor:
        num = len(levels["lighting x"])
        surface = self._view(*shared.values()).expand(num)
        ends = zip(("x", "y", "z"), (LAMP_X, LAMP_Y, LAMP_Z), strict=True)
        places = [low + (high - low) * levels[f"lighting {axis}"] / 5 for axis, (low, high) in ends]
        lamp = Vec(*(place.float()[:, None].to(self.device) for place in places))
        cosine, squared = lamp_light(surface, lamp, [self._furniture])
        light = cosine * (2.6 / (squared + 0.6)) + (surface.normal.z * 0.05 + 0.16)
        return box_average(torch.stack([plane * light for plane in surface.paint], dim=1))

    def _trace_view(self, x: float, y: float, z: float) -> Surface:
        """Return what the camera sees at levels from 0 to 5 of its three sources."""
        shift = Vec(*(reach * (level / 2.5 - 1) for reach, level in zip(EYE_RANGE, (x, y, z), strict=True)))
        eye = EYE + shift
        target = Vec(0.25 + 0.55 * shift.x, 1.5, 0.80 + 0.25 * shift.z)
        camera = Camera(eye, (target - eye).unit(), FIELD_OF_VIEW)
        rays = camera.rays(self.resolution, self.device)
        return first_surface(self._everything, eye, rays, num_planes=3)


def room_paint(room: Room, point: Vec) -> list[Scalar]:
    """Paint a floor of planks, a pale ceiling and grey walls."""
    floor, ceiling = point.z < 1e-3, point.z > 2.69
    row = (point.x * (1 / 0.16)).floor()
    plank = (point.y * (1 / 0.9) + row * 0.5).floor()
    tone = torch.remainder(row * 0.37 + plank * 0.23, 1.0)
    wood = [0.52 + 0.16 * tone, 0.34 + 0.11 * tone, 0.17 + 0.06 * tone]
    return [torch.where(floor, part, torch.where(ceiling, 0.85, 0.62)) for part in wood]


def box(paint: tuple[float, float, float], center: tuple[float, float, float], half: tuple[float, float, float]) -> Box:
    """Return a box along the axes."""
    return Box(paint, Vec(*center), Vec(*half))


def rotate(solid: Box, angle: float, *, about: str) -> Box:
    """Return a box rotated about its x or z axis."""
    c, s = math.cos(angle), math.sin(angle)
    if about == "x":
        return Box(solid.paint, solid.center, solid.half, (Vec(1.0, 0.0, 0.0), Vec(0.0, c, s), Vec(0.0, -s, c)))
    return Box(solid.paint, solid.center, solid.half, (Vec(c, s, 0.0), Vec(-s, c, 0.0), Vec(0.0, 0.0, 1.0)))


def sofa() -> list[Solid]:
    """Return the seat, back, arms, two seat cushions and three pink pillows."""
    return [
        box(WHITE, (0.0, 1.75, 0.27), (1.25, 0.42, 0.13)),
        box(WHITE, (0.0, 2.12, 0.55), (1.25, 0.12, 0.30)),
        box(WHITE, (-1.15, 1.75, 0.38), (0.12, 0.45, 0.22)),
        box(WHITE, (1.15, 1.75, 0.38), (0.12, 0.45, 0.22)),
        box((0.84, 0.84, 0.84), (-0.52, 1.70, 0.44), (0.49, 0.36, 0.06)),
        box((0.76, 0.76, 0.76), (0.52, 1.70, 0.44), (0.49, 0.36, 0.06)),
        rotate(box(PINK, (-0.88, 1.90, 0.66), (0.19, 0.06, 0.17)), -0.35, about="x"),
        rotate(box(PINK, (-0.62, 1.88, 0.63), (0.17, 0.06, 0.16)), -0.40, about="x"),
        rotate(box(PINK, (0.93, 1.80, 0.64), (0.06, 0.18, 0.18)), 0.35, about="z"),
    ]


def low_table() -> list[Solid]:
    """Return the table on the rug, with a bowl, an apple and a cup."""
    legs = [(-0.55 + x, 0.35 + y, 0.155) for x in (-0.45, 0.45) for y in (-0.28, 0.28)]
    return [
        box(RUG, (-0.15, 0.35, 0.008), (1.35, 0.85, 0.012)),
        box(TABLE_TOP, (-0.55, 0.35, 0.36), (0.50, 0.33, 0.05)),
        *(box(DARK, leg, (0.03, 0.03, 0.155)) for leg in legs),
        Frustum(DARK, Vec(-0.75, 0.40, 0.41), Vec(-0.75, 0.40, 0.52), 0.07, 0.05),
        Sphere(APPLE, Vec(-0.75, 0.40, 0.56), 0.075),
        Sphere(RED, Vec(-0.55, 0.28, 0.46), 0.05),
        Frustum(DARK, Vec(-0.38, 0.45, 0.41), Vec(-0.38, 0.45, 0.47), 0.05, 0.06),
    ]


def side_tables() -> list[Solid]:
    """Return two nested tables in the corner, with apples on the lower and a vase of branches on the higher one."""
    tips = ((-0.35, 0.10, 0.25), (-0.15, 0.15, 0.45), (0.05, 0.10, 0.55), (0.30, 0.10, 0.35), (0.45, 0.0, 0.15))
    return [
        box(WHITE, (1.75, 1.65, 0.58), (0.32, 0.30, 0.025)),
        box(WHITE, (1.45, 1.65, 0.28), (0.025, 0.30, 0.28)),
        box(WHITE, (2.05, 1.65, 0.28), (0.025, 0.30, 0.28)),
        box(WHITE, (1.68, 1.15, 0.42), (0.24, 0.24, 0.022)),
        box(WHITE, (1.46, 1.15, 0.20), (0.022, 0.24, 0.20)),
        box(WHITE, (1.90, 1.15, 0.20), (0.022, 0.24, 0.20)),
        Sphere(RED, Vec(1.62, 1.15, 0.49), 0.055),
        Sphere(RED, Vec(1.75, 1.20, 0.49), 0.055),
        Sphere(RED, Vec(1.70, 1.06, 0.48), 0.045),
        Frustum(DARK, Vec(1.85, 1.75, 0.60), Vec(1.85, 1.75, 0.88), 0.07, 0.09),
        *(Capsule(TWIG, Vec(1.85, 1.75, 0.85), Vec(1.85 + x, 1.75 + y, 1.35 + z), 0.012) for x, y, z in tips),
    ]


def wall_frames() -> list[Solid]:
    """Return five deep frames on the wall, each with a dark back and a small red vase."""
    frames = [(-0.85, 1.62, 0.22, 0.20), (-0.30, 1.78, 0.24, 0.10), (-0.20, 1.45, 0.20, 0.12)]
    frames += [(0.30, 1.60, 0.24, 0.16), (0.82, 1.72, 0.16, 0.22)]
    solids: list[Solid] = []
    for x, z, width, height in frames:
        solids += [
            box(BACKING, (x, 2.58, z), (width, 0.02, height)),
            box(WHITE, (x, 2.50, z + height), (width, 0.10, 0.018)),
            box(WHITE, (x, 2.50, z - height), (width, 0.10, 0.018)),
            box(WHITE, (x - width, 2.50, z), (0.018, 0.10, height)),
            box(WHITE, (x + width, 2.50, z), (0.018, 0.10, height)),
            Frustum(RED, Vec(x, 2.5, z - height + 0.02), Vec(x, 2.5, z - height + 0.13), 0.035, 0.02),
        ]
    return solids


ROOM = Room(room_paint, Vec(0.0, 0.0, 1.35), Vec(3.0, 2.6, 1.35))
FURNITURE: list[Solid] = [*sofa(), *low_table(), *side_tables(), *wall_frames()]
