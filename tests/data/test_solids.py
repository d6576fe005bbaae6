"""Each solid's exact intersection against a slow march along the ray, and that culling far rays changes nothing."""

import math

import numpy as np
import pytest
import torch

from qlae.data.scenes import make_scene
from qlae.data.scenes.solids import Box, Capsule, Frustum, Polytope, Room, Sphere
from qlae.data.scenes.tracing import Crowd
from qlae.data.scenes.vectors import Vec

A, B = Vec(-0.3, 0.2, -0.4), Vec(0.5, -0.1, 0.6)
TURN = (Vec(0.6, 0.8, 0.0), Vec(-0.8, 0.6, 0.0), Vec(0.0, 0.0, 1.0))
CORNERS = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
TETRAHEDRON = tuple(Vec(*(c / math.sqrt(3) for c in corner)) for corner in CORNERS)


def array(vector):
    return np.array([vector.x, vector.y, vector.z])


def along_segment(points):
    axis = array(B) - array(A)
    share = (points - array(A)) @ axis / (axis @ axis)
    return share, np.linalg.norm(points - array(A) - share[:, None] * axis, axis=1)


def in_capsule(points):
    share, _ = along_segment(points)
    nearest = array(A) + share.clip(0, 1)[:, None] * (array(B) - array(A))
    return np.linalg.norm(points - nearest, axis=1) < 0.35


def in_frustum(points):
    share, away = along_segment(points)
    return (share > 0) & (share < 1) & (away < 0.6 + share * (0.2 - 0.6))


SOLIDS = {
    "sphere": (Sphere((), A, 0.7), lambda p: np.linalg.norm(p - array(A), axis=1) < 0.7),
    "box": (Box((), A, Vec(0.5, 0.3, 0.8)), lambda p: (np.abs(p - array(A)) < (0.5, 0.3, 0.8)).all(axis=1)),
    "turned box": (
        Box((), A, Vec(0.5, 0.3, 0.8), TURN),
        lambda p: (np.abs((p - array(A)) @ np.stack([array(t) for t in TURN]).T) < (0.5, 0.3, 0.8)).all(axis=1),
    ),
    "capsule": (Capsule((), A, B, 0.35), in_capsule),
    "cylinder": (
        Frustum((), A, B, 0.4, 0.4),
        lambda p: (lambda s, r: (s > 0) & (s < 1) & (r < 0.4))(*along_segment(p)),
    ),
    "frustum": (Frustum((), A, B, 0.6, 0.2), in_frustum),
    "tetrahedron": (
        Polytope((), A, TETRAHEDRON, depth=0.4, radius=1.2),
        lambda p: ((p - array(A)) @ np.stack([array(f) for f in TETRAHEDRON]).T < 0.4).all(axis=1),
    ),
}


def rays(num, seed=0):
    """Return rays from outside that point near the solid, some at its center."""
    rng = np.random.default_rng(seed)
    start = rng.normal(size=(num, 3))
    start *= 3 / np.linalg.norm(start, axis=1, keepdims=True)
    heading = array(A) + rng.normal(scale=0.6, size=(num, 3)) - start
    heading[: num // 10] = -start[: num // 10] + array(A)
    return start, heading / np.linalg.norm(heading, axis=1, keepdims=True)


def as_vec(values):
    return Vec(*torch.tensor(values.T, dtype=torch.float32))


@pytest.mark.parametrize("name", SOLIDS)
def test_hits_are_where_a_march_finds_them(name):
    solid, inside = SOLIDS[name]
    start, heading = rays(400)
    hit = solid.hit(as_vec(start), as_vec(heading)).numpy()
    steps = np.linspace(0, 6, 3001)
    met = 0
    for o, d, t in zip(start, heading, hit, strict=True):
        within = inside(o + steps[:, None] * d)
        if within.any():
            met += 1
            assert t == pytest.approx(steps[within.argmax()], abs=3e-3)
        else:
            # A ray may cut off a corner between two steps, but then only just.
            assert t == np.inf or not inside(o + (t + np.linspace(0.004, 1, 100))[:, None] * d).any()
    assert met > 100


@pytest.mark.parametrize("name", SOLIDS)
def test_normals_point_out_and_bounds_hold(name):
    solid, inside = SOLIDS[name]
    start, heading = rays(400, seed=1)
    o, d = as_vec(start), as_vec(heading)
    t = solid.hit(o, d)
    met = torch.isfinite(t)
    point = (o + d * torch.where(met, t, 0.0)).map(lambda part: part[met])
    normal = solid.normal(point)
    assert torch.allclose(normal.length(), torch.ones(int(met.sum())), atol=1e-4)
    assert (normal.dot(d.map(lambda part: part[met])) < 1e-4).all()  # seen from outside
    points, normals = (np.stack([p.numpy() for p in (v.x, v.y, v.z)], axis=1) for v in (point, normal))
    edge = inside(points + 2e-3 * normals) | ~inside(points - 2e-3 * normals)
    assert edge.mean() < 0.02  # but for points on an edge, in is in and out is out
    center, radius = solid.bound()
    assert (np.linalg.norm(points - array(center), axis=1) <= float(radius) + 1e-3).all()


def test_every_ray_in_a_room_ends_on_its_walls():
    rng = np.random.default_rng(2)
    heading = rng.normal(size=(500, 3))
    heading[:3] = np.eye(3)
    heading /= np.linalg.norm(heading, axis=1, keepdims=True)
    room = Room((), Vec(0.0, 0.0, 1.0), Vec(3.0, 2.0, 1.0))
    o, d = as_vec(np.full((500, 3), 0.5)), as_vec(heading)
    point = o + d * room.hit(o, d)
    shares = torch.stack([(point.x / 3).abs(), (point.y / 2).abs(), (point.z - 1).abs()])
    assert torch.allclose(shares.amax(dim=0), torch.ones(500), atol=1e-4)
    assert (room.normal(point).dot(d) < 0).all()


@pytest.mark.parametrize("name", ["shapes3d", "mpi3d", "falcor3d", "isaac3d"])
def test_culling_changes_nothing(name, monkeypatch):
    rng = np.random.default_rng(3)
    levels = np.stack([rng.integers(0, size, 6) for size in make_scene(name, 16).source_sizes], axis=1)
    culled = make_scene(name, 32).render(levels)
    monkeypatch.setattr(Crowd, "_cones", lambda self, apex: None)
    assert torch.equal(make_scene(name, 32).render(levels), culled)
