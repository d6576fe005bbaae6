"""The effects of latents on rows of tables: numbers in their units, levels of categories in percent, dates in days."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pandas as pd

from ..columns import CATEGORY, DATE, TableColumn, feature_places
from ..scoring.table_fidelity import TableFidelity, compare_rows, find_observed
from .effects import Change, Floats, Movement, largest
from .vector_effects import MAX_COLUMNS, VectorEffects
from .words import listing, number, percent, signed

DAY = 86_400  # seconds
LEAST_DEVIATION = 1e-3  # of the share of a level
MAX_LEVELS = 2  # of a category that are named
LEAST_SHARE_OF_CHANGE = 0.1  # of the level that changes most, or a level is not named
LEAST_SHARE = 0.005  # of a level that is named


class TableEffects(VectorEffects):
    """Measures and describes the effects of latents on rows of tables.

    The share of each level of a category is a feature. What says that a value is missing is not decoded, so it has no
    effects. R² is that of the scores of a run: every column counts the same, and missing values do not count.
    """

    summary: ClassVar[str] = (
        "the means of numbers and dates, and the most frequent levels of categories, without missing values"
    )

    @property
    def scale(self) -> Floats:
        scale = super().scale.copy()
        for column, places in self._columns():
            if column.kind == CATEGORY:
                shares = np.asarray(column.shares)
                scale[places.start : places.stop] = np.maximum(np.sqrt(shares * (1 - shares)), LEAST_DEVIATION)
        return scale

    def row_scores(self, decoded: Floats) -> Floats:
        offset, scale = np.asarray(self.observations.offset), np.asarray(self.observations.scale)
        mine, true = ((array - offset) / scale for array in (decoded, self.numbers))
        return TableFidelity.rows(compare_rows(mine, true, self.observations.columns))

    def changes(self, movement: Movement) -> list[Change]:
        """Return the changes of numbers, of the shares of levels in percent, and of dates in days."""
        found = []
        for change in super().changes(movement):
            column, level = self._owners[change.name]
            if level:
                found.append(change.scaled(100.0, "%"))
            elif change.name == column.name:  # others are parts of dates, and what says that a value is missing
                found.append(change.scaled(1 / DAY, " days") if column.kind == DATE else change)
        return found

    def say(self, movement: Movement, changes: Sequence[Change]) -> str:
        """Return a sentence that names each column once, and the levels of a category that change most."""
        groups: dict[str, list[Change]] = {}
        for change in self.distinct(changes):
            groups.setdefault(self._owners[change.name][0].name, []).append(change)
        named = largest([group[0] for group in groups.values()])
        if not named:
            return "Hardly moves any column."
        texts = []
        for change in named:
            column = self._owners[change.name][0].name
            most = sorted(groups[column], key=lambda each: -abs(each.change))[:MAX_LEVELS]
            kept = [each for each in most if abs(each.change) >= LEAST_SHARE_OF_CHANGE * abs(most[0].change)]
            parts = [f"{self._prefix(each)}{signed(each.change)}{each.unit}" for each in kept]
            texts.append(f"{column} ({', '.join(parts)})")
        return f"Mostly moves {listing(texts)}, {movement.describe_ends()}."

    def distinct(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes without the second level of categories that have two."""
        found: dict[str, Change] = {}
        for change in changes:
            column, _ = self._owners[change.name]
            found.setdefault(column.name if len(column.levels) == 2 else change.name, change)
        return list(found.values())

    def summarise(self, rows: Floats, places: Sequence[int]) -> dict[str, str]:
        """Return the columns that features at some places belong to: their means or most frequent levels, as text."""
        columns = [(column, own) for place in places for column, own in self._columns() if place in own]
        return {
            column.name: self._summarise_column(rows[find_observed(rows, column, own)], column, own)
            for column, own in list(dict.fromkeys(columns))[:MAX_COLUMNS]
        }

    def _summarise_column(self, rows: Floats, column: TableColumn, places: range) -> str:
        if not len(rows):
            return "–"
        means = rows[:, places.start : places.stop].mean(0)
        if column.kind == CATEGORY:
            order = [i for i in np.argsort(-means, kind="stable").tolist() if means[i] >= LEAST_SHARE][:MAX_LEVELS]
            return ", ".join(f"{column.levels[i]} {percent(means[i])}" for i in order)
        if column.kind == DATE:
            return str(pd.Timestamp(means[0], unit="s").date())
        return number(float(means[0]))

    def _prefix(self, change: Change) -> str:
        _, level = self._owners[change.name]
        return f"{level} " if level else ""

    def _columns(self) -> list[tuple[TableColumn, range]]:
        columns = self.observations.columns
        return list(zip(columns, feature_places(columns), strict=True))

    @property
    def _owners(self) -> dict[str, tuple[TableColumn, str]]:
        """The column that each feature belongs to, and its level if the column is a category."""
        return {
            name: (column, column.levels[i] if column.kind == CATEGORY else "")
            for column in self.observations.columns
            for i, name in enumerate(column.features)
        }
