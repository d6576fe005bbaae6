"""MPI3D, the set of everyday objects: an arm on a post moves an object over a dark table with a coloured rim.

Modelled on published pictures of the real set. x points to the right, y away from the camera, z up. The arm turns from
the right, past the camera, to the left, and lifts from just below horizontal to steep. It never gets vertical, where
turning would only roll the object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from .scene import Levels, Scene
from .solids import Capsule, Frustum, Room, Solid, Sphere
from .tracing import Camera, Solids, Surface, between, box_average, first_surface, highlight, lamp_light
from .vectors import Scalar, Vec

FIELD_OF_VIEW = 36.0
CAMERA_HEIGHTS = (1.55, 1.05, 0.60)
LAMP = Vec(-0.35, -0.55, 1.3).unit() * 8.0  # far away, so that its rays are nearly parallel
TURNS = (0.0, 180.0)  # degrees: 0 points right, 90 at the camera
LIFTS = (-5.0, 80.0)
SIZES = (0.70, 1.0)
OBJECT_COLOURS = ((0.95, 0.80, 0.12), (0.12, 0.62, 0.22), (0.45, 0.46, 0.16), (0.88, 0.12, 0.08))
RIM_COLOURS = ((0.55, 0.36, 0.78), (0.22, 0.68, 0.55), (0.92, 0.50, 0.42))
#: The axes of the object (along the arm, up, sideways), and a function that returns places in them.
Frame = tuple[Vec, Vec, Vec]
At = Callable[..., Vec]
JOINT = Vec(0.0, 0.0, 0.42)
ARM_LENGTH = 0.40

# Paint: red, green, blue, then the layers of the object's and the rim's colour.
COLOURED = (0.0, 0.0, 0.0, 1.0, 0.0)
SHADED = (0.0, 0.0, 0.0, 0.8, 0.0)
WHITE = (0.88, 0.90, 0.86, 0.0, 0.0)
BLACK, GREY, DARK = ((v, v, v + 0.01, 0.0, 0.0) for v in (0.10, 0.16, 0.13))


class MPI3D(Scene):
    """38,400 geometries, each in 4 object × 3 rim colours."""

    name = "mpi3d"
    layers = ("object color", "background color")
    geometry = ("camera height", "shape", "size", "horizontal", "vertical")
    shared = ("camera height", "shape")

    def __init__(self, resolution: int, device: str = "cpu") -> None:
        super().__init__(resolution, device)
        self._post = Solids(POST, self.device)
        self._table = lru_cache(maxsize=3)(self._trace_table)

    def colour(self, source: str, levels: Tensor) -> Tensor:
        return between(OBJECT_COLOURS if source == "object color" else RIM_COLOURS, levels)

    def develop(self, light: Tensor) -> Tensor:
        light = light.clamp_(max=1.0)
        return light.sqrt().mul_(0.45).add_(light.mul_(0.55))  # close to light ** (1 / 1.4)

    def trace(self, shared: Mapping[str, float], levels: Levels) -> Tensor:
        camera = camera_at(shared["camera height"])
        rays, table = self._table(shared["camera height"])
        arm = make_arm(
            int(shared["shape"]),
            turn=_angle(TURNS, levels["horizontal"]),
            lift=_angle(LIFTS, levels["vertical"]),
            size=between(SIZES, levels["size"])[:, None],
        )
        parts = Solids(arm, self.device)
        num = len(levels["size"])
        many = rays.map(lambda part: part.expand(num, -1))
        surface = first_surface(parts, camera.eye, many, num_planes=5, behind=table.expand(num))
        cosine, _ = lamp_light(surface, LAMP, [self._post, parts])
        light = cosine * 0.75 + 0.30
        gloss = torch.where(
            (cosine > 0) & (surface.owner != 0), 0.18 * highlight(surface, LAMP, rays, doublings=4), 0.0
        )
        base = [plane * light + gloss for plane in surface.paint[:3]]
        return box_average(torch.stack(base + [plane * light for plane in surface.paint[3:]], dim=1))

    def _trace_table(self, level: float) -> tuple[Vec, Surface]:
        camera = camera_at(level)
        rays = camera.rays(self.resolution, self.device)
        return rays, first_surface(Solids([TABLE, *POST], self.device), camera.eye, rays, num_planes=5)


def camera_at(level: float) -> Camera:
    """Return the camera in front of the table, which looks at the joint from one of three heights."""
    eye = Vec(0.0, -2.15, float(between(CAMERA_HEIGHTS, torch.tensor([level], dtype=torch.float64))))
    return Camera(eye, (Vec(0.0, 0.0, 0.38) - eye).unit(), FIELD_OF_VIEW)


def _angle(ends: tuple[float, float], levels: Tensor) -> Tensor:
    """Convert levels (g,) of a source with 40 values to radians (g, 1)."""
    low, high = ends
    return torch.deg2rad(low + (high - low) * levels / 39)[:, None]


def make_arm(shape: int, turn: Tensor, lift: Tensor, size: Tensor) -> list[Solid]:
    """Return the moving joint, the arm and the object at its tip."""
    along = Vec(turn.cos() * lift.cos(), -turn.sin() * lift.cos(), lift.sin())
    side = Vec(turn.sin(), turn.cos(), torch.zeros_like(turn))
    up = side.cross(along)
    tip = JOINT + along * ARM_LENGTH

    def at(forth: float, upwards: float = 0.0, sideways: float = 0.0) -> Vec:
        """Return a place in the frame of the object, in units of its size."""
        return tip + along * (size * forth) + up * (size * upwards) + side * (size * sideways)

    hinge = Capsule(GREY, JOINT - side * 0.06, JOINT + side * 0.06, 0.065)
    rod = Capsule(BLACK, JOINT, tip, 0.022)
    objects = (coffee_cup, tennis_ball, croissant, beer_cup)
    return [hinge, rod, *objects[shape](at, size, (along, up, side))]


def coffee_cup(at: At, size: Scalar, frame: Frame) -> list[Solid]:
    """Return a cup with a handle, open away from the arm, white inside, with a coloured rim visible from everywhere."""
    bends = [at(0.17, 0.13), at(0.15, 0.22), at(0.06, 0.20), at(0.03, 0.10)]
    handle = [Capsule(COLOURED, a, b, size * 0.022) for a, b in pairwise(bends)]
    return [Frustum(cup_paint, at(0.0), at(0.22), size * 0.10, size * 0.155), *handle]


def cup_paint(cup: Frustum, point: Vec) -> list[Scalar]:
    along, across = _in_cup(cup, point)
    return _either((along > 0.98) & (across < 0.80), WHITE, COLOURED)


def beer_cup(at: At, size: Scalar, frame: Frame) -> list[Solid]:
    """Return a tall narrow cup with a pale band, foam at its mouth and a coloured rim."""
    return [Frustum(beer_paint, at(0.0), at(0.34), size * 0.075, size * 0.105)]


def beer_paint(cup: Frustum, point: Vec) -> list[Scalar]:
    along, across = _in_cup(cup, point)
    foam, band = (along > 0.985) & (across < 0.69), (along > 0.735) & (along < 0.88)
    return _either(foam | band, WHITE, COLOURED)


def tennis_ball(at: At, size: Scalar, frame: Frame) -> list[Solid]:
    """Return a ball with a white seam."""
    return [Sphere(ball_paint, at(0.14), size * 0.14, frame=frame)]


def ball_paint(ball: Sphere, point: Vec) -> list[Scalar]:
    outward = ball.normal(point)
    u, v, w = (outward.dot(axis) for axis in ball.frame)
    return _either((u * u - w * w + 0.9 * v).abs() < 0.16, WHITE, COLOURED)


def croissant(at: At, size: Scalar, frame: Frame) -> list[Solid]:
    """Return an arc of balls that get smaller towards its ends, every other one darker."""
    beads = ((-70, 0.045), (-45, 0.07), (-15, 0.092), (15, 0.092), (45, 0.07), (70, 0.045))
    balls: list[Solid] = []
    for i, (degrees, radius) in enumerate(beads):
        bend = math.radians(degrees)
        place = at(0.03 + 0.16 * math.cos(bend), 0.0, 0.17 * math.sin(bend))
        balls.append(Sphere(COLOURED if i % 2 else SHADED, place, size * radius))
    return balls


def room_paint(room: Room, point: Vec) -> list[Scalar]:
    """Paint a dark round table with a coloured ring near its edge, in a dark room."""
    from_middle = point.x * point.x + point.y * point.y
    floor = point.z < 1e-3
    ring = floor & (from_middle > 0.82**2) & (from_middle < 1.0)
    grey = torch.where(from_middle < 1.08**2, 0.16, 0.10)
    dark = torch.where(floor, torch.where(ring, 0.0, grey), 0.07)
    return [dark, dark, dark, torch.zeros_like(dark), ring.float()]


def _in_cup(cup: Frustum, point: Vec) -> tuple[Tensor, Tensor]:
    """Return how far along a cup a point lies and how far from its axis, as fractions of height and mouth radius."""
    axis = cup.end - cup.start
    offset = point - cup.start
    along = offset.dot(axis) * (1.0 / axis.dot(axis))
    return along, (offset - axis * along).length() * (1.0 / cup.end_radius)


def _either(where: Tensor, paint: tuple[float, ...], other: tuple[float, ...]) -> list[Scalar]:
    return [torch.where(where, a, b) for a, b in zip(paint, other, strict=True)]


TABLE = Room(room_paint, Vec(0.0, 0.0, 2.0), Vec(3.0, 3.0, 2.0))
POST: list[Solid] = [
    Frustum(DARK, Vec(0.0, 0.0, 0.0), Vec(0.0, 0.0, 0.05), 0.12, 0.12),
    Frustum(BLACK, Vec(0.0, 0.0, 0.05), Vec(0.0, 0.0, 0.40), 0.055, 0.055),
]
