"""The description of a table's columns: how each is used, and which features of an observation belong to it.

A model sees a row of a table as numbers, its features. A number is one feature, a category one for each level, a date
its seconds and, if asked for, two for each cyclic part. A number or date that has missing values gets one more feature,
which is 1 where the value is missing.
"""

import math
from dataclasses import dataclass

from ._checks import require_known

NUMBER, CATEGORY, DATE = "number", "category", "date"
COLUMN_KINDS = (NUMBER, CATEGORY, DATE)
#: Cyclic parts of dates, and the length of their period.
DATE_PARTS = {"hour": 24, "weekday": 7, "month": 12}
#: How values are returned: as floats, integers, booleans, text, dates without or with a time.
VALUE_TYPES = ("float", "int", "bool", "str", "date", "datetime")
MIN_ENTROPY = 1e-3  # nats; a rarer level does not get more weight


@dataclass(frozen=True)
class TableColumn:
    """A column of a table that is observed.

    Attributes:
        name: of the column.
        kind: one of ``COLUMN_KINDS``.
        values: the type of its values, one of ``VALUE_TYPES``.
        levels: the values of a category, as text.
        shares: of the rows that have each level, in the training data.
        parts: cyclic parts of a date, names in ``DATE_PARTS``.
        timezone: of dates that have one.
        has_missing: whether values may be missing.
    """

    name: str
    kind: str = NUMBER
    values: str = "float"
    levels: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    parts: tuple[str, ...] = ()
    timezone: str = ""
    has_missing: bool = False

    def __post_init__(self) -> None:
        require_known(self.kind, COLUMN_KINDS, "kind of a column")
        require_known(self.values, VALUE_TYPES, "type of values")
        for part in self.parts:
            require_known(part, DATE_PARTS, "part of a date")
        if (self.kind == CATEGORY) != bool(self.levels) or len(self.levels) != len(self.shares):
            raise ValueError(f"a category needs levels and the share of each, got {self.levels} and {self.shares}")
        if len(set(self.levels)) < len(self.levels) or not all(0 <= share <= 1 for share in self.shares):
            raise ValueError("levels must be distinct, and shares from 0 to 1")

    @property
    def indicates_missing(self) -> bool:
        """Whether the last feature says that a value is missing. Of a category, all features are then 0."""
        return self.has_missing and self.kind != CATEGORY

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        if self.kind == CATEGORY:
            return tuple(f"{self.name}={level}" for level in self.levels)
        circles = [f"{self.name} {part} ({wave})" for part in self.parts for wave in ("sin", "cos")]
        return (self.name, *circles, *([f"{self.name} is missing"] if self.indicates_missing else []))

    @property
    def facts(self) -> tuple[object, ...]:
        """What two tables that a model takes have in common."""
        return self.kind, self.features

    @property
    def entropy(self) -> float:
        """Return the entropy of the levels in nats, which is the cross entropy of a guess of their shares."""
        return max(MIN_ENTROPY, -sum(share * math.log(share) for share in self.shares if share))


def feature_places(columns: tuple[TableColumn, ...]) -> list[range]:
    """Return the places of the features of each column among all features."""
    places, start = [], 0
    for column in columns:
        places.append(range(start, start + len(column.features)))
        start += len(column.features)
    return places


def date_places(columns: tuple[TableColumn, ...]) -> dict[int, str]:
    """Return the places of the features that are seconds since 1970, with ``"date"`` or ``"datetime"`` for each."""
    pairs = zip(columns, feature_places(columns), strict=True)
    return {places[0]: column.values for column, places in pairs if column.kind == DATE}
