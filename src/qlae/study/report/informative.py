"""Count the latents behind an InfoM: how many it counts (the active ones), and how many of those are informative.

A latent is informative if it is more informative about some source than shuffled samples are. Latents of pure noise
have an InfoM of 0.4 to 0.9, so InfoM means nothing where most latents that it counts are not informative.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LatentCounts:
    """The number of latents that InfoM counts, and how many of them are informative."""

    informative: int
    active: int

    @property
    def mostly_uninformative(self) -> bool:
        """Whether fewer than half of the latents that count are informative."""
        return 2 * self.informative < self.active


def count_latents(scores: Mapping[str, Any]) -> LatentCounts | None:
    """Return the counts from the scores of one set of weights; None if old results lack them.

    >>> count_latents({"active_latents": [True, True, False], "informative_latents": [True, False, True]})
    LatentCounts(informative=1, active=2)
    """
    if "active_latents" in scores and "informative_latents" in scores:
        active, informative = scores["active_latents"], scores["informative_latents"]
        return LatentCounts(sum(a and i for a, i in zip(active, informative, strict=True)), sum(active))
    if "active" in scores and "informative" in scores:  # the latter includes inactive latents
        return LatentCounts(min(scores["informative"], scores["active"]), scores["active"])
    return None


def sum_counts(counts: Sequence[LatentCounts]) -> LatentCounts:
    """Return the counts of several data sets together."""
    return LatentCounts(sum(count.informative for count in counts), sum(count.active for count in counts))


def describe_counts(counts: Sequence[LatentCounts]) -> str:
    """Return the counts of several seeds in a few words.

    >>> describe_counts([LatentCounts(12, 12), LatentCounts(10, 12)])
    '10–12 of 12'
    >>> describe_counts([LatentCounts(1, 12)]), describe_counts([LatentCounts(9, 9), LatentCounts(8, 8)])
    ('only 1 of 12', 'all of 8–9')
    """
    if len(set(counts)) > 1 and all(count.informative == count.active for count in counts):
        return f"all of {_range([count.active for count in counts])}"
    only = "only " if any(count.mostly_uninformative for count in counts) else ""
    return f"{only}{_range([c.informative for c in counts])} of {_range([c.active for c in counts])}"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low}–{high}"
