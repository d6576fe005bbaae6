"""Isaac3D: a robot arm in a kitchen lifts an object in front of a painted wall.

Modelled on published pictures of the real set. x points to the right, y away from the camera, z up; lengths are roughly
metres. The kitchen never moves, so it is traced once for each camera height and lit once for each lamp position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import torch
from torch import Tensor

from .scene import Levels, Scene
from .solids import Box, Capsule, Frustum, Polytope, Room, Solid, Sphere
from .tracing import Camera, Solids, Surface, between, box_average, film, first_surface, highlight, lamp_light
from .vectors import Scalar, Vec

FIELD_OF_VIEW = 58.0
CAMERA_HEIGHTS = (1.05, 1.35, 1.65, 1.95)
LAMP_DEPTHS = (-2.3, -1.52, -0.74, 0.04, 0.82, 1.6)
ARM_TURNS = tuple(165 - 150 * i / 7 for i in range(8))  # degrees: 180 points left, 90 to the camera, 0 right
ARM_LIFTS = (-12.0, 4.0, 20.0, 36.0, 52.0)
OBJECT_SIZES = (0.095, 0.130, 0.170, 0.215)
INTENSITIES = (0.65, 0.95, 1.35, 1.9)
OBJECT_COLOURS = ((0.10, 0.06, 0.62), (0.30, 0.28, 0.72), (0.56, 0.56, 0.78), (0.88, 0.88, 0.88))
WALL_COLOURS = ((0.18, 0.62, 0.14), (0.46, 0.62, 0.42), (0.66, 0.52, 0.66), (0.86, 0.46, 0.86))

# Paint: red, green, blue, then the layers of the object's and the wall's colour.
OBJECT = (0.0, 0.0, 0.0, 1.0, 0.0)
WHITE, WOOD, GREY, DARK = (
    (*rgb, 0.0, 0.0) for rgb in ((0.86, 0.86, 0.84), (0.36, 0.20, 0.09), (0.30,) * 3, (0.16,) * 3)
)
ORANGE, RUST, BROWN, LINEN = (
    (*rgb, 0.0, 0.0) for rgb in ((0.50, 0.17, 0.08), (0.42, 0.13, 0.06), (0.28, 0.11, 0.06), (0.70, 0.66, 0.60))
)
FRIDGE = 1  # its index in KITCHEN: steel, with a strong highlight


class Isaac3D(Scene):
    """11,520 geometries, each in 4 intensities × 4 object colours × 4 wall colours."""

    name = "isaac3d"
    layers = ("object color", "wall color")
    exposure = "lighting intensity"
    geometry = ("camera height", "lighting direction", "object shape", "robot x", "robot y", "object scale")
    shared = ("camera height", "lighting direction", "object shape")

    def __init__(self, resolution: int, device: str = "cpu") -> None:
        super().__init__(resolution, device)
        self._kitchen = lru_cache(maxsize=4)(self._trace_kitchen)
        self._kitchen_lamp = lru_cache(maxsize=8)(self._light_kitchen)

    def colour(self, source: str, levels: Tensor) -> Tensor:
        return between(OBJECT_COLOURS if source == "object color" else WALL_COLOURS, levels)

    def exposures(self, levels: Tensor) -> Tensor:
        return 1.5 * between(INTENSITIES, levels)

    def develop(self, light: Tensor) -> Tensor:
        return film(light)

    def trace(self, shared: Mapping[str, float], levels: Levels) -> Tensor:
        height, lamp_level = shared["camera height"], shared["lighting direction"]
        camera, lamp = camera_at(height), lamp_at(lamp_level)
        rays, kitchen = self._kitchen(height)
        robot = make_robot(
            int(shared["object shape"]),
            turn=torch.deg2rad(between(ARM_TURNS, levels["robot x"]))[:, None],
            lift=torch.deg2rad(between(ARM_LIFTS, levels["robot y"]))[:, None],
            size=between(OBJECT_SIZES, levels["object scale"])[:, None],
        )
        parts = Solids(robot, self.device)
        num = len(levels["robot x"])
        many = rays.map(lambda part: part.expand(num, -1))
        surface = first_surface(parts, camera.eye, many, num_planes=5, behind=kitchen.expand(num))
        moving = surface.owner < 0
        cosine, squared = lamp_light(surface, lamp, [parts], among=moving | self._kitchen_lamp(height, lamp_level))
        light = cosine * (3.4 / (squared + 1.2)) + (surface.normal.z * 0.06 + 0.26)
        gloss = torch.where(surface.owner == FRIDGE, 0.9, 0.04) * highlight(surface, lamp, rays, doublings=5)
        gloss = torch.where(cosine > 0, gloss, 0.0)
        base = [plane * light + gloss for plane in surface.paint[:3]]
        return box_average(torch.stack(base + [plane * light for plane in surface.paint[3:]], dim=1))

    def _trace_kitchen(self, height: float) -> tuple[Vec, Surface]:
        camera = camera_at(height)
        rays = camera.rays(self.resolution, self.device)
        return rays, first_surface(Solids(KITCHEN, self.device), camera.eye, rays, num_planes=5)

    def _light_kitchen(self, height: float, lamp_level: float) -> Tensor:
        """Return the mask (1, r) of the points of the kitchen that the lamp reaches."""
        _, kitchen = self._kitchen(height)
        return lamp_light(kitchen, lamp_at(lamp_level), [Solids(KITCHEN[1:], self.device)])[0] > 0


def camera_at(level: float) -> Camera:
    """Return the camera, which looks down a little at every height."""
    height = float(between(CAMERA_HEIGHTS, torch.tensor([level], dtype=torch.float64)))
    eye = Vec(0.05, -1.75, height)
    return Camera(eye, (Vec(0.05, 1.5, 0.62 + 0.40 * height) - eye).unit(), FIELD_OF_VIEW)


def lamp_at(level: float) -> Vec:
    """Return the lamp, which moves from behind the camera to the far wall."""
    return Vec(-0.7, float(between(LAMP_DEPTHS, torch.tensor([level], dtype=torch.float64))), 2.45)


def make_robot(shape: int, turn: Tensor, lift: Tensor, size: Tensor) -> list[Solid]:
    """Return the robot: a base on wheels, an arm of two links, and the object at its end."""
    # The arm's circle is flattened towards the camera, which keeps near objects in view.
    heading = Vec(turn.cos(), -0.75 * turn.sin(), torch.zeros_like(turn))
    pointing = Vec(heading.x * lift.cos(), heading.y * lift.cos(), lift.sin()).unit()
    shoulder = Vec(0.10, 0.35, 0.62)
    elbow = shoulder + heading * 0.10 + Vec(0.0, 0.0, 0.30)
    wrist = elbow + pointing * 0.34
    side = Vec(-heading.y, heading.x, heading.z).unit()
    return [
        Box(ORANGE, Vec(0.10, 0.35, 0.36), Vec(0.20, 0.24, 0.16)),
        Box(BROWN, Vec(0.10, 0.35, 0.565), Vec(0.10, 0.11, 0.05)),
        *(Frustum(BROWN, Vec(x, 0.30, 0.20), Vec(x + 0.06, 0.30, 0.20), 0.20, 0.20) for x in (-0.17, 0.31)),
        Capsule(ORANGE, shoulder, elbow, 0.062),
        Sphere(RUST, elbow, 0.085),
        Capsule(ORANGE, elbow, wrist, 0.052),
        Capsule(BROWN, wrist, wrist + pointing * 0.05, 0.062),
        object_solid(shape, wrist + pointing * (size + 0.07), (pointing, side, pointing.cross(side)), size),
    ]


def object_solid(shape: int, center: Vec, axes: tuple[Vec, Vec, Vec], size: Scalar) -> Solid:
    """Return the object: cube, tetrahedron or sphere."""
    if shape == 0:
        return Box(OBJECT, center, Vec(size, size, size), axes)
    if shape == 2:
        return Sphere(OBJECT, center, size * 1.12)
    a, b, c = axes
    corners = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
    faces = tuple((a * i + b * j + c * k) * math.sqrt(1 / 3) for i, j, k in corners)
    # The corners of a tetrahedron are three times as far from its center as its faces.
    return Polytope(OBJECT, center, faces, depth=size * 0.62, radius=size * 1.86)


def room_paint(room: Room, point: Vec) -> list[Scalar]:
    """Paint the stone floor, the pale ceiling, grey side walls, and the coloured wall at the back."""
    floor, ceiling, back = point.z < 1e-3, point.z > 2.79, point.y > 2.599
    painted = back & ~floor & ~ceiling
    rgb = [
        torch.where(floor, stone, torch.where(ceiling, 0.78, torch.where(painted, 0.0, 0.55)))
        for stone in (0.56, 0.53, 0.47)
    ]
    return [*rgb, torch.zeros_like(point.x), painted.float()]


def cupboards() -> list[Solid]:
    """Return the cabinets under the worktop, with dark gaps and handles between their doors, and those on the wall."""
    doors = [-1.0 + 0.5 * i for i in range(7)]
    return [
        Box(WHITE, Vec(0.95, 2.25, 0.42), Vec(2.30, 0.34, 0.42)),
        Box(WOOD, Vec(0.95, 2.22, 0.87), Vec(2.32, 0.38, 0.035)),
        Box(DARK, Vec(0.95, 1.90, 0.05), Vec(2.30, 0.01, 0.05)),
        *(Box(DARK, Vec(x, 1.905, 0.44), Vec(0.004, 0.012, 0.34)) for x in doors),
        *(Box(DARK, Vec(x + 0.12, 1.90, 0.70), Vec(0.07, 0.02, 0.012)) for x in doors),
        Box(WHITE, Vec(-0.75, 2.45, 1.72), Vec(0.34, 0.17, 0.26)),
        Box(DARK, Vec(-0.75, 2.275, 1.72), Vec(0.004, 0.012, 0.26)),
        Box(LINEN, Vec(1.65, 2.45, 1.72), Vec(0.62, 0.17, 0.26)),
        Box(DARK, Vec(1.65, 2.275, 1.72), Vec(0.004, 0.012, 0.26)),
    ]


def clock_and_tap() -> list[Solid]:
    """Return the clock on the wall, and the sink with its tap."""
    return [
        Frustum((0.25, 0.25, 0.25, 0.0, 0.0), Vec(0.25, 2.60, 1.80), Vec(0.25, 2.54, 1.80), 0.12, 0.12),
        Frustum((0.92, 0.92, 0.92, 0.0, 0.0), Vec(0.25, 2.56, 1.80), Vec(0.25, 2.53, 1.80), 0.10, 0.10),
        Box(DARK, Vec(0.65, 2.20, 0.91), Vec(0.28, 0.20, 0.006)),
        Capsule(DARK, Vec(0.65, 2.42, 0.90), Vec(0.65, 2.42, 1.15), 0.018),
        Capsule(DARK, Vec(0.65, 2.42, 1.15), Vec(0.65, 2.28, 1.13), 0.016),
    ]


KITCHEN: list[Solid] = [
    Room(room_paint, Vec(0.0, 0.0, 1.4), Vec(3.2, 2.6, 1.4)),
    Box(GREY, Vec(-1.95, 2.05, 0.95), Vec(0.42, 0.50, 0.95)),
    Box((0.7, 0.7, 0.7, 0.0, 0.0), Vec(-1.52, 1.56, 1.15), Vec(0.02, 0.03, 0.35)),
    *cupboards(),
    *clock_and_tap(),
]
