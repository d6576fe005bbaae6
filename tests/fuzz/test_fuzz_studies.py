"""Readers of plans and of study folders survive damaged files."""

import json
import shutil
from pathlib import Path

import pytest
from fuzzing import NUM_INPUTS, fuzz_bytes, fuzz_json
from rich.console import Console

from qlae.study import StudyFolder
from qlae.study.plan import read_plan
from qlae.study.report.summary import summarise
from qlae.study.status import describe_study, status

STUDY = Path(__file__).parents[2] / "results" / "study"
PLAN = {
    "steps": 100,
    "size": "small",
    "rerun_seeds": 1,
    "data": {"shapes3d": {"resolution": 16, "sources": ["shape"]}},
    "models": {"qlae": {"grid": [0.1, 0.3], "num_latents": 4, "weights": {"quantize": 0.1}}, "ae": {"grid": []}},
}


def test_plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_bytes(b'data = ["shapes3d"]\nmodels = ["qlae", "ae"]\nsteps = 100\nrerun_seeds = 1\nsize = "small"\n')
    fuzz_bytes(path, lambda: read_plan(path))


def test_plan_in_json(tmp_path):
    path = tmp_path / "plan.json"
    fuzz_json(path, PLAN, lambda: read_plan(path))


def test_dry_run(tmp_path):
    path = tmp_path / "plan.json"
    fuzz_json(
        path,
        PLAN,
        lambda: describe_study(read_plan(path), tmp_path / "out"),
        num_inputs=max(10, NUM_INPUTS // 5),
    )


@pytest.fixture
def folder(tmp_path):
    """A copy of a finished study."""
    return StudyFolder(shutil.copytree(STUDY, tmp_path / "study", ignore=shutil.ignore_patterns("report", "*.png")))


def shown(folder):
    with open("/dev/null", "w") as file:
        Console(file=file).print(status(folder))


def test_study(folder):
    fuzz_json(folder.plan_path, json.loads(folder.plan_path.read_text()), lambda: folder.plan)


def test_failure(folder):
    run = next(folder.path.glob("runs/*/*/*"))
    (run / "results.json").unlink()
    path = run / "failure.json"
    few = max(10, NUM_INPUTS // 50)
    fuzz_json(path, {"error": "ValueError: x", "trace": ""}, lambda: shown(folder), num_inputs=few)


def test_status(folder):
    few = max(10, NUM_INPUTS // 50)
    fuzz_json(folder.plan_path, json.loads(folder.plan_path.read_text()), lambda: shown(folder), num_inputs=few)


def test_summary(folder):
    path = next(folder.path.glob("runs/**/results.json"))
    few = max(10, NUM_INPUTS // 50)
    fuzz_json(path, json.loads(path.read_text()), lambda: summarise(folder), num_inputs=few)
