"""Data: images with the sources that made them. Importing this does not load torch; rendering does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .dataset import ImageArray, Progress, SourceDataset
from .rendered import RenderedImages
from .sources import SOURCES, require_known, split_sources

__all__ = ["ImageArray", "Progress", "RenderedImages", "SourceDataset", "data_names", "load_data"]

#: The scenes that can be rendered.
RENDERED = ("shapes3d", "mpi3d", "falcor3d", "isaac3d")


def data_names() -> list[str]:
    """The names `load_data` knows."""
    return list(RENDERED)


def load_data(
    name: str,
    *,
    resolution: int = 64,
    sources: Sequence[str] | None = None,
    fixed: Mapping[str, int] | None = None,
    device: str = "cpu",
) -> SourceDataset:
    """A data set by name. Returns at once: images are rendered when they are indexed.

    Args:
        name: one of `data_names`.
        resolution: height and width of the images, 8 or more.
        sources: names of the sources that shall vary (all by default). Images are in row-major order of these, in the
            order of the data set. Every other source stays at the middle of its range, level ``size // 2``.
        fixed: levels for sources that shall not vary, where the middle is not wanted.
        device: where to render, such as ``"cpu"`` or ``"cuda"``; images come back to the host.

    >>> data = load_data("shapes3d", resolution=32, sources=["floor hue", "shape"])
    >>> data
    SourceDataset(shapes3d, rendered: 40 images of 32×32; sources: floor hue 10, shape 4; fixed: wall hue = 5, object hue = 5, scale = 4, orientation = 7)
    >>> data.images[7].shape, data.sources[7].tolist()
    ((32, 32, 3), [1, 3])
    """  # noqa: E501
    require_known(name, RENDERED, "data set")
    if isinstance(resolution, bool) or not isinstance(resolution, int) or not 8 <= resolution <= 1024:
        raise ValueError(f"resolution must be an integer from 8 to 1024, got {resolution!r}")
    table = SOURCES[name]
    varying, rest = split_sources(table, sources, fixed)
    levels = [[rest[n]] if n in rest else range(size) for n, size in table.items()]
    return SourceDataset(
        RenderedImages(name, resolution, levels, device),
        name=name,
        origin="rendered",
        source_names=varying,
        source_sizes=[table[n] for n in varying],
        fixed=rest,
    )
