"""Load data sets by name (rendered, registered, prepared on disk), from files or from arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import plain, require_known, whole_number
from ..observations import MAX_SIDE, MIN_SIDE, VECTORS
from . import cache
from .array_files import checksum, holds_images, is_array_file, native_resolution, read_array_file, shape_in_file
from .arrays import data_from_memory, data_from_table, is_in_memory
from .dataset import Progress, SourceDataset
from .digits import load_digits
from .generated import load_generated
from .observing import array_of_rows
from .picture_size import DEFAULT_RESOLUTION, PictureSize, wanted_size
from .registration import load_registered, registered_names, require_json
from .sampling import NoisyImages, require_noise
from .scene_data import load_scene
from .sources import BUILT_IN_SETS, BUNDLED_SETS, GENERATED_SETS, GREY_SETS, RENDERED_SETS, SOURCES
from .tables import is_table, read_table_file


def data_names() -> list[str]:
    """Return the names that `load_data` accepts without files: of built-in and of registered data sets."""
    return [*RENDERED_SETS, *GENERATED_SETS, *BUNDLED_SETS, *registered_names()]


def load_data(
    name: Any,
    *,
    resolution: int | str | tuple[int, int] | None = None,
    grey: bool = False,
    sources: Any = None,
    fixed: Mapping[str, int] | None = None,
    num_images: int | None = None,
    continuous: bool | Sequence[str] = False,
    correlated: Mapping[tuple[str, str], float] | None = None,
    noise: float = 0.0,
    seed: int = 0,
    device: str = "cpu",
    path: str | Path | None = None,
    source_file: str | Path | None = None,
    source_columns: Sequence[str] = (),
    drop_columns: Sequence[str] = (),
    kind: str | None = None,
    feature_names: Sequence[str] = (),
    progress: Progress | None = None,
    **options: Any,
) -> SourceDataset:
    """Load a data set by name, from files, or from an array.

    Rendered data returns at once: images are rendered when they are indexed, or read if `keep_on_disk` has cached them.

    Args:
        name: one of `data_names`; the path of the user's own images (a folder, an archive), of an ``.npy`` or ``.npz``
            of images, vectors or series, or of a table (CSV, Parquet); the name under which images were prepared; or
            the data themselves: an array, a tensor, a data frame, or a torch data set of map style.
        resolution: height and width of the images, from 8 to 1024; 64 by default. Image files may also be brought to
            another shape, ``"60x90"`` or ``(60, 90)`` for a height of 60 and a width of 90 pixels: they are scaled and
            cropped in the middle. Images in an ``.npy`` or ``.npz`` keep their size and channels by default. Data that
            are generated have none.
        grey: give image files one channel instead of three.
        sources: the names of the sources that vary (all by default). Images are in row-major order of these, in the
            order of the data set. Every other source stays at the middle of its range, level ``size // 2``. For data in
            memory, the sources themselves: an array (n, n_s), columns by name, or a data frame.
        fixed: levels of sources that do not vary, if they should not be at the middle.
        num_images: draw this many images, or generated rows, at random instead of all combinations once; by default
            100,000 (20,000 rows) if any source is continuous or correlated.
        continuous: ``True``, or the names of sources, that take any value in their range; `sources` are then floats.
        correlated: the correlation between pairs of sources, such as ``{("scale", "shape"): 0.5}``.
        noise: the standard deviation of Gaussian noise on the pixels, as a fraction of the range from black to white.
        seed: determines the random draw and the noise.
        device: the device that renders, such as ``"cpu"`` or ``"cuda"``; images are returned on the host.
        path: read real files from here instead of rendering: see `prepare_data`.
        source_file: for the user's own images, a CSV or ``.npy`` file with their sources.
        source_columns, drop_columns: columns of a table that are sources, and that are left out; all others are
            features.
        kind: ``"images"``, ``"vectors"`` or ``"series"``, where the shape of an array does not tell it.
        feature_names: names of the features of an array in memory.
        progress: called with (images done, number of images) while real files are prepared.
        options: further arguments for the loader of a registered data set: see `register_dataset`.

    Raises:
        ValueError: the name is unknown, or an argument is wrong or does not apply to this data.

    >>> data = load_data("shapes3d", resolution=32, sources=["floor hue", "shape"])
    >>> data
    SourceDataset(shapes3d, rendered: 40 images of 32×32; sources: floor hue 10, shape 4; fixed: wall hue = 5, object hue = 5, scale = 4, orientation = 7)
    >>> data.images[7].shape, data.sources[7].tolist()
    ((32, 32, 3), [1, 3])
    >>> load_data([[0.1, 2.0], [0.3, 1.0], [0.2, 4.0]], sources=[0, 1, 1], feature_names=["width", "height"])
    SourceDataset(array, real: 3 vectors of 2 features; sources: source 1 2)
    """  # noqa: E501
    if isinstance(name, list | tuple):
        name = array_of_rows(name)
    if not isinstance(name, str | Path):
        given = {
            "resolution": resolution,
            "grey": grey,
            "fixed": fixed,
            "num_images": num_images,
            "continuous": continuous,
        }
        given |= {"correlated": correlated, "noise": noise, "path": path, "source_file": source_file} | options
        return _load_memory(
            name, given, sources=sources, kind=kind, feature_names=feature_names, source_columns=source_columns,
            drop_columns=drop_columns,
        )  # fmt: skip
    known = {*BUILT_IN_SETS, *registered_names()}
    if isinstance(name, Path):
        name = f"./{name}" if str(name) in known else str(name)  # a path is never the name of a data set
    resolution, num_images, seed = plain(resolution), plain(num_images), whole_number("seed", seed, at_least=0)
    is_given = resolution is not None or grey
    size = wanted_size(DEFAULT_RESOLUTION if resolution is None else resolution, grey=grey)
    _check_arguments(continuous, correlated, noise)
    if feature_names:
        raise ValueError("feature_names are for arrays in memory; an .npz may have an array feature_names")
    selection: dict[str, Any] = {
        "sources": sources,
        "fixed": fixed,
        "num_images": num_images,
        "continuous": continuous,
        "correlated": correlated,
    }
    if path is None and isinstance(name, str) and name and name not in known and Path(name).exists():
        path = name
    files = {"path": path, "source_file": source_file}
    how_to_read = {"source_columns": list(source_columns), "drop_columns": list(drop_columns), "kind": kind}
    how_to_read = {key: value for key, value in how_to_read.items() if value}
    read = _reader(name, path, source_file, how_to_read, resolution if is_given else None)
    if not size.is_standard:
        _require_image_files(name, path)
    if grey and resolution is None and path is not None and is_array_file(path) and Path(path).is_file():
        raise ValueError(f"{path} is an array, which keeps its size and channels: give resolution and grey, or neither")
    if read is None and how_to_read:
        raise ValueError(f"{next(iter(how_to_read))} is for tables and arrays, and {name} is neither")
    if name in registered_names():
        require_json(options)
        arguments = {key: value for key, value in (selection | files).items() if value} | options
        data = load_registered(name, size.height, arguments, seed=seed)
    elif options:
        raise TypeError(f"load_data() got an unexpected keyword argument {next(iter(options))!r} for {name!r}")
    elif read is not None:
        _refuse_selection(selection, str(path))
        if noise:
            raise ValueError(f"noise is for images that are rendered or prepared, and does not apply to {path}")
        data = read()
    elif path is not None:
        _refuse_selection(selection, path)
        has_own_size = not is_given and keeps_its_size(name, path)
        if has_own_size:
            size = wanted_size(native_resolution(path) or size, grey=grey)
        data = prepare_data(name, path, resolution=size, sources=source_file, progress=progress)
        if has_own_size:
            _warn_of_resizing(path, size)
    elif name in SOURCES:
        if source_file is not None:
            raise ValueError("source_file is for the user's own images; rendered data has its sources")
        data = load_scene(name, size.height, **selection, seed=seed, device=device)
    elif name in (*GENERATED_SETS, *BUNDLED_SETS):
        unfit = {"resolution": is_given, "source_file": source_file, "noise": noise}
        data = _load_without_scene(name, selection, seed, unfit)
    else:
        data = _load_prepared(name, size, source_file)
        _refuse_selection(selection, name)
    recipe = _make_recipe(selection, files, noise, seed) | how_to_read | options | (data.recipe or {})
    if name in GREY_SETS or (not size.is_standard and read is None):
        recipe["resolution"] = size.plain  # which the config of such images does not hold
    data = _add_noise(data, noise, seed)
    data.recipe = recipe
    return data


def _load_without_scene(name: str, selection: Mapping[str, Any], seed: int, unfit: Mapping[str, Any]) -> SourceDataset:
    """Return a data set that is generated, or comes with scikit-learn.

    Args:
        name: of the data set.
        selection: the arguments that select or draw rows.
        seed: determines the random draw and the noise.
        unfit: arguments that do not apply, as the caller gave them.
    """
    for argument, value in unfit.items():
        if value:
            raise ValueError(f"{argument} does not apply to {name}; leave it out")
    if name in GENERATED_SETS:
        return load_generated(name, **selection, seed=seed)
    for argument, value in selection.items():
        if value:
            raise ValueError(f"{argument} is for data that are rendered or generated, and does not apply to {name}")
    return load_digits()


def _load_memory(data: Any, given: Mapping[str, Any], **options: Any) -> SourceDataset:
    """Return data that are in memory already; raise an error for arguments that apply to files and rendered data."""
    if isinstance(data, SourceDataset) or not is_in_memory(data):
        raise ValueError(
            f"load_data takes the name of a data set, a path, an array, a tensor, a data frame or a torch data set of "
            f"map style, got {type(data).__name__}"
        )
    for argument, value in given.items():
        if value not in (None, False, 0.0):
            raise ValueError(f"{argument} does not apply to data in memory; leave it out")
    return data_from_memory(data, **options)


def _reader(
    name: str, path: str | Path | None, source_file: Any, how_to_read: Mapping[str, Any], resolution: Any
) -> Callable[[], SourceDataset] | None:
    """Return a function that reads a table, or an array as it is; None for everything else.

    Args:
        name: of the data set, or its path.
        path: of the file, if there is one.
        source_file: the path of an ``.npy`` with sources.
        how_to_read: the arguments of the caller for such files.
        resolution: to which the caller wants images resized; None to leave them as they are.
    """
    if path is None or not Path(path).is_file() or name in SOURCES:
        return None
    label = None if Path(name).exists() else name
    if is_table(path):
        if source_file is not None:
            raise ValueError("the sources of a table are among its columns: name them in source_columns")
        return lambda: _read_table(Path(path), label, how_to_read)
    if is_array_file(path):
        if "source_columns" in how_to_read or "drop_columns" in how_to_read:
            raise ValueError(f"source_columns and drop_columns name columns of a table, and {path} is an array")
        kind = how_to_read.get("kind")
        if native_resolution(path, kind) is None and resolution is None:
            return lambda: read_array_file(path, sources=source_file, kind=kind, name=label)
        if not holds_images(path, kind):
            raise ValueError(f"resolution is for images of bytes; {path} is read as it is: leave resolution out")
    return None


def _read_table(path: Path, name: str | None, how_to_read: Mapping[str, Any]) -> SourceDataset:
    if how_to_read.get("kind", VECTORS) != VECTORS:
        raise ValueError(f"the rows of a table are vectors, got kind={how_to_read['kind']!r} for {path}")
    columns = {key: value for key, value in how_to_read.items() if key != "kind"}
    data = data_from_table(read_table_file(path, **columns), name=name or path.stem)
    data.checksum = checksum(data)
    return data


def _warn_of_resizing(path: str | Path, size: PictureSize) -> None:
    """Warn if images in an array do not keep their size, because the networks do not take it."""
    height, width = shape_in_file(path)[:2]
    if (height, width) != (size.height, size.width):
        warnings.warn(
            f"{path} has images of {height}×{width} pixels, and the networks take {MIN_SIDE} to {MAX_SIDE} per side: "
            f"they are resized to {size} pixels with three channels; choose a size by resolution (--resolution)",
            stacklevel=3,
        )


def keeps_its_size(name: str, path: str | Path) -> bool:
    """Return whether images in a file keep their size unless another is asked for: those in arrays of one's own."""
    return is_array_file(path) and name not in SOURCES


def is_image_files(name: str | Path) -> bool:
    """Return whether a name is the path of a folder or archive of images, each of which is a file."""
    known = isinstance(name, str) and name in {*BUILT_IN_SETS, *registered_names()}
    return not known and bool(str(name)) and Path(name).exists() and not (is_table(name) or is_array_file(name))


def prepare_data(
    name: str,
    path: str | Path,
    *,
    resolution: int | str | tuple[int, int] | PictureSize = 64,
    grey: bool = False,
    sources: str | Path | NDArray[Any] | None = None,
    progress: Progress | None = None,
) -> SourceDataset:
    """Read real files, resample them to one size and cache them on disk, where a second call finds them.

    Args:
        name: a built-in data set, whose published files are expected, or any other name for the user's own images.
        path: the file, folder or archive. See `qlae.data.files` and `qlae.data.user_images` for the formats.
        resolution: height and width of the images, as for `load_data`.
        grey: give the images one channel.
        sources: for the user's own images, a CSV or ``.npy`` file or an array with their sources.
        progress: called with (images done, number of images). Image files are counted twice, since all are checked
            before any is cached.
    """
    from .files import read_files
    from .user_images import read_user_images

    size = wanted_size(resolution, grey=grey)
    if name in SOURCES:
        if sources is not None:
            raise ValueError(f"the files of {name} have their sources: leave out sources")
        data = read_files(name, path).prepare(size, progress=progress)
        return _with_one_channel(data) if name in GREY_SETS else data
    user_name = None if Path(name).exists() else name
    images = read_user_images(path, name=user_name, sources=sources, progress=progress)
    return images.prepare(size, progress=progress)


def _with_one_channel(data: SourceDataset) -> SourceDataset:
    """Return grey images, which the cache holds in three equal channels, with one of them."""
    grey = SourceDataset(
        np.asarray(data.images)[..., :1],
        data.sources,
        name=data.name,
        origin=data.origin,
        source_names=data.source_names,
        source_sizes=data.source_sizes,
        details=data.details,
    )
    grey.checksum = data.checksum
    return grey


def _check_arguments(continuous: Any, correlated: Any, noise: Any) -> None:
    if isinstance(continuous, str):
        raise ValueError(f"continuous must be a bool or a list of names: write continuous=[{continuous!r}]")
    if correlated is not None and not isinstance(correlated, Mapping):
        raise ValueError(
            f"correlated must map pairs of sources to numbers, such as {{('a', 'b'): 0.5}}, got {correlated!r}"
        )
    require_noise(noise)


def _require_image_files(name: str, path: str | Path | None) -> None:
    """Raise an error for data that are not brought to other shapes than square RGB images."""
    if name in SOURCES or name in registered_names():
        raise ValueError(
            f"{name} has square images with channels of its own: give resolution as one number, without grey; other "
            "shapes are for image files of your own"
        )
    if path is not None and Path(path).is_file() and is_table(path):
        raise ValueError(f"resolution and grey are for images, and {path} is a table: leave them out")


def _refuse_selection(selection: Mapping[str, Any], files: str | Path) -> None:
    """Raise a ``ValueError`` if an argument selects or draws images, which is possible only for rendered data."""
    for argument, value in selection.items():
        if value:
            raise ValueError(f"{argument} is for rendered data and does not apply to the files of {files}")


def _load_prepared(name: Any, size: PictureSize, source_file: str | Path | None) -> SourceDataset:
    """Load the user's images that were prepared under a name."""
    data = cache.find_by_name(name, size) if isinstance(name, str) else None
    if data is None and isinstance(name, str) and ("/" in name or "\\" in name or Path(name).suffix):
        raise ValueError(f"there is no folder or file {name}, and no data set of that name")
    if data is None:
        try:
            require_known(name, [*BUILT_IN_SETS, *registered_names()], "data set")
        except ValueError as error:
            raise ValueError(
                f"{error}; there is no folder or file {name!r} either, and no imported module registers it"
            ) from None
    elif source_file is not None:
        raise ValueError(f"{name} was prepared with its sources: pass source_file when it is prepared")
    assert data is not None  # `require_known` raises for every other name
    return data


def _make_recipe(selection: Mapping[str, Any], files: Mapping[str, Any], noise: float, seed: int) -> dict[str, Any]:
    """Return arguments of `load_data`, fit for JSON, without defaults and without a seed that has no effect."""
    continuous, correlated = selection["continuous"], selection["correlated"] or {}
    arguments = {
        "sources": list(selection["sources"] or ()),
        "fixed": dict(selection["fixed"] or {}),
        "num_images": selection["num_images"],
        "continuous": continuous if isinstance(continuous, bool) else list(continuous),
        "correlated": [[*pair, value] for pair, value in correlated.items()],
        "noise": noise,
        "seed": seed,
        **{key: None if value is None else str(Path(value).resolve()) for key, value in files.items()},
    }
    recipe = {key: value for key, value in arguments.items() if value not in (None, False, 0.0, [], {})}
    if not recipe.keys() & {"num_images", "continuous", "correlated", "noise"}:
        recipe.pop("seed", None)
    return recipe


def _add_noise(data: SourceDataset, noise: float, seed: int) -> SourceDataset:
    if noise == 0:
        return data
    if data.observations.dtype != "uint8":
        raise ValueError(f"noise is for images of bytes, and {data.name} has {data.observations.traits.many}")
    return data.with_images(NoisyImages(data.images, noise, seed), {"noise": noise, "noise_seed": seed})
