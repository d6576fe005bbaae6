"""Describe vectors and series column by column, also those that a model cannot be trained on yet.

`load_data` refuses text and missing values. Whoever looks at data wants to see them: here they are counted, and what
can be drawn is returned with gaps (NaN) in the place of missing values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..observations import VECTORS, Observations
from .array_files import ArrayFile, read_raw
from .dataset import Progress, SourceDataset, as_array
from .sources import level_table
from .spec import DataSpec
from .tables import TableFile, read_frame

FEATURE, SOURCE, LEFT_OUT = "feature", "source", "left out"
MAX_TEXTS = 3  # that a description quotes


@dataclass(frozen=True)
class Column:
    """A feature, a channel or a source.

    Attributes:
        name: of the column.
        role: ``"feature"``, ``"source"`` or ``"left out"``.
        num_missing: missing and infinite values.
        num_texts: values that are no numbers.
        texts: some of those, each once.
        num_distinct: different values among the others.
        low, mean, high, deviation: of the numbers; NaN if there are none.
    """

    name: str
    role: str
    num_missing: int = 0
    num_texts: int = 0
    texts: tuple[str, ...] = ()
    num_distinct: int = 0
    low: float = np.nan
    mean: float = np.nan
    high: float = np.nan
    deviation: float = np.nan

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same number."""
        return self.low == self.high


@dataclass(frozen=True)
class Inspection:
    """What vectors or series look like.

    Attributes:
        data: those features that are numbers, with NaN where values are missing; None if there are none.
        columns: all features or channels, and sources.
        refusal: why `load_data` does not take the data as they are; None if it does.
    """

    data: SourceDataset | None
    columns: tuple[Column, ...]
    refusal: str | None = None


def inspect_data(spec: DataSpec, *, progress: Progress | None = None) -> Inspection:
    """Describe a data set of vectors or series; of other kinds, only return it.

    Args:
        spec: the description from which it is loaded.
        progress: as for `load_data`.

    Raises:
        ValueError: the data cannot be read at all.
    """
    try:
        data = spec.load(progress=progress)
    except ValueError as error:
        inspection = None
        if isinstance(spec, TableFile):
            inspection = _inspect_table(spec, str(error))
        elif isinstance(spec, ArrayFile):
            inspection = _inspect_array(spec, str(error))
        if inspection is None:
            raise
        return inspection
    return Inspection(data, () if data.observations.traits.has_bytes else _columns_of(data))


def _columns_of(data: SourceDataset) -> tuple[Column, ...]:
    """Return the columns of data without gaps."""
    rows = np.asarray(data.images).reshape(-1, data.observations.num_features)
    features = [describe_column(name, FEATURE, rows[:, i]) for i, name in enumerate(data.observations.names)]
    sources = [describe_column(name, SOURCE, data.sources[:, i]) for i, name in enumerate(data.source_names)]
    return (*features, *sources)


def describe_column(name: str, role: str, values: NDArray[Any]) -> Column:
    """Return the description of values (n,): numbers, or objects among which None stands for a missing value."""
    texts: list[str] = []
    if values.dtype.kind not in "fiub":
        cells = values.astype(str).tolist() if values.dtype.kind in "mM" else values.tolist()
        texts = [str(cell) for cell in cells if not isinstance(cell, int | float | None)]
        values = np.array([cell for cell in cells if isinstance(cell, int | float)], dtype=np.float64)
        num_missing = len(cells) - len(texts) - int(np.isfinite(values).sum())
    else:
        num_missing = int((~np.isfinite(values)).sum())
    numbers = values[np.isfinite(values)].astype(np.float64)
    distinct = dict.fromkeys(texts)
    statistics: Mapping[str, float] = {}
    if len(numbers):
        statistics = {
            "low": float(numbers.min()),
            "mean": float(numbers.mean()),
            "high": float(numbers.max()),
            "deviation": float(numbers.std()),
        }
    return Column(
        name,
        role,
        num_missing=num_missing,
        num_texts=len(texts),
        texts=tuple(list(distinct)[:MAX_TEXTS]),
        num_distinct=len(np.unique(numbers)) + len(distinct),
        **statistics,
    )


def _inspect_table(spec: TableFile, refusal: str) -> Inspection | None:
    """Return what is in a table that cannot be loaded; None if it is no table, or has no rows."""
    try:
        frame = read_frame(spec.path)
    except (ValueError, OSError):
        return None
    if not len(frame):
        return None
    roles = dict.fromkeys(frame.columns, FEATURE)
    roles |= dict.fromkeys(spec.source_columns, SOURCE) | dict.fromkeys(spec.drop_columns, LEFT_OUT)
    described = tuple(describe_column(name, roles[name], frame[name].to_numpy()) for name in frame.columns)
    drawn = [c.name for c in described if c.role == FEATURE and not c.num_texts and np.isfinite(c.mean)]
    if not drawn:
        return Inspection(None, described, refusal)
    features = np.array(frame[drawn], dtype=np.float64)
    complete = [c.name for c in described if c.role == SOURCE and not c.num_missing]
    sources = {name: frame[name].tolist() for name in complete}
    return Inspection(_with_gaps(features, VECTORS, drawn, sources, spec.name), described, refusal)


def _inspect_array(spec: ArrayFile, refusal: str) -> Inspection | None:
    """Return what is in an array of vectors or series that cannot be loaded; None if it is anything else."""
    try:
        array, kind = as_array(read_raw(Path(spec.path)), layout=spec.layout, name=spec.path)
        if Observations(kind, array.shape[1:]).traits.has_bytes:
            return None
        data = _with_gaps(np.array(array, dtype=np.float64), kind, (), {}, spec.name)
    except (ValueError, OSError):
        return None
    return Inspection(data, _columns_of(data), refusal)


def _with_gaps(
    array: NDArray[np.float64],
    kind: str,
    feature_names: Sequence[str],
    sources: Mapping[str, Sequence[Any]],
    name: str,
) -> SourceDataset:
    """Return a data set whose missing values are NaN, to be looked at and not to be trained on."""
    array[~np.isfinite(array)] = np.nan
    return SourceDataset(
        array,
        level_table(sources, len(array)),
        name=name,
        origin="real",
        source_names=list(sources),
        observations=Observations(kind, array.shape[1:], "float64", tuple(feature_names)),
    )
