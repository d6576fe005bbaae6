"""The three vignettes of the paper's appendix "Disentanglement Metrics Vignettes", from the samples of a study's runs.

They show how much scores depend on settings of their estimators: InfoM and InfoC from histograms on the number of bins,
the same from the KSG estimator on its k, and DCI on the depth of its trees. They are for models with continuous
latents, since codes need neither bins nor neighbours.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ...metrics import find_score
from ...metrics.dci import specificity
from ...metrics.forest import features_per_split, forest_by_depth
from ...metrics.infomec import find_protocol
from ...metrics.information import concentration, equal_width_columns, nmi
from ...metrics.inputs import check_latents, check_sources, random_split
from ...presets import MODELS
from ...registry import LATENTS
from .summary import Summary

BINS = (2, 3, 5, 10, 20, 40, 80, 160)
NEIGHBOURS = (1, 2, 3, 5, 7, 10, 15, 20)
DEPTHS = tuple(range(1, 17))
NUM_TREES = 100
NUM_MODELS = 3

Curves = dict[str, list[float]]  # the value at each point by score


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
            run = summary.median_run(data, model)
            arrays = run.arrays(run.sample_path, ("sources", "latents"))
            for score, values in vignette.compute(arrays["sources"], arrays["latents"], vignette.points).items():
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
    forests, accuracies = [], []
    for i in np.flatnonzero(table.varying).tolist():
        column: NDArray[Any] = table.labels[:, i] if table.discrete[i] else table.values[:, i]
        forest = forest_by_depth(
            latents[train],
            column[train],
            latents[test],
            depths=points,
            classify=table.discrete[i],
            num_trees=NUM_TREES,
            num_drawn=features_per_split("sqrt", latents.shape[1]),
            seed=0,
            n_jobs=None,
        )
        forests.append(forest)
        accuracies.append(forest.scores(column[test]))
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
            axes.plot(curve.point, curve.value, marker="o", markersize=3.5, linewidth=1.4, label=model)
        if vignette.name != "depth":
            axes.set_xscale("log")
            axes.set_xticks(vignette.points, [str(point) for point in vignette.points])
            axes.minorticks_off()
        axes.set_ylim(0, 1)
        axes.set_xlabel(vignette.axis)
        axes.set_title(find_score(score).heading, fontsize=10)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(fontsize=8, frameon=False)
    return figure


def caption_vignette(vignette: Vignette, data: str, table: pd.DataFrame) -> str:
    """Return the caption of a vignette, which says by how much the setting changes each score."""
    values = table[table.vignette == vignette.name].groupby(["score", "model"], sort=False).value
    spreads = (values.max() - values.min()).groupby("score", sort=False).max()
    changes = ", ".join(f"{find_score(score).heading} by up to {size:.2f}" for score, size in spreads.items())
    setting = f"The {vignette.axis} ({vignette.points[0]} to {vignette.points[-1]})"
    return f"{data}: {vignette.method}. {setting} changes {changes}."
