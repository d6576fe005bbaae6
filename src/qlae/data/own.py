"""A user's own images: a folder of any depth, a zip or tar of it, an ``.npz`` or an ``.npy``; with or without sources.

Sources may come as an array ``sources`` in the ``.npz``, as a separate ``.npy``, or as a CSV: a row an image, its first
column the file's name and the others the sources. Numbers with fractions stay what they are; everything else becomes
levels 0, 1, 2 … in sorted order.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cache import own_name
from .dataset import ORIGINS, Progress, numbered_names
from .files import BATCH, fingerprint, png_batches
from .folders import Files, open_files
from .imageset import ImageSet
from .pictures import mapped, require_readable, resized
from .source_table import read_table
from .sources import SOURCES
from .streams import ArrayStream, keys_of

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
NAMES_SHOWN = 10


def read_own(
    path: str | Path,
    *,
    name: str | None = None,
    sources: str | Path | NDArray[Any] | None = None,
    progress: Progress | None = None,
) -> ImageSet:
    """Images of one's own, ready to be prepared.

    Args:
        path: a folder, zip or tar with PNG, JPEG, WebP, BMP, GIF or TIFF images, or an ``.npz`` or ``.npy`` with bytes
            of shape (n, h, w) or (n, h, w, channels).
        name: what to call them; by default as the file or folder.
        sources: a CSV or ``.npy`` file, or an array (n, n_s).
        progress: called with (files looked at, files in all).

    Files that cannot be read are left out, counted and named in a warning and in the description of the data. Run
    directories below the folder are left out too.
    """
    place = Path(path)
    if not place.exists():
        raise ValueError(f"{place} does not exist: give a folder of images, an archive, an .npz or an .npy")
    if isinstance(sources, str | Path) and not (Path(sources).suffix == ".npy" or _is_csv(sources)):
        raise ValueError(f"sources come as a .csv (a line an image) or an .npy of shape (n, n_s), got {sources}")
    whole = place.resolve()
    called = name or (whole.name if whole.is_dir() else whole.name.partition(".")[0])
    called = own_name(called)
    if called in SOURCES:  # by that name, the published files would be looked for in it later
        called = f"own_{called}"
    if place.suffix in (".npz", ".npy") and place.is_file():
        return _from_array(called, place, sources)
    return _from_pictures(called, open_files(place), sources, progress)


def _from_array(name: str, path: Path, sources: str | Path | NDArray[Any] | None) -> ImageSet:
    stream = ArrayStream(path, "images")
    shape = stream.shape
    if (
        stream.dtype != np.uint8
        or len(shape) not in (3, 4)
        or 0 in shape
        or (len(shape) == 4 and shape[3] not in (1, 3, 4))
    ):
        raise ValueError(
            f"images in {path} must be uint8 of shape (n, h, w), (n, h, w, 1), (n, h, w, 3) or (n, h, w, 4), "
            f"got {stream.dtype} {shape}{_hint(stream.dtype)}"
        )
    keys = keys_of(path) if path.suffix == ".npz" else []
    names = None
    if sources is None and "sources" in keys:
        sources = ArrayStream(path, "sources").all()
        if "source_names" in keys:
            names = [str(n) for n in ArrayStream(path, "source_names").all()]
    table = None if sources is None else _array_sources(sources, len(stream))
    columns = {} if table is None else _named_columns(table, names)
    return _own_set(
        name,
        len(stream),
        columns,
        lambda resolution, first: (resized(b, resolution) for b in stream.rows(BATCH, first)),
        fingerprint(path),
        {},
        origin=_origin(path, keys),
    )


def _origin(path: Path, keys: list[str]) -> str:
    """What an .npz says of its origin, as those that `qlae data render` writes do; else real."""
    said = str(ArrayStream(path, "origin").all()[0]) if "origin" in keys else "real"
    return said if said in ORIGINS else "real"


def _hint(dtype: np.dtype[Any]) -> str:
    """What to do with images of another type."""
    if dtype.kind == "f":
        return "; floats in [0, 1] become bytes by (255 * images).round().astype('uint8')"
    return "; whole numbers up to 255 become bytes by images.astype('uint8')" if dtype.kind in "iu" else ""


def _from_pictures(
    name: str, files: Files, sources: str | Path | NDArray[Any] | None, progress: Progress | None
) -> ImageSet:
    candidates = [
        n for n in files.names() if n.lower().endswith(SUFFIXES) and not n.rsplit("/", 1)[-1].startswith("._")
    ]
    if not candidates:
        raise ValueError(f"{files.path} has no images: no PNG, JPEG, WebP, BMP, GIF or TIFF files")
    states = []
    for state in _readable(files, candidates):
        states.append(state)
        if progress is not None and (len(states) % BATCH == 0 or len(states) == len(candidates)):
            progress(len(states), len(candidates))
    good = [n for n, reason, _ in states if reason is None]
    skipped = [f"{_escaped(n)} ({reason})" for n, reason, _ in states if reason is not None]
    if not good:
        raise ValueError(f"none of the {len(candidates)} images in {files.path} can be read, first {skipped[0]}")
    if skipped:
        shown = ", ".join(skipped[:NAMES_SHOWN]) + (", …" if len(skipped) > NAMES_SHOWN else "")
        warnings.warn(f"{len(skipped)} of {len(candidates)} images in {files.path} are left out: {shown}", stacklevel=4)
    columns: dict[str, list[Any]] = {}
    if isinstance(sources, str | Path) and _is_csv(sources):
        columns = dict(read_table(Path(sources), good))
    elif sources is not None:
        table = _array_sources(sources, len(candidates))
        kept = [i for i, (_, reason, _) in enumerate(states) if reason is None]
        columns = _named_columns(table[kept], None)
    digest = hashlib.sha256("".join(f"{_escaped(n)}:{d}\n" for n, _, d in states).encode()).hexdigest()
    made_from = {"path": str(files.path.resolve()), "num_files": len(candidates), "sha256": digest}
    details = {"num_skipped": len(skipped), "skipped": skipped[:NAMES_SHOWN]} if skipped else {}
    return _own_set(name, len(good), columns, png_batches(files, good), made_from, details, file_names=good)


def _readable(files: Files, names: list[str]) -> Iterator[tuple[str, str | None, str]]:
    """For each file its name, why it cannot be read (``None`` if it can) and a digest of its bytes."""

    def look(item: tuple[str, bytes]) -> tuple[str, str | None, str]:
        name, content = item
        digest = hashlib.sha256(content).hexdigest()
        if name != _escaped(name):
            return name, "its name is not UTF-8; rename it", digest
        try:
            require_readable(content)
        except ValueError as error:
            return name, str(error), digest
        return name, None, digest

    return mapped(look, files.read(names))


def _escaped(name: str) -> str:
    """A file's name as it can be shown and written: bytes that are not UTF-8 as escapes."""
    return name.encode(errors="backslashreplace").decode()


def _is_csv(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".csv"


def _array_sources(sources: str | Path | NDArray[Any], num_images: int) -> NDArray[Any]:
    """An array of sources (n, n_s), from a file if it is a path."""
    if isinstance(sources, str | Path) and _is_csv(sources):
        raise ValueError(
            f"{sources}: a CSV goes by file names; the sources of an array come as an .npy of shape (n, n_s)"
        )
    table = ArrayStream(Path(sources)).all() if isinstance(sources, str | Path) else np.asarray(sources)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != num_images or table.dtype.kind not in "iufUb":
        raise ValueError(
            f"sources must have a row for each of {num_images} images: numbers or text of shape (n, n_s), "
            f"got {table.dtype} {table.shape}"
        )
    return table


def _named_columns(table: NDArray[Any], names: list[str] | None) -> dict[str, list[Any]]:
    names = names or numbered_names(table.shape[1])
    if len(set(names)) != table.shape[1]:
        raise ValueError(f"{table.shape[1]} sources need as many different names, got {names}")
    return {n: table[:, i].tolist() for i, n in enumerate(names)}


def _own_set(
    name: str,
    num_images: int,
    columns: dict[str, list[Any]],
    batches: Any,
    made_from: dict[str, Any],
    details: dict[str, Any],
    *,
    file_names: list[str] | None = None,
    origin: str = "real",
) -> ImageSet:
    numbers = [_as_levels(n, values) for n, values in columns.items()]
    # `sources` has one dtype: floats if any source has fractions.
    table = np.stack(numbers, axis=1) if numbers else np.zeros((num_images, 0), np.int64)
    if table.size:
        made_from = made_from | {"sources": hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()}
    return ImageSet(
        name=name,
        num_images=num_images,
        source_names=list(columns),
        source_sizes=[len(np.unique(column)) for column in numbers],
        sources=table,
        batches=batches,
        batch_size=BATCH,
        made_from=made_from,
        details=details,
        file_names=file_names,
        origin=origin,
    )


def _as_levels(name: str, values: list[Any]) -> NDArray[Any]:
    """A column of numbers or words: fractions as they are, all else as levels in sorted order."""
    try:
        numbers = np.array(values, dtype=np.float64)
    except ValueError:
        return np.unique(np.array([str(v) for v in values]), return_inverse=True)[1].astype(np.int64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"source {name!r} has values that are not finite numbers")
    if (numbers != np.floor(numbers)).any():
        return numbers
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
