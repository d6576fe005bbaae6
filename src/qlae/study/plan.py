"""The plan of a study: data sets × models × one tuned hyperparameter each × seeds, in a small TOML or JSON file.

The stages are those of the paper (section 5): *tune* trains each value of a model's grid with a few seeds, *select*
takes the value with the best InfoM (of autoencoders, among those whose PSNR is near the best), *rerun* trains that
value with new seeds. A plan is plain data: reading one executes nothing and does not import torch.
"""

import json
import math
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from .._checks import require_known
from .._io import read_regular
from ..data import DataSpec, data_spec
from ..metrics import METRICS
from ..metrics.protocols import PROTOCOLS
from ..options import TrainingOptions
from ..presets import MODELS, SIZES
from ..registry import OBJECTIVES
from .data_paths import LABEL, with_absolute_paths
from .tuning import NEAR_DB


def _types_in_file(hint: Any) -> tuple[type, ...]:
    """Return the types that an option of the type ``hint`` has in a TOML or JSON file.

    >>> _types_in_file(int | Sequence[int] | None)
    (<class 'int'>, <class 'list'>)
    """
    members = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    return tuple(
        dict.fromkeys(
            _FILE_TYPES[typing.get_origin(member) or member] for member in members if member is not types.NoneType
        )
    )


_FILE_TYPES: dict[Any, type] = {
    **{str: str, int: int, float: float, bool: bool, typing.Literal: str},
    **{Mapping: dict, Sequence: list},
}
#: Options of a model in addition to its grid, for all models at the top of a plan or for one under its name: those of
#: `options.TrainingOptions` except for the seed, which the study chooses.
MODEL_OPTIONS: dict[str, tuple[type, ...]] = {
    name: _types_in_file(hint) for name, hint in typing.get_type_hints(TrainingOptions).items() if name != "seed"
}
#: Entries of a data set: arguments of `qlae.load_data`.
DATA_OPTIONS = {
    **{
        "resolution": (int, str, list),
        "grey": bool,
        "sources": list,
        "fixed": dict,
        "num_images": int,
        "continuous": (bool, list),
    },
    **{"correlated": list, "noise": float, "seed": int, "path": str, "source_file": str},
    **{"source_columns": list, "drop_columns": list, "layout": str},
}
#: Entries at the top of a plan.
PLAN_OPTIONS = {
    **{"name": str, "about": str, "tune": bool, "tune_seeds": int, "rerun_seeds": int, "near_db": float},
    **{"metrics": list, "num_samples": int, "protocol": str, "data": (list, dict), "models": (list, dict)},
    **{"scored_weights": str, "aggregate": str},
}
#: Sets of weights that runs are scored with, as ``results.json`` names them. The authors' code has the raw ones only.
SCORED_WEIGHTS = ("averaged", "raw")
#: Which runs of the selected value count, and how their interval is computed (`report.cells`).
AGGREGATES = ("reruns", "all-seeds", "authors")
#: Names of other files and columns of the report, which data sets may not have as labels.
RESERVED_LABELS = (
    *("aggregated", "tables", "correlations", "vignettes", "index", "files", "seeds", "tuning", "other-metrics"),
    *("main-infomec", "main-dci", "main-corrected", "ablations-infomec", "ablations-dci", "ablations-corrected"),
    *("main-agreement", "ablations-agreement"),
)


@dataclass(frozen=True)
class DataPlan:
    """A data set of a plan, under a label."""

    label: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> DataSpec:
        """The description of the data."""
        return data_spec(self.name, **self.options)


@dataclass(frozen=True)
class ModelPlan:
    """A model of a plan, under a label; `grid` is empty if nothing is tuned.

    `own_rerun_seeds` replaces the number of seeds that the plan has for all models.
    """

    label: str
    name: str
    grid: tuple[float, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    own_rerun_seeds: int | None = None

    @property
    def tuned(self) -> str:
        """The hyperparameter that the grid is for."""
        return MODELS[self.name].tuned

    @property
    def reconstructs(self) -> bool:
        """Whether the model is trained to reconstruct images, as autoencoders are and GANs are not."""
        return bool(OBJECTIVES[MODELS[self.name].objective].part.reconstructs)


@dataclass(frozen=True)
class Plan:
    """A whole study before it is run.

    Attributes:
        near_db: largest distance of an autoencoder's PSNR from the best of its grid, for selection.
        scored_weights: the weights whose scores select values and fill the tables, out of `SCORED_WEIGHTS`.
        aggregate: which runs count in the tables, and their intervals, out of `AGGREGATES`.
        content: the content of the plan's file.
    """

    name: str
    data: tuple[DataPlan, ...]
    models: tuple[ModelPlan, ...]
    about: str
    tune_seeds: int
    rerun_seeds: int
    near_db: float
    metrics: tuple[str, ...]
    num_samples: int
    protocol: str
    scored_weights: str
    aggregate: str
    content: dict[str, Any]

    @staticmethod
    def from_content(content: Any, *, name: str = "study") -> "Plan":
        """Return the plan that the content of a file describes; raise ``ValueError`` naming the first wrong entry."""
        if not isinstance(content, dict):
            raise ValueError(f"a plan must be a table, got {type(content).__name__}")
        content = with_absolute_paths(content)
        _check(content, PLAN_OPTIONS | MODEL_OPTIONS, "the plan")
        common_options = {key: value for key, value in content.items() if key in MODEL_OPTIONS}
        tune = content.get("tune", True)
        data = tuple(_data_plan(label, entry) for label, entry in _entries(content, "data"))
        models = tuple(_model_plan(label, entry, common_options, tune) for label, entry in _entries(content, "models"))
        plan = Plan(
            name=content.get("name", name),
            data=data,
            models=models,
            about=content.get("about", ""),
            content=content,
            tune_seeds=content.get("tune_seeds", 2),
            rerun_seeds=content.get("rerun_seeds", 5),
            near_db=float(content.get("near_db", NEAR_DB)),
            metrics=_metrics(content.get("metrics", ["dci"])),
            num_samples=content.get("num_samples", 10_000),
            protocol=content.get("protocol", "paper"),
            scored_weights=content.get("scored_weights", "averaged"),
            aggregate=content.get("aggregate", "reruns"),
        )
        plan.check()
        return plan

    def with_options(self, **options: Any) -> "Plan":
        """Return the plan with other entries at its top, such as ``aggregate``; those that are None stay."""
        changes = {key: value for key, value in options.items() if value is not None}
        return Plan.from_content(self.content | changes, name=self.name) if changes else self

    def rerun_seeds_of(self, model: ModelPlan) -> int:
        """Return the number of seeds that a model is rerun with."""
        return self.rerun_seeds if model.own_rerun_seeds is None else model.own_rerun_seeds

    def check(self) -> None:
        """Raise ``ValueError`` if a number or a name is invalid."""
        for key, least in (("tune_seeds", 1), ("rerun_seeds", 0), ("num_samples", 2)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be at least {least}, got {getattr(self, key)}")
        if not 0 <= self.near_db < math.inf:
            raise ValueError(f"near_db must not be negative, got {self.near_db}")
        if any(sign in self.name for sign in "/\\") or self.name in ("", ".", ".."):
            raise ValueError(f"name must be valid as the name of a folder, without slashes, got {self.name!r}")
        for metric in self.metrics:
            require_known(metric, METRICS, "metric")
        require_known(self.protocol, PROTOCOLS, "protocol")
        require_known(self.scored_weights, SCORED_WEIGHTS, "scored_weights")
        require_known(self.aggregate, AGGREGATES, "aggregate")
        for model in self.models:
            if self.rerun_seeds_of(model) < 0:
                raise ValueError(f"models.{model.label}: rerun_seeds must be at least 0, got {model.own_rerun_seeds}")
        untuned = ", ".join(one.label for one in self.models if not one.grid and not self.rerun_seeds_of(one))
        if untuned:
            raise ValueError(f"rerun_seeds is 0 and {untuned} has no grid, so it would never run; set rerun_seeds")


def read_plan(name: str | Path) -> Plan:
    """Return a plan by its name (one of `plan_names()`) or from a TOML or JSON file."""
    path = Path(name)
    if path.suffix in (".toml", ".json") or path.is_file():
        if not path.is_file():
            raise ValueError(f"{path} is not a file; name a TOML or JSON file, or one of {', '.join(plan_names())}")
        stem = path.stem
        try:
            text = read_regular(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 text ({error})") from None
    else:
        stem = require_known(str(name), plan_names(), "plan")
        text = (resources.files(__package__) / "plans" / f"{stem}.toml").read_text()
    try:
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return Plan.from_content(content, name=stem)
    except RecursionError:
        raise ValueError(f"{name}: its values are nested too deeply; a plan has tables and lists only") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def plan_names() -> list[str]:
    """Return the names of the plans that come with the package."""
    files = (resources.files(__package__) / "plans").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def _entries(content: Mapping[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the labels under ``data`` or ``models`` with the table of each; names in a list have empty tables."""
    tables = content.get(key) or {}
    if not tables:
        raise ValueError(f'{key} is missing: name at least one, such as {key} = ["{_EXAMPLES[key]}"]')
    if isinstance(tables, list):
        repeated = sorted({str(label) for label in tables if tables.count(label) > 1})
        if repeated:
            raise ValueError(f"{key} names {', '.join(repeated)} more than once; use tables with different labels")
        tables = {str(label): {} for label in tables}
    for label, table in tables.items():
        if not LABEL.fullmatch(label):
            raise ValueError(
                f"{key}: labels name folders, so they may contain letters, digits and . _ + - only, got {label!r}"
            )
        if not isinstance(table, dict):
            raise ValueError(f"{key}.{label} must be a table, got {table!r}")
        yield label, table


_EXAMPLES = {"data": "shapes3d", "models": "qlae"}


def _metrics(names: list[Any]) -> tuple[str, ...]:
    """Return the metrics to compute, with InfoMEC first."""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"metrics must be names, got {name!r}")
    return tuple(dict.fromkeys(("infomec", *names)))


def _data_plan(label: str, table: dict[str, Any]) -> DataPlan:
    """Return a data set of a plan from its table."""
    _check(table, DATA_OPTIONS | {"name": str}, f"data.{label}")
    if label in RESERVED_LABELS:
        raise ValueError(f"data.{label}: the report has a file or column of this name; choose another label")
    for pair in table.get("correlated", ()):
        if not (isinstance(pair, list) and len(pair) == 3):
            raise ValueError(
                f'data.{label}: correlated must list entries such as ["scale", "shape", 0.5], got {pair!r}'
            )
    plan = DataPlan(label, table.get("name", label), {key: value for key, value in table.items() if key != "name"})
    try:
        plan.spec  # noqa: B018
    except ValueError as error:
        raise ValueError(f"data.{label}: {error}") from None
    return plan


def _model_plan(label: str, table: dict[str, Any], common_options: dict[str, Any], tune: bool) -> ModelPlan:
    """Return a model of a plan from its table and the options that all models share."""
    _check(table, MODEL_OPTIONS | {"model": str, "grid": list, "rerun_seeds": int}, f"models.{label}")
    name = _known_model(table.get("model", label))
    options = common_options | {key: value for key, value in table.items() if key in MODEL_OPTIONS}
    preset = MODELS[name]
    size = require_known(options.get("size", "full"), SIZES, "size")
    grid = table.get("grid", preset.grid if tune else ())
    numbers = [value for value in grid if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(grid) or not all(0 <= value < math.inf for value in numbers):
        raise ValueError(f"models.{label}: grid must list finite numbers of at least 0, got {grid}")
    if len({f"{value:g}" for value in grid}) < len(set(map(float, grid))):
        raise ValueError(f"models.{label}: values of grid must differ in their first six digits, got {grid}")
    if "grid" not in table and preset.tuned == "weight_decay":  # the paper's grid is for full-size networks
        factor = preset.training_preset(size).weight_decay_factor
        grid = [float(f"{factor * value:.6g}") for value in grid]
    return ModelPlan(label, name, tuple(dict.fromkeys(map(float, grid))), options, table.get("rerun_seeds"))


def _known_model(name: str) -> str:
    """Return the name of a model; raise ``ValueError`` if no preset has it."""
    try:
        return require_known(name, MODELS, "model")
    except ValueError as error:
        raise ValueError(f"{error}. For a model of your own, import its module first (--import MODULE)") from None


def _check(table: Mapping[str, Any], allowed: Mapping[str, Any], where: str) -> None:
    """Raise ``ValueError`` if a table has an unknown key, or a value of the wrong type."""
    for key, value in table.items():
        allowed_type = allowed[require_known(key, allowed, f"entry of {where}")]
        kinds = allowed_type if isinstance(allowed_type, tuple) else (allowed_type,)
        kinds = (*kinds, int) if float in kinds else kinds
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(_TYPE_NAMES[kind] for kind in kinds if not (kind is int and float in kinds))
            raise ValueError(f"{where}: {key} must be {names}, got {value!r}")


_TYPE_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
