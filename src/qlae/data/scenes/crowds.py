"""Crowds: solids of one kind in stacked tensors, so that intersecting fifty boxes takes the calls of one.

A scene has many solids, and few rays hit each of them. The rays of one camera, or to one lamp, all pass through one
point, where the bounding sphere of a solid is a cone of directions. A scalar product selects the (ray, solid) pairs
inside the cones; only these are intersected exactly, all solids of a kind at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .solids import Solid
from .vectors import Vec

#: Scalar products computed at once in the search for pairs: few enough to stay in a core's cache.
PAIRS_AT_ONCE = {"cpu": 2**20, "cuda": 2**27}


@dataclass(frozen=True)
class Crowd:
    """Solids of one kind.

    Attributes:
        stack: a solid whose sizes and places are tensors (s, 1), or (s, b) for b pictures.
        indices: (s,) the index of each solid in the list they came from.
    """

    stack: Solid
    indices: Tensor

    def pick(self, solids: Tensor, pictures: Tensor) -> Solid:
        """Return the solid of each of k pairs, with sizes (k,)."""
        return self.stack.map(lambda value: value[solids, pictures] if value.shape[1] > 1 else value[:, 0][solids])

    def pairs(self, apex: Vec, rays: Vec, among: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the pairs of rays and solids that may intersect.

        Args:
            apex: the point where all rays start, as floats or (b, 1).
            rays: unit directions (b, r).
            among: a mask (b, r) of the rays to consider; all by default.

        Returns:
            The indices of pictures, solids and rays, each (k,).
        """
        num_pictures, num_rays = rays.x.shape
        cones = self._cones(apex)
        pairs = []
        at_once = PAIRS_AT_ONCE["cpu" if rays.x.device.type == "cpu" else "cuda"]
        step = 1 if cones is None else max(1, at_once // (num_pictures * num_rays))
        for first in range(0, len(self.indices), step):
            if cones is None:
                near = torch.ones(num_pictures, 1, num_rays, dtype=torch.bool, device=rays.x.device)
            else:
                axis, limit = cones  # (s, b or 1)
                chunk = slice(first, first + step)
                x, y, z = (part[chunk].T[:, :, None] for part in (axis.x, axis.y, axis.z))  # (b or 1, s, 1)
                cosine = x * rays.x[:, None]
                cosine = cosine.addcmul_(y, rays.y[:, None]).addcmul_(z, rays.z[:, None])  # (b, s, r)
                near = cosine > limit[chunk].T[:, :, None]
            if among is not None:
                near &= among[:, None]
            pictures, solids, ray = near.nonzero(as_tuple=True)
            pairs.append((pictures, solids + first, ray))
        pictures, solids, ray = (torch.cat(parts) for parts in zip(*pairs, strict=True))
        return pictures, solids, ray

    def _cones(self, apex: Vec) -> tuple[Vec, Tensor] | None:
        """Return unit axis and cosine of the cone around each solid at the apex, each (s, b or 1).

        ``None`` if the solids have no bounding sphere.
        """
        sphere = self.stack.bound()
        if sphere is None:
            return None
        center, radius = sphere
        offset = center - apex.map(lambda part: part.T if isinstance(part, Tensor) else part)
        distance = offset.length()
        # A little wider than the solid, so that leaving out the other rays changes nothing.
        sine = (radius * 1.02 + 0.01) * (1.0 / distance)
        squared = 1.0 - sine * sine
        # From inside the sphere, the solid may be in any direction.
        return offset * (1.0 / distance), torch.where(squared > 0, squared.clamp_min(0).sqrt() - 1e-6, -2.0)


def group_solids(solids: Sequence[Solid], device: torch.device) -> list[Crowd]:
    """Group solids by kind and stack each group, in single precision on the device."""
    kinds: dict[Any, list[int]] = {}
    for i, solid in enumerate(solids):
        kinds.setdefault(_kind(solid), []).append(i)
    return [_stack_solids([solids[i] for i in members], members, device) for members in kinds.values()]


def _kind(solid: Solid) -> Any:
    """Return a key that is equal for solids with the same class and the same structure of sizes."""
    return type(solid), *(_structure(getattr(solid, name)) for name in solid.sizes())


def _structure(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_structure(part) for part in value)
    return type(value) if value is None or isinstance(value, Vec) else "number"


def _stack_solids(members: list[Solid], indices: list[int], device: torch.device) -> Crowd:
    parts = {name: _stack_values([getattr(solid, name) for solid in members], device) for name in members[0].sizes()}
    return Crowd(replace(members[0], paint=(), **parts), torch.tensor(indices, device=device))


def _stack_values(values: list[Any], device: torch.device) -> Any:
    """Stack s numbers, each a float or (b, 1), to (s, b or 1); vectors and tuples component by component."""
    first = values[0]
    if first is None:
        return None
    if isinstance(first, Vec):
        return Vec(*(_stack_values([getattr(v, axis) for v in values], device) for axis in "xyz"))
    if isinstance(first, tuple):
        return tuple(_stack_values([v[i] for v in values], device) for i in range(len(first)))
    if not any(isinstance(v, Tensor) for v in values):
        return torch.tensor(values, dtype=torch.float32, device=device)[:, None]
    num = max(len(v) for v in values if isinstance(v, Tensor))
    rows = [v[:, 0] if isinstance(v, Tensor) else torch.full((num,), v, dtype=torch.float64) for v in values]
    return torch.stack([row.float().to(device) for row in rows])
