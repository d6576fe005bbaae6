"""Tables of numbers, from CSV or Parquet files or data frames: columns are features, sources or identifiers.

`table_files.py` reads the files and `table_columns.py` decides how each column is used. One error names everything that
is wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._checks import require_known
from ..columns import DATE_PARTS
from ..observations import VECTORS, Observations
from ..registry import DATA
from .cache import name_of_files
from .dataset import Progress, SourceDataset, first_few, observe
from .sources import number_texts
from .spec import UserData
from .table_columns import CHOICES, GROUP, IDENTIFIER, SOURCE, ColumnChoices, is_identifier, numbers_in, plan_columns
from .table_encoding import describe_columns, encode_rows, is_plain, observe_rows
from .table_files import RawTable, distinct_names, index_names, read_table, refuse


def is_frame(data: Any) -> bool:
    """Return whether an object is a data frame, such as those of pandas and Polars."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy") and not hasattr(data, "detach")


@DATA.register("table")
@dataclass(frozen=True, kw_only=True)
class TableFile(UserData):
    """A table of vectors.

    Attributes:
        path: a CSV whose first line names the columns, separated by commas, semicolons or tabs; or a Parquet file.
        source_columns: columns that are sources and not features.
        drop_columns: columns to leave out, such as row numbers.
        feature_columns: the only features, also if they look like identifiers; by default all other columns.
        column_kinds: how columns are used that would be recognised as something else, by name: ``"number"``,
            ``"category"``, ``"date"`` or ``"identifier"``.
        date_parts: cyclic parts of dates that are observed as well: ``"hour"``, ``"weekday"`` or ``"month"``.
        decimal: the character before the decimals of numbers in a CSV, ``"."`` or ``","``.
        group_column: a column that is no feature, such as the patient: rows with equal values stay together when rows
            are held out.
    """

    title: ClassVar[str] = "the table"
    path_fields: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    source_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()
    feature_columns: tuple[str, ...] = ()
    column_kinds: dict[str, str] = field(default_factory=dict)
    date_parts: tuple[str, ...] = ()
    decimal: str = "."
    group_column: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(name=name_of_files(self.path, self.name))
        for kind in self.column_kinds.values():
            require_known(kind, CHOICES, "kind of a column")
        for part in self.date_parts:
            require_known(part, DATE_PARTS, "part of a date")
        require_known(self.decimal, (".", ","), "decimal")

    @property
    def choices(self) -> ColumnChoices:
        """What the user says about columns."""
        return ColumnChoices(
            self.source_columns,
            self.drop_columns,
            self.column_kinds,
            self.feature_columns,
            self.group_column,
            self.date_parts,
        )

    def read_raw(self) -> RawTable:
        """Return the table as it is in the file, also one that cannot be used."""
        return read_table(self.path, self.source_columns, decimal=self.decimal)

    def read(self, progress: Progress | None = None) -> SourceDataset:
        data = dataset_of_table(self.read_raw(), self.path, self.choices, self.name)
        data.checksum = data.compute_checksum()
        return data


def dataset_of_table(
    table: RawTable,
    what: str,
    choices: ColumnChoices,
    name: str,
    *,
    sources: Mapping[str, list[Any]] | None = None,
    expected: Sequence[str] = (),
) -> SourceDataset:
    """Return the data set in a table; one error names everything that is wrong with it.

    Args:
        table: the table.
        what: its name in messages.
        choices: how the user wants columns to be used.
        name: of the data set.
        sources: further sources, by name.
        expected: identifiers that no warning needs to name.
    """
    frame = table.frame
    plan = plan_columns(frame, choices, table.index_columns)
    refuse(what, [*table.problems, *plan.problems])
    if recognised := [repr(column) for column in plan.recognised if column not in expected]:
        warnings.warn(
            f"{what}: these columns identify rows and are not used as features: {first_few(recognised)}. To use one, "
            "set column_kinds (--column-kinds NAME=number, or NAME=category)",
            stacklevel=2,
        )
    described = describe_columns(frame, plan.kinds, choices.date_parts)
    if is_plain(described):
        names = [column.name for column in described]
        features = np.stack([numbers_in(frame[column]) for column in names], axis=1)
        observations = observe(features, VECTORS, names, name=what)
    else:
        features, observations = observe_rows(frame, described, what)
    identifiers = plan.names(IDENTIFIER)
    columns = {column: frame[column].tolist() for column in plan.names(SOURCE)} | dict(sources or {})
    data = SourceDataset.from_columns(features, columns, observations, name=name)
    if identifiers:
        data.ids = frame[identifiers].reset_index(drop=True)
    for column in plan.names(GROUP):
        data.groups = group_labels(frame[column])
    return data


def group_labels(labels: Any) -> NDArray[np.int64]:
    """Return the number of the group of each row (n,), from labels of any type, none of them missing."""
    array = np.asarray(labels)
    if array.dtype.kind == "O":
        return number_texts([str(label) for label in array])
    return np.unique(array.astype(str), return_inverse=True)[1].reshape(-1)


def matching_table(data: Any, observations: Observations, spec: Any) -> SourceDataset:
    """Return the data set in another table for a model of tables: the columns that it takes, identifiers and sources.

    Args:
        data: a path or a data frame, whose columns may have any order; all others are left out.
        observations: what the model takes.
        spec: how its training data were read; None for data in memory.
    """
    choices: ColumnChoices = getattr(spec, "choices", ColumnChoices())
    is_memory = is_frame(data)
    what = "the data frame" if is_memory else str(data)
    table = raw_frame(data) if is_memory else read_table(data, choices.sources, decimal=getattr(spec, "decimal", "."))
    frame = table.frame
    refuse(what, table.problems)
    array = encode_rows(frame, observations, what)
    used = {column.name for column in observations.columns} | {*choices.dropped}
    sources = [name for name in choices.sources if name in frame and frame[name].notna().all()]
    others = [name for name in frame.columns if name not in used and name not in sources]
    named = [name for name, kind in choices.kinds.items() if kind == IDENTIFIER]
    ids = [name for name in others if name in named or name in table.index_columns or is_identifier(frame[name])]
    columns = {name: frame[name].tolist() for name in sources}
    name = "array" if is_memory else name_of_files(what, "")
    matching = SourceDataset.from_columns(array, columns, observations, name=name)
    if ids:
        matching.ids = frame[ids].reset_index(drop=True)
    return matching


def to_pandas(frame: Any) -> pd.DataFrame:
    """Return a data frame of pandas, Polars or the like as one of pandas."""
    if isinstance(frame, pd.DataFrame):
        return frame
    return pd.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns})


def raw_frame(frame: Any) -> RawTable:
    """Return a data frame of pandas, Polars or the like as a table, the index that pandas has among its columns."""
    names, problems = distinct_names([str(name) for name in frame.columns])
    if not isinstance(frame, pd.DataFrame):
        columns = [frame[name].to_numpy() for name in frame.columns]
        return RawTable(pd.DataFrame(dict(zip(names, columns, strict=True))), problems=problems)
    table = frame.set_axis(names, axis=1)
    if isinstance(frame.index, pd.RangeIndex):
        return RawTable(table.reset_index(drop=True), problems=problems)
    levels = index_names(frame.index.names, names)
    free, _ = distinct_names([*names, *levels])  # an index may be called like a column
    levels = free[len(names) :]
    table = table.rename_axis(levels).reset_index()
    return RawTable(table, tuple(levels), problems)
