"""Data sets by name: rendered, kept on disk, or from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import plain, require_known, whole_number
from ..config import DataConfig
from . import cache
from .dataset import Progress, SourceDataset
from .rendered import RENDERER_VERSION, RenderedImages
from .sampled import NoisyImages, draw_levels, smooth_sources
from .sources import RENDERED, SOURCES, split_sources

#: Images drawn when sources are continuous or correlated and no number is given.
NUM_DRAWN = 100_000


def data_names() -> list[str]:
    """The names `load_data` knows without files."""
    return list(RENDERED)


def load_data(
    name: str | Path,
    *,
    resolution: int = 64,
    sources: Sequence[str] | None = None,
    fixed: Mapping[str, int] | None = None,
    num_images: int | None = None,
    continuous: bool | Sequence[str] = False,
    correlated: Mapping[tuple[str, str], float] | None = None,
    noise: float = 0.0,
    seed: int = 0,
    device: str = "cpu",
    path: str | Path | None = None,
    source_file: str | Path | None = None,
    progress: Progress | None = None,
) -> SourceDataset:
    """A data set by name. Returns at once: images are rendered when they are indexed, or read if `keep_on_disk` kept them.

    Args:
        name: one of `data_names`, the path of images of one's own, or the name they were prepared under.
        resolution: height and width of the images, 8 or more.
        sources: names of the sources that shall vary (all by default). Images are in row-major order of these, in the
            order of the data set. Every other source stays at the middle of its range, level ``size // 2``.
        fixed: levels for sources that shall not vary, where the middle is not wanted.
        num_images: draw so many images at random instead of all combinations once; 100,000 by default if any source is
            continuous or correlated.
        continuous: ``True`` or names of sources that shall take any value in their range; `sources` are then floats.
        correlated: pairs of sources and the correlation wanted between them, such as ``{("scale", "shape"): 0.5}``.
        noise: standard deviation of Gaussian noise on the pixels, as a share of the range from black to white.
        seed: of the draw and of the noise.
        device: where to render, such as ``"cpu"`` or ``"cuda"``; images come back to the host.
        path: read the real files from here instead: see `prepare_data`.
        source_file: for images of one's own, a CSV or ``.npy`` file with their sources.
        progress: called with (images done, images in all) while real files are prepared.

    >>> data = load_data("shapes3d", resolution=32, sources=["floor hue", "shape"])
    >>> data
    SourceDataset(shapes3d, rendered: 40 images of 32×32; sources: floor hue 10, shape 4; fixed: wall hue = 5, object hue = 5, scale = 4, orientation = 7)
    >>> data.images[7].shape, data.sources[7].tolist()
    ((32, 32, 3), [1, 3])
    """  # noqa: E501
    if isinstance(name, Path):
        name = f"./{name}" if str(name) in SOURCES else str(name)  # a path is never the name of a data set
    kept = None
    resolution, num_images, seed = plain(resolution), plain(num_images), whole_number("seed", seed, at_least=0)
    if isinstance(continuous, str):
        raise ValueError(f"continuous is true or a list of names: write continuous=[{continuous!r}]")
    if correlated is not None and not isinstance(correlated, Mapping):
        raise ValueError(
            f"correlated maps pairs of sources to numbers, such as {{('a', 'b'): 0.5}}, got {correlated!r}"
        )
    if isinstance(resolution, bool) or not isinstance(resolution, int) or not 8 <= resolution <= 1024:
        raise ValueError(f"resolution must be an integer from 8 to 1024, got {resolution!r}")
    if path is None and isinstance(name, str) and name and name not in SOURCES and Path(name).exists():
        path = name
    if path is None and isinstance(name, str) and name not in SOURCES:
        kept = cache.named(name, resolution)
        if kept is None and ("/" in name or "\\" in name or Path(name).suffix):
            raise ValueError(f"there is no folder or file {name}, and no data set of that name")
    if path is not None or kept is not None:
        choices = {"sources": sources, "fixed": fixed, "num_images": num_images, "correlated": correlated}
        for argument, value in {**choices, "continuous": continuous}.items():
            if value:
                raise ValueError(f"{argument} is for rendered data; the files at {path or name} are as they are")
    if kept is not None:
        if source_file is not None:
            raise ValueError(f"{name} was prepared with its sources; give source_file when it is prepared")
        data = kept
    elif path is not None:
        data = prepare_data(name, path, resolution=resolution, sources=source_file, progress=progress)
    elif source_file is not None:
        raise ValueError("source_file is for images of one's own; rendered data has its sources")
    else:
        data = _rendered_data(name, resolution, sources, fixed, num_images, continuous, correlated, seed, device)
    data = _with_noise(data, noise, seed)
    data.recipe = _recipe(
        sources=list(sources or ()),
        fixed=dict(fixed or {}),
        num_images=num_images,
        continuous=continuous if isinstance(continuous, bool) else list(continuous),
        correlated=[[*pair, value] for pair, value in (correlated or {}).items()],
        noise=noise,
        seed=seed,
        path=None if path is None else str(Path(path).resolve()),
        source_file=None if source_file is None else str(Path(source_file).resolve()),
    )
    return data


def load_again(
    name: str, resolution: int, recipe: Mapping[str, Any], *, progress: Progress | None = None
) -> SourceDataset:
    """The data that a recipe describes: `load_data` with what it was called with.

    >>> data = load_data("shapes3d", resolution=16, sources=["scale", "shape"], correlated={("scale", "shape"): 0.5})
    >>> again = load_again("shapes3d", 16, data.recipe)
    >>> bool((again.sources == data.sources).all())
    True
    """
    arguments = dict(recipe)
    if "correlated" in arguments:
        arguments["correlated"] = {(first, second): value for first, second, value in arguments["correlated"]}
    return load_data(name, resolution=resolution, progress=progress, **arguments)


def data_of(config: DataConfig) -> SourceDataset:
    """The data behind a run's config, where its recipe is enough to make it again."""
    if config.recipe is None:
        raise ValueError(f"{config.name} came from arrays that only its maker has; evaluate with data=…")
    data = load_again(config.name, config.resolution, config.recipe)
    if len(data) != config.num_images:
        raise ValueError(f"{config.name} had {config.num_images:,} images when it was trained, now {len(data):,}")
    if config.checksum is not None and data.checksum not in (None, config.checksum):
        raise ValueError(
            f"{config.name} has other images than when it was trained, though as many: put the files back as they were"
        )
    return data


def data_config(data: SourceDataset) -> DataConfig:
    """What a config says of a data set, from which `load_again` makes it again."""
    return DataConfig(
        name=data.name,
        resolution=data.resolution,
        origin=data.origin,
        num_images=len(data),
        source_names=data.source_names,
        recipe=data.recipe,
        checksum=data.checksum,
    )


def _recipe(**arguments: Any) -> dict[str, Any]:
    """The arguments that say something; the seed only where something was drawn from it."""
    said = {name: value for name, value in arguments.items() if value not in (None, False, 0.0, [], {})}
    if not said.keys() & {"num_images", "continuous", "correlated", "noise"}:
        said.pop("seed", None)
    return said


def _rendered_data(
    name: str,
    resolution: int,
    sources: Sequence[str] | None,
    fixed: Mapping[str, int] | None,
    num_images: int | None,
    continuous: bool | Sequence[str],
    correlated: Mapping[tuple[str, str], float] | None,
    seed: int,
    device: str,
) -> SourceDataset:
    if name in SOURCES and name not in RENDERED:
        raise ValueError(f"{name} is not rendered: give the path of its files")
    try:
        require_known(name, SOURCES, "data set")
    except ValueError as error:
        raise ValueError(f"{error}; and there is no folder or file {name!r}") from None
    varying, rest = split_sources(SOURCES[name], sources, fixed)
    drawn: NDArray[Any] | None = None
    details: dict[str, Any] = {}
    if num_images is not None or correlated or continuous:
        drawn, details = _drawn(
            name, varying, NUM_DRAWN if num_images is None else num_images, continuous, correlated, seed
        )
    data = SourceDataset(
        _rendered(name, resolution, rest, drawn, device),
        drawn,
        name=name,
        origin="rendered",
        source_names=varying,
        source_sizes=[SOURCES[name][n] for n in varying],
        fixed=rest,
        details={"renderer": RENDERER_VERSION} | details,
    )
    return cache.find(data.describe()) or data


def prepare_data(
    name: str,
    path: str | Path,
    *,
    resolution: int = 64,
    sources: str | Path | NDArray[Any] | None = None,
    progress: Progress | None = None,
) -> SourceDataset:
    """Read real files, resample them to one size and keep them on disk; a second call finds them there.

    Args:
        name: a known data set, whose published files are expected; any other name is for images of one's own.
        path: the file, folder or archive. See `qlae.data.files` and `qlae.data.own` for what they may be.
        resolution: height and width of the images.
        sources: for images of one's own, a CSV or ``.npy`` file or an array with their sources.
        progress: called with (images done, images in all); of pictures twice, as all are looked at before any is kept.
    """
    from .files import read_files
    from .own import read_own

    if name in SOURCES:
        if sources is not None:
            raise ValueError(f"the files of {name} have their sources: leave out sources")
        return read_files(name, path).prepare(resolution, progress=progress)
    own_name = None if Path(name).exists() else name
    return read_own(path, name=own_name, sources=sources, progress=progress).prepare(resolution, progress=progress)


def _with_noise(data: SourceDataset, noise: float, seed: int) -> SourceDataset:
    if noise == 0:
        return data
    return data.with_images(NoisyImages(data.images, noise, seed), {"noise": noise, "noise_seed": seed})


def _drawn(
    name: str,
    varying: Sequence[str],
    num_images: int,
    continuous: bool | Sequence[str],
    correlated: Mapping[tuple[str, str], float] | None,
    seed: int,
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Random levels (n, number of varying sources), integers unless any is continuous, and how they were drawn."""
    levels = draw_levels(name, varying, num_images, continuous=continuous, correlated=correlated, seed=seed)
    smooth = smooth_sources(name, varying, continuous)
    pairs = [[*pair, value] for pair, value in (correlated or {}).items()]
    details = {"drawn": {"continuous": smooth, "correlated": pairs, "seed": seed}}
    return (levels if smooth else levels.astype(np.int64)), details


def _rendered(
    name: str, resolution: int, fixed: Mapping[str, int], drawn: NDArray[Any] | None, device: str
) -> RenderedImages:
    """The images of a grid, or of drawn levels (n, number of varying sources)."""
    table = SOURCES[name]
    if drawn is None:
        grid = [[fixed[n]] if n in fixed else range(size) for n, size in table.items()]
        return RenderedImages(name, resolution, grid=grid, device=device)
    columns = iter(drawn.T)
    points = np.stack(
        [np.full(len(drawn), fixed[n], drawn.dtype) if n in fixed else next(columns) for n in table], axis=1
    )
    return RenderedImages(name, resolution, points=points, device=device)
