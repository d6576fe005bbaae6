"""Aggregate: the runs of a study → a cell for every data set, model and score, with its 95% t-interval.

Counted are the reruns of the selected value; where the plan reruns nothing, the tuning runs of that value. Scores are
those of the averaged weights.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from scipy import stats

from ..presets import MODELS
from ..runs.directory import Run
from ..study.driver import current
from ..study.folder import Entry, Index, StudyFolder
from ..study.plan import Plan
from .published import METRICS, published

SCORES = (*METRICS, "informative")
AGGREGATED = "aggregated"


@dataclass(frozen=True)
class Cell:
    """A score over seeds."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def half(self) -> float | None:
        """Half of the 95% interval of the mean, assuming a t-distribution; None from a single seed.

        >>> round(Cell((0.8, 0.9, 1.0)).half, 4)
        0.2484
        """
        count = len(self.values)
        if count < 2:
            return None
        return float(stats.t.ppf(0.975, count - 1) * stdev(self.values) / math.sqrt(count))


@dataclass(frozen=True)
class Group:
    """The runs of one model on one data set that count."""

    data: str
    model: str
    runs: tuple[Run, ...]
    results: tuple[dict[str, Any], ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(result["seed"] for result in self.results)

    def cell(self, score: str) -> Cell | None:
        """The score over seeds; None where no run has it."""
        found = [_score(result["averaged"], score) for result in self.results]
        return Cell(tuple(found)) if found and None not in found else None  # type: ignore[arg-type]

    def middle(self) -> int:
        """The run with the median InfoM, which stands for the others in pictures."""
        order = sorted(range(len(self.runs)), key=lambda n: (self.results[n]["averaged"]["infom"], n))
        return order[(len(order) - 1) // 2]


@dataclass(frozen=True)
class Summary:
    """A study's results: its plan, its index and its groups by (data, model), in the order of the plan."""

    plan: Plan
    index: Index
    groups: Mapping[tuple[str, str], Group]

    @property
    def data(self) -> list[str]:
        return [data.label for data in self.plan.data if any(key[0] == data.label for key in self.groups)]

    @property
    def models(self) -> list[str]:
        return [model.label for model in self.plan.models if any(key[1] == model.label for key in self.groups)]

    def cell(self, data: str, model: str, score: str) -> Cell | None:
        """A cell; of ``"aggregated"``, the means over data sets, seed by seed."""
        if data == AGGREGATED:
            return self._aggregated(model, score)
        group = self.groups.get((data, model))
        return group.cell(score) if group else None

    def published_mean(self, data: str, model: str, score: str) -> float | None:
        """The paper's number beside a cell; of ``"aggregated"``, its mean over this study's data sets.

        Something else under a label of the paper's has none.
        """
        if any(one.name != one.label for one in self.plan.models if one.label == model):
            return None
        names = self.data if data == AGGREGATED else [data]
        if any(one.name != one.label for one in self.plan.data if one.label in names):
            return None
        found = [published().get((name, model, score)) for name in names]
        return fmean(cell.mean for cell in found if cell) if found and all(found) else None

    @property
    def num_seeds(self) -> int:
        """Of the group that has most."""
        return max(len(group.results) for group in self.groups.values())

    def facts(self) -> dict[str, dict[str, Any]]:
        """What results say of each data set, by label."""
        return {
            label: next(group.results[0]["data"] for key, group in self.groups.items() if key[0] == label)
            for label in self.data
        }

    def origins(self) -> dict[str, str]:
        """Whether each data set is ``"rendered"`` or ``"real"``, by label; ``"aggregated"`` may be both."""
        found = {label: str(facts["origin"]) for label, facts in self.facts().items()}
        return found | {AGGREGATED: " and ".join(sorted(set(found.values())))}

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
    """Read a study's run directories."""
    plan = folder.plan
    index = current(plan, folder, folder.index, strict=False)
    groups = {}
    for data in plan.data:
        for model in plan.models:
            names = [name for name, entry in index.runs.items() if _counts(entry, data.label, model.label, plan, index)]
            runs = tuple(folder.run(name) for name in names)
            if runs:
                results = tuple(run.results for run in runs)
                groups[data.label, model.label] = Group(data.label, model.label, runs, results)
    if not groups:
        raise ValueError(f"{folder.path} has no finished runs to report yet; `qlae study {folder.path}` goes on")
    return Summary(plan, index, groups)


def bold(cells: Sequence[Cell | None]) -> list[bool]:
    """Which intervals overlap the one with the highest end, the paper's rule for bold.

    >>> bold([Cell((0.5, 0.5)), Cell((0.9, 0.9)), None])
    [False, True, False]
    """
    ends = [(cell.mean - (cell.half or 0.0), cell.mean + (cell.half or 0.0)) for cell in cells if cell]
    if not ends:
        return [False] * len(cells)
    floor = max(ends, key=lambda interval: interval[1])[0]
    return [cell is not None and cell.mean + (cell.half or 0.0) >= floor for cell in cells]


def is_adversarial(plan: Plan, label: str) -> bool:
    names = {model.label: model.name for model in plan.models}
    return MODELS[names[label]].objective == "adversarial"


def _counts(entry: Entry, data: str, model: str, plan: Plan, index: Index) -> bool:
    if (entry.data, entry.model, entry.state) != (data, model, "done"):
        return False
    if plan.rerun_seeds:
        return entry.stage == "rerun"
    return entry.value in index.chosen(data, model)


def _score(scores: Mapping[str, Any], score: str) -> float | None:
    if score != "informative":
        found = scores.get(score)
        return None if found is None else float(found)
    if "active_latents" not in scores:
        return None
    return _share(scores["active_latents"], scores["informative_latents"])


def _share(active: Iterable[bool], informative: Iterable[bool]) -> float:
    """Of the latents that InfoM counts, the share that tells more of some source than shuffled samples would."""
    told = [tells for moves, tells in zip(active, informative, strict=True) if moves]
    return sum(told) / len(told) if told else 0.0
