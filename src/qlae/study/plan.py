"""The plan of a study: data sets × models × one tuned hyperparameter each × seeds, in a small TOML or JSON file.

The stages are those of the paper (section 5): *tune* trains each value of a model's grid with a few seeds, *select*
takes the value with the best InfoM (of autoencoders, among those whose PSNR is near the best), *rerun* trains that
value with new seeds. A plan is plain data: reading one executes nothing.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from .._checks import require_known
from .._io import read_regular
from .._parsing import decode_json, decode_toml, parse
from ..data import DataSpec, data_spec
from ..metrics import METRICS
from ..metrics.infomec import PROTOCOLS
from ..options import TrainingOptions, option_names
from ..presets import MODELS
from ..registry import OBJECTIVES
from .tuning import NEAR_DB

#: Options of a model in addition to its grid, for all models at the top of a plan or for one under its name: those of
#: `options.TrainingOptions` except for the seed, which the study chooses.
MODEL_OPTIONS = tuple(name for name in option_names(TrainingOptions) if name != "seed")
ScoredWeights = Literal["averaged", "raw"]
Aggregate = Literal["reruns", "all-seeds", "authors"]
#: Sets of weights that runs are scored with, as ``results.json`` names them. The authors' code has the raw ones only.
SCORED_WEIGHTS: tuple[str, ...] = get_args(ScoredWeights)
#: Which runs of the selected value count, and how their interval is computed (`report.summary`).
AGGREGATES: tuple[str, ...] = get_args(Aggregate)
#: Names of other files and columns of the report, which data sets may not have as labels.
RESERVED_LABELS = (
    *("aggregated", "tables", "correlations", "vignettes", "index", "files", "runs", "other-metrics"),
    *("main-infomec", "main-dci", "main-corrected", "ablations-infomec", "ablations-dci", "ablations-corrected"),
    *("main-agreement", "ablations-agreement"),
)
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class _Options(TrainingOptions):
    """The options of a training as a file has them, where curves may be texts."""

    weight_schedules: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _ModelTable(_Options):
    """The table ``[models.LABEL]``."""

    model: str = ""
    grid: tuple[float, ...] | None = None
    rerun_seeds: int | None = None


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """The entries at the top of a plan that are no options of models."""

    name: str = "study"
    about: str = ""
    tune: bool = True
    tune_seeds: int = 2
    rerun_seeds: int = 5
    near_db: float = NEAR_DB
    metrics: tuple[str, ...] = ("dci",)
    num_samples: int = 10_000
    protocol: str = "paper"
    scored_weights: ScoredWeights = "averaged"
    aggregate: Aggregate = "reruns"
    show_published: bool = False


@dataclass(frozen=True, kw_only=True)
class _PlanTable(_Settings, _Options):
    """The top of a plan."""

    data: list[str] | dict[str, dict[str, Any]] = field(default_factory=dict)
    models: list[str] | dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class DataPlan:
    """A data set of a plan, under a label."""

    label: str
    spec: DataSpec


@dataclass(frozen=True)
class ModelPlan:
    """A model of a plan, under a label; `grid` is empty if nothing is tuned."""

    label: str
    name: str
    grid: tuple[float, ...]
    options: dict[str, Any]
    rerun_seeds: int

    @property
    def tuned(self) -> str:
        """The hyperparameter that the grid is for."""
        return MODELS[self.name].tuned

    @property
    def reconstructs(self) -> bool:
        """Whether the model is trained to reconstruct images, as autoencoders are and GANs are not."""
        return bool(OBJECTIVES[MODELS[self.name].objective].part.reconstructs)


@dataclass(frozen=True, kw_only=True)
class Plan(_Settings):
    """A whole study before it is run. Further attributes are the settings at the top of its file.

    Attributes:
        data: the data sets.
        models: the models.
        content: the content of the plan's file, with absolute paths, so that a study can be resumed from anywhere.
    """

    data: tuple[DataPlan, ...]
    models: tuple[ModelPlan, ...]
    content: dict[str, Any]

    @staticmethod
    def from_content(content: Any, *, name: str = "study") -> "Plan":
        """Return the plan that the content of a file describes; raise ``ValueError`` naming the first wrong entry."""
        table = parse(content, _PlanTable, "plan")
        _require_no_seed(content, "plan")
        tables = _tables("data", table.data)
        data = tuple(_data_plan(label, entry) for label, entry in tables.items())
        shared = {key: value for key, value in content.items() if key in MODEL_OPTIONS}
        models = [_model_plan(label, t, shared, table) for label, t in _tables("models", table.models).items()]
        settings = {field.name: getattr(table, field.name) for field in fields(_Settings)}
        settings |= {"name": content.get("name", name), "metrics": tuple(dict.fromkeys(("infomec", *table.metrics)))}
        absolute = {one.label: tables[one.label] | one.spec.paths() for one in data}
        plan = Plan(data=data, models=tuple(models), content=content | {"data": absolute}, **settings)
        plan.check()
        return plan

    def with_options(self, **options: Any) -> "Plan":
        """Return the plan with other entries at its top, such as ``aggregate``; those that are None stay."""
        changes = {key: value for key, value in options.items() if value is not None}
        return Plan.from_content(self.content | changes, name=self.name) if changes else self

    @property
    def has_unsized_models(self) -> bool:
        """Whether the plan leaves the size of a model's networks open."""
        return any("size" not in {**MODELS[model.name].training, **model.options} for model in self.models)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The labels of each data set and model, in the order of the plan."""
        return [(data.label, model.label) for data in self.data for model in self.models]

    def check(self) -> None:
        """Raise ``ValueError`` if a number or a name is invalid."""
        for key, least in (("tune_seeds", 1), ("rerun_seeds", 0), ("num_samples", 2), ("near_db", 0)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be at least {least}, got {getattr(self, key)}")
        if any(sign in self.name for sign in "/\\") or self.name in ("", ".", ".."):
            raise ValueError(f"name must be valid as the name of a folder, without slashes, got {self.name!r}")
        for metric in self.metrics:
            require_known(metric, METRICS, "metric")
        require_known(self.protocol, PROTOCOLS, "protocol")
        for model in self.models:
            if model.rerun_seeds < 0:
                raise ValueError(f"models.{model.label}: rerun_seeds must be at least 0, got {model.rerun_seeds}")
        untuned = ", ".join(model.label for model in self.models if not model.grid and not model.rerun_seeds)
        if untuned:
            raise ValueError(f"rerun_seeds is 0 and {untuned} has no grid, so it would never run; set rerun_seeds")


def read_plan(name: str | Path) -> Plan:
    """Return a plan by its name (one of `plan_names()`) or from a TOML or JSON file."""
    path = Path(name)
    if path.suffix in (".toml", ".json") or path.is_file():
        if not path.is_file():
            raise ValueError(f"{path} is not a file; name a TOML or JSON file, or one of {', '.join(plan_names())}")
        stem, text = path.stem, read_regular(path)
    else:
        stem = require_known(str(name), plan_names(), "plan")
        text = (resources.files(__package__) / "plans" / f"{stem}.toml").read_bytes()
    try:
        return Plan.from_content((decode_json if path.suffix == ".json" else decode_toml)(text), name=stem)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def plan_names() -> list[str]:
    """Return the names of the plans that come with the package."""
    files = (resources.files(__package__) / "plans").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def _tables(key: str, entries: list[str] | dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the tables under ``data`` or ``models`` by label; names in a list have empty tables."""
    if not entries:
        example = "shapes3d" if key == "data" else "qlae"
        raise ValueError(f'{key} is missing: name at least one, such as {key} = ["{example}"]')
    tables = entries if isinstance(entries, dict) else {}
    for name in entries if isinstance(entries, list) else ():
        is_path = key == "data" and ("/" in name or "\\" in name)
        label = os.path.basename(os.path.abspath(name)) if is_path else name
        if label in tables:
            raise ValueError(f"{key} has more than one {label}; use tables with different labels, as in [{key}.other]")
        tables[label] = {} if label == name else {"name": name}
    for label in tables:
        if not LABEL.fullmatch(label):
            raise ValueError(
                f"{key}: labels name folders, so they may contain letters, digits and . _ + - only, got {label!r}; "
                f"choose a label, as in [{key}.mine]"
            )
    return tables


def _data_plan(label: str, table: Mapping[str, Any]) -> DataPlan:
    """Return a data set of a plan from its table; relative paths start at the working directory."""
    if label in RESERVED_LABELS:
        raise ValueError(f"data.{label}: the report has a file or column of this name; choose another label")
    options = {"name": label, **table}
    for key in ("name", "path", "source_file"):
        if not isinstance(options.get(key, label), str):
            raise ValueError(f"data.{label}: {key} must be a string, got {options[key]!r}")
        if options.get(key) == "":
            raise ValueError(f"data.{label}: {key} is empty")
        if key != "name" and key in options:
            options[key] = os.path.abspath(options[key])
    try:
        spec = data_spec(**options)
        for key in options:  # `data_spec` ignores other options if they are empty, such as false
            require_known(key, (*option_names(type(spec)), *getattr(spec, "options", ())), "entry")
        return DataPlan(label, spec)
    except (ValueError, TypeError) as error:
        raise ValueError(f"data.{label}: {error}") from None


def _model_plan(label: str, content: dict[str, Any], shared: dict[str, Any], plan: _PlanTable) -> ModelPlan:
    """Return a model of a plan from its table and the options that all models share."""
    table = parse(content, _ModelTable, f"models.{label}")
    _require_no_seed(content, f"models.{label}")
    try:
        name = require_known(table.model or label, MODELS, "model")
    except ValueError as error:
        raise ValueError(f"{error}. For a model of your own, import its module first (--import MODULE)") from None
    options = shared | {key: value for key, value in content.items() if key in MODEL_OPTIONS}
    preset = MODELS[name]
    if table.grid is None:
        grid = tuple(preset.grid) if plan.tune else ()
        if preset.tuned == "weight_decay":  # the paper's grid is for full-size networks
            factor = preset.training_preset(options.get("size", "full")).weight_decay_factor
            grid = tuple(float(f"{factor * value:.6g}") for value in grid)
    else:
        grid = tuple(dict.fromkeys(map(float, table.grid)))
    if any(value < 0 for value in grid):
        raise ValueError(f"models.{label}: grid must list numbers of at least 0, got {list(grid)}")
    if len({f"{value:g}" for value in grid}) < len(grid):
        raise ValueError(f"models.{label}: values of grid must differ in their first six digits, got {list(grid)}")
    rerun_seeds = plan.rerun_seeds if table.rerun_seeds is None else table.rerun_seeds
    return ModelPlan(label, name, grid, options, rerun_seeds)


def _require_no_seed(table: Mapping[str, Any], where: str) -> None:
    if "seed" in table:
        raise ValueError(f"{where}: the study chooses the seeds; tune_seeds and rerun_seeds are their numbers")
