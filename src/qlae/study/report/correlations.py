"""Compute rank correlations between InfoMEC and DCI, and between a study's table and the paper's."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ...metrics import find_score
from ...published import PAPER_COLUMNS, published_results
from .aggregate import Summary

#: Columns that measure the same property: modularity, explicitness, compactness.
PAIRS = (("infom", "d"), ("infoe", "i"), ("infoc", "c"))
MIN_POINTS = 3  # with fewer, a rank correlation means nothing
MAX_EXACT_POINTS = 8  # up to which p is computed from all permutations


@dataclass(frozen=True)
class Correlation:
    """Spearman's ρ and its p-value; both are None if there are too few points, or one side is constant."""

    what: str
    where: str
    rho: float | None
    p: float | None
    num_points: int


def spearman(what: str, where: str, points: Sequence[tuple[float, float]]) -> Correlation:
    """Return the rank correlation of pairs of numbers."""
    first, second = zip(*points, strict=True) if points else ((), ())
    if len(points) < MIN_POINTS or len(set(first)) < 2 or len(set(second)) < 2:
        return Correlation(what, where, None, None, len(points))
    result = stats.spearmanr(first, second)
    p = _exact_p(first, second) if len(points) <= MAX_EXACT_POINTS else float(result.pvalue)
    return Correlation(what, where, float(result.statistic), p, len(points))


def _exact_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the share of all permutations whose rank correlation is at least as far from 0.

    For so few points, p-values from the t-distribution are wrong.

    >>> round(_exact_p([1, 2, 3, 4], [1, 2, 3, 4]), 4)  # 2 of 24
    0.0833
    """
    ours, theirs = (stats.rankdata(side) - (len(side) + 1) / 2 for side in (first, second))
    orders = np.array(list(itertools.permutations(range(len(ours)))))
    return float(np.mean(np.abs(theirs[orders] @ ours) >= abs(theirs @ ours) - 1e-9))


def between_metrics(summary: Summary) -> list[Correlation]:
    """Return the correlations of InfoMEC with DCI over all data sets and models of the study.

    InfoE reads codes as the authors' code does, which depends on the model.
    """
    correlations = []
    for one, other in PAIRS:
        cells = [(g.cell(g.key_like_published(one)), g.cell(other)) for g in summary.groups.values()]
        points = [(a.mean, b.mean) for a, b in cells if a and b]
        correlations.append(
            spearman(f"{find_score(one).heading} and {find_score(other).heading}", "this study", points)
        )
    return correlations


def between_published_metrics() -> list[Correlation]:
    """Return the same correlations over the paper's tables, which are rounded; the paper says 0.80, 0.77 and 0.59.

    >>> [round(correlation.rho, 2) for correlation in between_published_metrics()]
    [0.79, 0.75, 0.59]
    """
    table = published_results()
    keys = sorted({(data, model) for data, model, _ in table})
    return [
        spearman(
            f"{find_score(one).heading} and {find_score(other).heading}",
            "the paper's tables",
            [(table[*key, one].mean, table[*key, other].mean) for key in keys],
        )
        for one, other in PAIRS
    ]


def with_published(summary: Summary) -> list[Correlation]:
    """Return the correlations of each column with the published one, over all cells and per data set that is published.

    The list is empty for data that the paper does not have, such as vectors and series.
    """
    known = {data for data, _, _ in published_results()}
    labels = [label for label in summary.data if label in known]
    correlations = []
    for score in PAPER_COLUMNS:
        for where in labels if len(labels) < 2 else ["all data sets", *labels]:
            points = [
                (cell.mean, published.mean)
                for (data, model), group in summary.groups.items()
                if where in ("all data sets", data)
                and (cell := group.cell(group.key_like_published(score))) is not None
                and (published := summary.published(data, model, group.key_like_published(score))) is not None
            ]
            correlations.append(spearman(f"{find_score(score).heading}, ours and published", where, points))
    return correlations


def to_rows(correlations: Sequence[Correlation]) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of a table: what, where, ρ, p, number of points."""
    return [
        (
            c.what,
            c.where,
            "–" if c.rho is None else f"{c.rho:.2f}".replace("-", "−"),
            "–" if c.p is None else f"{c.p:.2g}",
            str(c.num_points),
        )
        for c in correlations
    ]
