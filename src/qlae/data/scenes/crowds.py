"""Solids of one kind, stacked, so that a ray meets fifty boxes as fast as one.

A scene has many solids, and each is met by few rays. Rays of one camera, or towards one lamp, all pass through one
point; so a solid's bounding sphere is a cone of directions there. A scalar product finds the (ray, solid) pairs inside
the cones, and only these are worked out exactly, all solids of a kind in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .solids import Solid
from .vectors import Vec

#: Scalar products at once when looking for pairs: few enough to stay in a core's cache.
PAIRS_AT_ONCE = {"cpu": 2**20, "cuda": 2**27}


@dataclass(frozen=True)
class Crowd:
    """Solids of one kind: every size and place of `stack` is a tensor (s, 1), or (s, b) for b pictures."""

    stack: Solid
    indices: Tensor  # (s,) place of each solid in the list they came from

    def pick(self, solids: Tensor, pictures: Tensor) -> Solid:
        """The solid of each of k pairs: sizes (s, b) → (k,)."""
        return self.stack.map(lambda value: value[solids, pictures] if value.shape[1] > 1 else value[:, 0][solids])

    def pairs(self, apex: Vec, rays: Vec, among: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs of rays from `apex` and solids that may meet, each (k,): pictures, solids, rays.

        Args:
            apex: floats or (b, 1).
            rays: unit directions (b, r).
            among: the rays (b, r) that matter; all by default.
        """
        num_pictures, num_rays = rays.x.shape
        cones = self._cones(apex)
        found = []
        at_once = PAIRS_AT_ONCE["cpu" if rays.x.device.type == "cpu" else "cuda"]
        step = 1 if cones is None else max(1, at_once // (num_pictures * num_rays))
        for first in range(0, len(self.indices), step):
            if cones is None:
                near = torch.ones(num_pictures, 1, num_rays, dtype=torch.bool, device=rays.x.device)
            else:
                axis, limit = cones  # (s, b or 1)
                some = slice(first, first + step)
                x, y, z = (part[some].T[:, :, None] for part in (axis.x, axis.y, axis.z))  # (b or 1, s, 1)
                cosine = x * rays.x[:, None]
                cosine = cosine.addcmul_(y, rays.y[:, None]).addcmul_(z, rays.z[:, None])  # (b, s, r)
                near = cosine > limit[some].T[:, :, None]
            if among is not None:
                near &= among[:, None]
            pictures, solids, at = near.nonzero(as_tuple=True)
            found.append((pictures, solids + first, at))
        pictures, solids, at = (torch.cat(parts) for parts in zip(*found, strict=True))
        return pictures, solids, at

    def _cones(self, apex: Vec) -> tuple[Vec, Tensor] | None:
        """Unit axis and cosine of the cone that holds each solid as seen from the apex: (s, b or 1).

        ``None`` if the solids are everywhere.
        """
        sphere = self.stack.bound()
        if sphere is None:
            return None
        center, radius = sphere
        offset = center - apex.map(lambda part: part.T if isinstance(part, Tensor) else part)
        away = offset.length()
        # A little wider than the solid, so that leaving the other rays out changes nothing.
        share = (radius * 1.02 + 0.01) * (1.0 / away)
        squared = 1.0 - share * share
        # From inside the sphere, it is everywhere.
        return offset * (1.0 / away), torch.where(squared > 0, squared.clamp_min(0).sqrt() - 1e-6, -2.0)


def crowds(solids: Sequence[Solid], device: torch.device) -> list[Crowd]:
    """Sort solids by kind and stack each kind, in single precision on the device."""
    kinds: dict[Any, list[int]] = {}
    for i, solid in enumerate(solids):
        kinds.setdefault(_kind(solid), []).append(i)
    return [_stacked([solids[i] for i in members], members, device) for members in kinds.values()]


def _kind(solid: Solid) -> Any:
    """Solids with equal keys have the same class and the same structure of sizes."""
    return type(solid), *(_structure(getattr(solid, name)) for name in solid.sizes())


def _structure(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_structure(part) for part in value)
    return type(value) if value is None or isinstance(value, Vec) else "number"


def _stacked(members: list[Solid], indices: list[int], device: torch.device) -> Crowd:
    parts = {name: _stack([getattr(solid, name) for solid in members], device) for name in members[0].sizes()}
    return Crowd(replace(members[0], paint=(), **parts), torch.tensor(indices, device=device))


def _stack(values: list[Any], device: torch.device) -> Any:
    """One value from s alike: numbers (floats or (b, 1)) → (s, b or 1); vectors and tuples part by part."""
    first = values[0]
    if first is None:
        return None
    if isinstance(first, Vec):
        return Vec(*(_stack([getattr(v, axis) for v in values], device) for axis in "xyz"))
    if isinstance(first, tuple):
        return tuple(_stack([v[i] for v in values], device) for i in range(len(first)))
    if not any(isinstance(v, Tensor) for v in values):
        return torch.tensor(values, dtype=torch.float32, device=device)[:, None]
    num = max(len(v) for v in values if isinstance(v, Tensor))
    rows = [v[:, 0] if isinstance(v, Tensor) else torch.full((num,), v, dtype=torch.float64) for v in values]
    return torch.stack([row.float().to(device) for row in rows])
