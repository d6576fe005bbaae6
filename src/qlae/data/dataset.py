"""``SourceDataset``: images, vectors or series together with the sources that generated them.

Images may be in memory, in a memory-mapped file, or rendered on demand. In each case they are indexed like a NumPy
array along the first axis. Training, evaluation and pictures use data through this class only.

An array (n, d) holds vectors, (n, h, w, c) images; (n, a, b) holds series (n, t, c) if it has floats and grey images
(n, h, w) if it has bytes. The argument ``layout`` decides otherwise. Every value is checked, and the statistics that
scale vectors and series are measured here.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from ..observations import IMAGES, KINDS, MAX_CHANNELS, MAX_MAGNITUDE, MIN_SIDE, SERIES, VECTORS, Kind, Observations
from .hold_out import Split, require_share, split_rows
from .sources import default_source_names, grid_levels, level_table

if TYPE_CHECKING:
    import pandas as pd

    from .spec import DataSpec

CHUNK_BYTES = 2**26  # read at once while values are checked
ROWS_AT_ONCE = 1000  # of images that are computed
LARGEST = MAX_MAGNITUDE / 10  # number in data, so that decoded ones fit into files too
NUM_NAMED = 5  # rows and columns that an error names
LAYOUTS = (
    "vectors (n, features), series (n, time, channels), grey images (n, height, width) of bytes, or images "
    "(n, height, width, channels)"
)
#: rank of an array → the kind of bytes, and of floats.
KINDS_BY_RANK = {2: (VECTORS, VECTORS), 3: (IMAGES, SERIES), 4: (IMAGES, IMAGES)}
ORIGINS = ("rendered", "generated", "real")
#: Called with (images done, number of images) during long work, for example to update a progress bar.
Progress = Callable[[int, int], None]


@runtime_checkable
class ImageArray(Protocol):
    """The interface of observations: a shape (n, …), a dtype, and indexing by row. ``np.ndarray`` has it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any: ...

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]: ...


class SourceDataset:
    """Images, vectors or series, and their sources.

    Attributes:
        name: the data set's name, such as ``shapes3d``.
        origin: ``"rendered"`` (images), ``"generated"`` (vectors and series) or ``"real"``.
        images: one observation per row: images (n, h, w, c), vectors (n, d) or series (n, t, c). Images may be rendered
            on demand; ``np.asarray(data.images)`` returns all of them.
        observations: the description of the rows: their kind, shape, type, feature names and statistics.
        sources: (n, n_s) int64 levels (float64 if continuous), in row-major grid order for a full grid.
        source_names, source_sizes: name and number of values for each column of `sources`.
        fixed: the levels of the scene's sources that do not vary here.
        spec: the description from which the data can be loaded again; ``None`` for data in memory.
        file_names: the name of each image, if each was a file in a folder or an archive; else ``None``.
        ids: columns that identify the rows, such as identifiers of a table or unit and start of windows, a data frame
            (n, columns); else ``None``.
        left_out: names of files that could not be read or have other formats, and why.
        checksum: SHA-256 of all observations, if they were read from files; else ``None``. `data_config` computes that
            of arrays.
        hold_out: the share of the rows that is held out from training; see `with_hold_out`.
        groups: (n,) labels, of which equal ones stay on one side of the split; ``None`` if every row is by itself.
        spans: (n, 2) the first time of each row and the first time after it, for windows of recordings, which
            ``groups`` label; ``None`` for other data. Windows that overlap are never on both sides of the split.
    """

    def __init__(
        self,
        images: ImageArray,
        sources: NDArray[Any] | None = None,
        *,
        name: str,
        origin: str,
        source_names: Sequence[str] = (),
        source_sizes: Sequence[int] = (),
        fixed: Mapping[str, int] | None = None,
        details: Mapping[str, Any] | None = None,
        layout: str | None = None,
        feature_names: Sequence[str] = (),
        observations: Observations | None = None,
    ) -> None:
        """Combine observations and sources.

        Args:
            images: images (n, h, w, c) of bytes or floats, grey images (n, h, w) of bytes, vectors (n, d), or series
                (n, t, c) of floats; arrays, tensors or lists.
            sources: (n, n_s), or (n,) for one source. ``None`` stands for the full grid of `source_sizes`, which is
                built on first use, or for no sources if `source_sizes` is empty too.
            source_names, source_sizes: see the class; by default "source 1", … and the number of distinct values.
            name, origin, fixed: see the class.
            details: further facts for `describe`, fit for JSON, such as how sources were drawn.
            layout: ``"images"``, ``"vectors"`` or ``"series"``, if the shape is ambiguous.
            feature_names: names of the last axis.
            observations: the description, if it is known already; values are then not looked at.

        Raises:
            ValueError: shapes or types are wrong, or do not fit each other.
        """
        require_known(origin, ORIGINS, "origin")
        if observations is None:
            images, layout = as_array(images, layout=layout, name=name)
            observations = observe(images, layout, feature_names, name=name)
        if isinstance(images, np.ndarray) and min(images.strides) < 0:  # a reversed view, which torch does not accept
            images = images.copy()
        num_images = int(images.shape[0])
        if sources is None and not source_sizes:
            sources = np.zeros((num_images, 0), dtype=np.int64)
        if sources is not None:
            require_unmasked(sources, "the sources")
            sources = np.asarray(sources)
            sources = sources[:, None] if sources.ndim == 1 else sources
            if sources.ndim != 2:
                raise ValueError(f"sources must have the shape (n, number of sources), got {sources.shape}")
            source_names = source_names or default_source_names(sources.shape[1])
            source_sizes = source_sizes or [len(np.unique(column)) for column in sources.T]
        if len(set(source_names)) < len(source_names):
            raise ValueError(f"source_names must be distinct, got {', '.join(map(str, source_names))}")
        shape = (math.prod(source_sizes), len(source_sizes)) if sources is None else sources.shape
        if shape != (num_images, len(source_names)) or len(source_sizes) != len(source_names):
            raise ValueError(
                f"sources of shape {shape} do not fit {num_images} {observations.traits.many}, {len(source_names)} "
                f"source names and {len(source_sizes)} source sizes"
            )
        self.name = name
        self.origin = origin
        self.images = images
        self.observations = observations
        self.source_names = tuple(source_names)
        self.source_sizes = tuple(int(size) for size in source_sizes)
        self.fixed = dict(fixed or {})
        self.details = dict(details or {})
        self.spec: DataSpec | None = None
        self.file_names: tuple[str, ...] | None = None
        self.ids: pd.DataFrame | None = None
        self.left_out: dict[str, str] = {}
        self.checksum: str | None = None
        self.hold_out = 0.0
        self.groups: NDArray[Any] | None = None
        self.spans: NDArray[Any] | None = None
        self._sources = sources

    @classmethod
    def from_columns(
        cls, rows: ImageArray, columns: Mapping[str, Sequence[Any]], observations: Observations, *, name: str
    ) -> SourceDataset:
        """Return real data with the values of each source by name, whose values become levels."""
        levels = level_table(columns, len(rows))
        return cls(rows, levels, name=name, origin="real", source_names=list(columns), observations=observations)

    @property
    def resolution(self) -> int:
        """Height and width in pixels of square RGB images of bytes; 0 for other observations."""
        return self.observations.shape[0] if self.observations.is_standard else 0

    @property
    def sources(self) -> NDArray[Any]:
        """(n, n_s) levels of the sources, one row per image."""
        if self._sources is None:
            self._sources = grid_levels(self.source_sizes)
        return self._sources

    @property
    def split(self) -> Split:
        """The numbers of the rows that train and of those that are held out."""
        return split_rows(len(self), self.hold_out, groups=self.groups, spans=self.spans)

    @property
    def training_rows(self) -> NDArray[np.int64]:
        """The numbers of the rows that train, in increasing order; all rows if none is held out."""
        return self.split.training

    @property
    def held_out_rows(self) -> NDArray[np.int64]:
        """The numbers of the rows that are held out, in increasing order."""
        return self.split.held_out

    def __len__(self) -> int:
        return int(self.images.shape[0])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {size}" for name, size in zip(self.source_names, self.source_sizes, strict=True))
        fixed = ", ".join(f"{name} = {level}" for name, level in self.fixed.items())
        return (
            f"SourceDataset({self.name}, {self.origin}: {len(self):,} {self.observations.traits.many} of "
            f"{self.observations.size}; "
            f"sources: {sizes or 'none'}{f'; fixed: {fixed}' if fixed else ''})"
        )

    def describe(self) -> dict[str, Any]:
        """Return the facts about this data that a results file holds, fit for JSON."""
        is_standard = self.observations.is_standard
        facts: dict[str, Any] = {
            "name": self.name,
            "origin": self.origin,
            **({"resolution": self.resolution} if is_standard else {"observations": self.observations.describe()}),
            "num_images": len(self),
            "source_names": list(self.source_names),
            "source_sizes": list(self.source_sizes),
        }
        return facts | ({"fixed": dict(self.fixed)} if self.fixed else {}) | self.details

    def in_memory(self, *, progress: Progress | None = None) -> SourceDataset:
        """Return the same data with all images in one NumPy array, rendering those that are rendered on demand."""
        if isinstance(self.images, np.ndarray):
            return self
        if isinstance(self.images, LazyImages):
            return self.with_images(self.images.compute_all(progress=progress))
        return self.with_images(np.asarray(self.images))

    def with_images(self, images: ImageArray, details: Mapping[str, Any] | None = None) -> SourceDataset:
        """Return a data set with the same sources and other images, adding `details` to its description."""
        data = copy.copy(self)
        data.images, data.details = images, self.details | dict(details or {})
        return data

    def with_hold_out(self, share: float) -> SourceDataset:
        """Return the data with a share of the rows held out, and with the statistics of the other rows.

        A kind of data sets `groups`, and `spans` if its rows are windows that may overlap, before this is called.
        ``data.training_rows`` and ``data.held_out_rows`` are the result; `split_rows` has the rules.

        Args:
            share: in [0, 1); 0 for a training on all rows.
        """
        data = copy.copy(self)
        data.hold_out = require_share(share)
        observed, had = self.observations, len(self.held_out_rows)
        if observed.columns and (had or len(data.held_out_rows)):
            from .table_encoding import measure_rows

            data.images, data.observations = measure_rows(np.asarray(self.images), observed, data.training_rows)
        elif observed.offset and (had or len(data.held_out_rows)):
            offset, scale = measure_scale(self.images, observed.kind, data.training_rows)
            data.observations = dataclasses.replace(observed, offset=offset, scale=scale)
        return data

    def compute_checksum(self) -> str:
        """Return the SHA-256 of all observations and sources."""
        digest = hashlib.sha256()
        for _, chunk in _chunks(self.images):
            digest.update(np.ascontiguousarray(chunk).tobytes())
        digest.update(np.ascontiguousarray(self.sources).tobytes())
        return digest.hexdigest()


def as_array(observations: Any, *, layout: str | None = None, name: str = "the array") -> tuple[Any, str]:
    """Return an array, list or tensor of observations as an array (n, *Kind.axes), and the name of their kind.

    An array of bytes may be on disk or rendered on demand. `name` is what error messages call the array.
    """
    is_tensor = hasattr(observations, "detach")
    if is_tensor:
        observations = tensor_to_array(observations, name)
    if not hasattr(observations, "shape") or not hasattr(observations, "dtype"):
        try:
            observations = np.asarray(observations)
        except ValueError as error:
            raise ValueError(f"{name} must hold rows of equal shape ({error})") from None
    observations = unmask(observations, name)
    shape = tuple(observations.shape)
    kind = kind_of_array(shape, observations.dtype, layout, name)
    array = _with_axes(observations, kind, is_tensor=is_tensor, name=name)
    if not len(array):
        raise ValueError(f"{name} is empty: it has shape {shape}")
    return _with_dtype(array, kind, name), kind.name


def tensor_to_array(tensor: Any, name: str) -> NDArray[Any]:
    """Return a tensor of any device as an array; floats of fewer than 32 bits become float32.

    Raises:
        ValueError: the tensor is sparse, quantized, nested or has no content.
    """
    try:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        is_short = tensor.dtype.is_floating_point and tensor.element_size() < 4  # NumPy has no bfloat16
        array: NDArray[Any] = (tensor.float() if is_short else tensor).numpy()
    except (RuntimeError, TypeError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{name} is a tensor that cannot become an array ({reason}): pass a dense one, such as tensor.to_dense() "
            "or tensor.dequantize()"
        ) from None
    return array


def require_unmasked(array: Any, name: str) -> None:
    """Raise an error for an array of ``numpy.ma`` with masked entries, which NumPy would use as they are."""
    if isinstance(array, np.ma.MaskedArray) and (count := int(np.ma.getmaskarray(array).sum())):
        raise ValueError(
            f"{name} has {count:,} masked entries: fill them, for instance by array.filled(value), or leave out their "
            "rows"
        )


def kind_of_array(shape: tuple[int, ...], dtype: np.dtype[Any], layout: str | None, name: str) -> Kind:
    """Return the kind of observations in an array of a shape and type, unless the user chooses it by ``layout``."""
    if layout is not None:
        return KINDS[require_known(layout, KINDS, "layout")]
    if len(shape) not in KINDS_BY_RANK:
        hint = "; one long recording can be cut into windows, such as window=64" if len(shape) == 1 else ""
        raise ValueError(f"{name} must hold {LAYOUTS}; got shape {shape}{hint}")
    return KINDS[KINDS_BY_RANK[len(shape)][dtype != np.uint8]]


def _with_axes(array: Any, kind: Kind, *, is_tensor: bool, name: str) -> Any:
    """Return an array with the axes of its kind; grey images and single channels may lack the last one."""
    rank = len(array.shape)
    if kind.name == SERIES and rank == 2 and array.shape[1] < MIN_SIDE:
        raise ValueError(
            f"{name} has shape {tuple(array.shape)}, which looks like one long recording of {array.shape[0]:,} time "
            f"steps, and series are (n, time, channels): cut it into windows, such as window=64"
        )
    if rank == len(kind.axes) and len(kind.axes) > 1:
        return np.asarray(array)[..., None]  # one channel
    if rank != len(kind.axes) + 1:
        raise ValueError(f"{kind.many} come as (n, {', '.join(kind.axes)}), and {name} has shape {tuple(array.shape)}")
    if kind.has_bytes and is_tensor and array.shape[1] < array.shape[3]:
        return np.ascontiguousarray(np.moveaxis(array, 1, 3))  # torch has channels first
    if kind.has_bytes and array.shape[3] > MAX_CHANNELS >= array.shape[1]:
        raise ValueError(
            f"{name} has shape {tuple(array.shape)}, which looks as if the channels came first; images are (n, h, w, "
            "c): pass np.moveaxis(array, 1, -1)"
        )
    return array


def _with_dtype(array: Any, kind: Kind, name: str) -> Any:
    """Return an array of bytes (images only), float32 or float64."""
    dtype = array.dtype
    if dtype == np.uint8 and kind.has_bytes:
        return array
    if dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold numbers, got {dtype}; encode text or dates as numbers, or leave these columns out"
        )
    if isinstance(array, LazyImages):  # of floats
        return array
    wide = np.result_type(dtype, np.float32).itemsize > 4  # also whole numbers of 32 bits
    return np.asarray(array, dtype=np.float64 if wide else np.float32)


def observe(array: Any, kind: str, feature_names: Sequence[str] = (), *, name: str = "the array") -> Observations:
    """Return the description of an array from `as_array`, with the statistics by which networks see it scaled.

    A missing or infinite value is an error.
    """
    shape, dtype = tuple(int(n) for n in array.shape[1:]), str(array.dtype)
    names = tuple(str(feature) for feature in feature_names)
    description = Observations(kind, shape, dtype, names)
    if dtype == "uint8":
        return description
    _require_finite(array, description, name)
    low, high, mean, spread = _statistics(array, shape[-1])
    magnitudes = np.maximum(high, -low)
    if magnitudes.max() > LARGEST:
        features = [description.names[i] for i in np.flatnonzero(magnitudes > LARGEST)]
        raise ValueError(
            f"{name} has numbers as large as {magnitudes.max():.3g}, in feature{'s' * (len(features) > 1)} "
            f"{first_few(features)} of {description.num_features:,}, and at most {LARGEST:g} fit; use another unit"
        )
    return Observations(kind, shape, dtype, names, *_scale_by(kind, low, high, mean, spread))


def measure_scale(
    array: Any, kind: str, rows: NDArray[np.int64] | None = None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the offset and scale by which networks see an array, from some of its rows, or from all."""
    return _scale_by(kind, *_statistics(array, int(array.shape[-1]), rows))


def _scale_by(
    kind: str,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    mean: NDArray[np.float64],
    spread: NDArray[np.float64],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the offset and scale of each feature from its statistics."""
    if not KINDS[kind].has_bytes:
        offset, scale = mean, spread
    elif low.min() >= 0 and high.max() <= 1:
        offset, scale = np.zeros_like(low), np.ones_like(high)
    else:
        offset, scale = low, high - low
    scale = np.where(scale > 0, scale, 1.0)
    return tuple(offset.tolist()), tuple(scale.tolist())


def _require_finite(array: Any, description: Observations, name: str) -> None:
    """Raise an error that names rows and features with missing or infinite values."""
    rows, names, count = [], dict[str, None](), 0
    for start, chunk in _chunks(array):
        bad, features = find_non_finite(chunk, description)
        rows += [start + row for row in bad]
        names |= dict.fromkeys(features)
        count += int((~np.isfinite(chunk[bad])).sum())
    if rows:
        features = [feature for feature in description.names if feature in names]
        raise ValueError(
            f"{name} has {count:,} missing or infinite values (NaN, inf): in row{'s' * (len(rows) > 1)} "
            f"{first_few(rows)} of {len(array):,}, feature{'s' * (len(features) > 1)} {first_few(features)} of "
            f"{description.num_features:,}. Leave out these rows or features, or fill the gaps, for instance with "
            "sklearn.impute.SimpleImputer"
        )


def find_non_finite(rows: NDArray[Any], description: Observations) -> tuple[list[int], list[str]]:
    """Return the numbers of rows that have missing or infinite values, and the names of features that do."""
    bad = ~np.isfinite(rows)
    if not bad.any():
        return [], []
    found = np.flatnonzero(bad.reshape(len(rows), -1).any(1)).tolist()
    features = np.flatnonzero(bad.reshape(-1, description.num_features).any(0))
    return found, [description.names[i] for i in features]


def unmask(array: Any, name: str) -> Any:
    """Return a masked array as a plain one, with NaN where it is masked; other arrays stay as they are."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return array.data
    if array.dtype == np.uint8:
        number = int(np.ma.getmaskarray(array).sum())
        raise ValueError(
            f"{name} must hold bytes without masked entries, and {number:,} are masked: fill them with "
            "array.filled(…), or leave these rows out"
        )
    plain = np.asarray(array.data, dtype=np.result_type(array.dtype, np.float32)).copy()
    plain[np.ma.getmaskarray(array)] = np.nan
    return plain


def first_few(entries: Sequence[Any]) -> str:
    """Return the first entries, such as "3, 7, … (12 in all)"."""
    text = ", ".join(str(entry) for entry in entries[:NUM_NAMED])
    return text + (f", … ({len(entries):,} in all)" if len(entries) > NUM_NAMED else "")


def _chunks(array: Any) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (first row, rows) of an array, which may be on disk, in parts that take little memory."""
    row_bytes = max(1, int(np.prod(array.shape[1:], dtype=object)) * array.dtype.itemsize)
    num_rows = max(1, CHUNK_BYTES // row_bytes)
    for start in range(0, len(array), num_rows):
        yield start, np.asarray(array[start : start + num_rows])


def _chunks_of(array: Any, rows: NDArray[np.int64] | None) -> Iterator[NDArray[Any]]:
    """Yield some rows of an array, in increasing order, or all, in parts that take little memory and are not empty."""
    for start, chunk in _chunks(array):
        if rows is not None:
            first, last = np.searchsorted(rows, [start, start + len(chunk)])
            chunk = chunk[rows[first:last] - start]
        if len(chunk):
            yield chunk


def _statistics(
    array: Any, num_features: int, rows: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and highest value, mean and standard deviation of each feature over some rows, or over all.

    Two passes, in float64: the mean first, then deviations from it, which a large mean does not cancel. Where they
    overflow, mean and deviation are of no use.
    """
    low, high = np.full(num_features, np.inf), np.full(num_features, -np.inf)
    total, count = np.zeros(num_features), 0
    squares = np.zeros(num_features)
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in _chunks_of(array, rows):
            values = chunk.reshape(-1, num_features).astype(np.float64)
            low, high = np.minimum(low, values.min(0)), np.maximum(high, values.max(0))
            total += values.sum(0)
            count += len(values)
        mean = np.clip(total / count, low, high)  # exact for a constant feature
        for chunk in _chunks_of(array, rows):
            squares += np.square(chunk.reshape(-1, num_features).astype(np.float64) - mean).sum(0)
        return low, high, mean, np.sqrt(squares / count)


class LazyImages(ABC):
    """Images that are computed when they are indexed: like an array of `shape`, (n, h, w, c), and `dtype`.

    Attributes:
        shape: of the array.
        dtype: of the array; bytes for most.
        stays_lazy: whether training computes rows batch by batch, since that is cheap, and not all of them at once.
    """

    dtype: np.dtype[Any] = np.dtype(np.uint8)
    shape: tuple[int, ...]
    stays_lazy = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @abstractmethod
    def compute(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the images of rows (k,)."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> NDArray[Any]:
        """Return the images of an integer, a slice, or a one-dimensional array of integers or booleans."""
        index = np.asarray(np.arange(len(self))[rows])
        if index.ndim > 1:
            raise IndexError(f"rows must be an integer, a slice or a 1-d array of integers or booleans, got {rows!r}")
        images = self.compute(index.reshape(-1))
        return images[0] if index.ndim == 0 else images

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("these images cannot become an array without a copy: leave out copy=False")
        return self.compute_all().astype(self.dtype if dtype is None else dtype, copy=False)

    def compute_all(self, *, progress: Progress | None = None) -> NDArray[Any]:
        """Return all images."""
        out = np.empty(self.shape, dtype=self.dtype)
        self.fill(out, progress=progress)
        return out

    def fill(self, out: Any, *, progress: Progress | None = None) -> None:
        """Write all images into an array or a tensor (n, h, w, c)."""
        for first in range(0, len(self), ROWS_AT_ONCE):
            rows = slice(first, min(first + ROWS_AT_ONCE, len(self)))
            out[rows] = self.compute(np.arange(rows.start, rows.stop))
            if progress is not None:
                progress(rows.stop, len(self))


class NoisyImages(LazyImages):
    """Images with Gaussian noise on every pixel and channel. A row has the same noise every time it is indexed.

    Args:
        images: (n, h, w, 3) uint8.
        noise: the standard deviation, where 1 is the whole range from black to white.
        seed: determines the noise, together with the row number.
    """

    def __init__(self, images: ImageArray, noise: float, seed: int = 0) -> None:
        self.images = images
        self.noise = noise
        self.seed = seed
        self.shape = tuple(images.shape)

    def compute(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        clean = np.asarray(self.images[rows])
        noisy = np.empty_like(clean)
        for out, image, row in zip(noisy, clean, rows.tolist(), strict=True):
            grain = np.random.default_rng([self.seed, row]).standard_normal(image.shape, dtype=np.float32)
            out[...] = np.clip(np.rint(image + np.float32(255 * self.noise) * grain), 0, 255)
        return noisy
