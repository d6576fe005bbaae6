"""Data straight from memory: NumPy arrays, torch tensors, data frames and torch data sets of map style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .dataset import Progress, SourceDataset, as_array, observe
from .sources import named_columns, source_rows
from .spec import DataSpec
from .tables import from_frame, is_frame

NAME = "array"  # of data that came without one
NO_DATA = (str, bytes, dict, set, range)
LABELS = "labels"  # the sources of a torch data set whose items are pairs


def is_in_memory(data: Any) -> bool:
    """Return whether an object holds data: an array, tensor, data frame, list of rows, or map-style data set."""
    is_map_style = hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, NO_DATA)
    return isinstance(data, list | tuple) or _is_array(data) or is_frame(data) or is_map_style


@dataclass(frozen=True, kw_only=True, eq=False)
class InMemory(DataSpec):
    """Data in memory. A run cannot store them, so the data set that is returned has no spec.

    Attributes:
        data: an array, tensor or list of rows: images (n, h, w, c), vectors (n, d) or series (n, t, c); a data frame,
            whose columns are features; or a torch data set whose items are observations, or tuples that begin with
            one. Images in tensors may have their channels first.
        sources: an array (n, n_s) or (n,), columns by name, or a data frame; ``"labels"`` for the second entries of a
            torch data set's items.
        layout, feature_names: as for `SourceDataset`.
        source_columns, drop_columns: columns of a data frame that are sources, and that are left out.
    """

    title: ClassVar[str] = "data in memory"

    name: str = NAME
    data: Any
    sources: Any = None
    layout: str | None = None
    feature_names: Sequence[str] = ()
    source_columns: Sequence[str] = ()
    drop_columns: Sequence[str] = ()

    def load(self, *, progress: Progress | None = None) -> SourceDataset:
        return self.read(progress)

    def read(self, progress: Progress | None = None) -> SourceDataset:
        rows, names = self.data, self.feature_names
        columns: dict[str, list[Any]] = {}
        if is_frame(rows):
            rows, own_names, columns = from_frame(rows, self.source_columns, self.drop_columns)
            names = names or own_names
        elif self.source_columns or self.drop_columns:
            raise ValueError("source_columns and drop_columns name columns of a table; an array has none")
        sources = self.sources
        if not (_is_array(rows) or isinstance(rows, list | tuple)):
            with_labels = isinstance(sources, str) and sources == LABELS
            rows, labels = _collect(rows, with_labels=with_labels)
            sources = labels if with_labels else sources
        array, kind = as_array(rows, layout=self.layout, name=self.name)
        columns = columns | _source_columns(sources, len(array))
        observations = observe(array, kind, names, name=self.name)
        return SourceDataset.from_columns(array, columns, observations, name=self.name)


def _source_columns(sources: Any, num_rows: int) -> dict[str, list[Any]]:
    """Return the values of each source by name."""
    if sources is None:
        return {}
    if isinstance(sources, str):
        raise ValueError(f"sources must hold one row per observation, got {sources!r}")
    if is_frame(sources):
        return {str(name): sources[name].to_numpy().tolist() for name in sources.columns}
    if isinstance(sources, Mapping):
        return {str(name): np.asarray(values).tolist() for name, values in sources.items()}
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
