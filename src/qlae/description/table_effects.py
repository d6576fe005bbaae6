"""The effects of latents on rows of tables: numbers in their units, levels of categories in percent, dates in days."""

import numpy as np
import pandas as pd

from ..columns import CATEGORY, DATE, TableColumn, feature_places
from .effects import Change, Floats, Movement
from .vector_effects import VectorEffects
from .words import number, percent

DAY = 86_400  # seconds
LEAST_DEVIATION = 1e-3  # of the share of a level


class TableEffects(VectorEffects):
    """Measures and describes the effects of latents on rows of tables.

    The share of each level of a category is a feature. What says that a value is missing is not decoded, so it has no
    effects, and missing values do not count in R².
    """

    @property
    def scale(self) -> Floats:
        scale = super().scale.copy()
        for column, places in self._columns():
            if column.kind == CATEGORY:
                shares = np.asarray(column.shares)
                scale[places.start : places.stop] = np.maximum(np.sqrt(shares * (1 - shares)), LEAST_DEVIATION)
        return scale

    def row_scores(self, decoded: Floats) -> Floats:
        lost, count = np.zeros(len(decoded)), 0
        for column, places in self._columns():
            features = slice(places.start, places.stop - column.indicates_missing)
            mine, true = decoded[:, features], self.numbers[:, features]
            flags = true.max(1) > 0 if column.kind == CATEGORY else np.ones(len(true), bool)
            is_observed = self.numbers[:, places.stop - 1] < 0.5 if column.indicates_missing else flags
            if not is_observed.any():
                continue
            scale = self.scale[features]
            variance = float((true[is_observed] / scale).var(0).mean())
            if variance > 0:
                errors = np.square((mine - true) / scale).mean(1) / variance
                lost += np.where(is_observed, errors, 0.0) * len(true) / is_observed.sum()
                count += 1
        return np.asarray(1.0 - lost / max(count, 1))

    def changes(self, movement: Movement) -> list[Change]:
        """Return the changes of numbers, of the shares of levels in percent, and of dates in days."""
        found = []
        kinds = {self.observations.names[places.start]: column.kind for column, places in self._columns()}
        levels = {name for column, _ in self._columns() if column.kind == CATEGORY for name in column.features}
        for change in super().changes(movement):
            if change.name in levels:
                found.append(change.scaled(100.0, "%"))
            elif change.name in kinds:  # others are parts of dates, and what says that a value is missing
                found.append(change.scaled(1 / DAY, " days") if kinds[change.name] == DATE else change)
        return found

    def cell(self, feature: int, value: float) -> str:
        for column, places in self._columns():
            if feature in places and column.kind == CATEGORY:
                return percent(value)
            if feature == places.start and column.kind == DATE:
                return str(pd.Timestamp(value, unit="s").date())
        return number(value)

    def _columns(self) -> list[tuple[TableColumn, range]]:
        columns = self.observations.columns
        return list(zip(columns, feature_places(columns), strict=True))
