"""Rank correlations between InfoMEC and DCI, and between a study's table and the paper's."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ...metrics import find_score
from ...published import INFOE_KEYS, PAPER_COLUMNS, published_metric, published_results
from .summary import Summary

#: Columns that measure the same property: modularity, explicitness, compactness.
PAIRS = (("infom", "d"), ("infoe", "i"), ("infoc", "c"))
MIN_POINTS = 3  # with fewer, a rank correlation means nothing
MAX_EXACT_POINTS = 8  # up to which p is computed from all permutations
EVERYWHERE = "all data sets"


def spearman(what: str, where: str, points: pd.DataFrame) -> dict[str, object]:
    """Return Spearman's ρ of two columns and its p-value; None if there are too few points, or one side is constant.

    Pairs with a missing number do not count.
    """
    points = points.dropna()
    rho = p = None
    if len(points) >= MIN_POINTS and (points.nunique() > 1).all():
        first, second = points.to_numpy(dtype=float).T
        result = stats.spearmanr(first, second)
        rho = float(result.statistic)
        p = _exact_p(first, second) if len(points) <= MAX_EXACT_POINTS else float(result.pvalue)
    return {"what": what, "where": where, "rho": rho, "p": p, "num_points": len(points)}


def _exact_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the share of all permutations whose rank correlation is at least as far from 0.

    For so few points, p-values from the t-distribution are wrong.

    >>> round(_exact_p([1, 2, 3, 4], [1, 2, 3, 4]), 4)  # 2 of 24
    0.0833
    """
    ours, theirs = (stats.rankdata(side) - (len(side) + 1) / 2 for side in (first, second))
    orders = np.array(list(itertools.permutations(range(len(ours)))))
    return float(np.mean(np.abs(theirs[orders] @ ours) >= abs(theirs @ ours) - 1e-9))


def between_metrics(means: pd.DataFrame, where: str) -> list[dict[str, object]]:
    """Return the correlations of InfoMEC with DCI over a table of means, as `mean_scores` returns it."""
    return [
        spearman(f"{find_score(one).heading} and {find_score(other).heading}", where, means[[one, other]])
        for one, other in PAIRS
    ]


def with_published(summary: Summary) -> list[dict[str, object]]:
    """Return the correlations of each column with the published one, over all cells and per data set that is published.

    The list is empty for data that the paper does not have, such as vectors and series.
    """
    points = pd.concat({"ours": mean_scores(summary), "theirs": mean_scores(summary, published=True)}, axis=1)
    labels = [label for label in summary.data if label in {data for data, _, _ in published_results()}]
    places = {where: points.query("data == @where") for where in labels}
    if len(labels) > 1:
        places = {EVERYWHERE: points} | places
    return [
        spearman(f"{find_score(score).heading}, ours and published", where, rows.xs(score, axis=1, level=1))
        for score in PAPER_COLUMNS
        for where, rows in places.items()
    ]


def mean_scores(summary: Summary, *, published: bool = False) -> pd.DataFrame:
    """Return the mean of each of the paper's scores by data set and model, ours or the published ones.

    InfoE reads codes as the authors' code does, which depends on the model.
    """
    read = summary.published if published else summary.cell
    means = []
    for data, model in summary.groups:
        kind = summary.infoe_input(data, model)
        same = [key for key in INFOE_KEYS if summary.values(data, model, key) and published_metric(model, key, kind)]
        keys = {score: score for score in PAPER_COLUMNS} | {"infoe": (*same, "infoe")[0]}
        cells = {score: read(data, model, key) for score, key in keys.items()}
        means.append({score: cell.mean if cell else float("nan") for score, cell in cells.items()})
    return pd.DataFrame(means, index=pd.MultiIndex.from_tuples(summary.groups, names=["data", "model"]))


def published_means() -> pd.DataFrame:
    """Return the paper's tables, which are rounded; the paper says that its correlations are 0.80, 0.77 and 0.59.

    >>> [round(row["rho"], 2) for row in between_metrics(published_means(), "the paper's tables")]
    [0.79, 0.75, 0.59]
    """
    return pd.Series({key: cell.mean for key, cell in published_results().items()}).unstack()
