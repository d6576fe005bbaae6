"""Look at data: a contact sheet of images; vectors and series column by column, also those with gaps and text.

Every column of a table is described with its use, also if `load_data` refuses the table; what can be drawn of it is
returned with gaps (NaN) in the place of missing values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ..columns import CATEGORY, DATE, NUMBER
from ..observations import KINDS, VECTORS, Observations
from .array_files import ArrayFile, read_raw
from .dataset import LazyImages, Progress, SourceDataset, as_array, first_few
from .pictures import to_colours
from .sources import grid_levels
from .spec import DataSpec
from .table_columns import SOURCE, are_dates, numbers_in, plan_columns, to_dates
from .table_encoding import with_gaps
from .table_files import RawTable
from .tables import TableFile
from .windows import Windows

FEATURE = "feature"  # of an array
MAX_ENTRIES = 2**27  # of sparse data that are looked at
FEWEST_STEPS = 100  # rows of a recording, from which its column of times is recognised
MAX_TEXTS = 3  # that a description quotes
COLUMNS, GAP, HEADING = 10, 4, 18  # images per row of a contact sheet, and pixels between and above them


class Column(NamedTuple):
    """A column of a table, or a feature, channel or source of an array: its use, missing values, text and numbers.

    `texts` has some of the values that are no numbers; `low` to `deviation` are NaN if there are no numbers. `note` has
    the levels of a category and the range of dates. `is_rising` says that numbers or dates rise from row to row, as
    the times of a recording do.
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
    note: str = ""
    is_rising: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same number, or all cells of a category the same text."""
        return self.low == self.high or (self.role == CATEGORY and self.num_distinct == 1 and not self.num_missing)


class Inspection(NamedTuple):
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
    """Describe a data set of vectors or series, also one that cannot be loaded; of other kinds, only return it."""
    if isinstance(spec, TableFile):
        return _inspect_table(spec)
    try:
        data = spec.load(progress=progress)
        return Inspection(data, () if data.observations.traits.has_bytes else _columns_of(data))
    except ValueError as error:
        if isinstance(spec, ArrayFile):
            try:
                data = _drawable_array(spec)
            except (ValueError, OSError):
                raise error from None  # which says more
            return Inspection(data, _columns_of(data), str(error))
        raise


def _columns_of(data: SourceDataset) -> tuple[Column, ...]:
    images = data.images.rows if isinstance(data.images, Windows) else data.images
    most = max(1, MAX_ENTRIES // data.observations.num_entries)
    if len(images) > most and isinstance(images, LazyImages):  # which need not fit into memory
        images = images[np.unique(np.linspace(0, len(images) - 1, most).astype(np.int64))]
    rows = np.asarray(images).reshape(-1, data.observations.num_features)
    features = [describe_column(name, FEATURE, rows[:, i]) for i, name in enumerate(data.observations.names)]
    sources = [describe_column(name, SOURCE, data.sources[:, i]) for i, name in enumerate(data.source_names)]
    return (*features, *sources)


def _inspect_table(spec: TableFile) -> Inspection:
    table = spec.read_raw()
    kinds = plan_columns(table.frame, spec.choices, table.index_columns).kinds
    columns = tuple(
        describe_column(name, kind, table.frame[name])._replace(is_rising=_is_rising(table.frame[name], kind))
        for name, kind in kinds.items()
    )
    try:
        data = spec.load()
    except ValueError as error:
        if table.problems or not columns:
            raise
        return Inspection(_drawable_table(spec, table, columns), columns, str(error))
    if data.observations.columns:
        data = data.with_images(with_gaps(np.asarray(data.images), data.observations))
    return Inspection(data, columns)


def _is_rising(values: pd.Series[Any], role: str) -> bool:
    """Return whether numbers or dates rise from each row of many to the next."""
    if len(values) < FEWEST_STEPS or not (role == NUMBER or (role == DATE and are_dates(values))):
        return False
    ordered = pd.Series(numbers_in(values)) if role == NUMBER else to_dates(values)
    return bool(ordered.is_monotonic_increasing and ordered.is_unique)


def _drawable_table(spec: TableFile, table: RawTable, columns: Sequence[Column]) -> SourceDataset | None:
    """Return the columns of a table that are numbers, with gaps (NaN), and complete sources; None without numbers."""
    names = [c.name for c in columns if c.role == NUMBER and not c.num_texts and np.isfinite(c.mean)]
    if not names:
        return None
    array = np.stack([numbers_in(table.frame[name]) for name in names], axis=1)
    sources = {c.name: table.frame[c.name].tolist() for c in columns if c.role == SOURCE and not c.num_missing}
    return _with_gaps(array, VECTORS, sources, names, spec.name)


def _drawable_array(spec: ArrayFile) -> SourceDataset:
    """Return an array of vectors or series with gaps (NaN) in the place of missing values."""
    raw, kind = as_array(read_raw(Path(spec.path), spec.array), layout=spec.layout, name=spec.path)
    if KINDS[kind].has_bytes:
        raise ValueError("images are not described")
    return _with_gaps(np.array(raw, dtype=np.float64), kind, {}, (), spec.name)


def _with_gaps(
    array: NDArray[np.float64], kind: str, sources: Mapping[str, list[Any]], names: Sequence[str], name: str
) -> SourceDataset:
    array[~np.isfinite(array)] = np.nan
    observations = Observations(kind, array.shape[1:], "float64", tuple(names))
    return SourceDataset.from_columns(array, sources, observations, name=name)


def describe_column(name: str, role: str, values: Any) -> Column:
    """Return the description of values (n,): numbers, or objects among which None stands for a missing value."""
    column = pd.Series(values)
    if role == CATEGORY:
        levels = column.dropna().astype(str).value_counts()
        note = f"{len(levels):,} level{'s' * (len(levels) != 1)}: {first_few(levels.index.tolist())}"
        return Column(name, role, int(column.isna().sum()), num_distinct=len(levels), note=note)
    if role == DATE and are_dates(column):
        dates = to_dates(column)
        note = f"{dates.min()} to {dates.max()}"
        return Column(name, role, int(dates.isna().sum()), num_distinct=dates.nunique(), note=note)
    numbers = numbers_in(column)
    texts = column[np.isnan(numbers) & column.notna()].astype(str)
    numbers = numbers[np.isfinite(numbers)]
    distinct = texts.unique().tolist()
    num_missing, num_distinct = len(column) - len(texts) - len(numbers), len(np.unique(numbers)) + len(distinct)
    counts = (num_missing, len(texts), tuple(distinct[:MAX_TEXTS]), num_distinct)
    described = Column(name, role, *counts)
    if not len(numbers):
        return described
    low, mean, high, deviation = map(float, (numbers.min(), numbers.mean(), numbers.max(), numbers.std()))
    return described._replace(low=low, mean=mean, high=high, deviation=deviation)


def contact_sheet(data: SourceDataset, path: str | Path) -> Path:
    """Write a PNG of random images, and of one row per source that sweeps its values; return its path."""
    rng = np.random.default_rng(0)
    rows = rng.choice(len(data), min(2 * COLUMNS, len(data)), replace=False)
    strips = [("random images", rows[at : at + COLUMNS]) for at in range(0, len(rows), COLUMNS)]
    for source, name in enumerate(data.source_names):
        sweep, exact = sweep_rows(data, source, rng)
        note = "" if exact else ", other sources differ"
        strips.append((f"{name} ({data.source_sizes[source]} values{note})", sweep))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _draw_strips(data, strips).save(path, "PNG")
    return path


def sweep_rows(data: SourceDataset, source: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], bool]:
    """Choose images in which one source runs through up to ten of its values.

    In a full grid, all other sources stay at their middle. Elsewhere, the image nearest to each value shows it. Also
    return whether all other sources are constant.
    """
    sizes = data.source_sizes
    if len(data) == np.prod(sizes) and np.array_equal(data.sources, grid_levels(sizes)):
        values = np.unique(np.linspace(0, sizes[source] - 1, min(COLUMNS, sizes[source])).round().astype(int))
        levels = np.tile([size // 2 for size in sizes], (len(values), 1))
        levels[:, source] = values
        return np.ravel_multi_index(tuple(levels.T), sizes), True
    column = data.sources[:, source]
    targets = np.unique(np.quantile(column, np.linspace(0, 1, COLUMNS), method="nearest"))
    shuffled = rng.permutation(len(column))
    return shuffled[np.abs(column[shuffled][:, None] - targets).argmin(axis=0)], False


def _draw_strips(data: SourceDataset, strips: list[tuple[str, NDArray[np.int64]]]) -> Image.Image:
    """Draw strips of images, each given as a heading and rows of the data."""
    scale = max(1, 128 // max(data.observations.shape[:2]))  # small images are shown larger
    height, width = (scale * side for side in data.observations.shape[:2])
    sheet = Image.new("RGB", (COLUMNS * (width + GAP) + GAP, len(strips) * (height + GAP + HEADING) + GAP), "white")
    pen = ImageDraw.Draw(sheet)
    for i, (heading, rows) in enumerate(strips):
        top = GAP + i * (height + GAP + HEADING)
        pen.text((GAP, top), heading, fill="black")
        for k, image in enumerate(to_colours(np.asarray(data.images[rows]), data.observations)):
            tile = Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(tile, (GAP + k * (width + GAP), top + HEADING))
    return sheet
