"""A study's plan: data sets × models × one tuned hyperparameter each × seeds, from a small TOML or JSON file.

The stages are the paper's (section 5): *tune* tries each value of a model's grid with a few seeds, *select* keeps the
value with the best InfoM among those whose PSNR is near the best, *rerun* trains that value from new seeds. A plan is
plain data: reading one executes nothing and loads no torch.
"""

import inspect
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from .._checks import require_known
from ..data.sources import SOURCES
from ..metrics.protocols import PROTOCOLS
from ..metrics.scoring import METRICS
from ..presets import MODELS, SIZES, resolve

PLACED = ("model", "data", "num_sources", "own_networks", "seed")  # what the study itself says to `presets.resolve`
#: What a model may be told beside its grid, for all models at the top of a plan or for one under its name: whatever
#: `presets.resolve` takes.
MODEL_OPTIONS = {
    **{name: object for name in inspect.signature(resolve).parameters if name not in PLACED},
    **{"form": str, "size": str, "steps": int, "batch_size": int, "learning_rate": float, "weight_decay": float},
    **{"weights": dict, "warm_up": int, "num_latents": int, "num_values": (int, list), "fixed_values": bool},
}
#: What a data set may be told: its form, as for `qlae.load_data`.
DATA_OPTIONS = {
    **{"resolution": int, "sources": list, "fixed": dict, "num_images": int, "continuous": (bool, list)},
    **{"correlated": list, "noise": float, "seed": int, "path": str, "source_file": str},
}
#: What the plan itself may say.
PLAN_OPTIONS = {
    **{"name": str, "about": str, "tune": bool, "tune_seeds": int, "rerun_seeds": int, "near_db": float},
    **{"metrics": list, "num_samples": int, "protocol": str, "data": (list, dict), "models": (list, dict)},
}
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
#: Labels of data sets name files of the report, of which these are others.
TAKEN = (
    *("aggregated", "tables", "correlations", "vignettes", "index", "files", "other-metrics"),
    *("main-infomec", "main-dci", "ablations-infomec", "ablations-dci"),
)


@dataclass(frozen=True)
class DataPlan:
    """A data set under a label of its own."""

    label: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelPlan:
    """A model under a label of its own; `grid` is empty where nothing is tuned."""

    label: str
    name: str
    grid: tuple[float, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def tuned(self) -> str:
        """The hyperparameter that the grid is of."""
        return MODELS[self.name].tuned


@dataclass(frozen=True)
class Plan:
    """A whole study before it is run; `content` is what the file said."""

    name: str
    data: tuple[DataPlan, ...]
    models: tuple[ModelPlan, ...]
    about: str
    tune_seeds: int
    rerun_seeds: int
    near_db: float  # a PSNR is near the best if it is at most so much below: 3 dB are twice the squared error
    metrics: tuple[str, ...]
    num_samples: int
    protocol: str
    content: dict[str, Any]

    @staticmethod
    def from_content(content: Any, *, name: str = "study") -> "Plan":
        """The plan behind the content of a file; an error names the entry that is wrong."""
        if not isinstance(content, dict):
            raise ValueError(f"a plan is a table of entries, got {type(content).__name__}")
        content = _with_whole_paths(content)
        _check(content, PLAN_OPTIONS | MODEL_OPTIONS, "the plan")
        shared = {key: value for key, value in content.items() if key in MODEL_OPTIONS}
        tune = content.get("tune", True)
        data = tuple(_data_plan(label, said) for label, said in _entries(content, "data"))
        models = tuple(_model_plan(label, said, shared, tune) for label, said in _entries(content, "models"))
        plan = Plan(
            name=content.get("name", name),
            data=data,
            models=models,
            about=content.get("about", ""),
            content=content,
            tune_seeds=content.get("tune_seeds", 2),
            rerun_seeds=content.get("rerun_seeds", 5),
            near_db=float(content.get("near_db", 3.0)),
            metrics=_metrics(content.get("metrics", ["dci"])),
            num_samples=content.get("num_samples", 10_000),
            protocol=content.get("protocol", "paper"),
        )
        plan.check()
        return plan

    def check(self) -> None:
        """An error where a number or a name cannot be."""
        for key, least in (("tune_seeds", 1), ("rerun_seeds", 0), ("num_samples", 2)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be at least {least}, got {getattr(self, key)}")
        if not 0 <= self.near_db < math.inf:
            raise ValueError(f"near_db must not be negative, got {self.near_db}")
        if any(sign in self.name for sign in "/\\") or self.name in ("", ".", ".."):
            raise ValueError(f"name: {self.name!r} names a folder, so it may hold no slashes")
        for metric in self.metrics:
            require_known(metric, METRICS, "metric")
        require_known(self.protocol, PROTOCOLS, "protocol")
        if not self.rerun_seeds and not all(model.grid for model in self.models):
            bare = ", ".join(model.label for model in self.models if not model.grid)
            raise ValueError(f"rerun_seeds is 0 and nothing of {bare} is tuned, so it would never run: give seeds")


def read_plan(name: str | Path) -> Plan:
    """A plan by its name (`plan_names` has them) or from a TOML or JSON file."""
    path = Path(name)
    if path.suffix in (".toml", ".json") or path.is_file():
        if not path.is_file():
            raise ValueError(f"{path} is not a file; give a plan in TOML or JSON, or one of {', '.join(plan_names())}")
        stem = path.stem
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8 ({error})") from None
    else:
        stem = require_known(str(name), plan_names(), "plan")
        text = (resources.files(__package__) / "plans" / f"{stem}.toml").read_text()
    try:
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return Plan.from_content(content, name=stem)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def plan_names() -> list[str]:
    """The plans that come with the package."""
    files = (resources.files(__package__) / "plans").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def _entries(content: Mapping[str, Any], what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Labels and what is said under each: a list of names says nothing more of them."""
    given = content.get(what) or {}
    if not given:
        raise ValueError(f'{what} is missing: name at least one, such as {what} = ["{_EXAMPLES[what]}"]')
    if isinstance(given, list):
        twice = sorted({str(label) for label in given if given.count(label) > 1})
        if twice:
            raise ValueError(f"{what} names {', '.join(twice)} more than once; give each a label of its own")
        given = {str(label): {} for label in given}
    for label, said in given.items():
        if not LABEL.fullmatch(label):
            raise ValueError(f"{what}: {label!r} names folders, so it may hold letters, digits and . _ + - only")
        if not isinstance(said, dict):
            raise ValueError(f"{what}.{label} must be a table, got {said!r}")
        yield label, said


_EXAMPLES = {"data": "shapes3d", "models": "qlae"}


def _with_whole_paths(content: dict[str, Any]) -> dict[str, Any]:
    """The same with absolute paths to images, so that a study goes on from wherever it is asked to."""
    entries = content.get("data")
    if not isinstance(entries, dict):
        return content
    made = {}
    for label, said in entries.items():
        made[label] = said
        if not isinstance(said, dict):
            continue
        made[label] = said = dict(said)
        name = said.get("name")
        if "path" not in said and isinstance(name, str) and name not in SOURCES and name and Path(name).exists():
            said["path"] = name  # as in `load_data`
        for key in ("path", "source_file"):
            if isinstance(said.get(key), str) and said[key]:
                said[key] = str(Path(said[key]).absolute())
    return content | {"data": made}


def _metrics(given: list[Any]) -> tuple[str, ...]:
    for metric in given:
        if not isinstance(metric, str):
            raise ValueError(f"metrics must be names, got {metric!r}")
    return tuple(dict.fromkeys(("infomec", *given)))


def _data_plan(label: str, said: dict[str, Any]) -> DataPlan:
    _check(said, DATA_OPTIONS | {"name": str}, f"data.{label}")
    if label in TAKEN:
        raise ValueError(f"data.{label}: the report has a file or a column of that name; choose another label")
    for pair in said.get("correlated", ()):
        if not (isinstance(pair, list) and len(pair) == 3):
            raise ValueError(f'data.{label}: correlated lists entries such as ["scale", "shape", 0.5], got {pair!r}')
    options = {key: value for key, value in said.items() if key != "name"}
    return DataPlan(label, said.get("name", label), options)


def _model_plan(label: str, said: dict[str, Any], shared: dict[str, Any], tune: bool) -> ModelPlan:
    _check(said, MODEL_OPTIONS | {"model": str, "grid": list}, f"models.{label}")
    name = require_known(said.get("model", label), MODELS, "model")
    options = shared | {key: value for key, value in said.items() if key in MODEL_OPTIONS}
    preset = MODELS[name]
    size = require_known(options.get("size", "full"), SIZES, "size")
    grid = said.get("grid", preset.grid if tune else ())
    numbers = [value for value in grid if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(grid) or not all(0 <= value < math.inf for value in numbers):
        raise ValueError(f"models.{label}: grid must be numbers that are not negative, got {grid}")
    if len({f"{value:g}" for value in grid}) < len(set(map(float, grid))):
        raise ValueError(f"models.{label}: values of a grid must differ in their first six digits, got {grid}")
    if "grid" not in said and preset.tuned == "weight_decay":  # the paper's is for the full size
        factor = SIZES[size][preset.objective].weight_decay_factor
        grid = [float(f"{factor * value:.6g}") for value in grid]
    return ModelPlan(label, name, tuple(dict.fromkeys(map(float, grid))), options)


def _check(said: Mapping[str, Any], allowed: Mapping[str, Any], where: str) -> None:
    for key, value in said.items():
        kind = allowed[require_known(key, allowed, f"entry of {where}")]
        kinds = kind if isinstance(kind, tuple) else (kind, int) if kind is float else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and not {bool, object} & set(kinds)):
            names = " or ".join(_KINDS[k] for k in kinds if not (k is int and float in kinds))
            raise ValueError(f"{where}: {key} must be {names}, got {value!r}")


_KINDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
