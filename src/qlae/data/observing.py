"""Turn arrays into observations: decide their kind, check every value, and measure the statistics that scale them.

An array (n, d) holds vectors, (n, h, w, c) images; (n, a, b) holds series (n, t, c) if it has floats and grey images
(n, h, w) if it has bytes. The caller can say the kind instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from ..observations import IMAGES, KINDS, MAX_CHANNELS, MAX_MAGNITUDE, SERIES, VECTORS, Kind, Observations

CHUNK_BYTES = 2**26  # read at once while values are checked
LARGEST = MAX_MAGNITUDE / 10  # number in data, so that decoded ones fit into files too
NUM_NAMED = 5  # rows and columns that an error names
LAYOUTS = (
    "vectors (n, features), series (n, time, channels), grey images (n, height, width) of bytes, or images "
    "(n, height, width, channels)"
)
#: rank of an array → the kind of bytes, and of floats.
KINDS_BY_RANK = {2: (VECTORS, VECTORS), 3: (IMAGES, SERIES), 4: (IMAGES, IMAGES)}


def as_array(observations: Any, *, kind: str | None = None, name: str = "the array") -> tuple[Any, str]:
    """Return observations as an array with one axis for each in ``Kind.axes`` beside the first, and their kind.

    Args:
        observations: an array, a list or a tensor. An array of bytes may be on disk or rendered on demand.
        kind: a name in ``KINDS``, if the shape does not tell it.
        name: of the array, for error messages.

    Raises:
        ValueError: the array holds no numbers, or has another number of axes than the kind.
    """
    is_tensor = hasattr(observations, "detach")
    if is_tensor:
        observations = observations.detach().cpu()
        if not observations.dtype.is_floating_point or observations.element_size() >= 4:
            observations = observations.numpy()
        else:
            observations = observations.float().numpy()  # NumPy has no bfloat16
    if not hasattr(observations, "shape") or not hasattr(observations, "dtype"):
        observations = array_of_rows(observations, name)
    shape = tuple(observations.shape)
    if kind is not None:
        kind = KINDS[require_known(kind, KINDS, "kind of observations")].name
    elif len(shape) in KINDS_BY_RANK:
        kind = KINDS_BY_RANK[len(shape)][observations.dtype != np.uint8]
    else:
        raise ValueError(f"{name} must hold {LAYOUTS}; got shape {shape}")
    array = _with_axes(observations, KINDS[kind], is_tensor=is_tensor, name=name)
    if not len(array):
        raise ValueError(f"{name} is empty: it has shape {shape}")
    return _with_dtype(array, KINDS[kind], name), kind


def array_of_rows(rows: Any, name: str = "the list") -> NDArray[Any]:
    """Return a list of rows as an array; raise an error unless it holds numbers and all rows have the same shape."""
    try:
        array = np.asarray(rows)
    except ValueError as error:
        raise ValueError(f"{name} must hold rows of equal shape ({error})") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, got a {type(rows).__name__} with other entries")
    return array


def _with_axes(array: Any, kind: Kind, *, is_tensor: bool, name: str) -> Any:
    """Return an array with the axes of its kind; grey images and single channels may lack the last one."""
    rank = len(array.shape)
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
    wide = dtype.kind in "iu" and dtype.itemsize >= 4  # float32 has 24 bits
    target = np.dtype(np.float64 if (dtype.itemsize > 4 and dtype.kind == "f") or wide else np.float32)
    return np.asarray(array, dtype=target)


def observe(array: Any, kind: str, feature_names: Sequence[str] = (), *, name: str = "the array") -> Observations:
    """Return the description of observations, with the statistics by which networks see them scaled.

    Args:
        array: as `as_array` returns it.
        kind: a name in ``KINDS``.
        feature_names: of the last axis.
        name: of the array, for error messages.

    Raises:
        ValueError: a value is missing or infinite, or the shape is not possible.
    """
    shape, dtype = tuple(int(n) for n in array.shape[1:]), str(array.dtype)
    names = tuple(str(feature) for feature in feature_names)
    description = Observations(kind, shape, dtype, names)
    if dtype == "uint8":
        return description
    require_finite(array, description, name)
    low, high, mean, spread = _statistics(array, shape[-1])
    magnitudes = np.maximum(high, -low)
    if magnitudes.max() > LARGEST:
        features = [description.names[i] for i in np.flatnonzero(magnitudes > LARGEST)]
        raise ValueError(
            f"{name} has numbers as large as {magnitudes.max():.3g}, in feature{_list(features)} of "
            f"{description.num_features:,}, and at most {LARGEST:g} fit; use another unit"
        )
    if not KINDS[kind].has_bytes:
        offset, scale = mean, spread
    elif low.min() >= 0 and high.max() <= 1:
        offset, scale = np.zeros_like(low), np.ones_like(high)
    else:
        offset, scale = low, high - low
    scale = np.where(scale > 0, scale, 1.0)
    return Observations(kind, shape, dtype, names, tuple(offset.tolist()), tuple(scale.tolist()))


def require_finite(array: Any, description: Observations, name: str = "the array") -> None:
    """Raise an error that names rows and features with missing or infinite values."""
    bad_rows: list[int] = []
    bad_features = np.zeros(description.num_features, dtype=np.int64)
    num_bad = 0
    for start, chunk in _chunks(array):
        bad = ~np.isfinite(chunk)
        if bad.any():
            bad_rows += (start + np.flatnonzero(bad.reshape(len(chunk), -1).any(1))).tolist()
            bad_features += bad.reshape(-1, description.num_features).sum(0)
            num_bad += int(bad.sum())
    if num_bad:
        features = [description.names[i] for i in np.flatnonzero(bad_features)]
        raise ValueError(
            f"{name} has {num_bad:,} missing or infinite values (NaN, inf): in row{_list(bad_rows)} of {len(array):,}, "
            f"feature{_list(features)} of {description.num_features:,}. Leave out these rows or features, or fill the "
            "gaps, for instance with sklearn.impute.SimpleImputer"
        )


def _list(entries: Sequence[Any]) -> str:
    """Return a plural ending and the first entries, such as "s 3, 7, … (12 in all)"."""
    text = ", ".join(str(entry) for entry in entries[:NUM_NAMED])
    more = f", … ({len(entries):,} in all)" if len(entries) > NUM_NAMED else ""
    return f"{'s' if len(entries) > 1 else ''} {text}{more}"


def _chunks(array: Any) -> Any:
    """Yield (first row, rows) of an array, which may be on disk, in parts that take little memory."""
    row_bytes = max(1, int(np.prod(array.shape[1:], dtype=object)) * array.dtype.itemsize)
    num_rows = max(1, CHUNK_BYTES // row_bytes)
    for start in range(0, len(array), num_rows):
        yield start, np.asarray(array[start : start + num_rows])


def _statistics(array: Any, num_features: int) -> tuple[NDArray[np.float64], ...]:
    """Return the lowest and highest value, mean and standard deviation of each feature.

    Two passes, in float64: the mean first, then deviations from it, which a large mean does not cancel. Where they
    overflow, mean and deviation are of no use.
    """
    low, high = np.full(num_features, np.inf), np.full(num_features, -np.inf)
    total, count = np.zeros(num_features), 0
    squares = np.zeros(num_features)
    with np.errstate(over="ignore", invalid="ignore"):
        for _, chunk in _chunks(array):
            rows = chunk.reshape(-1, num_features).astype(np.float64)
            low, high = np.minimum(low, rows.min(0)), np.maximum(high, rows.max(0))
            total += rows.sum(0)
            count += len(rows)
        mean = np.clip(total / count, low, high)  # exact for a constant feature
        for _, chunk in _chunks(array):
            squares += np.square(chunk.reshape(-1, num_features).astype(np.float64) - mean).sum(0)
        return low, high, mean, np.sqrt(squares / count)
