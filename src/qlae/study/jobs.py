"""The runs of a plan: each job is one run directory, and this module says whether that directory is finished."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..config import DataConfig, RunConfig
from ..data import DataSpec, data_config, unread_config
from ..metrics import find_metric
from ..observations import IMAGES, require_sides
from ..presets import MODELS, RECIPES
from ..resolving import resolve
from ..runs.directory import Run
from ..scoring.sample import require_scorable
from .plan import DataPlan, ModelPlan, Plan


@dataclass(frozen=True)
class Job:
    """One run of a study: a model, its data and a seed, which are scored as the plan says.

    Attributes:
        plan: the plan of the study.
        data: the data set.
        model: the model and its options.
        value: value of the tuned hyperparameter; None for the preset's.
        seed: seed of the run.
    """

    plan: Plan = field(repr=False)
    data: DataPlan
    model: ModelPlan
    value: float | None
    seed: int

    @property
    def stage(self) -> str:
        """``"tune"`` or ``"rerun"``."""
        return "tune" if self.model.grid and self.seed < self.plan.tune_seeds else "rerun"

    @property
    def name(self) -> str:
        """The path of the run directory inside the study's ``runs`` folder."""
        value = "" if self.value is None else f"{self.model.tuned.replace('_', '-')}-{self.value:g}-"
        return f"{self.data.label}/{self.model.label}/{value}s{self.seed}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics besides InfoMEC. Runs that only tune a hyperparameter, and count in no table, need none."""
        only_tunes = self.stage == "tune" and self.plan.aggregate == "reruns" and self.model.rerun_seeds > 0
        return () if only_tunes else self.plan.metrics

    @property
    def pair(self) -> tuple[str, str]:
        """The labels of the data set and the model."""
        return self.data.label, self.model.label

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments of `qlae.train`."""
        options = self.model.options | {"seed": self.seed}
        if self.value is None:
            return options
        if self.model.tuned == "weight_decay":
            return options | {"weight_decay": self.value}
        return options | {"weights": options.get("weights", {}) | {self.model.tuned: self.value}}

    @property
    def steps(self) -> int:
        """The number of updates."""
        options, size = self.model.options, self.model.options.get("size", "full")
        default = MODELS[self.model.name].training_preset(size).steps
        return int(options.get("steps", RECIPES[options.get("recipe", "paper")].steps.get(size, default)))


def planned_jobs(plan: Plan) -> list[Job]:
    """Return all runs that a plan may ask for: each value of each grid with each seed.

    All runs of a seed come before those of the next, so that an unfinished study is useful too. If tuning runs count in
    the tables (``aggregate``), models without a grid are run with the seeds of tuning as well, so that all models have
    the same number of seeds.
    """
    return [
        Job(plan, data, model, value, seed)
        for seed in range(plan.tune_seeds + max(model.rerun_seeds for model in plan.models))
        for data in plan.data
        for model in plan.models
        for value in model.grid or (None,)
        if (0 if model.grid or plan.aggregate != "reruns" else plan.tune_seeds)
        <= seed
        < plan.tune_seeds + model.rerun_seeds
    ]


def tune_jobs(plan: Plan) -> list[Job]:
    """Return the tuning runs: each value of each grid with the first seeds."""
    return [job for job in planned_jobs(plan) if job.stage == "tune"]


def rerun_jobs(plan: Plan, values: Mapping[tuple[str, str], float | None]) -> list[Job]:
    """Return the reruns, with seeds that tuning did not use.

    Values of the tuned hyperparameter are given by (data, model), None without a grid; other pairs are left out.
    """
    jobs = [job for job in planned_jobs(plan) if job.stage == "rerun" and job.pair in values]
    return [job for job in jobs if job.value == values[job.pair]]


def find_job(plan: Plan, name: str) -> Job:
    """Return the job of a plan whose run directory has a name, whatever value of a grid is selected."""
    for job in planned_jobs(plan):
        if job.name == name:
            return job
    raise ValueError(f"the plan {plan.name} has no run {name}; `qlae study PLAN --dry-run` lists them")


def require_runnable(plan: Plan) -> None:
    """Raise ``ValueError`` for plans that cannot succeed: missing or unscorable data, impossible configs.

    Data without sources are allowed: their runs are compared by agreement (`agreements`).

    Images from files are not read for this check.
    """
    for data in plan.data:
        try:
            config = _checked_data(data.spec, plan)
        except (ValueError, TypeError) as error:
            raise ValueError(f"data.{data.label}: {error}") from None
        for model in plan.models:
            sizes = model.options.get("num_values")
            # The number of sources in files is unknown here, so the list itself decides the number of latents.
            unread = {"num_latents": len(sizes)} if data.spec.paths() and isinstance(sizes, list) else {}
            try:
                resolve(model.name, config, len(config.source_names), **unread | model.options)
            except (ValueError, TypeError) as error:
                raise ValueError(f"models.{model.label}: {error}") from None


def _checked_data(spec: DataSpec, plan: Plan) -> DataConfig:
    """Return the data config of a plan's data after checking it; files are not read in full."""
    if spec.paths():
        spec.require_files()
        config = unread_config(spec)
    else:
        data = spec.load()
        if data.source_names:
            require_scorable(data, plan.metrics)
        config = data_config(data)
    if config.observations.kind == IMAGES:
        require_sides(*config.observations.shape[:2])
    return config


def missing_work(job: Job, run: Run, *, scores: bool = True) -> str | None:
    """Describe the work that a run directory lacks to fulfil its job; return None if it is finished.

    Without `scores`, the metrics and the protocol are ignored, since a finished training can be scored again.

    Raises:
        ValueError: if the directory holds a run that contradicts the job.
    """
    if not run.is_begun:
        return "not trained yet"
    try:
        config = run.config
    except (OSError, ValueError) as error:
        return str(error)
    _require_same_run(job, run, config)
    if not run.results_path.is_file():
        return "not evaluated yet"
    try:
        return _missing_results(job, config, run.results, scores)
    except (ValueError, KeyError, TypeError) as error:
        return f"its results cannot be read ({error})"


def _missing_results(job: Job, config: RunConfig, results: Mapping[str, Any], scores: bool) -> str | None:
    plan, num_samples = job.plan, min(job.plan.num_samples, config.data.num_training)
    if results["steps"] < job.steps:
        return f"evaluated after {results['steps']:,} updates, the plan says {job.steps:,}"
    if results["num_samples"] != num_samples:
        return f"scored on {results['num_samples']:,} samples, the plan says {num_samples:,}"
    if not scores:
        return None
    if results["protocol"] != plan.protocol:
        return f"scored with the protocol {results['protocol']}, the plan says {plan.protocol}"
    metrics = job.metrics if results["data"]["source_names"] else ()
    missing = [metric for metric in metrics if not find_metric(metric).is_in(results["averaged"])]
    return f"not scored with {', '.join(missing)} yet" if missing else None


def _require_same_run(job: Job, run: Run, config: RunConfig) -> None:
    """Raise ``ValueError`` if a run's config contradicts its job. A run with fewer updates can be resumed."""
    options = {"precision": config.training.precision} | job.options  # the device decides it unless the plan does
    differences = config.difference(resolve(job.model.name, config.data, len(config.data.source_names), **options))
    if config.training.steps > job.steps:
        differences["training.steps"] = config.training.steps, job.steps
    spec = job.data.spec
    details = config.data.difference(replace(config.data, name=spec.name, spec=spec))
    if details:
        details += " in the plan"
    else:
        details = "; ".join(f"{key} is {old!r}, the plan says {new!r}" for key, (old, new) in differences.items())
    if details:
        raise ValueError(f"{run.path} holds another run: {details}. Choose another folder with out=…")
