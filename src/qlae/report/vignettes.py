"""The three vignettes of the paper's appendix "Disentanglement Metrics Vignettes", from the samples of real runs.

How much a score depends on a choice that nobody can justify: InfoM and InfoC from histograms against the number of
bins, the same from the KSG estimator against its k, and DCI against the depth of its trees. For models with continuous
latents, since codes need neither bins nor neighbours.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..metrics.binning import equal_width_columns
from ..metrics.dci import specificity
from ..metrics.forest import forest_by_depth
from ..metrics.infomec import concentration
from ..metrics.information import nmi
from ..metrics.inputs import check_latents, check_sources
from ..metrics.protocols import find_protocol
from ..presets import MODELS
from .aggregate import Group, Summary
from .published import TITLES

BINS = (2, 3, 5, 10, 20, 40, 80, 160)
NEIGHBOURS = (1, 2, 3, 5, 7, 10, 15, 20)
DEPTHS = tuple(range(1, 17))
NUM_TREES = 100
NUM_MODELS = 3
CONTINUOUS = ("continuous", "gaussian", "uniform")

Curves = dict[str, list[float]]  # score → its value at each point


@dataclass(frozen=True)
class Vignette:
    """A choice, its values, and what it does to the scores of some models."""

    name: str
    axis: str
    says: str
    points: tuple[int, ...]
    curves: Mapping[str, Curves]  # by model


def vignettes(summary: Summary) -> tuple[str, list[Vignette]]:
    """The data set that they are about and the three vignettes; none where no model has continuous latents."""
    data, groups = _choose(summary)
    if not groups:
        return "", []
    samples = {group.model: _sample(group) for group in groups}
    kinds: list[tuple[str, str, str, tuple[int, ...], Any]] = [
        ("bins", "number of bins", "mutual information from histograms", BINS, by_bins),
        ("neighbours", "number of neighbours k", "mutual information by the KSG estimator", NEIGHBOURS, by_neighbours),
        ("depth", "largest depth of the trees", "random forests of 100 trees", DEPTHS, by_depth),
    ]
    return data, [
        Vignette(name, axis, says, points, {m: curve(*sample, points) for m, sample in samples.items()})
        for name, axis, says, points, curve in kinds
    ]


def by_bins(sources: NDArray[Any], latents: NDArray[Any], points: Sequence[int]) -> Curves:
    """InfoM and InfoC where continuous latents are cut into equal bins and taken for codes."""
    return _by_nmi(
        sources, latents, (nmi(sources, equal_width_columns(latents.astype(np.float64), n)[0]) for n in points)
    )


def by_neighbours(sources: NDArray[Any], latents: NDArray[Any], points: Sequence[int]) -> Curves:
    """InfoM and InfoC by the KSG estimator."""
    return _by_nmi(sources, latents, (nmi(sources, latents, k=k) for k in points))


def _by_nmi(sources: NDArray[Any], latents: NDArray[Any], matrices: Iterable[NDArray[np.float64]]) -> Curves:
    active = find_protocol("paper").active(check_latents(latents))
    varying = check_sources(sources).varying
    kept = [matrix[np.ix_(varying, active)] for matrix in matrices]
    return {"infom": [concentration(m.T) for m in kept], "infoc": [concentration(m) for m in kept]}


def by_depth(sources: NDArray[Any], latents: NDArray[Any], points: Sequence[int]) -> Curves:
    """D, I and C where all forests are cut off at one depth, split and seeded as `qlae.metrics.dci` does."""
    checked = check_sources(sources)
    order = np.random.default_rng(0).permutation(len(sources))
    cut = min(int(np.ceil(0.9 * len(order))), len(order) - 1)
    train, test = order[:cut], order[cut:]
    forests = []
    for i in np.flatnonzero(checked.varying).tolist():
        column: NDArray[Any] = checked.labels[:, i] if checked.discrete[i] else checked.values[:, i]
        forest = forest_by_depth(
            latents[train],
            column[train],
            latents[test],
            column[test],
            depths=points,
            classify=checked.discrete[i],
            num_trees=NUM_TREES,
            max_features="sqrt",
            seed=0,
            n_jobs=None,
        )
        forests.append(forest)
    importance = np.stack([forest.importances for forest in forests])  # (n_s, depths, n_z)
    accuracy = np.maximum([forest.scores for forest in forests], 0.0).mean(0)
    at = range(len(points))
    return {
        "d": [specificity(importance[:, n].T) for n in at],
        "i": accuracy.tolist(),
        "c": [specificity(importance[:, n]) for n in at],
    }


def vignette_figure(vignette: Vignette, data: str) -> Figure:
    """A panel a score, a line a model."""
    scores = list(next(iter(vignette.curves.values())))
    figure = Figure(figsize=(3.4 * len(scores), 3.1), layout="constrained")
    figure.suptitle(f"{data}: {vignette.says}", fontsize=11)
    for axes, score in zip(figure.subplots(1, len(scores), squeeze=False)[0], scores, strict=True):
        for model, curves in vignette.curves.items():
            axes.plot(vignette.points, curves[score], marker="o", markersize=3.5, linewidth=1.4, label=model)
        if vignette.name != "depth":
            axes.set_xscale("log")
            axes.set_xticks(vignette.points, [str(point) for point in vignette.points])
            axes.minorticks_off()
        axes.set_ylim(0, 1)
        axes.set_xlabel(vignette.axis)
        axes.set_title(TITLES[score], fontsize=10)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(fontsize=8, frameon=False)
    return figure


def spread(vignette: Vignette) -> str:
    """How far the choice moves each score, in words."""
    scores = list(next(iter(vignette.curves.values())))
    moved = {s: max(max(curves[s]) - min(curves[s]) for curves in vignette.curves.values()) for s in scores}
    return ", ".join(f"{TITLES[score]} by up to {size:.2f}" for score, size in moved.items())


def to_csv(found: Sequence[Vignette]) -> str:
    """One line a point."""
    lines = ["vignette,model,score,point,value"]
    lines += [
        f"{vignette.name},{model},{score},{point},{value:.6g}"
        for vignette in found
        for model, curves in vignette.curves.items()
        for score, values in curves.items()
        for point, value in zip(vignette.points, values, strict=True)
    ]
    return "\n".join(lines) + "\n"


def _choose(summary: Summary) -> tuple[str, list[Group]]:
    """The data set with the most models of continuous latents, and the first few of them."""
    names = {model.label: model.name for model in summary.plan.models}
    by_data = {
        data: [
            summary.groups[data, model]
            for model in summary.models
            if (data, model) in summary.groups and MODELS[names[model]].latent in CONTINUOUS
        ]
        for data in summary.data
    }
    best = max(by_data, key=lambda data: len(by_data[data]))
    return best, by_data[best][:NUM_MODELS]


def _sample(group: Group) -> tuple[NDArray[Any], NDArray[Any]]:
    run = group.runs[group.middle()]
    arrays = run.arrays(run.sample_path)
    return arrays["sources"], arrays["latents"]
