"""What the codes of one latent change: interventions on rows of a sample, and the evidence from them.

Every row is decoded with the latent set to each of its codes in turn, and all other latents as they are. The *effect*
of a code in a row is the difference from the mean over the codes of the same row, weighted by how frequent they are.
The mean over rows is the effect of the code, with a standard error over rows. The two codes that differ most are
compared directly: their differences, row by row, say what the latent moves and by how much.

Numbers are in the units of the data; intensities of images are shares of the range from black to white.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..models.latents import DiscreteLatent
from ..observations import Observations
from .samples import Sample
from .words import percent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INTERVAL = 1.96  # standard errors on either side, for 95%
MAX_SETTINGS = 8  # codes of a latent that are compared
MIN_SHARE = 0.01  # of the sample that has a code, unless all others are rarer
FIFTHS = ("lowest fifth", "second fifth", "middle fifth", "fourth fifth", "highest fifth")
MAX_ROWS = 300  # on which interventions are made
MIN_ROWS = 16
MAX_NUMBERS = 4e7  # that are decoded, beyond the least number of rows
NUM_SHOWN = 3  # rows whose decoded observations are kept for pictures
SURE = 0.5  # share of effects that is the same in all rows, below which a sentence says so
MIN_CHANGE = 0.05  # of a feature, in standard deviations, or the latent hardly moves it
MAX_NAMED = 4  # features of a sentence
SHARE_OF_LARGEST = 0.25  # of the size of the largest change, from which on a feature is named


@dataclass(frozen=True, eq=False)
class Settings:
    """What a latent is set to: codes that occur in the sample, or the median of each fifth of a continuous latent.

    Attributes:
        values: (k,) in the order of the codebook.
        shares: (k,) of the sample.
        members: for each, the rows of the sample that have it.
        labels: names for people.
        num_used: codes that occur; 0 for a continuous latent.
    """

    values: NDArray[Any]
    shares: Floats
    members: tuple[Ints, ...]
    labels: tuple[str, ...]
    num_used: int

    def __len__(self) -> int:
        return len(self.values)


def choose_settings(sample: Sample, latent: int) -> Settings:
    """Return what a latent is set to."""
    column, space = sample.codes[:, latent], sample.model.latent
    if not isinstance(space, DiscreteLatent):
        order = np.argsort(column, kind="stable")
        members = [part for part in np.array_split(order, len(FIFTHS)) if len(part)] if np.ptp(column) > 0 else [order]
        values = np.array([np.median(column[rows]) for rows in members], dtype=np.float32)
        shares = np.array([len(rows) for rows in members]) / len(column)
        labels = FIFTHS if len(members) == len(FIFTHS) else tuple(f"{value:.2g}" for value in values)
        return Settings(values, shares, tuple(np.sort(rows) for rows in members), labels, 0)
    counts = np.bincount(column, minlength=space.num_values[latent])
    order = space.ordered_codes(latent, column, MAX_SETTINGS)
    used = order[counts[order] > 0]
    frequent = used[counts[used] >= MIN_SHARE * len(column)]
    codes = frequent if len(frequent) > 1 else used
    codes = codes[np.linspace(0, len(codes) - 1, min(len(codes), MAX_SETTINGS)).round().astype(int)]
    named = sample.names["values"].get(str(latent), {})
    labels = tuple(named.get(str(code), f"code {code}") for code in codes.tolist())
    members_of = tuple(np.flatnonzero(column == code) for code in codes)
    return Settings(codes, counts[codes] / len(column), members_of, labels, int((counts > 0).sum()))


@dataclass(frozen=True)
class Change:
    """How much a latent moves a feature, a region of a picture or a channel.

    Attributes:
        name: of the feature.
        change: mean difference over rows, from the first to the second of the two compared codes.
        low, high: ends of its 95% interval over rows.
        size: root mean square of the effects of all codes in all rows, in standard deviations of the feature; for
            images a share of the range from black to white.
        note: what to add to the change in a sentence.
        unit: of the change and its interval; empty for that of the data.
    """

    name: str
    change: float
    low: float
    high: float
    size: float
    note: str = ""
    unit: str = ""

    def scaled(self, factor: float, unit: str) -> "Change":
        """Return the change in another unit."""
        parts = {name: factor * getattr(self, name) for name in ("change", "low", "high")}
        return replace(self, unit=unit, **parts)


@dataclass(frozen=True, eq=False)
class Loss:
    """What is lost of the reconstructions if a latent always has one code, the best single one for all rows."""

    score: float  # with the latent
    lost: float
    margin: float  # of the 95% interval over rows


@dataclass(frozen=True, eq=False)
class Movement:
    """The effects of the codes of one latent.

    Attributes:
        settings: what the latent was set to.
        means, errors: (k, *shape) effect of each code and its standard error over rows.
        average: (*shape) mean of the decoded observations.
        sizes: (*shape) root mean square of effects over codes and rows.
        consistency: share of the squared effects that is the same in all rows, from 0 to 1.
        ends: the positions of the two codes that differ most, in their order.
        differences: (rows, *shape) from the first of them to the second.
        shown: (k, NUM_SHOWN, *shape) decoded observations of the first rows, as the model returns them.
        loss: what is lost without the latent.
    """

    settings: Settings
    means: Floats
    errors: Floats
    average: Floats
    sizes: Floats
    consistency: float
    ends: tuple[int, int]
    differences: Floats
    shown: NDArray[Any]
    loss: Loss

    def describe_ends(self) -> str:
        """Return the two codes that are compared, such as "from code 0 to code 3"."""
        first, last = (_quoted(self.settings.labels[place]) for place in self.ends)
        return f"from {first} to {last}"


class Effects(ABC):
    """Measures and describes the effects of latents on observations of one kind.

    Args:
        sample: the sample.
        rows: of it, on which interventions are made.
    """

    score_title: ClassVar[str]
    unit: ClassVar[str] = ""
    digits: ClassVar[int] = 3  # of scores

    def __init__(self, sample: Sample, rows: Ints):
        self.sample, self.rows = sample, rows
        self.observations: Observations = sample.model.observations
        self.originals = sample.read(rows)
        self.numbers = self.to_numbers(self.originals)
        self.starts = sample.codes[rows]
        self.own_scores = self.row_scores(self.to_numbers(sample.decode(self.starts)))

    @property
    def score(self) -> float:
        """R² or the PSNR of the reconstructions of the rows."""
        return float(self.own_scores.mean())

    def to_numbers(self, arrays: NDArray[Any]) -> Floats:
        """Return observations (n, *shape) in the numbers that effects are measured in."""
        return np.asarray(arrays, dtype=np.float64)

    @property
    @abstractmethod
    def scale(self) -> Floats:
        """Standard deviations of features, or 1, that make effects comparable; broadcasts to (*shape)."""

    @abstractmethod
    def row_scores(self, decoded: Floats) -> Floats:
        """Return a number per row (rows,) whose mean is R² or the PSNR of decoded rows (rows, *shape)."""

    @abstractmethod
    def changes(self, movement: Movement) -> list[Change]:
        """Return what a latent moves, the largest effect first."""

    @abstractmethod
    def say(self, movement: Movement, changes: Sequence[Change]) -> str:
        """Return a sentence about what a latent moves."""

    def glance(self, movement: Movement, changes: Sequence[Change]) -> str:
        """Return the HTML of a small picture for the table of all latents, or nothing."""
        return ""

    def explain(self, movement: Movement) -> list[str]:
        """Return further sentences: how large the change is, and whether it is the same in all rows."""
        if movement.consistency >= SURE or float((movement.sizes / self.scale).max()) < MIN_CHANGE:
            return []
        share, many = percent(movement.consistency), self.observations.traits.many
        return [f"What it does depends on the other latents: only {share} of its effect is the same in all {many}."]

    @abstractmethod
    def show(self, movement: Movement, changes: Sequence[Change]) -> str:
        """Return the HTML of the pictures of a latent."""

    def move(self, latent: int, settings: Settings) -> Movement:
        """Decode all rows with a latent set to each of its codes, and return the effects."""
        decoded, shown = [], []
        for value in settings.values:
            changed = self.starts.copy()
            changed[:, latent] = value
            arrays = self.sample.decode(changed)
            shown.append(arrays[:NUM_SHOWN])
            decoded.append(self.to_numbers(arrays))
        weights = settings.shares / settings.shares.sum()
        centre = np.sum([weight * each for weight, each in zip(weights, decoded, strict=True)], axis=0)
        means = np.stack([(each - centre).mean(0) for each in decoded])
        errors = np.stack([standard_error(each - centre) for each in decoded])
        squares = [np.square(each - centre).mean(0) for each in decoded]
        sizes = np.sqrt(np.tensordot(weights, np.stack(squares), 1))
        same = float((np.tensordot(weights, np.square(means), 1) / self.scale**2).sum())
        total = float((np.square(sizes) / self.scale**2).sum())
        first, last = _farthest(decoded, self.scale)
        best = max((self.row_scores(each) for each in decoded), key=lambda scores: float(scores.mean()))
        lost = self.own_scores - best
        return Movement(
            settings=settings,
            means=means,
            errors=errors,
            average=centre.mean(0),
            sizes=sizes,
            consistency=same / total if total > 0 else 1.0,
            ends=(first, last),
            differences=decoded[last] - decoded[first],
            shown=np.stack(shown),
            loss=Loss(self.score, float(lost.mean()), INTERVAL * float(standard_error(lost))),
        )


class NumberEffects(Effects):
    """Measures the effects of latents on vectors or series, whose features have statistics."""

    score_title = "R²"

    @property
    def scale(self) -> Floats:
        return np.asarray(self.observations.scale)

    def row_scores(self, decoded: Floats) -> Floats:
        """Return a number per row (n,) whose mean is R² of decoded rows (n, …, d).

        As in the scores of a run, features are standardised by the rows themselves or, for rows that were held out, by
        the training data.
        """
        num_features = self.numbers.shape[-1]
        variances = self.numbers.reshape(-1, num_features).var(0)
        divisors = variances if self.sample.measured is None else self.scale**2
        weights = np.divide(1.0, divisors, out=np.zeros_like(variances), where=variances > 0)
        errors = np.square(decoded - self.numbers).reshape(len(decoded), -1, num_features).mean(1)
        total = float((variances * weights).sum())
        return np.asarray(1.0 - (errors * weights).sum(1) / total if total > 0 else np.zeros(len(decoded)))


def num_rows(sample: Sample, settings: Sequence[Settings]) -> int:
    """Return on how many rows interventions are made: fewer if observations are large."""
    decoded = sum(map(len, settings)) * sample.model.observations.num_entries
    return min(MAX_ROWS, max(MIN_ROWS, int(MAX_NUMBERS / max(decoded, 1))), len(sample))


def standard_error(values: Floats) -> Floats:
    """Return the standard error of the mean over rows; 0 for a single row."""
    count = len(values)
    return np.asarray(values.std(0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(values.shape[1:]))


def interval(values: Floats) -> tuple[float, float, float]:
    """Return the mean of values (rows,) and the ends of its 95% interval."""
    mean, margin = float(values.mean()), INTERVAL * float(standard_error(values))
    return mean, mean - margin, mean + margin


def largest(changes: Sequence[Change]) -> list[Change]:
    """Return the changes that a sentence names: the largest ones, and none that is too small."""
    kept = [each for each in changes if each.size >= max(MIN_CHANGE, SHARE_OF_LARGEST * changes[0].size)]
    return kept[:MAX_NAMED]


def _quoted(label: str) -> str:
    if label in FIFTHS:
        return f"the {label}"
    return label if label.startswith("code ") else f"“{label}”"


def _farthest(decoded: Sequence[Floats], scale: Floats) -> tuple[int, int]:
    """Return the positions of the two settings whose decoded rows differ most, in their order."""
    best, largest = (0, len(decoded) - 1), -1.0
    for first in range(len(decoded)):
        for last in range(first + 1, len(decoded)):
            distance = float(np.square((decoded[last] - decoded[first]) / scale).mean())
            if distance > largest:
                best, largest = (first, last), distance
    return best
