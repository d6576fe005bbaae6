"""A contact sheet of a data set: random images, then one row per source that sweeps its values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from .dataset import SourceDataset
from .pictures import to_colours

COLUMNS = 10
GAP = 4
HEADING = 18


def contact_sheet(data: SourceDataset, path: str | Path, *, seed: int = 0, num_random: int = 2 * COLUMNS) -> Path:
    """Write a contact sheet as PNG.

    Args:
        data: any data set. Without sources, the sheet has random images only.
        path: the PNG to write. Missing folders are created.
        seed: decides which random images are shown.
        num_random: the number of random images.

    Returns:
        The path.
    """
    if len(data.observations.shape) != 3:
        raise ValueError(
            f"a contact sheet shows images, and {data.name} has {data.observations.traits.many} of "
            f"{data.observations.size}"
        )
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(data), min(num_random, len(data)), replace=False)
    strips = [("random images", rows[at : at + COLUMNS]) for at in range(0, len(rows), COLUMNS)]
    for source, name in enumerate(data.source_names):
        sweep, exact = sweep_rows(data, source, rng)
        note = "" if exact else ", other sources differ"
        strips.append((f"{name} ({data.source_sizes[source]} values{note})", sweep))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_strips(data, strips).save(path, "PNG")
    return path


def sweep_rows(data: SourceDataset, source: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], bool]:
    """Choose images in which one source runs through up to ten of its values.

    In a full grid, all other sources stay at their middle. Elsewhere, the image nearest to each value shows it.

    Returns:
        The rows, and whether all other sources are constant.
    """
    sizes = data.source_sizes
    if len(data) == np.prod(sizes) and np.issubdtype(data.sources.dtype, np.integer) and _is_grid(data):
        values = np.unique(np.linspace(0, sizes[source] - 1, min(COLUMNS, sizes[source])).round().astype(int))
        levels = np.tile([size // 2 for size in sizes], (len(values), 1))
        levels[:, source] = values
        return np.ravel_multi_index(tuple(levels.T), sizes), True
    column = data.sources[:, source]
    targets = np.unique(np.quantile(column, np.linspace(0, 1, COLUMNS), method="nearest"))
    shuffled = rng.permutation(len(column))
    return shuffled[np.abs(column[shuffled][:, None] - targets).argmin(axis=0)], False


def _is_grid(data: SourceDataset) -> bool:
    probe = np.linspace(0, len(data) - 1, min(len(data), 1000)).astype(int)
    expected = np.stack(np.unravel_index(probe, data.source_sizes), axis=1)
    return bool(np.array_equal(data.sources[probe], expected))


def draw_strips(data: SourceDataset, strips: list[tuple[str, NDArray[np.int64]]]) -> Image.Image:
    """Draw strips of images, each given as a heading and rows of the data."""
    height, width = data.observations.shape[:2]
    scale = max(1, 128 // max(height, width))  # small images are shown larger
    height, width = scale * height, scale * width
    sheet = Image.new("RGB", (COLUMNS * (width + GAP) + GAP, len(strips) * (height + GAP + HEADING) + GAP), "white")
    pen = ImageDraw.Draw(sheet)
    images = np.asarray(data.images[np.concatenate([rows for _, rows in strips])])
    images = to_colours(images, data.observations)
    remaining = iter(images)
    for i, (heading, rows) in enumerate(strips):
        top = GAP + i * (height + GAP + HEADING)
        pen.text((GAP, top), heading, fill="black")
        for k, image in zip(range(len(rows)), remaining, strict=False):
            tile = Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(tile, (GAP + k * (width + GAP), top + HEADING))
    return sheet
