"""Load data sets by name (rendered, generated, registered, prepared on disk), from files, or from memory.

`data_spec` turns a word and options into the description of a data set (`spec.py`), of which each kind has a module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._checks import nearest_name
from ..config import DataConfig
from ..registry import DATA
from . import cache
from .array_files import ArrayFile, is_array_file
from .dataset import Progress, SourceDataset
from .generated import GeneratedData
from .image_files import ImageFiles, PreparedImages
from .in_memory import InMemory, is_in_memory
from .published import BundledData, PublishedFiles
from .registration import RegisteredData, registered_names, split_registered_options
from .rendered import RenderedImages, SceneData
from .sources import BUILT_IN_SETS, BUNDLED_SETS, GENERATED_SETS, RENDERED_SETS, SOURCES
from .spec import DataSpec, build_spec
from .tables import TableFile, is_table


def data_names() -> list[str]:
    """Return the names that `load_data` accepts without files: of built-in and of registered data sets."""
    return [*RENDERED_SETS, *GENERATED_SETS, *BUNDLED_SETS, *registered_names()]


def load_data(name: Any, *, progress: Progress | None = None, device: str = "cpu", **options: Any) -> SourceDataset:
    """Load a data set by name, from files, or from an array.

    Rendered data returns at once: images are rendered when they are indexed, or read if `keep_on_disk` has cached them.

    Args:
        name: one of `data_names`; the path of images (a folder, an archive), of an ``.npy`` or ``.npz`` of images,
            vectors or series, or of a table (CSV, Parquet); the name under which images were prepared; or the data
            themselves: an array, a tensor, a data frame, or a torch data set of map style.
        progress: called with (images done, number of images) while files are prepared.
        device: the device that renders, such as ``"cpu"`` or ``"cuda"``; images are returned on the host.
        options: each kind of data takes some of these.

            - ``resolution``: height and width of the images, from 8 to 1024; 64 by default. Image files may also be
              brought to another shape, ``"60x90"`` or ``(60, 90)`` for a height of 60 and a width of 90 pixels: they
              are scaled and cropped in the middle. Images in an ``.npy`` or ``.npz`` keep their size and channels by
              default.
            - ``grey``: give image files one channel instead of three.
            - ``sources``: the names of the sources that vary in a rendered or generated set (all by default). Images
              are in row-major order of these, in the order of the data set. Every other source stays at the middle of
              its range, level ``size // 2``. For data in memory, the sources themselves: an array (n, n_s), columns by
              name, or a data frame.
            - ``fixed``: levels of sources that do not vary, if they should not be at the middle.
            - ``num_images``: draw this many images, or generated rows, at random instead of all combinations once; by
              default 100,000 (20,000 rows) if any source is continuous or correlated.
            - ``continuous``: ``True``, or the names of sources, that take any value in their range; the sources are
              then floats.
            - ``correlated``: the correlation between pairs of sources, such as ``{("scale", "shape"): 0.5}``.
            - ``noise``: the standard deviation of Gaussian noise on the pixels, as a fraction of the range from black
              to white.
            - ``seed``: determines the random draw and the noise.
            - ``path``: files of the data set, if `name` is not their path: published files of a built-in set, which are then
              read instead of rendering, or any others.
            - ``source_file``: a CSV (for image files) or ``.npy`` file with sources.
            - ``source_columns``, ``drop_columns``: columns of a table that are sources, and that are left out; all
              others are features.
            - ``layout``: ``"images"``, ``"vectors"`` or ``"series"``, where the shape of an array is ambiguous.
            - ``feature_names``: names of the features of an array in memory.
            - arguments for the loader of a registered data set: see `register_dataset`.

    Raises:
        ValueError: the name is unknown, or an option is wrong or does not apply to these data.

    >>> data = load_data("shapes3d", resolution=32, sources=["floor hue", "shape"])
    >>> data
    SourceDataset(shapes3d, rendered: 40 images of 32×32; sources: floor hue 10, shape 4; fixed: wall hue = 5, object hue = 5, scale = 4, orientation = 7)
    >>> data.images[7].shape, data.sources[7].tolist()
    ((32, 32, 3), [1, 3])
    >>> load_data([[0.1, 2.0], [0.3, 1.0], [0.2, 4.0]], sources=[0, 1, 1], feature_names=["width", "height"])
    SourceDataset(array, real: 3 vectors of 2 features; sources: source 1 2)
    """  # noqa: E501
    data = data_spec(name, **options).load(progress=progress)
    if device != "cpu" and isinstance(data.images, RenderedImages):
        return data.with_images(data.images.on(device))
    return data


def data_spec(name: Any, **options: Any) -> DataSpec:
    """Return the description of a data set from a word and options; arguments as for `load_data`.

    Nothing is read or rendered. ``DATA.to_dict(spec)`` is its form in ``config.json``.

    >>> data_spec("pendulum", num_images=50).load()
    SourceDataset(pendulum, generated: 50 series of 32 time steps of 2 channels; sources: length 10, damping 10, angle 10, velocity 10)
    """  # noqa: E501
    if not isinstance(name, str | Path):
        if isinstance(name, SourceDataset) or not is_in_memory(name):
            raise ValueError(
                f"load_data takes the name of a data set, a path, an array, a tensor, a data frame or a torch data set "
                f"of map style, got {type(name).__name__}"
            )
        return build_spec(InMemory, {"data": name} | options)
    path = options.pop("path", None)
    kind = None if isinstance(name, Path) else _kind_of_name(name, path)
    if kind is RegisteredData:
        return build_spec(kind, split_registered_options({"name": name, "path": path} | options))
    if kind is not None:
        return build_spec(kind, {"name": name} | options | ({} if path is None else {"path": path}))
    if path is None and str(name) and Path(name).exists():
        path = name
    name = f"./{name}" if isinstance(name, Path) and "/" not in str(name) else str(name)
    if path is None:
        return _spec_of_prepared(name, options)
    is_path = "/" in name or "\\" in name or not name.strip(".") or name == Path(path).name  # "." and ".." too
    return build_spec(_kind_of_file(path), options | {"path": path, "name": "" if is_path else name})


def _kind_of_name(name: str, path: Any) -> type[DataSpec] | None:
    """Return the kind of a data set that is known by its name; None for any other word."""
    if name in SOURCES:
        return SceneData if path is None else PublishedFiles
    if name in registered_names():
        return RegisteredData
    if name in GENERATED_SETS:
        return GeneratedData
    if name in BUNDLED_SETS:
        return BundledData
    return DATA[name].config if name in DATA and not DATA[name].is_ours else None


def _kind_of_file(path: str | Path) -> type[DataSpec]:
    if Path(path).is_dir():
        return ImageFiles
    return TableFile if is_table(path) else ArrayFile if is_array_file(path) else ImageFiles


def _spec_of_prepared(name: str, options: dict[str, Any]) -> DataSpec:
    """Return the description of images that were prepared under a name, or raise an error for an unknown name."""
    spec = build_spec(PreparedImages, {"name": name} | options)
    if cache.entries(name):
        return spec
    if "/" in name or "\\" in name or Path(name).suffix:
        raise ValueError(f"there is no folder or file {name}, and no data set of that name")
    known = nearest_name(name, [*BUILT_IN_SETS, *registered_names()])
    raise ValueError(
        f"unknown data set {name!r}: {known}; there is no folder or file {name!r} either, and no imported module "
        "registers it"
    )


def load_from_config(config: DataConfig) -> SourceDataset:
    """Load the data of a run from its config.

    Raises:
        ValueError: the data were in memory, or have changed since the run was trained.
    """
    if config.spec is None:
        raise ValueError(f"{config.name} was passed as arrays, which a run does not store: pass them again as data=…")
    data: SourceDataset = config.spec.load()
    many = data.observations.traits.many
    if len(data) != config.num_images:
        raise ValueError(
            f"{config.name} had {config.num_images:,} {many} when the model was trained, but has {len(data):,} now"
        )
    if config.checksum is not None and data.checksum not in (None, config.checksum):
        raise ValueError(
            f"{config.name} has other {many} than when the model was trained, although the same number: "
            "restore the original files"
        )
    return data


def data_config(data: SourceDataset) -> DataConfig:
    """Return the config of a data set, from which `load_from_config` loads it again.

    Arrays in memory cannot be loaded again; their checksum shows whether a run gets the same ones another time.
    """
    is_callers_array = data.spec is None and isinstance(data.images, np.ndarray)
    return DataConfig(
        name=data.name,
        observations=data.observations,
        origin=data.origin,
        num_images=len(data),
        source_names=data.source_names,
        spec=data.spec,
        checksum=data.compute_checksum() if data.checksum is None and is_callers_array else data.checksum,
    )


def unread_config(spec: DataSpec) -> DataConfig:
    """Return the config of data as far as it is known before files are read; the number of sources is not."""
    return DataConfig(spec.name, spec.preview(), origin="real", source_names=("unread",), spec=spec)
