"""Rank correlations: between InfoMEC and DCI over all models and data sets, and between our table and the paper's."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .aggregate import Summary
from .published import METRICS, TITLES, published

#: Columns that measure the same property: modularity, explicitness, compactness.
PAIRS = (("infom", "d"), ("infoe", "i"), ("infoc", "c"))
LEAST = 3  # points, below which a rank correlation says nothing
MOST_EXACT = 8  # points up to which p comes from all orders


@dataclass(frozen=True)
class Correlation:
    """Spearman's ρ and its p; both None where there are too few points, or one side is constant."""

    what: str
    where: str
    rho: float | None
    p: float | None
    num_points: int


def spearman(what: str, where: str, points: Sequence[tuple[float, float]]) -> Correlation:
    """The rank correlation of pairs."""
    first, second = zip(*points, strict=True) if points else ((), ())
    if len(points) < LEAST or len(set(first)) < 2 or len(set(second)) < 2:
        return Correlation(what, where, None, None, len(points))
    found = stats.spearmanr(first, second)
    p = _exact_p(first, second) if len(points) <= MOST_EXACT else float(found.pvalue)
    return Correlation(what, where, float(found.statistic), p, len(points))


def _exact_p(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of all orders whose rank correlation is at least as far from 0; the t-distribution is off for so few.

    >>> round(_exact_p([1, 2, 3, 4], [1, 2, 3, 4]), 4)  # 2 of 24
    0.0833
    """
    ours, theirs = (stats.rankdata(side) - (len(side) + 1) / 2 for side in (first, second))
    orders = np.array(list(itertools.permutations(range(len(ours)))))
    return float(np.mean(np.abs(theirs[orders] @ ours) >= abs(theirs @ ours) - 1e-9))


def between_metrics(summary: Summary) -> list[Correlation]:
    """InfoMEC against DCI over all cells of the study."""
    made = []
    for one, other in PAIRS:
        cells = [(group.cell(one), group.cell(other)) for group in summary.groups.values()]
        points = [(a.mean, b.mean) for a, b in cells if a and b]
        made.append(spearman(f"{TITLES[one]} and {TITLES[other]}", "this study", points))
    return made


def between_published_metrics() -> list[Correlation]:
    """The same over the cells of the tables of the paper, which are rounded; the paper says 0.80, 0.77 and 0.59.

    >>> [round(found.rho, 2) for found in between_published_metrics()]
    [0.79, 0.75, 0.59]
    """
    table = published()
    keys = sorted({(data, model) for data, model, _ in table})
    return [
        spearman(
            f"{TITLES[one]} and {TITLES[other]}",
            "the paper's tables",
            [(table[*key, one].mean, table[*key, other].mean) for key in keys],
        )
        for one, other in PAIRS
    ]


def with_published(summary: Summary) -> list[Correlation]:
    """Our table against the published one, each column over all cells, then over the models of each data set."""
    made = []
    for score in METRICS:
        for where in [*summary.data] if len(summary.data) < 2 else ["all data sets", *summary.data]:
            points = [
                (cell.mean, theirs)
                for (data, model), group in summary.groups.items()
                if where in ("all data sets", data)
                and (cell := group.cell(score)) is not None
                and (theirs := summary.published_mean(data, model, score)) is not None
            ]
            made.append(spearman(f"{TITLES[score]}, ours and published", where, points))
    return made


def to_rows(found: Sequence[Correlation]) -> list[tuple[str, str, str, str, str]]:
    """Lines for a table: what, where, ρ, p, number of points."""
    return [
        (
            c.what,
            c.where,
            "–" if c.rho is None else f"{c.rho:.2f}".replace("-", "−"),
            "–" if c.p is None else f"{c.p:.2g}",
            str(c.num_points),
        )
        for c in found
    ]
