"""A study on disk: ``study.json`` (the plan) and ``runs/`` (the run directories), which show the state of the study.

Nothing else is stored. A run is finished if its directory has all that its job asks for, failed if a ``failure.json``
there says why, and running while a process holds its lock. `collect` returns one table of all runs. Everything that a
report shows is an expression over this table, and so is most of what you may want to know:

    runs = qlae.study.collect("runs/paper-quick")
    runs[runs.counts].groupby(["data", "model"]).infom.agg(["mean", "std"])
    runs[runs.stage == "tune"].pivot_table("psnr", ["data", "model"], "value")
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from .._checks import require_known
from .._io import LOCK_FILE, TEMPORARY, is_locked, locked_directory, read_json, write_json
from .._version import __version__
from ..config import flatten
from ..metrics import count_informative
from ..runs.directory import Run
from .jobs import Job, missing_work, rerun_jobs, tune_jobs
from .plan import AGGREGATES, SCORED_WEIGHTS, Plan
from .tuning import AGREEMENT, Candidate, run_agreements, select

STATES = ("done", "running", "failed", "waiting")
FAILURE_FILE = "failure.json"
FACTS = ("seconds", "steps", "num_samples", "protocol", "device")  # entries of results.json


class StudyFolder:
    """The folder of a study.

    Args:
        path: the folder; it need not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> "StudyFolder":
        """Return the folder of an existing study; raise ``ValueError`` if there is none at ``path``."""
        folder = StudyFolder(path)
        if not is_study(path):
            problem = "has no study.json" if folder.path.is_dir() else "does not exist"
            raise ValueError(
                f"{folder.path} is not a study: it {problem}; `qlae study PLAN --out {folder.path}` starts one there"
            )
        return folder

    @property
    def plan_path(self) -> Path:
        return self.path / "study.json"

    @property
    def report_path(self) -> Path:
        return self.path / "report"

    @property
    def plan(self) -> Plan:
        """The plan; a ``ValueError`` names the modules that the study imported if the plan cannot be read."""
        content = read_json(self.plan_path)
        try:
            return Plan.from_content(content["plan"], name=content["name"])
        except (KeyError, TypeError, ValueError) as error:
            modules = " ".join(f"--import {name}" for name in self.imports)
            hint = f"; the study was run with {modules}, which this command may need as well" if modules else ""
            raise ValueError(f"{self.plan_path}: {error}{hint}") from None

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that the study's last driver imported. Reading them executes nothing."""
        names = read_json(self.plan_path).get("imports")
        return tuple(map(str, names)) if isinstance(names, list) else ()

    def run(self, name: str) -> Run:
        """Return the run directory of a run, whether it exists or not."""
        return Run(self.path / "runs" / name)

    def require_free(self) -> None:
        """Raise ``ValueError`` if the folder holds files but no study."""
        if (
            self.path.is_dir()
            and not self.plan_path.is_file()
            and any(file.name != LOCK_FILE and file.suffix != TEMPORARY for file in self.path.iterdir())
        ):
            raise ValueError(f"{self.path} is not empty and is not a study; choose another folder with out=…")

    def write_plan(self, plan: Plan, imports: Sequence[str] = ()) -> None:
        """Write the plan, which makes the folder a study.

        Args:
            plan: the plan.
            imports: the modules that the plan's models come from. They are recorded so that errors can name them; they
                are never imported because they stand in this file.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        content = {"qlae": __version__, "name": plan.name, "plan": plan.content}
        write_json(self.plan_path, content | ({"imports": list(imports)} if imports else {}))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study for the length of a ``with`` block; raise ``ValueError`` if another process is running it."""
        message = f"{self.path} is being run by another process ({{holder}}); wait for it, stop it, or choose another"
        with locked_directory(self.path, f"{message} folder with out=…"):
            yield

    def is_driven(self) -> bool:
        """Return whether a process on this machine is running the study now."""
        return is_locked(self.path)


def is_study(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a study."""
    return (Path(path) / "study.json").is_file()


def write_failure(run: Run, error: str, trace: str = "") -> None:
    """Record in a run directory why the run failed; a run that starts again removes the record."""
    run.path.mkdir(parents=True, exist_ok=True)
    write_json(run.path / FAILURE_FILE, {"error": error, "trace": trace})


def read_failure(run: Run) -> str | None:
    """Return why a run failed; None if it did not."""
    path = run.path / FAILURE_FILE
    try:
        return str(read_json(path)["error"]) if path.is_file() else None
    except (ValueError, KeyError, TypeError):
        return f"{path} cannot be read"


@dataclass
class RunState:
    """The state of one run of a study.

    Attributes:
        job: the run.
        state: one of `STATES`.
        error: why it failed, or why a run that has results must run again.
        results: its results if it is done.
        contradicts: whether the directory holds another run than the plan asks for.
    """

    job: Job
    state: str = "waiting"
    error: str | None = None
    results: dict[str, Any] | None = None
    contradicts: bool = False


def read_run_state(job: Job, run: Run) -> RunState:
    """Return the state of a run from its directory."""
    try:
        missing = missing_work(job, run)
    except ValueError as error:
        return RunState(job, error=str(error), contradicts=True)
    if missing is None:
        return RunState(job, "done", results=run.results)
    if is_locked(run.path):
        return RunState(job, "running")
    if (failure := read_failure(run)) is not None:
        return RunState(job, "failed", failure)
    return RunState(job, error=missing if run.results_path.is_file() else None)


@dataclass
class StudyState:
    """The state of a study.

    Attributes:
        plan: its plan.
        runs: the state of each run by name.
        candidates: the values of each grid whose tuning is over by (data, model); none if all its runs failed.
    """

    plan: Plan
    runs: dict[str, RunState]
    candidates: dict[tuple[str, str], list[Candidate]] = field(default_factory=dict)

    def selected_values(self, data: str, model: str) -> list[float]:
        """Return the selected value of a model on a data set as a list; it is empty if nothing is tuned (yet)."""
        return [candidate.value for candidate in self.candidates.get((data, model), ()) if candidate.selected]

    def rerun_values(self) -> dict[tuple[str, str], float | None]:
        """Return the values for the reruns by (data, model): the selected one, or None if nothing is tuned.

        Pairs whose selection is not made yet are absent.
        """
        return {
            (data.label, model.label): value
            for data in self.plan.data
            for model in self.plan.models
            for value in (self.selected_values(data.label, model.label) if model.grid else [None])
        }

    def names(self, state: str) -> list[str]:
        """Return the names of the runs in a state."""
        return [name for name, run in self.runs.items() if run.state == state]

    def require_consistent(self) -> None:
        """Raise ``ValueError`` if a run directory contradicts the plan."""
        for run in self.runs.values():
            if run.contradicts:
                raise ValueError(run.error)


def read_state(plan: Plan, folder: StudyFolder) -> StudyState:
    """Return the state of a study from its run directories."""
    state = StudyState(plan, {job.name: read_run_state(job, folder.run(job.name)) for job in tune_jobs(plan)})
    for data in plan.data:
        for model in plan.models:
            pair = data.label, model.label
            runs = [run for run in state.runs.values() if run.job.pair == pair]
            if model.grid and all(run.state in ("done", "failed") for run in runs):  # tuning is over
                scores = _grid_scores([run for run in runs if run.results], folder, plan.scored_weights)
                state.candidates[pair] = select(scores, plan.near_db if model.reconstructs else None)
    reruns = rerun_jobs(plan, state.rerun_values())
    state.runs |= {job.name: read_run_state(job, folder.run(job.name)) for job in reruns}
    _leave_out_other_images(state, folder)
    return state


def _grid_scores(runs: Sequence[RunState], folder: StudyFolder, weights: str) -> list[tuple[float, dict[str, Any]]]:
    """Return value and scores of the finished runs of a grid; on data without sources, with their agreement."""
    results = [run.results or {} for run in runs]
    agreements = {}
    if not all(result["data"]["source_names"] for result in results):
        agreements = run_agreements([folder.run(run.job.name) for run in runs], weights)
    return [
        (run.job.value or 0.0, {AGREEMENT: agreements.get(folder.run(run.job.name).path, 0.0)} | result[weights])
        for run, result in zip(runs, results, strict=True)
    ]


def _leave_out_other_images(state: StudyState, folder: StudyFolder) -> None:
    """Leave out runs that saw other images than the first run on their data set."""
    first_run: dict[str, Run] = {}
    for name in state.names("done"):
        job, run = state.runs[name].job, folder.run(name)
        first = first_run.setdefault(job.data.label, run)
        if difference := run.config.data.difference(first.config.data):
            error = (
                f"{run.path} and {first.path} are on different data: {difference}; move the wrong one out of the "
                "study, or choose another folder with out=…"
            )
            state.runs[name] = RunState(job, error=error, contradicts=True)


def collect(
    folder: str | os.PathLike[str] | StudyFolder, *, scored_weights: str | None = None, aggregate: str | None = None
) -> pd.DataFrame:
    """Return the runs of a study as a table, from their directories.

    Args:
        folder: the folder of the study.
        scored_weights: the weights whose scores have plain names (``infom``), ``"averaged"`` or ``"raw"``; by default
            those of the plan. Scores of the other weights have a prefix (``raw_infom``).
        aggregate: which runs count in tables, as in a plan; by default as the plan says.

    Returns:
        One row per planned run, finished or not:

        - ``run`` (its directory below ``runs``), ``data``, ``model``, ``stage``, ``seed``, the ``preset`` of
          the model, and the ``value`` of the tuned ``hyperparameter``, which is missing if nothing is tuned
        - ``state`` (``"done"``, ``"running"``, ``"failed"`` or ``"waiting"``) and ``error``
        - ``selected``: whether the run has the selected value; ``near``: whether the value was eligible; ``counts``:
          whether the run counts in tables
        - ``weights`` (those of the plain scores), facts of the evaluation such as ``seconds`` and ``warnings``
        - settings, named as in ``config.json``, such as ``training.batch_size``
        - scores, named as in ``results.json``. On data without sources, ``agreement`` compares the runs that count,
          ``tuning_agreement`` those of a grid.
    """
    folder = folder if isinstance(folder, StudyFolder) else StudyFolder.open(folder)
    plan = folder.plan
    weights = require_known(scored_weights or plan.scored_weights, SCORED_WEIGHTS, "scored_weights")
    aggregate = require_known(aggregate or plan.aggregate, AGGREGATES, "aggregate")
    state = read_state(plan, folder)
    facts, settings, scores = [], [], []
    for name, run in state.runs.items():
        facts.append(_facts(run, state, aggregate) | {"weights": weights})
        settings.append(_settings(folder.run(name)) if run.results else {})
        scores.append(_scores(run.results or {}, weights))
    runs = pd.concat([pd.DataFrame(part) for part in (facts, settings, scores)], axis=1)
    return _with_agreements(runs, folder, weights, plan.scored_weights)


def _facts(run: RunState, state: StudyState, aggregate: str) -> dict[str, Any]:
    """Return a summary of a run: its place in the plan, its state, whether it counts, and its evaluation."""
    job = run.job
    candidate = next((c for c in state.candidates.get(job.pair, ()) if c.value == job.value), None)
    selected = candidate.selected if candidate else job.value is None
    only_reruns = aggregate == "reruns" and job.model.rerun_seeds > 0
    facts = {
        "run": job.name,
        "data": job.data.label,
        "model": job.model.label,
        "stage": job.stage,
        "seed": job.seed,
        "preset": job.model.name,
        "hyperparameter": job.model.tuned if job.model.grid else None,
        "value": job.value,
        "state": run.state,
        "error": run.error,
        "selected": selected,
        "near": candidate.near if candidate and job.stage == "tune" else None,
        "counts": run.state == "done" and (job.stage == "rerun" or (selected and not only_reruns)),
    }
    if run.results:
        facts |= {key: run.results.get(key) for key in FACTS}
        facts["num_sources"] = len(run.results["data"]["source_names"])
        facts["warnings"] = "\n".join(run.results.get("warnings", ())) or None
    return facts


def _settings(run: Run) -> dict[str, Any]:
    """Return the config of a run as one flat mapping; lists are written as JSON."""
    flat = flatten(run.config.to_dict())
    del flat["model"]  # the column `preset`
    return {key: json.dumps(value) if isinstance(value, list | tuple) else value for key, value in flat.items()}


def _scores(results: Mapping[str, Any], scored: str) -> dict[str, Any]:
    """Return the numbers and words of all scores; those of other weights have their name as a prefix."""
    columns: dict[str, Any] = {}
    for weights in (scored, *(other for other in SCORED_WEIGHTS if other != scored)):
        scores = results.get(weights) or {}
        prefix = "" if weights == scored else f"{weights}_"
        columns |= {prefix + key: value for key, value in scores.items() if isinstance(value, int | float | str)}
        if count := count_informative(scores):
            columns |= {f"{prefix}informative": count.informative, f"{prefix}active": count.active}
    return columns


def _with_agreements(runs: pd.DataFrame, folder: StudyFolder, weights: str, tuned_weights: str) -> pd.DataFrame:
    """Add the agreement between runs on data without sources.

    The runs that count are compared with all others on their data set, tuning runs with those of the same grid.
    """
    without = runs[(runs.state == "done") & (runs.get("num_sources", 1) == 0)]
    compared = [(AGREEMENT, weights, rows) for _, rows in without[without.counts].groupby("data")]
    tuning = without[without.stage == "tune"].groupby(["data", "model"])
    compared += [(f"tuning_{AGREEMENT}", tuned_weights, rows) for _, rows in tuning]
    for column, of_weights, rows in compared:
        agreements = run_agreements([folder.run(name) for name in rows.run], of_weights)
        for place, name in rows.run.items():
            runs.loc[place, column] = agreements.get(folder.run(name).path, float("nan"))
    return runs
