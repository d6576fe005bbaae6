"""The results of a study: the table of all runs, the runs that count by data set and model, and the cells of tables.

The runs of the selected value count: with ``aggregate = "reruns"`` those of new seeds (if the plan has no reruns, those
of tuning), otherwise those of tuning as well. Each run has scores of its averaged and of its raw weights.

The interval of a cell is mean ± t·s/√n. In the authors' tables, s divides by n instead of n − 1; over several data
sets, they take t for all values together times the mean of the standard errors (docs/study.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, pstdev, stdev
from typing import Any

import pandas as pd
from scipy import stats

from ...data.sources import SOURCES
from ...metrics import InformativeCount
from ...observations import described_observations, square_images
from ...paper_tables import PAPER_ROWS, Published, published_metric, published_results
from ...presets import MODELS
from ...resolving import resolve
from ...runs.directory import Run
from ..folder import StudyFolder, collect
from ..plan import DataPlan, ModelPlan, Plan
from ..tuning import AGREEMENT, FIDELITY_SCORES

AGGREGATED = "aggregated"  # stands for the mean over data sets where the name of a data set is expected
RESOLUTION, NUM_SAMPLES = 64, 10_000  # of the published results
RANDOM_SOURCES = ("noise", "continuous", "correlated")  # entries of a data set that change its images
MIN_SEEDS = 3  # below that, a mean has no useful interval (t = 12.7 for two seeds) and single values are shown

Pair = tuple[str, str]  # the labels of a data set and a model


@dataclass(frozen=True)
class Cell:
    """The values of a score over seeds, and half of the width of the mean's 95% interval if it has one."""

    values: tuple[float, ...]
    half: float | None = None

    @property
    def mean(self) -> float:
        return fmean(self.values)


def make_cell(values: Sequence[float], aggregate: str = "reruns") -> Cell:
    """Return the values of seeds with their 95% interval; with fewer than three values it has none.

    >>> round(make_cell((0.8, 0.9, 1.0)).half, 4), round(make_cell((0.8, 0.9, 1.0), "authors").half, 4)
    (0.2484, 0.2028)
    """
    if len(values) < MIN_SEEDS:
        return Cell(tuple(values))
    return Cell(tuple(values), _t(len(values)) * _standard_error(values, aggregate))


def combine_data_sets(by_data: Sequence[Mapping[int, float]], aggregate: str = "reruns") -> Cell | None:
    """Return the mean over data sets, from the values of each by seed; None if there is nothing to combine.

    Each value of the cell is the mean over data sets of one seed, for the seeds that all data sets have. With
    ``"authors"``, all values are pooled, as in the authors' tables.
    """
    if not by_data or not all(by_data):
        return None
    if aggregate == "authors" and min(map(len, by_data)) >= MIN_SEEDS:
        pooled = tuple(value for values in by_data for value in values.values())
        error = fmean(_standard_error(tuple(values.values()), aggregate) for values in by_data)
        return Cell(pooled, _t(len(pooled)) * error)
    common = sorted(set.intersection(*(set(values) for values in by_data)))
    return make_cell([fmean(values[seed] for values in by_data) for seed in common]) if common else None


def _t(count: int) -> float:
    return float(stats.t.ppf(0.975, count - 1))


def _standard_error(values: Sequence[float], aggregate: str) -> float:
    deviation = pstdev(values) if aggregate == "authors" else stdev(values)
    return deviation / math.sqrt(len(values))


@dataclass(frozen=True, eq=False)
class Summary:
    """The results of a study.

    Attributes:
        plan: the plan of the study.
        path: its folder.
        runs: all runs, as `qlae.study.collect` returns them.
        groups: the rows of the runs that count by (data, model), in the order of the plan.
        weights: the weights whose scores fill the tables; selection uses those of the plan.
        aggregate: which runs count, and the intervals, out of ``plan.AGGREGATES``.
    """

    plan: Plan
    path: Path
    runs: pd.DataFrame
    groups: dict[Pair, pd.DataFrame]
    weights: str
    aggregate: str

    @property
    def data(self) -> list[str]:
        """The labels of data sets that have finished runs."""
        return list(dict.fromkeys(data for data, _ in self.groups))

    @property
    def blocks(self) -> list[list[str]]:
        """The autoencoders and the GANs, each in the paper's order, then those that the paper lacks."""
        reconstructs = {model.label: model.reconstructs for model in self.plan.models}
        rank = {model: number for number, model in enumerate(PAPER_ROWS)}
        planned = [model for model in reconstructs if any(model == other for _, other in self.groups)]
        models = sorted(planned, key=lambda model: rank.get(model, len(rank)))
        return [[model for model in models if reconstructs[model] == kind] for kind in (True, False)]

    @property
    def pairs(self) -> list[Pair]:
        """The data set and the model of all rows of tables, whether they have runs that count or not."""
        return [(data, model) for data in self.data for block in self.blocks for model in block]

    @property
    def counted(self) -> pd.DataFrame:
        """The runs that count, in the order of the plan."""
        return pd.concat(self.groups.values())

    def run(self, name: str) -> Run:
        """Return the directory of a run by its name in the table."""
        return Run(self.path / "runs" / name)

    def median_run(self, data: str, model: str, file: str = "results.json") -> Run:
        """Return the run that represents a model in pictures: that of median InfoM, of the runs that have a file.

        On data without sources it is the run with the highest agreement, the one to take. If no run has the file, all
        runs are considered.
        """
        runs = self.groups[data, model]
        has_file = [(self.run(name).path / file).is_file() for name in runs.run]
        runs = runs[has_file] if any(has_file) else runs
        quality = self.quality(data)
        ordered = runs.reindex(columns=[quality])[quality].fillna(0.0).sort_values(kind="stable").index
        return self.run(runs.run[ordered[(len(ordered) - 1) // 2 if quality == "infom" else -1]])

    def quality(self, data: str) -> str:
        """Return the score that ranks the runs of a data set: InfoM, or agreement if it has no sources."""
        return "infom" if self.has_sources(data) else AGREEMENT

    def has_sources(self, *data: str) -> bool:
        """Return whether any of these data sets (by default: any) has sources, and therefore InfoMEC."""
        return any(self.data_descriptions[name]["source_names"] for name in data or self.data)

    @cached_property
    def data_descriptions(self) -> dict[str, dict[str, Any]]:
        """The description of each data set in the results, by label."""
        first = self.counted.groupby("data").run.first()
        return {label: self.run(first[label]).results["data"] for label in self.data}

    @property
    def origins(self) -> dict[str, str]:
        """Whether each data set is ``"rendered"`` or ``"real"``, by label; ``"aggregated"`` may be both."""
        origins = {label: str(description["origin"]) for label, description in self.data_descriptions.items()}
        return origins | {AGGREGATED: " and ".join(sorted(set(origins.values())))}

    @property
    def fidelity(self) -> list[str]:
        """The keys of the scores that measure reconstructions: the PSNR of images, R² of vectors and series."""
        keys = {described_observations(data).traits.load("fidelity").key for data in self.data_descriptions.values()}
        return [key for key in FIDELITY_SCORES if key in keys]

    def column(self, score: str, weights: str) -> str:
        """Return the name of a score's column in the table of runs."""
        return score if weights == self.weights or score == AGREEMENT else f"{weights}_{score}"

    @cached_property
    def _by_seed(self) -> dict[tuple[str, str, str], dict[int, float]]:
        """The numbers in each column by seed, of the runs that have one."""
        return {
            (*pair, name): values.dropna().astype(float).to_dict()
            for pair, runs in self.groups.items()
            for name, values in runs.set_index("seed", drop=False).select_dtypes("number").items()
        }

    def values(self, data: str, model: str, score: str, weights: str | None = None) -> dict[int, float]:
        """Return a score by seed, of the runs that have it."""
        return self._by_seed.get((data, model, self.column(score, weights or self.weights)), {})

    def cell(self, data: str, model: str, score: str, weights: str | None = None) -> Cell | None:
        """Return a score over the seeds that have it; for ``"aggregated"``, its mean over the data sets."""
        if data == AGGREGATED:
            return combine_data_sets([self.values(name, model, score, weights) for name in self.data], self.aggregate)
        values = self.values(data, model, score, weights)
        return make_cell(tuple(values.values()), self.aggregate) if values else None

    def latent_counts(self, data: str, model: str, weights: str | None = None) -> list[InformativeCount]:
        """Return how many latents InfoM counts, and how many are informative, for each seed that has both.

        For ``"aggregated"``, those of all data sets are added seed by seed.
        """
        by_score = [
            [self.values(name, model, score, weights) for name in (self.data if data == AGGREGATED else [data])]
            for score in ("informative", "active")
        ]
        seeds = [seed for seed in by_score[0][0] if all(seed in values for values in by_score[0])]
        return [InformativeCount(*(int(sum(values[s] for values in each)) for each in by_score)) for s in seeds]

    def infoe_input(self, data: str, model: str) -> str | None:
        """Return how ``infoe`` reads the latents, ``"scalar"`` or ``"one-hot"``; None on data without sources."""
        value = self.groups[data, model].get("infoe_input", pd.Series([None])).iloc[0]
        return None if pd.isna(value) else str(value)

    @cached_property
    def differences(self) -> dict[Pair, list[str] | None]:
        """How the runs of each group differ from the paper's, as `differences_from_paper` says."""
        return {pair: differences_from_paper(self, *pair) for pair in self.groups}

    def published(self, data: str, model: str, score: str) -> Published | None:
        """Return the paper's number for a cell; for ``"aggregated"``, the mean over this study's data sets.

        Returns:
            None if the paper has no such number, or it is of other runs than these and the plan does not ask for it.
        """
        if data == AGGREGATED:
            cells = [self.published(name, model, score) for name in self.data]
            return Published(fmean(cell.mean for cell in cells if cell), None, False) if all(cells) else None
        if not self.values(data, model, score) or not self.is_compared(data, model):
            return None
        metric = published_metric(model, score, self.infoe_input(data, model))
        return published_results().get((data, model, metric or ""))

    def is_compared(self, data: str, model: str) -> bool:
        """Return whether the paper's numbers are shown with those of a model."""
        if self.plan.show_published:
            return (data, model) in compared_pairs(self.plan)
        return self.differences[data, model] == []


def compared_pairs(plan: Plan) -> set[Pair]:
    """Return the data sets and models of a plan that are those of the paper and not others under the same labels."""
    data = {entry.label for entry in plan.data if entry.label == entry.spec.name}
    return {(d, model.label) for d in data for model in plan.models if model.label == model.name}


def summarise(folder: StudyFolder, *, scored_weights: str | None = None, aggregate: str | None = None) -> Summary:
    """Return the results of a study from its run directories; arguments as for `report_study`."""
    plan = folder.plan
    weights, aggregate = scored_weights or plan.scored_weights, aggregate or plan.aggregate
    runs = collect(folder, scored_weights=weights, aggregate=aggregate)
    if not runs.counts.any():
        raise ValueError(f"{folder.path} has no finished runs to report yet; `qlae study {folder.path}` resumes it")
    counted = dict(list(runs[runs.counts].groupby(["data", "model"])))
    groups = {pair: counted[pair] for pair in plan.pairs if pair in counted}
    return Summary(plan, folder.path, runs, groups, weights, aggregate)


def describe_counts(counts: Sequence[InformativeCount]) -> str:
    """Describe the counts of several seeds, with "only" if most latents of a seed are noise.

    >>> describe_counts([InformativeCount(12, 12), InformativeCount(10, 12)])
    '10–12 of 12'
    >>> describe_counts([InformativeCount(1, 12)]), describe_counts([InformativeCount(9, 9), InformativeCount(8, 8)])
    ('only 1 of 12', 'all of 8–9')
    """
    informative, active = (f"{min(n)}" if min(n) == max(n) else f"{min(n)}–{max(n)}" for n in zip(*counts, strict=True))
    if len(set(counts)) > 1 and all(count.informative == count.active for count in counts):
        return f"all of {active}"
    return f"{'only ' if any(count.warning for count in counts) else ''}{informative} of {active}"


def differences_from_paper(summary: Summary, data: str, model: str) -> list[str] | None:
    """Describe how runs differ from those of the paper, which decides whether published numbers are shown with them.

    The published numbers are of full-size networks at 64×64 pixels, on every combination of a data set's sources,
    scored on 10,000 samples. A run may differ in its number of updates, its tuned value, its form (paper or official),
    its precision, and in whether its images are rendered; the notes of the tables say so.

    Returns:
        An empty list if published numbers may be shown; None if the paper has no such model or data set.
    """
    if not any(key[:2] == (data, model) for key in published_results()):
        return None
    planned_model = next(entry for entry in summary.plan.models if entry.label == model)
    planned_data = next(entry for entry in summary.plan.data if entry.label == data)
    names = (("model", planned_model.name, model), ("data set", planned_data.spec.name, data))
    run = summary.run(summary.groups[data, model].run.iloc[0])
    number = summary.groups[data, model].num_samples.iloc[0]
    return [f"it is the {what} {ours}" for what, ours, theirs in names if ours != theirs] or [
        *_data_differences(planned_data, run.results["data"]),
        *_model_differences(planned_model, run),
        *([f"scored on {number:,.0f} samples instead of {NUM_SAMPLES:,}"] if number != NUM_SAMPLES else []),
    ]


def _data_differences(data: DataPlan, description: dict[str, Any]) -> list[str]:
    reasons = []
    observed = described_observations(description)
    if observed != square_images(RESOLUTION):
        unit = " pixels" if observed.is_standard else ""
        reasons.append(f"{observed.size}{unit} instead of {RESOLUTION}×{RESOLUTION}")
    sources = SOURCES[data.label]
    missing = [source for source in sources if source not in description["source_names"]]
    if missing:
        reasons.append(f"no varying {', '.join(missing)}")
    elif description["num_images"] != math.prod(sources.values()):
        reasons.append(f"{description['num_images']:,} images instead of {math.prod(sources.values()):,}")
    changes = [key for key in RANDOM_SOURCES if getattr(data.spec, key, None)]
    return reasons + [key if key == "noise" else f"{key} sources" for key in changes]


def _model_differences(model: ModelPlan, run: Run) -> list[str]:
    """Return how the config of a run differs from the paper's preset, apart from the tuned value."""
    if model.options.get("size", "full") != "full":
        return ["small networks"]
    config, preset = run.config, MODELS[model.label]
    same = {key: model.options[key] for key in ("form",) if key in model.options}
    same |= {"steps": config.training.steps, "seed": config.training.seed, "precision": config.training.precision}
    paper = resolve(model.label, config.data, len(config.data.source_names), **same)
    tuned = "weight_decay" if preset.tuned == "weight_decay" else f"weights.{preset.tuned}"
    return [
        f"{key.rpartition('.')[2].replace('_', ' ')} {ours} instead of {theirs}"
        for key, (ours, theirs) in config.difference(paper).items()
        if not (preset.grid and key.endswith(tuned))
    ]
