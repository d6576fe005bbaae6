"""One table of all runs of a study: a row per run, a column per setting and per score.

Everything that a report shows is an expression over this table, and so is most of what you may want to know:

    runs = qlae.study.collect("runs/paper-quick")
    runs[runs.counts].groupby(["data", "model"]).infom.agg(["mean", "std"])
    runs[runs.stage == "tune"].pivot_table("psnr", ["data", "model"], "value")
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import pandas as pd

from .._checks import require_known
from ..config import flatten
from ..metrics import count_informative
from ..runs.directory import Run
from .folder import RunState, StudyFolder, StudyState, read_state
from .plan import AGGREGATES, SCORED_WEIGHTS
from .tuning import AGREEMENT, run_agreements

FACTS = ("seconds", "steps", "num_samples", "protocol", "device")  # entries of results.json


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
    """Return what is known about a run: its place in the plan, its state, whether it counts, and its evaluation."""
    job = run.job
    candidate = next((c for c in state.candidates.get(job.pair, ()) if c.value == job.value), None)
    selected = candidate.selected if candidate else job.value is None
    only_reruns = aggregate == "reruns" and job.plan.rerun_seeds_of(job.model) > 0
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
