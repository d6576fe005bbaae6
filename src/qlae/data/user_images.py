"""The user's own images, from a folder of any depth, a zip or tar of it, an ``.npz`` or an ``.npy``.

Sources may come as an array ``sources`` in the ``.npz``, as a separate ``.npy``, or as a CSV with one line per image,
whose first column is the name of the file. A source with fractional values keeps them; the values of any other source
become levels 0, 1, 2 … in sorted order.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..observations import MAX_CHANNELS
from .cache import safe_name
from .checked_files import check_files, printable
from .dataset import ORIGINS, Progress, default_source_names
from .files import BATCH, file_fingerprint, image_batches
from .folders import Files, open_files
from .imageset import Batches, ImageSet
from .pictures import require_image_shape, resize_all
from .source_table import SourceTable
from .sources import SOURCES
from .streams import ArrayStream, array_names

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
#: Images that are not read, and are named when they are left out.
OTHER_SUFFIXES = (".heic", ".heif", ".avif", ".dng", ".cr2", ".nef", ".arw", ".jxl", ".svg")
NAMES_SHOWN = 3  # in a message
NAMES_KEPT = 10  # of images that are left out, in the description of a data set
WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,1000}\s*")

#: Sources as the user gives them: the path of a CSV or ``.npy``, or an array (n, n_s).
Sources = str | Path | NDArray[Any]


def read_user_images(
    path: str | Path,
    *,
    name: str | None = None,
    sources: Sources | None = None,
    progress: Progress | None = None,
) -> ImageSet:
    """Open the user's own images.

    Files that cannot be decoded are left out; the description of the data counts and names them, and a warning does so
    when they are read for the first time. Run directories below the folder are left out too.

    Args:
        path: a folder, zip or tar with PNG, JPEG, WebP, BMP, GIF or TIFF images, or an ``.npz`` or ``.npy`` with bytes
            of shape (n, h, w) or (n, h, w, channels).
        name: the name of the data set; by default that of the file or folder.
        sources: a CSV or ``.npy`` file, or an array (n, n_s).
        progress: called with (files checked, number of files).

    Raises:
        ValueError: there are no images at `path`, or the sources do not fit them.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist: give a folder of images, an archive, an .npz or an .npy")
    if isinstance(sources, str | Path) and not (Path(sources).suffix == ".npy" or _is_csv(sources)):
        raise ValueError(f"sources must be a .csv (one line per image) or an .npy of shape (n, n_s), got {sources}")
    name = name_of_images(path, name)
    if path.suffix in (".npz", ".npy") and path.is_file():
        return _read_array(name, path, sources)
    return _read_pictures(name, open_files(path), sources, progress)


def name_of_images(path: str | Path, name: str | None = None) -> str:
    """Return the name of the data set of a file or folder, of which the user may have chosen another."""
    path = Path(path).resolve()
    name = safe_name(name or (path.name if path.is_dir() else path.name.partition(".")[0]))
    return f"own_{name}" if name in SOURCES else name  # which would later be taken for the published files


def _read_array(name: str, path: Path, sources: Sources | None) -> ImageSet:
    stream = ArrayStream(path, "images")
    shape = stream.shape
    if (
        stream.dtype != np.uint8
        or len(shape) not in (3, 4)
        or 0 in shape
        or (len(shape) == 4 and shape[3] not in (1, 3, 4))
    ):
        hint = _dtype_hint(stream.dtype)
        if stream.dtype == np.uint8 and len(shape) == 4 and shape[1] <= MAX_CHANNELS < shape[3]:
            hint = ", which looks as if the channels came first; save np.moveaxis(images, 1, -1)"
        raise ValueError(
            f"images in {path} must be uint8 of shape (n, h, w), (n, h, w, 1), (n, h, w, 3) or (n, h, w, 4), "
            f"got {stream.dtype} {shape}{hint}"
        )
    require_image_shape(shape, path)
    keys = array_names(path) if path.suffix == ".npz" else []
    names = None
    if sources is None and "sources" in keys:
        sources = ArrayStream(path, "sources").read_all()
        if "source_names" in keys:
            names = _read_texts(path, "source_names")
    table = None if sources is None else source_array(sources, len(stream))
    columns = {} if table is None else named_columns(table, names)
    return _image_set(
        name,
        len(stream),
        columns,
        lambda size, first: resize_all(stream.chunks(first), size, BATCH),
        file_fingerprint(path),
        {},
        origin=_origin(path, keys),
    )


def _origin(path: Path, keys: list[str]) -> str:
    """Return the origin that an ``.npz`` states, as those of `qlae data render` do; by default ``"real"``."""
    origins = _read_texts(path, "origin") if "origin" in keys else []
    return origins[0] if len(origins) == 1 and origins[0] in ORIGINS else "real"


def _read_texts(path: Path, key: str) -> list[str]:
    """Return an array of texts from an ``.npz``."""
    stream = ArrayStream(path, key)
    if len(stream.shape) != 1 or stream.dtype.kind != "U":
        raise ValueError(f"{key} in {path} must be a list of texts, got {stream.dtype} {stream.shape}")
    return [str(text) for text in stream.read_all()]


def _dtype_hint(dtype: np.dtype[Any]) -> str:
    """Return how to convert images of another dtype to bytes, as the end of an error message."""
    if dtype.kind == "f":
        return "; convert floats in [0, 1] with (255 * images).round().astype('uint8')"
    return "; convert integers from 0 to 255 with images.astype('uint8')" if dtype.kind in "iu" else ""


def _read_pictures(name: str, files: Files, sources: Sources | None, progress: Progress | None) -> ImageSet:
    names = [n for n in files.names() if not n.rsplit("/", 1)[-1].startswith("._")]
    candidates = [n for n in names if n.lower().endswith(SUFFIXES)]
    others = [printable(n) for n in names if n.lower().endswith(OTHER_SUFFIXES)]
    if not candidates:
        also = f"; it has {_describe_others(others)}" if others else ""
        raise ValueError(f"{files.path} has no images: no PNG, JPEG, WebP, BMP, GIF or TIFF files{also}")
    table = _open_sources(sources, candidates)
    checks, has_new_others = check_files(files, candidates, others, progress=progress)
    if has_new_others:
        warnings.warn(f"{files.path}: {_describe_others(others)}; the others are used", stacklevel=4)
    readable = [check.name for check in checks if check.reason is None]
    left_out = {printable(check.name): check.reason for check in checks if check.reason is not None}
    failures = [f"{name} ({reason})" for name, reason in left_out.items()]
    if not readable:
        raise ValueError(
            f"none of the {len(candidates)} images in {files.path} can be read, the first of them {failures[0]}"
        )
    if any(check.is_new and check.reason is not None for check in checks):
        examples = ", ".join(failures[:NAMES_SHOWN]) + (", …" if len(failures) > NAMES_SHOWN else "")
        warnings.warn(
            f"{len(failures):,} of {len(candidates):,} images in {files.path} are left out: {examples}. A run lists "
            "all of them in left_out.json",
            stacklevel=4,
        )
    columns: dict[str, list[Any]] = {}
    if isinstance(table, SourceTable):
        columns = dict(table.rows_for(readable))
    elif table is not None:
        rows = [i for i, check in enumerate(checks) if check.reason is None]
        columns = named_columns(table[rows], None)
    listing = "".join(f"{printable(check.name)}:{check.digest}\n" for check in checks)
    digest = hashlib.sha256(listing.encode()).hexdigest()
    fingerprint = {"path": str(files.path.resolve()), "num_files": len(candidates), "sha256": digest}
    details = {"num_skipped": len(failures), "skipped": failures[:NAMES_KEPT]} if failures else {}
    return _image_set(
        name,
        len(readable),
        columns,
        image_batches(files, readable),
        fingerprint,
        details,
        file_names=readable,
        left_out=left_out | dict.fromkeys(others, "its format is not read"),
    )


def _open_sources(sources: Sources | None, images: list[str]) -> SourceTable | NDArray[Any] | None:
    """Return the sources of images, before the images are read: a table by file name, or an array with a row each."""
    if isinstance(sources, str | Path) and _is_csv(sources):
        return SourceTable(Path(sources), images)
    return None if sources is None else source_array(sources, len(images))


def _describe_others(names: list[str]) -> str:
    """Return in words which images are left out because of their format, and what to do."""
    kinds = sorted({name.rsplit(".", 1)[-1].upper() for name in names})
    examples = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
    count = f"{len(names):,} {'file' if len(names) == 1 else 'files'}"
    return f"{count} in formats that are not read ({', '.join(kinds)}): {examples}. Convert them to PNG or JPEG"


def _is_csv(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".csv"


def source_array(sources: Sources, num_images: int) -> NDArray[Any]:
    """Return sources as an array (n, n_s), read from an ``.npy`` if they are a path."""
    if isinstance(sources, str | Path) and _is_csv(sources):
        raise ValueError(
            f"{sources}: a CSV refers to file names, which an array does not have; "
            "give its sources as an .npy of shape (n, n_s)"
        )
    table = ArrayStream(Path(sources)).read_all() if isinstance(sources, str | Path) else np.asarray(sources)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != num_images or table.dtype.kind not in "iufUb":
        raise ValueError(
            f"sources must have one row for each of {num_images} images: numbers or text of shape (n, n_s), "
            f"got {table.dtype} {table.shape}"
        )
    return table


def named_columns(table: NDArray[Any], names: list[str] | None) -> dict[str, list[Any]]:
    names = names or default_source_names(table.shape[1])
    if len(names) != table.shape[1] or len(set(names)) != len(names):
        raise ValueError(f"{table.shape[1]} sources need {table.shape[1]} distinct names, got {names}")
    return {n: table[:, i].tolist() for i, n in enumerate(names)}


def _image_set(
    name: str,
    num_images: int,
    columns: dict[str, list[Any]],
    batches: Batches,
    fingerprint: dict[str, Any],
    details: dict[str, Any],
    *,
    file_names: list[str] | None = None,
    left_out: Mapping[str, str] | None = None,
    origin: str = "real",
) -> ImageSet:
    numbers = [as_levels(n, values) for n, values in columns.items()]
    # `sources` has one dtype: floats if any source has fractions.
    table = np.stack(numbers, axis=1) if numbers else np.zeros((num_images, 0), np.int64)
    if table.size:
        fingerprint = fingerprint | {"sources": hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()}
    return ImageSet(
        name=name,
        num_images=num_images,
        source_names=list(columns),
        source_sizes=[len(np.unique(column)) for column in numbers],
        sources=table,
        batches=batches,
        batch_size=BATCH,
        fingerprint=fingerprint,
        details=details,
        file_names=file_names,
        left_out=left_out or {},
        origin=origin,
    )


def as_levels(name: str, values: list[Any]) -> NDArray[Any]:
    """Convert a column of numbers or words to levels in sorted order; numbers with fractions stay unchanged."""
    whole = _as_whole_numbers(values)
    if whole is not None:
        return np.unique(whole, return_inverse=True)[1].astype(np.int64)
    try:
        numbers = np.array(values, dtype=np.float64)
    except ValueError:
        return np.unique(np.array([str(v) for v in values]), return_inverse=True)[1].astype(np.int64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"source {name!r} has values that are not finite numbers")
    if (numbers != np.floor(numbers)).any():
        return numbers
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _as_whole_numbers(values: list[Any]) -> NDArray[Any] | None:
    """Return values that are all whole numbers, exactly, however large; None if some are anything else."""
    if not all(
        isinstance(value, int) or (isinstance(value, str) and WHOLE_NUMBER.fullmatch(value)) for value in values
    ):
        return None
    numbers = [int(value) for value in values]
    fits = all(-(2**63) <= number < 2**63 for number in numbers)
    return np.array(numbers, dtype=np.int64 if fits else object)
