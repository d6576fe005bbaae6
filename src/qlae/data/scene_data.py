"""Data sets of rendered scenes: a grid of all combinations of sources, or a random sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dataset import SourceDataset
from .rendering import RENDERER_VERSION, RenderedImages, find_rendered
from .sampling import draw_levels, smooth_sources
from .sources import CATEGORIES, SOURCES, split_sources

#: The default number of images in a random sample.
SAMPLE_SIZE = 100_000


def load_scene(
    name: str,
    resolution: int,
    *,
    sources: Sequence[str] | None = None,
    fixed: Mapping[str, int] | None = None,
    num_images: int | None = None,
    continuous: bool | Sequence[str] = False,
    correlated: Mapping[tuple[str, str], float] | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> SourceDataset:
    """Return a rendered data set, from the cache on disk if it is there. See `load_data` for the arguments."""
    varying, constant = split_sources(SOURCES[name], sources, fixed)
    levels: NDArray[Any] | None = None
    details: dict[str, Any] = {}
    if num_images is not None or correlated or continuous:
        num_images = SAMPLE_SIZE if num_images is None else num_images
        levels, details = _sample_levels(name, varying, num_images, continuous, correlated, seed)
    data = SourceDataset(
        _lazy_images(name, resolution, constant, levels, device),
        levels,
        name=name,
        origin="rendered",
        source_names=varying,
        source_sizes=[SOURCES[name][n] for n in varying],
        fixed=constant,
        details={"renderer": RENDERER_VERSION} | details,
    )
    return find_rendered(data) or data


def _sample_levels(
    name: str,
    varying: Sequence[str],
    num_images: int,
    continuous: bool | Sequence[str],
    correlated: Mapping[tuple[str, str], float] | None,
    seed: int,
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Draw random levels.

    Returns:
        Levels (n, number of varying sources), integers unless a source is continuous, and a description of the draw.
    """
    levels = draw_levels(name, varying, num_images, continuous=continuous, correlated=correlated, seed=seed)
    smooth = smooth_sources(varying, continuous, CATEGORIES.get(name, ()))
    pairs = [[*pair, value] for pair, value in (correlated or {}).items()]
    details = {"drawn": {"continuous": smooth, "correlated": pairs, "seed": seed}}
    return (levels if smooth else levels.astype(np.int64)), details


def _lazy_images(
    name: str, resolution: int, constant: Mapping[str, int], levels: NDArray[Any] | None, device: str
) -> RenderedImages:
    """Return the images of a grid or, if given, of levels (n, number of varying sources)."""
    table = SOURCES[name]
    if levels is None:
        grid = [[constant[n]] if n in constant else range(size) for n, size in table.items()]
        return RenderedImages(name, resolution, grid=grid, device=device)
    columns = iter(levels.T)
    points = np.stack(
        [np.full(len(levels), constant[n], levels.dtype) if n in constant else next(columns) for n in table], axis=1
    )
    return RenderedImages(name, resolution, points=points, device=device)
