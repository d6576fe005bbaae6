"""The runs of a plan: each job is one run directory, and this module says whether that directory is finished."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..config import DataConfig, RunConfig
from ..data import DataSpec, data_config, unread_config
from ..metrics import find_metric
from ..observations import IMAGES, require_sides
from ..presets import MODELS
from ..resolving import resolve
from ..runs.directory import Run
from ..scoring.sample import require_scorable
from .plan import DataPlan, ModelPlan, Plan


@dataclass(frozen=True)
class Job:
    """One run of a study: a model, its data, options, a seed, and how it is scored.

    Attributes:
        stage: ``"tune"`` or ``"rerun"``.
        data: label of the data set in the plan.
        model: label of the model in the plan.
        value: value of the tuned hyperparameter; None for the preset's.
        seed: seed of the run.
        model_name: name of the preset.
        spec: the description of the data.
        options: further arguments of `qlae.train`.
        metrics: metrics to compute.
        num_samples: number of images to score on.
        protocol: InfoMEC protocol.
    """

    stage: str
    data: str
    model: str
    value: float | None
    seed: int
    model_name: str
    spec: DataSpec
    options: dict[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ("infomec",)
    num_samples: int = 10_000
    protocol: str = "paper"

    @property
    def name(self) -> str:
        """The path of the run directory inside the study's ``runs`` folder."""
        value = "" if self.value is None else f"{MODELS[self.model_name].tuned.replace('_', '-')}-{self.value:g}-"
        return f"{self.data}/{self.model}/{value}s{self.seed}"

    @property
    def pair(self) -> tuple[str, str]:
        """The labels of the data set and the model."""
        return self.data, self.model


def tune_jobs(plan: Plan) -> list[Job]:
    """Return the tuning runs: each value of each grid with the first seeds.

    All runs of a seed come before those of the next, so that an unfinished study is useful too.
    """
    return [
        make_job(plan, "tune", data, model, value, seed)
        for seed in range(plan.tune_seeds)
        for data in plan.data
        for model in plan.models
        for value in model.grid
    ]


def rerun_jobs(plan: Plan, values: Mapping[tuple[str, str], float | None]) -> list[Job]:
    """Return the reruns, with seeds that tuning did not use.

    If tuning runs count in the tables (``aggregate``), models without a grid are run with the seeds of tuning as well,
    so that all models have the same number of seeds.

    Args:
        plan: the plan of the study.
        values: the value of the tuned hyperparameter by (data, model), None for the preset's; other pairs are left out.
    """
    return [
        make_job(plan, "rerun", data, model, values[data.label, model.label], seed)
        for seed in range(plan.tune_seeds + max(map(plan.rerun_seeds_of, plan.models)))
        for data in plan.data
        for model in plan.models
        if (data.label, model.label) in values and seed in _rerun_seeds(plan, model)
    ]


def _rerun_seeds(plan: Plan, model: ModelPlan) -> range:
    first = plan.tune_seeds if model.grid or plan.aggregate == "reruns" else 0
    return range(first, plan.tune_seeds + plan.rerun_seeds_of(model))


def find_job(plan: Plan, name: str) -> Job:
    """Return the job of a plan whose run directory has a name, whatever value of a grid is selected."""
    for data in plan.data:
        for model in plan.models:
            if name.startswith(f"{data.label}/{model.label}/"):
                for value in model.grid or (None,):
                    for seed in range(plan.tune_seeds + plan.rerun_seeds_of(model)):
                        stage = "tune" if model.grid and seed < plan.tune_seeds else "rerun"
                        job = make_job(plan, stage, data, model, value, seed)
                        if job.name == name:
                            return job
    raise ValueError(f"the plan {plan.name} has no run {name}; `qlae study PLAN --dry-run` lists them")


def make_job(plan: Plan, stage: str, data: DataPlan, model: ModelPlan, value: float | None, seed: int) -> Job:
    """Return the job of one run of a plan."""
    options = model.options | {"seed": seed}
    if value is not None and model.tuned == "weight_decay":
        options["weight_decay"] = value
    elif value is not None:
        options["weights"] = options.get("weights", {}) | {model.tuned: value}
    return Job(
        stage=stage,
        data=data.label,
        model=model.label,
        value=value,
        seed=seed,
        model_name=model.name,
        spec=data.spec,
        options=options,
        metrics=plan.metrics,
        num_samples=plan.num_samples,
        protocol=plan.protocol,
    )


def require_runnable(plan: Plan) -> None:
    """Raise ``ValueError`` for plans that cannot succeed: missing or unscorable data, impossible configs.

    Data without sources are allowed: their runs are compared by agreement (`agreements`).

    Images from files are not read for this check.
    """
    for data in plan.data:
        jobs = [make_job(plan, "rerun", data, model, None, 0) for model in plan.models]
        try:
            config = _checked_data(data.spec, plan)
        except (ValueError, TypeError) as error:
            raise ValueError(f"data.{data.label}: {error}") from None
        for job in jobs:
            sizes = job.options.get("num_values")
            # The number of sources in files is unknown here, so the list itself decides the number of latents.
            unread = {"num_latents": len(sizes)} if data.spec.paths() and isinstance(sizes, list) else {}
            try:
                resolve(job.model_name, config, len(config.source_names), **unread | job.options)
            except (ValueError, TypeError) as error:
                raise ValueError(f"models.{job.model}: {error}") from None


def _checked_data(spec: DataSpec, plan: Plan) -> DataConfig:
    """Return the data config of a plan's data after checking it; of files, only what is known without reading all."""
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


def num_updates(job: Job) -> int:
    """Return the number of updates of a job."""
    size, recipe = job.options.get("size", "full"), job.options.get("recipe", "paper")
    preset = MODELS[job.model_name].training_preset(size, recipe)
    return int(job.options.get("steps", preset.steps))


def missing_work(job: Job, run: Run) -> str | None:
    """Describe what a run directory lacks of what its job asks for; return None if it is finished.

    Raises:
        ValueError: if the directory holds a run that contradicts the job.
    """
    if not run.is_begun:
        return "not trained yet"
    if not run.config_path.is_file():
        return "it has no config.json"
    try:
        config = run.config
    except ValueError as error:
        return str(error)
    _require_same_run(job, run, config)
    if not run.results_path.is_file():
        return "not evaluated yet"
    try:
        results = run.results
        return _missing_training(job, run, results) or _missing_scores(job, results)
    except (ValueError, KeyError, TypeError) as error:
        return f"its results cannot be read ({error})"


def needs_scores_only(job: Job, run: Run) -> bool:
    """Return whether an unfinished run is trained and its sample can be scored again."""
    if not (run.is_begun and run.config_path.is_file() and run.sample_path.is_file()):
        return False
    _require_same_run(job, run, run.config)
    try:
        return _missing_training(job, run, run.results) is None
    except (ValueError, KeyError, TypeError):
        return False


def _missing_training(job: Job, run: Run, results: Mapping[str, Any]) -> str | None:
    """Describe whether a run has fewer updates, or another number of samples, than its job asks for."""
    steps, num_samples = num_updates(job), min(job.num_samples, run.config.data.num_images)
    if results["steps"] < steps:
        return f"evaluated after {results['steps']:,} updates, the plan says {steps:,}"
    if results["num_samples"] != num_samples:
        return f"scored on {results['num_samples']:,} samples, the plan says {num_samples:,}"
    return None


def _missing_scores(job: Job, results: Mapping[str, Any]) -> str | None:
    """Describe whether a run was scored with another protocol, or without some metric of its job."""
    if results["protocol"] != job.protocol:
        return f"scored with the protocol {results['protocol']}, the plan says {job.protocol}"
    if not results["data"]["source_names"]:
        return None  # metrics need sources
    missing = [metric for metric in job.metrics if not find_metric(metric).is_in(results["averaged"])]
    return f"not scored with {', '.join(missing)} yet" if missing else None


def _require_same_run(job: Job, run: Run, config: RunConfig) -> None:
    """Raise ``ValueError`` if a run's config contradicts its job. A run with fewer updates can be resumed."""
    options = {
        "precision": config.training.precision
    } | job.options  # the device decides the precision unless the plan does
    planned_config = resolve(job.model_name, config.data, len(config.data.source_names), **options)
    differences = config.difference(planned_config)
    planned_data = replace(config.data, name=job.spec.name, spec=job.spec)
    if difference := config.data.difference(planned_data):
        raise ValueError(f"{run.path} holds another run: {difference} in the plan. Choose another folder with out=…")
    if config.training.steps > num_updates(job):
        differences["training.steps"] = config.training.steps, num_updates(job)
    if differences:
        details = "; ".join(f"{key} is {old!r}, the plan says {new!r}" for key, (old, new) in differences.items())
        raise ValueError(f"{run.path} holds another run: {details}. Choose another folder with out=…")
