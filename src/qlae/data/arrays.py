"""Data straight from memory: NumPy arrays, torch tensors, data frames and torch data sets of map style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..observations import VECTORS
from .dataset import SourceDataset
from .observing import as_array, observe
from .tables import Table, from_frame, is_frame
from .user_images import as_levels, named_columns, source_array

NAME = "array"  # of data that came without one
LABELS = "labels"  # the sources of a torch data set whose items are pairs

#: Sources as the caller has them: an array (n, n_s) or (n,), columns by name, or a data frame.
Sources = Any


def is_in_memory(data: Any) -> bool:
    """Return whether `data_from_memory` takes an object: an array, a tensor, a data frame, or a map-style data set."""
    return hasattr(data, "__array__") or hasattr(data, "detach") or is_frame(data) or _is_map_style(data)


def data_from_memory(
    data: Any,
    *,
    sources: Sources | None = None,
    kind: str | None = None,
    feature_names: Sequence[str] = (),
    source_columns: Sequence[str] = (),
    drop_columns: Sequence[str] = (),
    name: str = NAME,
) -> SourceDataset:
    """Return a data set of observations in memory.

    Args:
        data: an array or tensor of images (n, h, w, c), vectors (n, d) or series (n, t, c); a data frame, whose columns
            are features; or a torch data set whose items are observations, or tuples that begin with one. Images in
            tensors may have their channels first.
        sources: an array (n, n_s) or (n,), columns by name, or a data frame; ``"labels"`` for the second entries of a
            torch data set's items.
        kind, feature_names: as for `SourceDataset`.
        source_columns, drop_columns: columns of a data frame that are sources, and that are left out.
        name: of the data set.

    Raises:
        ValueError: the data hold no numbers, or missing values, or do not fit the sources.
    """
    frame_sources: dict[str, list[Any]] = {}
    if is_frame(data):
        table = from_frame(data, source_columns=source_columns, drop_columns=drop_columns)
        data, feature_names, frame_sources = table.features, feature_names or table.feature_names, table.sources
    elif source_columns or drop_columns:
        raise ValueError("source_columns and drop_columns name columns of a table; an array has none")
    if not (hasattr(data, "__array__") or hasattr(data, "detach")):
        data, labels = _collect(data, with_labels=isinstance(sources, str) and sources == LABELS)
        sources = labels if labels is not None else sources
    array, kind = as_array(data, kind=kind, name=name)
    columns = frame_sources | _source_columns(sources, len(array))
    return build_data(array, kind, columns, feature_names, name=name)


def data_from_table(table: Table, *, name: str) -> SourceDataset:
    """Return a data set of the vectors and sources of a table."""
    return build_data(table.features, VECTORS, table.sources, table.feature_names, name=name)


def build_data(
    array: Any, kind: str, columns: Mapping[str, Sequence[Any]], feature_names: Sequence[str], *, name: str
) -> SourceDataset:
    """Return a data set; the values of its sources become levels, unless they are numbers with fractions."""
    numbers = [as_levels(source, list(values)) for source, values in columns.items()]
    for source, values in zip(columns, numbers, strict=True):
        if len(values) != len(array):
            raise ValueError(f"{name} has {len(array):,} rows, and the source {source!r} has {len(values):,}")
    return SourceDataset(
        array,
        np.stack(numbers, axis=1) if numbers else None,
        name=name,
        origin="real",
        source_names=list(columns),
        observations=observe(array, kind, feature_names, name=name),
    )


def _source_columns(sources: Sources, num_rows: int) -> dict[str, list[Any]]:
    """Return the values of each source by name."""
    if sources is None:
        return {}
    if isinstance(sources, str):
        raise ValueError(f"sources must hold one row per observation, got {sources!r}")
    if is_frame(sources):
        return {str(name): sources[name].to_numpy().tolist() for name in sources.columns}
    if isinstance(sources, Mapping):
        return {str(name): np.asarray(values).tolist() for name, values in sources.items()}
    values = sources.detach().cpu().numpy() if hasattr(sources, "detach") else np.asarray(sources)
    return named_columns(source_array(values, num_rows), None)


def _is_map_style(data: Any) -> bool:
    is_collection = isinstance(data, str | bytes | list | tuple | dict | set | range)
    return hasattr(data, "__getitem__") and hasattr(data, "__len__") and not is_collection


def _collect(data: Any, *, with_labels: bool) -> tuple[Any, list[Any] | None]:
    """Return the observations of a map-style data set as one array or tensor, and the second entries of its items."""
    count = len(data)
    if not count:
        raise ValueError("the data set is empty: it has no items")
    rows: list[NDArray[Any]] = []
    labels: list[Any] = []
    is_tensor = False
    for i in range(count):
        item = data[i]
        is_tuple = isinstance(item, tuple | list)
        observation = item[0] if is_tuple else item
        is_tensor = hasattr(observation, "detach")
        row = np.asarray(observation.detach().cpu() if is_tensor else observation)
        if row.dtype.hasobject or row.dtype.kind not in "fiub":
            raise ValueError(
                f"item {i} of the data set begins with a {type(observation).__name__}, which holds no numbers; items "
                "must be observations, or tuples that begin with one"
            )
        if rows and row.shape != rows[0].shape:
            raise ValueError(f"item {i} of the data set has shape {row.shape}, item 0 has {rows[0].shape}: resize them")
        if with_labels:
            if not is_tuple or len(item) < 2:
                raise ValueError(f'sources="{LABELS}" needs items that are pairs, and item {i} is none')
            labels.append(np.asarray(item[1]).tolist())
        rows.append(row)
    array = np.stack(rows)
    if is_tensor:
        import torch

        return torch.from_numpy(array), labels if with_labels else None
    return array, labels if with_labels else None
