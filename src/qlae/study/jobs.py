"""From a plan to its runs: one job is one run directory."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..config import DataConfig, RunConfig, require_resolution
from ..data import data_config, load_again
from ..presets import MODELS, resolve, training_preset
from ..runs.directory import Run
from ..scoring.sample import SCORE_OF, require_scorable
from .plan import DataPlan, ModelPlan, Plan

DRAWN = ("num_images", "noise", "continuous", "correlated")  # entries of a recipe for which a seed is used
RENDERED = ("sources", "fixed", *DRAWN)  # those that decide rendered images
FROM_FILES = ("path", "source_file")


@dataclass(frozen=True)
class Job:
    """One run of a study: everything that a worker needs, as plain data.

    Attributes:
        stage: ``"tune"`` or ``"rerun"``.
        data, model: labels of the plan.
        value: of the tuned hyperparameter; None where the presets decide.
        recipe: what `qlae.data.load_again` takes beside name and resolution.
        options: what `qlae.train` takes beside model and data.
    """

    stage: str
    data: str
    model: str
    value: float | None
    seed: int
    data_name: str
    model_name: str
    resolution: int = 64
    recipe: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ("infomec",)
    num_samples: int = 10_000
    protocol: str = "paper"

    @property
    def name(self) -> str:
        """The run directory, relative to the study's ``runs`` folder."""
        value = "" if self.value is None else f"{MODELS[self.model_name].tuned.replace('_', '-')}-{self.value:g}-"
        return f"{self.data}/{self.model}/{value}s{self.seed}"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> "Job":
        return Job(**{**content, "metrics": tuple(content["metrics"])})


def tune_jobs(plan: Plan) -> list[Job]:
    """Each value of each grid, from the first seeds; all of a seed before the next, so that a half is of use."""
    return [
        make_job(plan, "tune", data, model, value, seed)
        for seed in range(plan.tune_seeds)
        for data in plan.data
        for model in plan.models
        for value in model.grid
    ]


def rerun_jobs(plan: Plan, selected: Mapping[tuple[str, str], float | None]) -> list[Job]:
    """The selected value of every data set and model from new seeds; those without a selection are left out."""
    return [
        make_job(plan, "rerun", data, model, selected[data.label, model.label], seed)
        for seed in range(plan.tune_seeds, plan.tune_seeds + plan.rerun_seeds)
        for data in plan.data
        for model in plan.models
        if (data.label, model.label) in selected
    ]


def make_job(plan: Plan, stage: str, data: DataPlan, model: ModelPlan, value: float | None, seed: int) -> Job:
    options = model.options | {"seed": seed}
    if value is not None and model.tuned == "weight_decay":
        options["weight_decay"] = value
    elif value is not None:
        options["weights"] = options.get("weights", {}) | {model.tuned: value}
    recipe = {key: said for key, said in data.options.items() if key != "resolution"}
    return Job(
        stage=stage,
        data=data.label,
        model=model.label,
        value=value,
        seed=seed,
        data_name=data.name,
        model_name=model.name,
        resolution=data.options.get("resolution", 64),
        recipe=recipe,
        options=options,
        metrics=plan.metrics,
        num_samples=plan.num_samples,
        protocol=plan.protocol,
    )


def require_possible(plan: Plan) -> None:
    """An error for what else would only fail run by run: data that are not there or have no scores, impossible configs.

    Images of one's own are not read for it.
    """
    for data in plan.data:
        jobs = [make_job(plan, "rerun", data, model, None, 0) for model in plan.models]
        try:
            config = _possible_data(jobs[0], plan)
        except (ValueError, TypeError) as error:
            raise ValueError(f"data.{data.label}: {error}") from None
        for job in jobs:
            sizes = job.options.get("num_values")
            told = {"num_latents": len(sizes)} if "path" in job.recipe and isinstance(sizes, list) else {}  # unread
            try:
                resolve(job.model_name, config, len(config.source_names), **told | job.options)
            except (ValueError, TypeError) as error:
                raise ValueError(f"models.{job.model}: {error}") from None


def _possible_data(job: Job, plan: Plan) -> DataConfig:
    """The data of a job as a config has them; of images that would have to be read, what is known without."""
    require_resolution(job.resolution)
    if "path" not in job.recipe:
        images = load_again(job.data_name, job.resolution, job.recipe)
        require_scorable(images, plan.metrics)
        return data_config(images)
    for key in FROM_FILES:
        if key in job.recipe and (not job.recipe[key] or not Path(job.recipe[key]).exists()):
            raise ValueError(f"{job.recipe[key]} does not exist" if job.recipe[key] else f"{key} is empty")
    return DataConfig(job.data_name, resolution=job.resolution, source_names=("unread",))


def num_updates(job: Job) -> int:
    """How many updates a job asks for."""
    preset = training_preset(job.options.get("size", "full"), MODELS[job.model_name].objective)
    return int(job.options.get("steps", preset.steps))


def lacks(job: Job, run: Run) -> str | None:
    """What a run directory lacks of all that a job asks for, in words. One with another run in it is an error."""
    if not run.is_begun:
        return "not trained yet"
    if not run.config_path.is_file():
        return "it has no config.json"
    try:
        config = run.config
    except ValueError as error:
        return str(error)
    _require_same(job, run, config)
    if not run.results_path.is_file():
        return "not evaluated yet"
    try:
        results = run.results
        return _lacking_training(job, run, results) or _lacking_scores(job, results)
    except (ValueError, KeyError, TypeError) as error:
        return f"its results cannot be read ({error})"


def lacks_scores_only(job: Job, run: Run) -> bool:
    """Whether an unfinished run is trained, and its sample is there to be scored again."""
    if not (run.is_begun and run.config_path.is_file() and run.sample_path.is_file()):
        return False
    _require_same(job, run, run.config)
    try:
        return _lacking_training(job, run, run.results) is None
    except (ValueError, KeyError, TypeError):
        return False


def _lacking_training(job: Job, run: Run, results: Mapping[str, Any]) -> str | None:
    """Whether a run is trained for as long, and evaluated on as many images, as a job asks for."""
    steps, num_samples = num_updates(job), min(job.num_samples, run.config.data.num_images)
    if results["steps"] < steps:
        return f"evaluated after {results['steps']:,} updates, the plan says {steps:,}"
    if results["num_samples"] != num_samples:
        return f"scored on {results['num_samples']:,} samples, the plan says {num_samples:,}"
    return None


def _lacking_scores(job: Job, results: Mapping[str, Any]) -> str | None:
    if results["protocol"] != job.protocol:
        return f"scored by the protocol {results['protocol']}, the plan says {job.protocol}"
    missing = [metric for metric in job.metrics if SCORE_OF.get(metric, metric) not in results["averaged"]]
    return f"not scored by {', '.join(missing)} yet" if missing else None


def _require_same(job: Job, run: Run, config: RunConfig) -> None:
    options = {"precision": config.training.precision} | job.options  # which the device decides, unless the plan does
    wanted = resolve(job.model_name, config.data, len(config.data.source_names), **options)
    differing = config.difference(wanted)
    held = {"resolution": config.data.resolution, **(config.data.recipe or {})}
    asked = {"resolution": job.resolution, **job.recipe}
    if not job.recipe.get("path"):  # images of one's own are named after their file
        held["data"], asked["data"] = config.data.name, job.data_name
    seed = ("seed",) if any(asked.get(key) for key in DRAWN) else ()
    for key in ("data", "resolution", *RENDERED, *seed):
        if (held.get(key) or None) != (asked.get(key) or None):
            differing[key] = held.get(key), asked.get(key)
    for key in FROM_FILES:  # which may have moved with the folder they are in
        if Path(held.get(key) or "").name != Path(asked.get(key) or "").name:
            differing[key] = held.get(key), asked.get(key)
    if config.training.steps > num_updates(job):
        differing["training.steps"] = config.training.steps, num_updates(job)
    if differing:
        told = "; ".join(f"{key} is {old!r}, the plan says {new!r}" for key, (old, new) in differing.items())
        raise ValueError(f"{run.path} holds another run: {told}. Choose another --out")


def other_data(data: DataConfig, run: Run) -> str | None:
    """How data differ from those that a run was trained on, where a plan cannot tell: files that have changed since."""
    held = run.config.data
    if data.source_names != held.source_names:
        return f"has the sources {', '.join(data.source_names)}, {run.path} has {', '.join(held.source_names)}"
    if data.num_images != held.num_images:
        return f"is on {data.num_images:,} images, {run.path} on {held.num_images:,}"
    if data.checksum and held.checksum and data.checksum != held.checksum:
        return f"is on other images than {run.path}"
    return None
