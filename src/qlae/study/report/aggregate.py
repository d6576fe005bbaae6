"""Collect the runs of a study that count, per data set and model, and the cells of its tables.

The runs of the selected value count: with ``aggregate = "reruns"`` those of new seeds (if the plan has no reruns, those
of tuning), otherwise those of tuning as well. Each run has scores of its averaged and of its raw weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

from ..._checks import require_known
from ...metrics import InformativeCount, count_informative, find_score
from ...observations import described_observations
from ...published import INFOE_KEYS, Published, published_metric, published_results
from ...runs.directory import Run
from ..agreements import KEY, has_sources, run_agreements
from ..driver import current_index
from ..folder import Entry, Index, StudyFolder
from ..plan import AGGREGATES, SCORED_WEIGHTS, Plan
from ..selection import FIDELITY_SCORES
from .cells import Cell, combine_data_sets, make_cell
from .comparable import differences_from_paper
from .informative import sum_counts

AGGREGATED = "aggregated"  # stands for the mean over data sets where the name of a data set is expected


@dataclass(frozen=True)
class Group:
    """The runs of one model on one data set that count, with their results.

    Attributes:
        data, model: labels in the plan.
        runs: the run directories.
        results: the content of their ``results.json``.
        entries: their entries in the study's index.
        weights: the weights whose scores count, ``"averaged"`` or ``"raw"``.
        aggregate: how the interval is computed, as in `cells.make_cell`.
    """

    data: str
    model: str
    runs: tuple[Run, ...]
    results: tuple[dict[str, Any], ...]
    entries: tuple[Entry, ...] = ()
    weights: str = "averaged"
    aggregate: str = "reruns"

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(result["seed"] for result in self.results)

    def scores(self, weights: str | None = None) -> list[dict[str, Any]]:
        """Return the scores of each run; they are empty if these weights were not scored."""
        return [result.get(weights or self.weights) or {} for result in self.results]

    def values(self, score: str, weights: str | None = None) -> dict[int, float]:
        """Return a score by seed; an empty mapping if a run does not have it."""
        values = [scores.get(score) for scores in self.scores(weights)]
        return {} if None in values else dict(zip(self.seeds, map(float, values), strict=True))  # type: ignore[arg-type]

    def cell(self, score: str, weights: str | None = None) -> Cell | None:
        """Return a score over seeds; None if a run does not have it."""
        values = self.values(score, weights)
        return make_cell(tuple(values.values()), self.aggregate) if values else None

    def latent_counts(self, weights: str | None = None) -> list[InformativeCount] | None:
        """Return how many latents of each run InfoM counts, and how many are informative; None if a run lacks them."""
        counts = [count_informative(scores) for scores in self.scores(weights)]
        return None if None in counts else counts  # type: ignore[return-value]

    def describe_value(self, index: int, score: str) -> str:
        """Return the seed of a run and its score in words; beside InfoM, the number of informative latents."""
        text = f"seed {self.seeds[index]}: {find_score(score).format(self.scores()[index][score])}"
        counts = self.latent_counts() if score == "infom" else None
        return f"{text}, {counts[index]} latents informative" if counts else text

    def published_metric(self, score: str) -> str | None:
        """Return the published column of the same kind as a score."""
        return published_metric(self.model, score, self.infoe_input)

    @property
    def infoe_input(self) -> str | None:
        """How ``infoe`` reads the latents, ``"scalar"`` or ``"one-hot"``; None if old results do not show it."""
        scores = self.scores()[0]
        if "infoe_input" in scores or self.results[0]["protocol"] != "paper":
            return scores.get("infoe_input")
        return "one-hot" if "infoe_scalar" in scores else "scalar"  # that protocol scores codes both ways

    def key_like_published(self, score: str) -> str:
        """Return our score of the same kind as a published column, which matters for InfoE."""
        if score != "infoe":
            return score
        return next((key for key in INFOE_KEYS if self.values(key) and self.published_metric(key)), score)

    @property
    def has_sources(self) -> bool:
        """Whether the data have sources, so that runs have an InfoM; otherwise they have an agreement."""
        return all(has_sources(result) for result in self.results)

    @property
    def quality(self) -> str:
        """The score that ranks the runs."""
        return "infom" if self.has_sources else KEY

    def median_index(self) -> int:
        """Return the index of the run with the median InfoM, which represents the group in pictures.

        On data without sources it is the run with the highest agreement, the one to take.
        """
        scores = self.scores()
        order = sorted(range(len(self.runs)), key=lambda n: (scores[n].get(self.quality, 0.0), n))
        return order[(len(order) - 1) // 2] if self.has_sources else order[-1]


@dataclass(frozen=True)
class Summary:
    """The results of a study.

    Attributes:
        plan: the plan of the study.
        index: the state of its runs.
        groups: the runs that count by (data, model), in the order of the plan.
        weights: the weights whose scores fill the tables; selection uses those of the plan.
        aggregate: which runs count, and the intervals, out of ``plan.AGGREGATES``.
        tuning: the tuning runs by (data, model), one group per value of the grid.
    """

    plan: Plan
    index: Index
    groups: Mapping[tuple[str, str], Group]
    weights: str = "averaged"
    aggregate: str = "reruns"
    tuning: Mapping[tuple[str, str], Mapping[float, Group]] = field(default_factory=dict)

    @property
    def data(self) -> list[str]:
        """The labels of data sets that have finished runs."""
        return [data.label for data in self.plan.data if any(key[0] == data.label for key in self.groups)]

    @property
    def models(self) -> list[str]:
        """The labels of models that have finished runs."""
        return [model.label for model in self.plan.models if any(key[1] == model.label for key in self.groups)]

    def cell(self, data: str, model: str, score: str, weights: str | None = None) -> Cell | None:
        """Return a score over seeds; for ``"aggregated"``, its mean over the data sets."""
        if data != AGGREGATED:
            group = self.groups.get((data, model))
            return group.cell(score, weights) if group else None
        groups = [self.groups.get((name, model)) for name in self.data]
        return combine_data_sets([g.values(score, weights) if g else {} for g in groups], self.aggregate)

    def latent_counts(self, data: str, model: str, weights: str | None = None) -> list[InformativeCount] | None:
        """Return the latents behind a cell of InfoM; for ``"aggregated"``, those of all data sets, seed by seed."""
        groups = [self.groups.get((name, model)) for name in (self.data if data == AGGREGATED else [data])]
        by_data = [dict(zip(g.seeds, g.latent_counts(weights) or (), strict=False)) if g else {} for g in groups]
        common = sorted(set.intersection(*map(set, by_data)))
        return [sum_counts([counts[seed] for counts in by_data]) for seed in common] or None

    @cached_property
    def differences(self) -> dict[tuple[str, str], list[str] | None]:
        """How the runs of each group differ from the paper's, as `differences_from_paper` says."""
        return {key: differences_from_paper(self.plan, group) for key, group in self.groups.items()}

    def published(self, data: str, model: str, score: str) -> Published | None:
        """Return the paper's number for a cell; for ``"aggregated"``, the mean over this study's data sets.

        Returns:
            None if the paper has no such number, or it is of other runs than these.
        """
        if data == AGGREGATED:
            cells = [self.published(name, model, score) for name in self.data]
            return Published(fmean(cell.mean for cell in cells if cell), None, False) if all(cells) else None
        group = self.groups.get((data, model))
        if group is None or not group.values(score) or self.differences[data, model] != []:
            return None
        return published_results().get((data, model, group.published_metric(score) or ""))

    @property
    def has_sources(self) -> bool:
        """Whether any data set has sources, so that there are scores beside agreement and fidelity."""
        return any(group.has_sources for group in self.groups.values())

    @property
    def fidelity(self) -> list[str]:
        """The keys of the scores that measure reconstructions: the PSNR of images, R² of vectors and series."""
        keys = {described_observations(data).traits.load_fidelity().key for data in self.data_descriptions().values()}
        return [key for key in FIDELITY_SCORES if key in keys]

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


def summarise(folder: StudyFolder, *, scored_weights: str | None = None, aggregate: str | None = None) -> Summary:
    """Return the results of a study from its run directories.

    Args:
        folder: the study.
        scored_weights: the weights whose scores fill the tables; by default those of the plan, which select as well.
        aggregate: which runs count, and their intervals; by default as the plan says.

    Raises:
        ValueError: if no run is finished, or an argument is unknown.
    """
    plan = folder.plan
    weights = require_known(scored_weights or plan.scored_weights, SCORED_WEIGHTS, "scored_weights")
    aggregate = require_known(aggregate or plan.aggregate, AGGREGATES, "aggregate")
    index = current_index(plan, folder, folder.index, strict=False)
    groups, tuning = {}, {}
    for data in plan.data:
        for model in plan.models:
            pair = data.label, model.label
            done = {n: e for n, e in index.runs.items() if (e.data, e.model, e.state) == (*pair, "done")}
            values = index.selected_values(*pair)
            entries = {name: entry for name, entry in done.items() if _counts(entry, values, plan, aggregate)}
            if entries:
                groups[pair] = _make_group(folder, pair, entries, weights, aggregate)
            if model.grid:
                by_value = {v: {n: e for n, e in done.items() if (e.stage, e.value) == ("tune", v)} for v in model.grid}
                tuning[pair] = {
                    value: _make_group(folder, pair, runs, plan.scored_weights, "reruns")
                    for value, runs in sorted(by_value.items())
                    if runs
                }
    _add_agreements(groups, tuning, weights, plan.scored_weights)
    if not groups:
        raise ValueError(f"{folder.path} has no finished runs to report yet; `qlae study {folder.path}` resumes it")
    return Summary(plan, index, groups, weights, aggregate, tuning)


def _add_agreements(
    groups: Mapping[tuple[str, str], Group],
    tuning: Mapping[tuple[str, str], Mapping[float, Group]],
    weights: str,
    tuned_weights: str,
) -> None:
    """Add the agreement between runs to the scores of those on data without sources.

    The runs that count are compared with all others on their data set, tuning runs with those of the same grid.
    """
    by_data: dict[str, list[Group]] = {}
    for (data, _), group in groups.items():
        by_data.setdefault(data, []).append(group)
    grids = [list(by_value.values()) for by_value in tuning.values()]
    for together, of_weights in [*((g, weights) for g in by_data.values()), *((g, tuned_weights) for g in grids)]:
        if all(group.has_sources for group in together):
            continue
        agreements = run_agreements([run for group in together for run in group.runs], of_weights)
        for group in together:
            for run, scores in zip(group.runs, group.scores(of_weights), strict=True):
                if run.path in agreements:
                    scores[KEY] = agreements[run.path]


def _make_group(
    folder: StudyFolder, pair: tuple[str, str], entries: Mapping[str, Entry], weights: str, aggregate: str
) -> Group:
    """Return the group of some finished runs."""
    runs = tuple(folder.run(name) for name in entries)
    results = tuple(run.results for run in runs)
    return Group(*pair, runs, results, tuple(entries.values()), weights, aggregate)


def _counts(entry: Entry, selected: list[float], plan: Plan, aggregate: str) -> bool:
    """Return whether a finished run counts in the tables."""
    if entry.stage == "rerun":
        return True
    reruns = next(plan.rerun_seeds_of(model) for model in plan.models if model.label == entry.model)
    return entry.value in selected and (aggregate != "reruns" or not reruns)
