"""Load data sets by name (rendered, generated, registered, prepared on disk), from files, or from memory.

`data_spec` turns a word and options into the description of a data set (`spec.py`). The kinds of registered data and of
data in memory are in this file; each other kind has a module.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._checks import nearest_name
from ..config import DataConfig, HeldOut
from ..observations import SERIES, Observations
from ..registry import DATA
from . import cache
from .anndata_files import AnnDataFile, CellsInMemory, is_anndata, is_anndata_file, is_sparse
from .array_files import ArrayFile, is_array_file
from .dataset import Progress, SourceDataset, as_array, observe, tensor_to_array
from .generated import GeneratedData
from .image_files import ImageFiles, PreparedImages
from .published import BundledData, PublishedFiles
from .recordings import OPTIONS as RECORDING_OPTIONS
from .recordings import Cutting, RecordingFile, columns_in_use, windows_of_array, windows_of_frame
from .rendered import SceneData
from .sources import (
    BUILT_IN_SETS,
    BUNDLED_SETS,
    GENERATED_SETS,
    RENDERED_SETS,
    SOURCES,
    named_columns,
    source_rows,
    source_values,
)
from .spec import DataSpec, SquareImages, UserData, build_spec
from .table_columns import ColumnChoices
from .table_files import distinct_names, is_table, refuse
from .tables import TableFile, dataset_of_table, group_labels, is_frame, raw_frame

Loader = Callable[..., SourceDataset]

NAME = "array"  # of data in memory that came without one
NO_DATA = (str, bytes, dict, set, range)
LABELS = "labels"  # the sources of a torch data set whose items are pairs

#: name → the function that loads a data set, and the module that registered it
_REGISTRATIONS: dict[str, tuple[Loader, str]] = {}


def data_names() -> list[str]:
    """Return the names that `load_data` accepts without files: of built-in and of registered data sets."""
    return [*RENDERED_SETS, *GENERATED_SETS, *BUNDLED_SETS, *registered_names()]


def load_data(name: Any, *, progress: Progress | None = None, **options: Any) -> SourceDataset:
    """Load a data set by name, from files, or from an array.

    Rendered data returns at once: images are rendered when they are indexed, or read if `keep_on_disk` has cached them.

    Args:
        name: one of `data_names`; the path of images (a folder, an archive), of an ``.npy``, ``.npz`` or
            ``.safetensors`` of images, vectors or series, of a table (CSV, Parquet), or of an AnnData (``.h5ad``); the name under which images were
            prepared; or the data themselves: an array, a tensor, a data frame, an AnnData, a sparse matrix, or a torch
            data set of map style.
        progress: called with (images done, number of images) while files are prepared.
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
            - ``source_columns``, ``drop_columns``: columns of a table that are sources, and that are left out. All
              others are features, except identifiers of rows, which are recognised and kept as ``data.ids``.
            - ``feature_columns``: the only features of a table, also if they look like identifiers.
            - ``column_kinds``: columns of a table that are to be used otherwise, such as ``{"key": "number"}`` or
              ``{"batch": "category"}``; kinds are ``number``, ``category``, ``date`` and ``identifier``.
            - ``date_parts``: cyclic parts of dates to observe as well, of ``hour``, ``weekday`` and ``month``.
            - ``decimal``: ``","`` for a CSV whose numbers have decimal commas.
            - ``hold_out``: the share of rows of your own data that is kept out of the training and scored separately:
              0.1 by default, at most 10,000 rows, and 0 for none. It depends on the number of rows, not on a seed.
            - ``group_column``: a column of a table, or of a CSV with sources of images, such as the patient. All rows
              with the same value are on one side of that split. For data in memory, ``groups`` has the labels (n,).
            - ``layout``: ``"images"``, ``"vectors"`` or ``"series"``, where the shape of an array is ambiguous.
            - ``array``: the array of an ``.npz`` or ``.safetensors`` with the observations, if it has several.
            - ``feature_names``: names of the features of an array in memory.
            - ``layer``, ``normalize``, ``log1p``: of an AnnData, in memory or in an ``.h5ad``, or a sparse matrix: the
              layer to take instead of ``X``, the total to which the counts of each cell are scaled, and whether to take
              log(1 + count). ``source_columns`` are columns of its ``obs``, ``feature_columns`` some of its genes.
            - ``window``, ``stride``: cut recordings, which are tables or arrays with one row per time step, into
              windows of so many rows, each so many rows after the one before (by default a quarter of a window).
            - ``unit_column``, ``time_column``: the columns of such a table with the unit and the time of each row.
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
    return data_spec(name, **options).load(progress=progress)


def data_spec(name: Any, **options: Any) -> DataSpec:
    """Return the description of a data set from a word and options; arguments as for `load_data`.

    Nothing is read or rendered. ``DATA.to_dict(spec)`` is its form in ``config.json``.

    >>> data_spec("pendulum", num_images=50).load()
    SourceDataset(pendulum, generated: 50 series of 32 time steps of 2 channels; sources: length 10, damping 10, angle 10, velocity 10)
    """  # noqa: E501
    if is_anndata(name) or is_sparse(name):
        return build_spec(CellsInMemory, {"data": name} | options)
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
    return build_spec(_kind_of_file(path, options), options | {"path": path, "name": "" if is_path else name})


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


def _kind_of_file(path: str | Path, options: Mapping[str, Any]) -> type[DataSpec]:
    if Path(path).is_dir():
        return ImageFiles
    if any(options.get(option) is not None for option in RECORDING_OPTIONS):
        return RecordingFile
    if is_table(path) and options.get("layout") == SERIES:
        raise ValueError(f"{path} is a table: to take its rows as time steps, choose a window, such as window=64")
    if is_anndata_file(path):
        return AnnDataFile
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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*these columns identify rows")  # said when the run was configured
        data: SourceDataset = hold_out_as(config, config.spec.load())
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


def hold_out_as(config: DataConfig, data: SourceDataset) -> SourceDataset:
    """Return the data of a run with those rows held out that were held out when it was trained.

    Raises:
        ValueError: other rows would be held out, since the rows have other groups.
    """
    was = config.held_out
    share = 0.0 if was is None else was.share
    if data.hold_out != share:
        data = data.with_hold_out(share)
    if was is not None and len(data) == config.num_images and held_out_config(data) != was:
        raise ValueError(
            f"the groups of {config.name} differ from those that the model was trained with, so other rows would be "
            "held out: pass the same groups (group_column or groups)"
        )
    return data


def held_out_config(data: SourceDataset) -> HeldOut | None:
    """Return the description of the rows that are held out; None if there are none."""
    training, held_out = data.split
    if not len(held_out):
        return None
    rows = np.concatenate([training, held_out]).astype("<i8")
    return HeldOut(data.hold_out, len(held_out), len(training), hashlib.sha256(rows.tobytes()).hexdigest())


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
        held_out=held_out_config(data),
    )


def unread_config(spec: DataSpec) -> DataConfig:
    """Return the config of data as far as it is known before files are read; the number of sources is not."""
    return DataConfig(spec.name, spec.preview(), origin="real", source_names=("unread",), spec=spec)


def _accepts(loader: Loader, option: str) -> bool:
    parameters = inspect.signature(loader).parameters
    return option in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def register_dataset(name: str, loader: Loader) -> None:
    """Register a data set, so that `load_data`, the command line and study plans find it by its name.

    A run stores the name of the module that made this call, not the images. Whoever loads the data of the run imports
    that module first, on the command line with ``--import MODULE``.

    Args:
        name: the name; letters, digits and ``. _ -`` only. The same module may register it again.
        loader: called as ``loader(resolution=…, **options)``, returns a `SourceDataset`, and returns the same data
            whenever it gets the same arguments. Square RGB images have that resolution; other observations may ignore
            it. Options are numbers, texts, lists and dictionaries, since ``config.json`` stores them; ``seed`` is
            passed on if the loader has such a parameter. `load_data` adds noise to the pixels itself. No rows are held
            out by default, unless the loader returns ``data.with_hold_out(0.1)``.

    Raises:
        ValueError: the name is taken, or has other characters.

    Example::

        def load_greys(resolution, num_greys=4):
            greys = np.linspace(0, 255, num_greys).astype(np.uint8)
            images = np.tile(greys[:, None, None, None], (1, resolution, resolution, 3))
            return SourceDataset(images, np.arange(num_greys), name="greys", origin="rendered")

        register_dataset("greys", load_greys)
        data = qlae.load_data("greys", resolution=16, num_greys=8)
    """
    if not isinstance(name, str) or not name or cache.safe_name(name) != name:
        raise ValueError(f"the name of a data set must consist of letters, digits and . _ -, got {name!r}")
    if name in BUILT_IN_SETS:
        raise ValueError(f"{name!r} is a built-in data set: choose another name")
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    _, other = _REGISTRATIONS.get(name, (None, module))
    if other != module:
        raise ValueError(f"{name!r} is registered by the module {other} already: choose another name")
    _REGISTRATIONS[name] = loader, module


def registered_names() -> list[str]:
    """Return the names of all registered data sets."""
    return list(_REGISTRATIONS)


@DATA.register("registered")
@dataclass(frozen=True, kw_only=True)
class RegisteredData(UserData, SquareImages):
    """A data set that `register_dataset` made known. Observations that are no square images may ignore the resolution.

    Attributes:
        options: further arguments of the loader.
        registered_by: the module that registered the data set, which is to be imported before they are loaded.
    """

    title: ClassVar[str] = "the registered data set"
    default_hold_out: ClassVar[float | None] = None  # as the loader says

    options: dict[str, Any] = field(default_factory=dict)
    registered_by: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name not in _REGISTRATIONS:
            return
        loader, module = _REGISTRATIONS[self.name]
        for option in self.options:
            if not _accepts(loader, option):
                takes = ", ".join(inspect.signature(loader).parameters)
                raise ValueError(f"the data set {self.name!r} has no option {option!r}: its loader takes {takes}")
        self._set(registered_by=module)

    @property
    def is_random(self) -> bool:
        return super().is_random or self.name not in _REGISTRATIONS or _accepts(_REGISTRATIONS[self.name][0], "seed")

    def preview(self) -> Observations:
        return self.load().observations

    def read(self, progress: Progress | None = None) -> SourceDataset:
        if self.name not in _REGISTRATIONS:
            module = self.registered_by
            way = f"import the module {module} first, which registers it (on the command line: --import {module})"
            if module == "__main__":
                way = "a script or a notebook registered it; call qlae.data.register_dataset again before loading it"
            raise ValueError(f"the data set {self.name!r} is not registered: {way}")
        loader = _REGISTRATIONS[self.name][0]
        seeds = {"seed": self.seed} if _accepts(loader, "seed") else {}
        data = loader(resolution=self.resolution, **self.options, **seeds)
        if not isinstance(data, SourceDataset):
            raise ValueError(f"the loader of {self.name!r} must return a SourceDataset, got {type(data).__name__}")
        if data.observations.is_standard and data.resolution != self.resolution:
            raise ValueError(
                f"the loader of {self.name!r} returned images of {data.resolution}×{data.resolution} pixels for "
                f"resolution={self.resolution}"
            )
        data = copy.copy(data)  # the loader may return the same object every time
        data.name = self.name
        return data


def split_registered_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `RegisteredData` from a user's options, of which all others are those of the loader."""
    own = {name: options[name] for name in ("name", "resolution", "noise", "seed", "hold_out") if name in options}
    others = {name: value for name, value in options.items() if name not in own and value is not None}
    others = {name: str(value) if isinstance(value, Path) else value for name, value in others.items()}
    try:
        json.dumps(others, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options of a data set must be fit for JSON, got {others!r} ({error})") from None
    return own | {"options": others}


def is_in_memory(data: Any) -> bool:
    """Return whether an object holds data: an array, tensor, data frame, list of rows, or map-style data set."""
    is_map_style = hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, NO_DATA)
    return isinstance(data, list | tuple) or _is_array(data) or is_frame(data) or is_map_style


@dataclass(frozen=True, kw_only=True, eq=False)
class InMemory(UserData):
    """Data in memory. A run cannot store them, so the data set that is returned has no spec.

    Attributes:
        data: an array, tensor or list of rows: images (n, h, w, c), vectors (n, d) or series (n, t, c); a data frame,
            whose columns are features; or a torch data set whose items are observations, or tuples that begin with
            one. Images in tensors may have their channels first.
        sources: an array (n, n_s) or (n,), columns by name, or a data frame; ``"labels"`` for the second entries of a
            torch data set's items.
        layout, feature_names: as for `SourceDataset`.
        source_columns, drop_columns, feature_columns, column_kinds, date_parts: of a data frame, as for a file.
        window, stride, unit_column, time_column: how recordings are cut into windows; see `Cutting`.
        group_column: a column of a data frame whose equal values stay together when rows are held out; no feature.
        groups: (n,) labels for the same purpose, for any data.
    """

    title: ClassVar[str] = "data in memory"

    name: str = NAME
    data: Any
    sources: Any = None
    layout: str | None = None
    feature_names: Sequence[str] = ()
    source_columns: Sequence[str] = ()
    drop_columns: Sequence[str] = ()
    feature_columns: Sequence[str] = ()
    column_kinds: Mapping[str, str] = field(default_factory=dict)
    date_parts: Sequence[str] = ()
    window: int = 0
    stride: int | None = None
    unit_column: str | None = None
    time_column: str | None = None
    group_column: str | None = None
    groups: Any = None

    def load(self, *, progress: Progress | None = None) -> SourceDataset:
        data = super().load(progress=progress)
        data.spec = None
        return data

    def _read_windows(self) -> SourceDataset:
        """Return the windows of recordings."""
        cutting = Cutting(*(getattr(self, name) for name in Cutting._fields))
        if self.sources is not None:
            raise ValueError("sources of recordings are columns of a data frame: name them in source_columns")
        if self.groups is not None or self.group_column is not None:
            raise ValueError("windows of recordings are grouped by their unit: name it in unit_column, and no groups")
        if is_frame(self.data):
            table = raw_frame(self.data)
            refuse("the data frame", table.problems)
            cutting = cutting.with_times_of_index(table)
            frame = table.frame[columns_in_use(table, cutting)]
            return windows_of_frame(frame, cutting, "the data frame", name=self.name)
        if cutting.columns:
            raise ValueError(f"an array has no columns: leave {', '.join(cutting.columns)} out, or pass a data frame")
        rows = tensor_to_array(self.data, self.name) if hasattr(self.data, "detach") else self.data
        return windows_of_array(rows, cutting, self.name, name=self.name, feature_names=self.feature_names)

    def read(self, progress: Progress | None = None) -> SourceDataset:
        if any(getattr(self, option) for option in RECORDING_OPTIONS):
            return self._read_windows()
        if is_frame(self.data):
            return self._read_frame()
        if self.source_columns or self.drop_columns or self.feature_columns or self.column_kinds or self.group_column:
            raise ValueError(
                "source_columns, drop_columns and the like name columns of a table; an array has none (its groups are "
                "groups=labels)"
            )
        rows, sources = self.data, self.sources
        if not (_is_array(rows) or isinstance(rows, list | tuple)):
            with_labels = isinstance(sources, str) and sources == LABELS
            rows, labels = _collect(rows, with_labels=with_labels)
            sources = labels if with_labels else sources
        array, kind = as_array(rows, layout=self.layout, name=self.name)
        observations = observe(array, kind, self.feature_names, name=self.name)
        columns = _source_columns(sources, len(array))
        data = SourceDataset.from_columns(array, columns, observations, name=self.name)
        data.groups = None if self.groups is None else _group_labels(self.groups, len(data))
        return data

    def _read_frame(self) -> SourceDataset:
        """Return the data set in a data frame, to which `sources` may add columns."""
        if self.layout == SERIES:
            raise ValueError("to take the rows of a data frame as time steps, choose a window, such as window=64")
        table = raw_frame(self.data)
        choices = ColumnChoices(
            tuple(self.source_columns),
            tuple(self.drop_columns),
            self.column_kinds,
            tuple(self.feature_columns),
            self.group_column,
            tuple(self.date_parts),
        )
        more, expected = _source_columns(self.sources, len(table.frame)), table.index_columns
        data = dataset_of_table(table, "the data frame", choices, self.name, sources=more, expected=expected)
        if self.groups is not None:
            data.groups = _group_labels(self.groups, len(data))
        return data


def _group_labels(groups: Any, num_rows: int) -> NDArray[np.int64]:
    """Return the number of the group of each row (n,), from labels of any type."""
    labels = tensor_to_array(groups, "groups") if hasattr(groups, "detach") else np.asarray(groups)
    if labels.shape != (num_rows,) or pd.isna(labels).any():
        raise ValueError(
            f"groups must hold one label for each of {num_rows:,} rows, none of them missing, got shape {labels.shape}"
        )
    return group_labels(labels)


def _source_columns(sources: Any, num_rows: int) -> dict[str, list[Any]]:
    """Return the values of each source by name."""
    if sources is None:
        return {}
    if isinstance(sources, str):
        raise ValueError(f"sources must hold one row per observation, got {sources!r}")
    if is_frame(sources) or isinstance(sources, Mapping):
        own = list(sources.columns if is_frame(sources) else sources)
        names, problems = distinct_names([str(name) for name in own])
        refuse("sources", problems)
        columns = [sources[name] for name in own]
        return {name: source_values(column) for name, column in zip(names, columns, strict=True)}
    return named_columns(source_rows(sources, num_rows))


def _is_array(data: Any) -> bool:
    return hasattr(data, "__array__") or hasattr(data, "detach")


def _collect(data: Any, *, with_labels: bool) -> tuple[Any, list[Any] | None]:
    """Return the observations of a map-style data set as one array or tensor, and the second entries of its items."""
    items = [data[i] for i in range(len(data))]
    if with_labels and not all(isinstance(item, tuple | list) and len(item) >= 2 for item in items):
        raise ValueError(f'sources="{LABELS}" needs items that are pairs')
    labels = [np.asarray(item[1]).tolist() for item in items] if with_labels else None
    rows = [item[0] if isinstance(item, tuple | list) else item for item in items]
    if rows and hasattr(rows[0], "detach"):
        import torch

        return torch.stack(rows), labels
    return np.stack(rows), labels
