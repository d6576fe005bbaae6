"""Aggregate the runs of a study: the mean of each score per data set and model, with its 95% t-interval.

The reruns of the selected value count; if the plan has no reruns, the tuning runs of that value count. Scores are those
of the averaged weights.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from scipy import stats

from ...presets import MODELS
from ...registry import OBJECTIVES
from ...runs.directory import Run
from ..driver import current_index
from ..folder import Entry, Index, StudyFolder
from ..plan import Plan
from .published import published_results

AGGREGATED = "aggregated"  # stands for the mean over data sets where the name of a data set is expected


@dataclass(frozen=True)
class Cell:
    """The values of a score over seeds."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def half(self) -> float | None:
        """Half of the width of the mean's 95% t-interval; None for a single seed.

        >>> round(Cell((0.8, 0.9, 1.0)).half, 4)
        0.2484
        """
        count = len(self.values)
        if count < 2:
            return None
        return float(stats.t.ppf(0.975, count - 1) * stdev(self.values) / math.sqrt(count))


@dataclass(frozen=True)
class Group:
    """The runs of one model on one data set that count, with their results."""

    data: str
    model: str
    runs: tuple[Run, ...]
    results: tuple[dict[str, Any], ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(result["seed"] for result in self.results)

    def cell(self, score: str) -> Cell | None:
        """Return the score over seeds; None if a run does not have it."""
        values = [_score(result["averaged"], score) for result in self.results]
        return Cell(tuple(values)) if values and None not in values else None  # type: ignore[arg-type]

    def median_index(self) -> int:
        """Return the index of the run with the median InfoM, which represents the group in pictures."""
        order = sorted(range(len(self.runs)), key=lambda n: (self.results[n]["averaged"]["infom"], n))
        return order[(len(order) - 1) // 2]


@dataclass(frozen=True)
class Summary:
    """The results of a study.

    Attributes:
        plan: the plan of the study.
        index: the state of its runs.
        groups: the runs that count by (data, model), in the order of the plan.
    """

    plan: Plan
    index: Index
    groups: Mapping[tuple[str, str], Group]

    @property
    def data(self) -> list[str]:
        """The labels of data sets that have finished runs."""
        return [data.label for data in self.plan.data if any(key[0] == data.label for key in self.groups)]

    @property
    def models(self) -> list[str]:
        """The labels of models that have finished runs."""
        return [model.label for model in self.plan.models if any(key[1] == model.label for key in self.groups)]

    def cell(self, data: str, model: str, score: str) -> Cell | None:
        """Return a score over seeds; for ``"aggregated"``, each value is the mean over data sets of one seed."""
        if data == AGGREGATED:
            return self._aggregated(model, score)
        group = self.groups.get((data, model))
        return group.cell(score) if group else None

    def published_mean(self, data: str, model: str, score: str) -> float | None:
        """Return the paper's mean for a cell; for ``"aggregated"``, its mean over this study's data sets.

        Returns:
            None if the paper has no such number, or the label stands for something else than in the paper.
        """
        if any(planned.name != planned.label for planned in self.plan.models if planned.label == model):
            return None
        names = self.data if data == AGGREGATED else [data]
        if any(planned.name != planned.label for planned in self.plan.data if planned.label in names):
            return None
        cells = [published_results().get((name, model, score)) for name in names]
        return fmean(cell.mean for cell in cells if cell) if cells and all(cells) else None

    @property
    def num_seeds(self) -> int:
        """The number of seeds of the largest group."""
        return max(len(group.results) for group in self.groups.values())

    def data_descriptions(self) -> dict[str, dict[str, Any]]:
        """Return the description of each data set in the results, by label."""
        return {
            label: next(group.results[0]["data"] for key, group in self.groups.items() if key[0] == label)
            for label in self.data
        }

    def origins(self) -> dict[str, str]:
        """Return whether each data set is ``"rendered"`` or ``"real"``, by label; ``"aggregated"`` may be both."""
        origins = {label: str(description["origin"]) for label, description in self.data_descriptions().items()}
        return origins | {AGGREGATED: " and ".join(sorted(set(origins.values())))}

    def _aggregated(self, model: str, score: str) -> Cell | None:
        groups = [self.groups.get((data, model)) for data in self.data]
        if not groups or None in groups:
            return None
        by_seed = [dict(zip(group.seeds, group.results, strict=True)) for group in groups if group]
        common = sorted(set.intersection(*(set(results) for results in by_seed)))
        values = [[_score(results[seed]["averaged"], score) for results in by_seed] for seed in common]
        if not values or any(value is None for row in values for value in row):
            return None
        return Cell(tuple(fmean(value for value in row if value is not None) for row in values))


def summarise(folder: StudyFolder) -> Summary:
    """Return the results of a study from its run directories; raise ``ValueError`` if no run is finished."""
    plan = folder.plan
    index = current_index(plan, folder, folder.index, strict=False)
    groups = {}
    for data in plan.data:
        for model in plan.models:
            names = [name for name, entry in index.runs.items() if _counts(entry, data.label, model.label, plan, index)]
            runs = tuple(folder.run(name) for name in names)
            if runs:
                results = tuple(run.results for run in runs)
                groups[data.label, model.label] = Group(data.label, model.label, runs, results)
    if not groups:
        raise ValueError(f"{folder.path} has no finished runs to report yet; `qlae study {folder.path}` resumes it")
    return Summary(plan, index, groups)


def mark_bold(cells: Sequence[Cell | None]) -> list[bool]:
    """Return which intervals overlap the one with the highest upper end, the paper's rule for bold numbers.

    >>> mark_bold([Cell((0.5, 0.5)), Cell((0.9, 0.9)), None])
    [False, True, False]
    """
    ends = [(cell.mean - (cell.half or 0.0), cell.mean + (cell.half or 0.0)) for cell in cells if cell]
    if not ends:
        return [False] * len(cells)
    floor = max(ends, key=lambda interval: interval[1])[0]
    return [cell is not None and cell.mean + (cell.half or 0.0) >= floor for cell in cells]


def is_adversarial(plan: Plan, label: str) -> bool:
    """Return whether the model with this label is a GAN."""
    names = {model.label: model.name for model in plan.models}
    return not OBJECTIVES[MODELS[names[label]].objective].part.reconstructs


def _counts(entry: Entry, data: str, model: str, plan: Plan, index: Index) -> bool:
    """Return whether a run counts for a model on a data set."""
    if (entry.data, entry.model, entry.state) != (data, model, "done"):
        return False
    if plan.rerun_seeds:
        return entry.stage == "rerun"
    return entry.value in index.selected_values(data, model)


def _score(scores: Mapping[str, Any], score: str) -> float | None:
    """Return a score of a run; None if it was not computed."""
    if score != "informative":
        value = scores.get(score)
        return None if value is None else float(value)
    if "active_latents" not in scores:
        return None
    return _informative_share(scores["active_latents"], scores["informative_latents"])


def _informative_share(active: Iterable[bool], informative: Iterable[bool]) -> float:
    """Return the share of active latents that are informative about some source."""
    flags = [is_informative for is_active, is_informative in zip(active, informative, strict=True) if is_active]
    return sum(flags) / len(flags) if flags else 0.0
