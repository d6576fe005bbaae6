"""Repeat the paper's analyses of metrics on a study: rank correlations, and the vignettes of its appendix.

Rank correlations are those between InfoMEC and DCI, and between a study's table and the paper's.

The three vignettes ("Disentanglement Metrics Vignettes") show how much scores depend on settings of their estimators:
InfoM and InfoC from histograms on the number of bins, the same from the KSG estimator on its k, and DCI on the depth of
its trees. They are for models with continuous latents, since codes need neither bins nor neighbours.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from ...metrics import find_score
from ...metrics.dci import specificity
from ...metrics.forest import features_per_split, forest_by_depth
from ...metrics.infomec import find_protocol
from ...metrics.information import concentration, equal_width_columns, nmi
from ...metrics.inputs import check_latents, check_sources, random_split
from ...paper_tables import INFOE_KEYS, PAPER_COLUMNS, published_metric, published_results
from ...presets import MODELS
from ...registry import LATENTS
from ...scoring.sample import PREFIXES
from .summary import Summary

#: Columns that measure the same property: modularity, explicitness, compactness.
PAIRS = (("infom", "d"), ("infoe", "i"), ("infoc", "c"))
MIN_POINTS = 3  # with fewer, a rank correlation means nothing
MAX_EXACT_POINTS = 8  # up to which p is computed from all permutations
EVERYWHERE = "all data sets"

BINS = (2, 3, 5, 10, 20, 40, 80, 160)
NEIGHBOURS = (1, 2, 3, 5, 7, 10, 15, 20)
DEPTHS = tuple(range(1, 17))
NUM_TREES = 100
NUM_MODELS = 3

Curves = dict[str, list[float]]  # the value at each point by score


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


class Vignette(NamedTuple):
    """A setting of an estimator (`axis`), how scores are computed (`method`), and the function that computes them.

    The function returns the scores of sources and latents at each of the points, the values of the setting.
    """

    name: str
    axis: str
    method: str
    points: tuple[int, ...]
    compute: Callable[[NDArray[Any], NDArray[Any], Sequence[int]], Curves]


def compute_vignettes(summary: Summary) -> tuple[str, pd.DataFrame]:
    """Return the data set that was used, and a table with one row per vignette, model, score and point.

    This is the data set with the most models that have continuous latents. The table is empty if no model has.
    """
    models = {model.label: model for model in summary.plan.models}
    continuous = [label for label, m in models.items() if not LATENTS[MODELS[m.name].latent].part.has_codes]
    by_data = {
        data: [model for model in continuous if (data, model) in summary.groups and summary.has_sources(data)]
        for data in summary.data
    }
    data = max(by_data, key=lambda label: len(by_data[label]))
    rows = []
    for vignette in VIGNETTES:
        for model in by_data[data][:NUM_MODELS]:
            run, name = summary.median_run(data, model, "sample.npz"), f"{PREFIXES[summary.weights]}latents"
            arrays = run.arrays(run.sample_path, ("sources", name))
            for score, values in vignette.compute(arrays["sources"], arrays[name], vignette.points).items():
                rows += [(vignette.name, model, score, *point) for point in zip(vignette.points, values, strict=True)]
    return data, pd.DataFrame(rows, columns=["vignette", "model", "score", "point", "value"])


def by_bins(sources: NDArray[Any], latents: NDArray[Any], points: Sequence[int]) -> Curves:
    """Return InfoM and InfoC with latents cut into bins of equal width, which are treated as codes."""
    return _by_nmi(
        sources, latents, (nmi(sources, equal_width_columns(latents.astype(np.float64), n)[0]) for n in points)
    )


def by_neighbours(sources: NDArray[Any], latents: NDArray[Any], points: Sequence[int]) -> Curves:
    """Return InfoM and InfoC with the KSG estimator, for each number of neighbours."""
    return _by_nmi(sources, latents, (nmi(sources, latents, k=k) for k in points))


def _by_nmi(sources: NDArray[Any], latents: NDArray[Any], matrices: Iterable[NDArray[np.float64]]) -> Curves:
    """Return InfoM and InfoC of NMI matrices (n_s, n_z), restricted to varying sources and active latents."""
    active = find_protocol("paper").active(check_latents(latents))
    varying = check_sources(sources).varying
    restricted = [matrix[np.ix_(varying, active)] for matrix in matrices]
    return {"infom": [concentration(m.T) for m in restricted], "infoc": [concentration(m) for m in restricted]}


def by_depth(sources: NDArray[Any], latents: NDArray[Any], points: Sequence[int]) -> Curves:
    """Return D, I and C with all trees cut off at one depth; split and seeds are those of `qlae.metrics.dci`."""
    table = check_sources(sources)
    train, test = random_split(len(sources), 0)
    num_drawn = features_per_split("sqrt", latents.shape[1])
    options: dict[str, Any] = {"num_trees": NUM_TREES, "num_drawn": num_drawn, "seed": 0, "n_jobs": None}
    forests, accuracies = [], []
    for i in np.flatnonzero(table.varying).tolist():
        column: NDArray[Any] = table.labels[:, i] if table.discrete[i] else table.values[:, i]
        rows = latents[train], column[train], latents[test]
        forests.append(forest_by_depth(*rows, depths=points, classify=table.discrete[i], **options))
        accuracies.append(forests[-1].scores(column[test]))
    importance = np.stack([forest.importances for forest in forests])  # (n_s, depths, n_z)
    accuracy = np.maximum(accuracies, 0.0).mean(0)
    indices = range(len(points))
    return {
        "d": [specificity(importance[:, n].T) for n in indices],
        "i": accuracy.tolist(),
        "c": [specificity(importance[:, n]) for n in indices],
    }


VIGNETTES = (
    Vignette("bins", "number of bins", "mutual information from histograms", BINS, by_bins),
    Vignette(
        "neighbours", "number of neighbours k", "mutual information by the KSG estimator", NEIGHBOURS, by_neighbours
    ),
    Vignette("depth", "largest depth of the trees", "random forests of 100 trees", DEPTHS, by_depth),
)


def draw_vignette(vignette: Vignette, data: str, table: pd.DataFrame) -> Figure:
    """Draw a vignette with one panel per score and one line per model."""
    table = table[table.vignette == vignette.name]
    scores = table.score.unique()
    figure = Figure(figsize=(3.4 * len(scores), 3.1), layout="constrained")
    figure.suptitle(f"{data}: {vignette.method}", fontsize=11)
    for axes, score in zip(figure.subplots(1, len(scores), squeeze=False)[0], scores, strict=True):
        for model, curve in table[table.score == score].groupby("model", sort=False):
            axes.plot(curve.point.astype(str), curve.value, marker="o", markersize=3.5, linewidth=1.4, label=model)
        axes.set_ylim(0, 1)
        axes.set_xlabel(vignette.axis)
        axes.set_title(find_score(score).heading, fontsize=10)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(fontsize=8, frameon=False)
    return figure
