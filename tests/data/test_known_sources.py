"""The committed comparison on generated data: its plans, its runs and its scores belong together."""

import json
from pathlib import Path

import pytest

from qlae.runs.directory import Run
from qlae.study.jobs import require_runnable
from qlae.study.plan import read_plan

FOLDER = Path(__file__).parents[2] / "results/known-sources"
LABELS = {
    "qlae": "QLAE, 4 values",
    "qlae-10": "QLAE, 10 values",
    "ae": "AE",
    "beta-tcvae": "β-TCVAE, β = 1",
    "beta-tcvae-10": "β-TCVAE, β = 10",
}


@pytest.mark.parametrize("name", ["vectors", "series"])
def test_every_run_of_the_plans_is_there_and_in_the_scores(name):
    plan = read_plan(FOLDER / f"{name}.toml")
    require_runnable(plan)
    scores = json.loads((FOLDER / "scores.json").read_text())
    for data in plan.data:
        for model in plan.models:
            by_seed = scores[data.spec.name][LABELS[model.label]]
            assert sorted(by_seed) == ["1", "2", "3", "4", "5"]
            for seed, listed in by_seed.items():
                run = Run(FOLDER / "runs" / data.label / model.label / f"s{seed}")
                assert run.config.training.seed == run.results["seed"] == int(seed)
                assert run.config.model == model.name
                assert run.results["steps"] == run.config.training.steps
                assert {key: run.results["averaged"][key] for key in listed} == listed


def test_linear_baselines_were_scored_as_well():
    scores = json.loads((FOLDER / "scores.json").read_text())
    for data, num_sources in {"mixtures": 5, "sensors": 5, "pendulum": 4}.items():
        for count in (num_sources, 2 * num_sources):
            assert len(scores[data][f"PCA, {count}"]) == 1
            assert len(scores[data][f"ICA, {count}"]) == 5
