"""Put the latents behind the InfoM of several runs into a few words: how many it counts, how many are informative."""

from collections.abc import Sequence

from ...metrics import InformativeCount


def sum_counts(counts: Sequence[InformativeCount]) -> InformativeCount:
    """Return the counts of several data sets together."""
    return InformativeCount(sum(count.informative for count in counts), sum(count.active for count in counts))


def describe_counts(counts: Sequence[InformativeCount]) -> str:
    """Return the counts of several seeds in a few words, with "only" if most latents of a seed are noise.

    >>> describe_counts([InformativeCount(12, 12), InformativeCount(10, 12)])
    '10–12 of 12'
    >>> describe_counts([InformativeCount(1, 12)]), describe_counts([InformativeCount(9, 9), InformativeCount(8, 8)])
    ('only 1 of 12', 'all of 8–9')
    """
    if len(set(counts)) > 1 and all(count.informative == count.active for count in counts):
        return f"all of {_range([count.active for count in counts])}"
    only = "only " if any(count.warning for count in counts) else ""
    return f"{only}{_range([c.informative for c in counts])} of {_range([c.active for c in counts])}"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low}–{high}"
