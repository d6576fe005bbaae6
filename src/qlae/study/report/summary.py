"""The runs of a study that count, by data set and model, and the cells of its tables, from the table of all runs.

The runs of the selected value count: with ``aggregate = "reruns"`` those of new seeds (if the plan has no reruns, those
of tuning), otherwise those of tuning as well. Each run has scores of its averaged and of its raw weights.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from ...data import DataSpec
from ...data.sources import SOURCES
from ...metrics import InformativeCount, find_score
from ...observations import described_observations, square_images
from ...presets import MODELS
from ...published import INFOE_KEYS, Published, published_metric, published_results
from ...resolving import resolve
from ...runs.directory import Run
from ..collect import collect
from ..folder import StudyFolder
from ..plan import Plan
from ..tuning import AGREEMENT, FIDELITY_SCORES
from .cells import Cell, combine_data_sets, make_cell

AGGREGATED = "aggregated"  # stands for the mean over data sets where the name of a data set is expected
RESOLUTION, NUM_SAMPLES = 64, 10_000  # of the published results
RANDOM_SOURCES = ("noise", "continuous", "correlated")  # entries of a data set that change its images


@dataclass(frozen=True, eq=False)
class Group:
    """Finished runs of one model on one data set.

    Attributes:
        rows: their rows in the table of all runs (`qlae.study.collect`).
        path: the folder of the study.
        weights: the weights whose scores count, ``"averaged"`` or ``"raw"``.
        aggregate: how the interval is computed, as in `cells.make_cell`.
    """

    rows: pd.DataFrame
    path: Path
    weights: str = "averaged"
    aggregate: str = "reruns"
    _values: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict, init=False)

    @cached_property
    def data(self) -> str:
        return str(self.rows["data"].iloc[0])

    @cached_property
    def model(self) -> str:
        return str(self.rows["model"].iloc[0])

    @property
    def seeds(self) -> list[int]:
        return [int(seed) for seed in self.rows["seed"]]

    @property
    def runs(self) -> list[Run]:
        return [Run(self.path / "runs" / name) for name in self.rows["run"]]

    @cached_property
    def results(self) -> dict[str, Any]:
        """The results of the first run, whose data and scoring are those of all."""
        return self.runs[0].results

    def column(self, score: str, weights: str | None = None) -> pd.Series:
        """Return a score of each run, missing where a run does not have it."""
        weights = weights or self.weights
        is_plain = score == AGREEMENT or weights == self.rows["weights"].iloc[0]
        name = score if is_plain else f"{weights}_{score}"
        return self.rows[name] if name in self.rows else pd.Series(float("nan"), self.rows.index)

    def values(self, score: str, weights: str | None = None) -> dict[int, float]:
        """Return a score by seed; an empty mapping if a run does not have it."""
        key = score, weights or self.weights
        if key not in self._values:  # tables ask for the same values again and again
            column = self.column(*key)
            self._values[key] = {} if column.isna().any() else dict(zip(self.seeds, map(float, column), strict=True))
        return self._values[key]

    def cell(self, score: str, weights: str | None = None) -> Cell | None:
        """Return a score over seeds; None if a run does not have it."""
        values = self.values(score, weights)
        return make_cell(tuple(values.values()), self.aggregate) if values else None

    def latent_counts(self, weights: str | None = None) -> dict[int, InformativeCount]:
        """Return by seed how many latents InfoM counts, and how many are informative; empty if a run lacks them."""
        informative, active = self.values("informative", weights), self.values("active", weights)
        return {seed: InformativeCount(int(informative[seed]), int(active[seed])) for seed in informative}

    def describe_value(self, index: int, score: str) -> str:
        """Describe a score of one run: its seed and the value; for InfoM, also the number of informative latents."""
        seed = self.seeds[index]
        text = f"seed {seed}: {find_score(score).format(float(self.column(score).iloc[index]))}"
        counts = self.latent_counts() if score == "infom" else {}
        return f"{text}, {counts[seed]} latents informative" if counts else text

    @cached_property
    def infoe_input(self) -> str | None:
        """How ``infoe`` reads the latents, ``"scalar"`` or ``"one-hot"``; None on data without sources."""
        value = self.column("infoe_input").iloc[0]
        return None if pd.isna(value) else str(value)

    def published_metric(self, score: str) -> str | None:
        """Return the published column of the same kind as a score."""
        return published_metric(self.model, score, self.infoe_input)

    def key_like_published(self, score: str) -> str:
        """Return our score of the same kind as a published column, which matters for InfoE."""
        if score != "infoe":
            return score
        return next((key for key in INFOE_KEYS if self.values(key) and self.published_metric(key)), score)

    @cached_property
    def has_sources(self) -> bool:
        """Whether the data have sources, so that runs have an InfoM; otherwise they have an agreement."""
        return bool(self.rows["num_sources"].all())

    @property
    def quality(self) -> str:
        """The score that ranks the runs."""
        return "infom" if self.has_sources else AGREEMENT

    @property
    def median_index(self) -> int:
        """The index of the run with the median InfoM, which represents the group in pictures.

        On data without sources it is the run with the highest agreement, the one to take.
        """
        order = self.column(self.quality).fillna(0.0).reset_index(drop=True).sort_values(kind="stable").index
        return int(order[(len(order) - 1) // 2] if self.has_sources else order[-1])

    @property
    def median_run(self) -> Run:
        """The run that represents the group."""
        return self.runs[self.median_index]


@dataclass(frozen=True, eq=False)
class Summary:
    """The results of a study.

    Attributes:
        plan: the plan of the study.
        path: its folder.
        runs: all runs, as `qlae.study.collect` returns them.
        groups: the runs that count by (data, model), in the order of the plan.
        weights: the weights whose scores fill the tables; selection uses those of the plan.
        aggregate: which runs count, and the intervals, out of ``plan.AGGREGATES``.
        tuning: the tuning runs by (data, model), one group per value of the grid.
    """

    plan: Plan
    path: Path
    runs: pd.DataFrame
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
        groups = self._groups(data, model)
        if data != AGGREGATED:
            return groups[0].cell(score, weights) if groups[0] else None
        return combine_data_sets([g.values(score, weights) if g else {} for g in groups], self.aggregate)

    def latent_counts(self, data: str, model: str, weights: str | None = None) -> list[InformativeCount]:
        """Return the latents behind a cell of InfoM; for ``"aggregated"``, those of all data sets, seed by seed."""
        by_data = [group.latent_counts(weights) if group else {} for group in self._groups(data, model)]
        common = sorted(set.intersection(*map(set, by_data)))
        sums = [
            [sum(numbers) for numbers in zip(*(counts[seed] for counts in by_data), strict=True)] for seed in common
        ]
        return [InformativeCount(*numbers) for numbers in sums]

    def _groups(self, data: str, model: str) -> list[Group | None]:
        return [self.groups.get((name, model)) for name in (self.data if data == AGGREGATED else [data])]

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
        """Whether any data set has sources, so that there are scores other than agreement and fidelity."""
        return any(group.has_sources for group in self.groups.values())

    @property
    def fidelity(self) -> list[str]:
        """The keys of the scores that measure reconstructions: the PSNR of images, R² of vectors and series."""
        keys = {described_observations(data).traits.load("fidelity").key for data in self.data_descriptions.values()}
        return [key for key in FIDELITY_SCORES if key in keys]

    @property
    def num_seeds(self) -> int:
        """The number of seeds of the largest group."""
        return max(len(group.rows) for group in self.groups.values())

    @cached_property
    def data_descriptions(self) -> dict[str, dict[str, Any]]:
        """The description of each data set in the results, by label."""
        return {
            label: next(g.results["data"] for key, g in self.groups.items() if key[0] == label) for label in self.data
        }

    @property
    def origins(self) -> dict[str, str]:
        """Whether each data set is ``"rendered"`` or ``"real"``, by label; ``"aggregated"`` may be both."""
        origins = {label: str(description["origin"]) for label, description in self.data_descriptions.items()}
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
    weights, aggregate = scored_weights or plan.scored_weights, aggregate or plan.aggregate
    runs = collect(folder, scored_weights=weights, aggregate=aggregate)
    if not runs.counts.any():
        raise ValueError(f"{folder.path} has no finished runs to report yet; `qlae study {folder.path}` resumes it")
    pairs = [(data.label, model.label) for data in plan.data for model in plan.models]
    counted = dict(list(runs[runs.counts].groupby(["data", "model"])))
    groups = {pair: Group(counted[pair], folder.path, weights, aggregate) for pair in pairs if pair in counted}
    tuned = runs[(runs.stage == "tune") & (runs.state == "done")]
    if f"tuning_{AGREEMENT}" in tuned:
        tuned = tuned.assign(agreement=tuned[f"tuning_{AGREEMENT}"])
    grids = dict(list(tuned.groupby(["data", "model"])))
    tuning = {
        pair: {value: Group(rows, folder.path, plan.scored_weights) for value, rows in grids[pair].groupby("value")}
        for pair in pairs
        if pair in grids
    }
    return Summary(plan, folder.path, runs, groups, weights, aggregate, tuning)


def describe_counts(counts: Sequence[InformativeCount]) -> str:
    """Describe the counts of several seeds, with "only" if most latents of a seed are noise.

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


def differences_from_paper(plan: Plan, group: Group) -> list[str] | None:
    """Describe how runs differ from those of the paper, which decides whether published numbers are shown with them.

    The published numbers are of full-size networks at 64×64 pixels, on every combination of a data set's sources,
    scored on 10,000 samples. A run may differ in its number of updates, its tuned value, its form (paper or official),
    its precision, and in whether its images are rendered; the notes of the tables say so.

    Returns:
        An empty list if published numbers may be shown; None if the paper has no such model or data set.
    """
    if not any(key[:2] == (group.data, group.model) for key in published_results()):
        return None
    model = next(entry for entry in plan.models if entry.label == group.model)
    data = next(entry for entry in plan.data if entry.label == group.data)
    reasons = [f"it is the model {model.name}"] if model.name != model.label else []
    reasons += [f"it is the data set {data.spec.name}"] if data.spec.name != data.label else []
    number = group.results["num_samples"]
    return reasons or [
        *_data_differences(group.data, group.results["data"], data.spec),
        *_model_differences(group, model.options),
        *([f"scored on {number:,} samples instead of {NUM_SAMPLES:,}"] if number != NUM_SAMPLES else []),
    ]


def _data_differences(name: str, description: dict[str, Any], spec: DataSpec) -> list[str]:
    reasons = []
    observed = described_observations(description)
    if observed != square_images(RESOLUTION):
        unit = " pixels" if observed.is_standard else ""
        reasons.append(f"{observed.size}{unit} instead of {RESOLUTION}×{RESOLUTION}")
    sources = SOURCES[name]
    missing = [source for source in sources if source not in description["source_names"]]
    sizes = dict(zip(description["source_names"], description.get("source_sizes", ()), strict=False))
    if missing:
        reasons.append(f"no varying {', '.join(missing)}")
    elif sizes and sizes != sources:
        reasons.append("other numbers of values per source")
    elif description["num_images"] != math.prod(sources.values()):
        reasons.append(f"{description['num_images']:,} images instead of {math.prod(sources.values()):,}")
    return reasons + [f"{key} sources" if key != "noise" else key for key in RANDOM_SOURCES if getattr(spec, key, None)]


def _model_differences(group: Group, options: dict[str, Any]) -> list[str]:
    """Return how the config of the first run differs from the paper's preset, apart from the tuned value."""
    if options.get("size", "full") != "full":
        return ["small networks"]
    config = group.runs[0].config
    preset = MODELS[group.model]
    same = {key: options[key] for key in ("form",) if key in options}
    same |= {"steps": config.training.steps, "seed": config.training.seed, "precision": config.training.precision}
    paper = resolve(group.model, config.data, len(config.data.source_names), **same)
    tuned = "weight_decay" if preset.tuned == "weight_decay" else f"weights.{preset.tuned}"
    return [
        f"{key.rpartition('.')[2].replace('_', ' ')} {ours} instead of {theirs}"
        for key, (ours, theirs) in config.difference(paper).items()
        if not (preset.grid and key.endswith(tuned))
    ]
