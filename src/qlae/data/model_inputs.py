"""Whatever a user passes to a trained model, as rows of the shape and type that it was trained on.

`to_model_inputs` takes what `load_data` takes: arrays, tensors, data frames, paths of files and folders, data sets; and
also pictures of Pillow, and lists of pictures or of their paths. Pictures are scaled and cropped as for training. Files
are read as those of the training were (`load_matching`).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..columns import NUMBER
from ..observations import COLOURS, IMAGES, MIN_SIDE, TABLES, VECTORS, Observations
from .anndata_files import SparseRows, is_anndata, is_anndata_file, is_sparse, obs_columns
from .array_files import has_names, is_array_file
from .dataset import (
    LARGEST,
    ImageArray,
    LazyImages,
    Progress,
    SourceDataset,
    find_non_finite,
    first_few,
    tensor_to_array,
    unmask,
)
from .image_files import SUFFIXES as PICTURE_SUFFIXES
from .loading import load_data
from .pictures import GREY, PictureSize, convert, decode_file, resize
from .spec import DataSpec
from .table_encoding import with_gaps
from .table_files import column_names, is_table
from .tables import is_frame, matching_table

WHITE = 255
#: Floats that a model was trained on have this range or a larger one if they are bytes in another type.
BYTES_RANGE = 16
#: Options of data that hold for other files too, which a model is to encode.
READ_ALIKE = (
    *("source_columns", "drop_columns", "column_kinds", "decimal", "array", "layout"),
    *("window", "stride", "unit_column", "time_column"),
)
CHANNELS = (GREY, COLOURS, 4)  # of pictures that can be resized; 4 with transparency


def to_model_inputs(data: Any, observations: Observations, spec: DataSpec | None = None) -> ImageArray:
    """Return observations in any form as rows (n, *observations.shape), which may be read or scaled when indexed.

    Args:
        data: a data set, an array, a tensor, a data frame, a path or the name of a data set; for images also a picture
            of Pillow, or a list of pictures or of paths of picture files.
        observations: what the model takes.
        spec: how its training data were read; None for data in memory.
    """
    if isinstance(data, SourceDataset):
        data = align_features(data, observations).images
    elif is_anndata(data) and spec is None:
        raise ValueError(
            "the model was trained on data in memory, so how cells became vectors is not known: pass "
            "qlae.load_data(adata, …) with the options of the training"
        )
    elif is_frame(data) or is_anndata(data) or (isinstance(data, str | Path) and not is_picture_file(data)):
        data = load_matching(data, observations, spec).images
    elif (pictures := pictures_in(data)) is not None:
        return Pictures(pictures, observations)
    is_matrix = is_sparse(data)
    rows: ImageArray = SparseRows(data, observations.dtype) if is_matrix else _as_rows(data, observations)
    if observations.kind == IMAGES:
        rows = _fit_images(rows, observations)
    shape = tuple(rows.shape)
    is_number = str(rows.dtype) == "uint8" if observations.dtype == "uint8" else np.dtype(rows.dtype).kind in "fiub"
    if shape[1:] != observations.shape or not is_number:
        raise ValueError(_explain_shape(shape, rows.dtype, observations))
    return rows


def load_matching(
    data: Any, observations: Observations, spec: DataSpec | None = None, *, progress: Progress | None = None
) -> SourceDataset:
    """Load a data set, a file or a data frame as the training data were loaded, and check that the model takes it.

    Args:
        data: a name, a path or a data frame.
        observations: what the model takes.
        spec: how its training data were read; None for data in memory.
        progress: as for `load_data`.
    """
    if observations.kind == TABLES and (is_frame(data) or (isinstance(data, str | Path) and is_table(data))):
        return matching_table(data, observations, spec)
    loaded = load_data(data, progress=progress, **how_to_read(observations, spec, data))
    if observations.kind == VECTORS and (
        odd := [c.name for c in loaded.observations.columns if c.facts != (NUMBER, (c.name,))]
    ):
        raise ValueError(
            f"{data if isinstance(data, str | Path) else 'the data frame'} has missing values, text or dates in "
            f"{first_few([repr(name) for name in odd])}, and this model was trained on numbers without gaps: leave out "
            "these rows, or fill the gaps"
        )
    loaded = align_features(loaded, observations)
    if difference := observations.difference(loaded.observations):
        raise ValueError(difference)
    return loaded


def align_features(data: SourceDataset, observations: Observations) -> SourceDataset:
    """Return a data set with its features in the order of a model's, and missing values filled as for its training.

    Raises:
        ValueError: the data have other features than the model.
    """
    own = data.observations
    if (own.kind, own.num_features) != (observations.kind, observations.num_features):
        return data  # which may be scaled, or is refused by its shape
    names, wanted = own.feature_names, observations.feature_names
    if sorted(names) == sorted(wanted) and names != wanted and not own.columns and isinstance(data.images, np.ndarray):
        places = [names.index(name) for name in wanted]
        data = data.with_images(data.images[..., places])
        offset, scale = (tuple(numbers[i] for i in places) if numbers else () for numbers in (own.offset, own.scale))
        data.observations = own = dataclasses.replace(own, feature_names=wanted, offset=offset, scale=scale)
    if own.shape == observations.shape and (difference := observations.difference(own)):
        raise ValueError(difference)
    if own.columns:
        pairs = zip(own.columns, observations.columns, strict=True)
        if unknown := [repr(new.name) for new, old in pairs if new.has_missing and not old.has_missing]:
            raise ValueError(f"values are missing in {first_few(unknown)}, which were complete in the training data")
        gaps = np.isnan(with_gaps(np.asarray(data.images), own))
        data = data.with_images(np.where(gaps, np.asarray(observations.offset), np.asarray(data.images)))
    return data


def how_to_read(observed: Observations, spec: DataSpec | None, where: Any) -> dict[str, Any]:
    """Return the arguments of ``load_data`` by which other data are read as the training data were.

    A table may lack columns that are no features, and have others, which are left out.

    Args:
        observed: the observations that the model takes.
        spec: how its training data were read; None for data in memory.
        where: the other file or folder, a data frame, or the name of a data set.
    """
    is_file = isinstance(where, str | Path)
    if observed.is_standard:
        return {"resolution": observed.shape[0]}
    is_picture = observed.kind == IMAGES and observed.dtype == "uint8" and observed.num_features in (GREY, COLOURS)
    if is_picture and is_file and not is_array_file(where) and not is_table(where):
        return {"resolution": PictureSize(*observed.shape).plain}
    if is_anndata(where) or (is_file and is_anndata_file(where)):
        columns = obs_columns(where)
        return {key: getattr(spec, key, None) for key in ("layer", "normalize", "log1p")} | {
            "source_columns": [name for name in getattr(spec, "source_columns", ()) if name in columns],
            "feature_columns": observed.feature_names,
        }
    how = {key: getattr(spec, key) for key in READ_ALIKE if hasattr(spec, key)}
    if not (is_file and is_table(where)):
        how.pop("decimal", None)
    if not (is_file and has_names(where)):
        how.pop("array", None)
    if is_file and not (is_table(where) and Path(where).is_file()):
        return how
    present = column_names(where) if is_file else [str(name) for name in where.columns]
    needed = [*observed.feature_names, *(how[key] for key in ("unit_column", "time_column") if how.get(key))]
    missing = [repr(name) for name in needed if name not in present]
    if missing:
        what = where if is_file else "the data frame"
        raise ValueError(f"{what} lacks columns that the model takes: {', '.join(missing)}")
    how["source_columns"] = [name for name in how.get("source_columns", ()) if name in present]
    how["drop_columns"] = [name for name in how.get("drop_columns", ()) if name in present]
    if observed.kind == VECTORS:
        how["column_kinds"] = {name: kind for name, kind in how.get("column_kinds", {}).items() if name in present}
        return how | {"feature_columns": observed.feature_names}
    if observed.feature_names:
        kept = {*needed, *how["source_columns"]}
        how["drop_columns"] = [name for name in present if name not in kept]
    return how


def require_usable(rows: NDArray[Any], observations: Observations, first_row: int = 0) -> None:
    """Raise an error for numbers that no model can encode: missing, infinite, or too large ones.

    Args:
        rows: floats (k, *observations.shape).
        observations: what the model takes.
        first_row: the number of the first of these rows, for the message.
    """
    bad, features = find_non_finite(rows, observations)
    if bad:
        raise ValueError(
            f"missing or infinite values (NaN, inf) in row{'s' * (len(bad) > 1)} "
            f"{first_few([first_row + row for row in bad])}, feature{'s' * (len(features) > 1)} {first_few(features)}: "
            "this model was trained without missing values. Leave out these rows, or fill the gaps"
        )
    if rows.size and max(rows.max(), -rows.min()) > LARGEST:
        raise ValueError(f"numbers as large as {max(rows.max(), -rows.min()):.3g}, and at most {LARGEST:g} fit")


class Pictures(LazyImages):
    """Pictures of Pillow, and paths of picture files, which are decoded and scaled when they are indexed.

    Args:
        items: pictures and paths.
        observations: what the model takes.
    """

    def __init__(self, items: Sequence[Any], observations: Observations) -> None:
        self.items = items
        self.observations = observations
        self.shape = (len(items), *observations.shape)
        self.dtype = np.dtype(observations.dtype)
        _require_colours(observations)

    def compute(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        size = PictureSize(*self.observations.shape)
        pixels = np.empty((len(rows), *size.shape), np.uint8)
        for out, row in zip(pixels, rows.tolist(), strict=True):
            item = self.items[row]
            out[...] = convert(item, size) if isinstance(item, Image.Image) else decode_file(item, size)
        return pixels if self.dtype == np.uint8 else _bytes_to_floats(pixels, self.observations)


class ResizedImages(LazyImages):
    """Images of bytes that are scaled and cropped to a size when they are indexed.

    Args:
        images: (n, h, w), or (n, h, w, c) of 1, 3 or 4 channels.
        size: the new size.
    """

    def __init__(self, images: ImageArray, size: PictureSize) -> None:
        self.images = images
        self.size = size
        self.shape = (len(images), *size.shape)

    def compute(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        return resize(np.asarray(self.images[rows]), self.size)


def is_picture_file(path: Any) -> bool:
    """Return whether an object is the path of a picture, judging by its name."""
    if not isinstance(path, str | Path) or not os.fspath(path).lower().endswith(PICTURE_SUFFIXES):
        return False
    return not Path(path).is_dir()


def pictures_in(data: Any) -> Sequence[Any] | None:
    """Return pictures of Pillow and paths of picture files as a list; None for anything else."""
    items = data if isinstance(data, list | tuple) else [data]
    is_list = bool(items) and all(isinstance(item, Image.Image | str | Path) for item in items)
    return items if is_list else None


def _as_rows(data: Any, observations: Observations) -> Any:
    """Return an array, a tensor or a list of rows with the axes of the observations, if it may have them."""
    rows = data
    if is_tensor := hasattr(rows, "detach"):
        rows = tensor_to_array(rows, observations.traits.many)
    elif isinstance(rows, list | tuple):
        try:
            rows = np.asarray(rows)
        except ValueError as error:
            raise ValueError(f"a list of {observations.traits.many} must hold equal shapes ({error})") from None
    rows = unmask(rows, observations.traits.many)
    if not hasattr(rows, "shape") or not hasattr(rows, "dtype"):
        raise ValueError(
            f"expected {observations.traits.many} as an array, a tensor, a data frame or a path, got "
            f"{type(data).__name__}"
        )
    *sides, channels = observations.shape
    if sides and channels == 1 and tuple(rows.shape[1:]) == tuple(sides):  # as data of one channel may be given
        return np.asarray(rows)[..., None]
    is_image = observations.kind == IMAGES and len(rows.shape) == 4 and tuple(rows.shape[1:]) != observations.shape
    if is_tensor and is_image and rows.shape[1] < rows.shape[3]:
        return np.ascontiguousarray(np.moveaxis(rows, 1, 3))  # torch has channels first
    return rows


def _fit_images(rows: Any, observations: Observations) -> Any:
    """Return images in the size and type of a model; those that cannot be brought to it stay as they are."""
    shape, takes_bytes = tuple(rows.shape), observations.dtype == "uint8"
    is_same_shape = shape[1:] == observations.shape and np.dtype(rows.dtype).kind in "fiub"
    sides = shape[1:3]
    is_picture = len(shape) in (3, 4) and min(sides, default=0) >= MIN_SIDE
    is_picture = is_picture and (len(shape) == 3 or shape[3] in CHANNELS) and np.dtype(rows.dtype).kind in "fiub"
    if not (is_same_shape or (is_picture and takes_bytes and observations.num_features in (GREY, COLOURS))):
        return rows
    if takes_bytes:
        pixels = rows if rows.dtype == np.uint8 else _floats_to_bytes(np.asarray(rows))
        return pixels if is_same_shape else ResizedImages(pixels, PictureSize(*observations.shape))
    return _bytes_to_floats(np.asarray(rows), observations) if rows.dtype == np.uint8 else rows


def _floats_to_bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Return numbers from 0 to 1, or whole numbers from 0 to 255, as bytes."""
    low, high = (images.min(), images.max()) if images.size else (0, 0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("images have missing or infinite values (NaN, inf): leave these images out, or fill the gaps")
    if images.dtype.kind in "fb" and low >= 0 and high <= 1:
        return np.rint(WHITE * images.astype(np.float64)).astype(np.uint8)
    if low >= 0 and high <= WHITE and (images == np.rint(images)).all():
        return images.astype(np.uint8)
    raise ValueError(
        f"the model takes images of bytes, and these are {images.dtype} from {low:.4g} to {high:.4g}: bring them to "
        "the range from 0 to 1, or to whole numbers from 0 to 255"
    )


def _bytes_to_floats(pixels: NDArray[Any], observations: Observations) -> NDArray[Any]:
    """Return bytes in the range of the floats that a model was trained on."""
    low, width = np.asarray(observations.offset), np.asarray(observations.scale)
    if not low.any() and (width == 1).all():
        return (pixels / WHITE).astype(observations.dtype)
    if low.min() >= 0 and (low + width).max() >= BYTES_RANGE:
        return pixels.astype(observations.dtype)
    raise ValueError(
        f"the model was trained on images of floats from {low.min():.4g} to {(low + width).max():.4g}, and these are "
        "bytes: scale them as the training data were"
    )


def _require_colours(observations: Observations) -> None:
    if observations.kind != IMAGES or observations.num_features not in (GREY, COLOURS):
        raise ValueError(
            f"the model takes {observations.traits.many} of {observations.size}, got pictures; only grey and coloured "
            "images can be read from them"
        )


def _explain_shape(shape: tuple[int, ...], dtype: Any, observations: Observations) -> str:
    """Explain why an array does not hold the observations that a model takes."""
    kind, expected = observations.traits, ", ".join(map(str, observations.shape))
    text = f"expected {observations.dtype} {kind.many} of shape (n, {expected}), got {dtype} of shape {shape}"
    if len(kind.axes) == 2 and len(shape) == 2 and shape[1] == observations.num_features and shape[0] > 1:
        return (
            f"{text}, which looks like one long recording: qlae.load_data(array, window={observations.shape[0]}).images"
            " cuts it into windows"
        )
    return f"{text}; one {kind.one} is {kind.many}[None]"
