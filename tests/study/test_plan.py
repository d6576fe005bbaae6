"""Plans: reading them, errors that name the entry, and the order of the runs in the paper's stages."""

import json
from pathlib import Path

import numpy as np
import pytest
from study_fixtures import TINY, tiny_plan

from qlae.presets import MODELS
from qlae.study import Plan, plan_names, read_plan
from qlae.study.jobs import find_job, planned_jobs, rerun_jobs, tune_jobs


def test_the_paper_is_all_models_on_all_data_with_the_published_grids():
    plan = read_plan("paper")
    assert [data.label for data in plan.data] == ["shapes3d", "mpi3d", "falcor3d", "isaac3d"]
    assert {model.label for model in plan.models} == {name for name, preset in MODELS.items() if preset.published}
    assert (plan.tune_seeds, plan.rerun_seeds, plan.metrics) == (2, 5, ("infomec", "dci"))
    for model in plan.models:
        assert model.grid == tuple(MODELS[model.name].grid)
    tuned = tune_jobs(plan)
    assert len(tuned) == 2 * 4 * sum(len(MODELS[model.name].grid) for model in plan.models)
    assert all(job.steps == 200_000 for job in tuned)


@pytest.mark.parametrize("name", plan_names())
def test_named_plans_can_be_read(name):
    plan = read_plan(name)
    assert plan.about
    assert tune_jobs(plan)


def test_run_names_are_unique_and_the_stages_use_different_seeds():
    plan = read_plan("paper-quick")
    selected = {(data.label, model.label): (model.grid or (None,))[0] for data in plan.data for model in plan.models}
    jobs = tune_jobs(plan) + rerun_jobs(plan, selected)
    assert len({job.name for job in jobs}) == len(jobs)
    seeds = {stage: {job.seed for job in jobs if job.stage == stage} for stage in ("tune", "rerun")}
    assert not seeds["tune"] & seeds["rerun"]


def test_jobs_carry_the_tuned_value_where_it_belongs():
    plan = Plan.from_content({"data": ["shapes3d"], "models": ["qlae", "beta-vae", "vq-vae"]})
    by_model = {job.model.label: job for job in tune_jobs(plan)}
    assert set(by_model) == {"qlae", "beta-vae"}  # vq-vae has no grid
    assert by_model["qlae"].options["weight_decay"] == by_model["qlae"].value == 1.0
    assert by_model["beta-vae"].options["weights"] == {"kl": 10.0}
    assert by_model["beta-vae"].name == "shapes3d/beta-vae/kl-10-s1"
    assert find_job(plan, "shapes3d/beta-vae/kl-10-s1") == by_model["beta-vae"]


@pytest.mark.parametrize(
    ("changes", "when_tuning"),
    [
        ({}, ()),  # InfoMEC alone
        ({"aggregate": "authors"}, ("infomec", "dci")),  # tuning runs count in the tables
        ({"rerun_seeds": 0}, ("infomec", "dci")),
    ],
)
def test_further_metrics_are_computed_for_the_runs_that_count(changes, when_tuning):
    plan = tiny_plan(metrics=["dci"], models={"qlae": {"grid": [0.1, 0.3]}}, **changes)
    assert {job.metrics for job in tune_jobs(plan)} == {when_tuning}
    reruns = rerun_jobs(plan, {("shapes3d", "qlae"): 0.1})
    assert {job.metrics for job in reruns} == ({("infomec", "dci")} if plan.rerun_seeds else set())


def test_small_networks_scale_the_grid_of_weight_decays():
    plan = Plan.from_content({"data": ["shapes3d"], "models": ["qlae", "beta-vae"], "size": "small"})
    assert plan.models[0].grid == (0.003, 0.03, 0.3, 3.0)
    assert plan.models[1].grid == MODELS["beta-vae"].grid


def test_without_tuning_the_values_of_the_presets_are_used():
    plan = tiny_plan(tune=False, models=["qlae", "ae"])
    assert not tune_jobs(plan)
    jobs = rerun_jobs(plan, {("shapes3d", "qlae"): None, ("shapes3d", "ae"): None})
    assert [job.name for job in jobs][:2] == ["shapes3d/qlae/s1", "shapes3d/ae/s1"]
    assert "weight_decay" not in jobs[0].options


def test_labels_let_one_model_or_data_set_appear_twice():
    data = {"clean": {"name": "shapes3d"}, "noisy": {"name": "shapes3d", "noise": 0.1}}
    plan = tiny_plan(data=data, models={"wide": {"model": "qlae", "num_values": 12, "grid": [0.1]}})
    job = tune_jobs(plan)[1]
    assert (job.name, job.data.spec.name, job.data.spec.noise) == ("noisy/wide/weight-decay-0.1-s0", "shapes3d", 0.1)
    assert job.options["num_values"] == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modles": []}, 'plan has unknown fields: modles .did you mean "models"'),
        ({"models": {}}, 'models is missing: name at least one, such as models = \\["qlae"\\]'),
        ({"models": ["qlea"]}, "unknown model 'qlea': did you mean \"qlae\""),
        ({"models": {"qlae": {"grid": [-1]}}}, "models.qlae: grid must list numbers of at least 0"),
        ({"models": {"qlae": {"stpes": 3}}}, 'models.qlae has unknown fields: stpes .did you mean "steps"'),
        ({"data": {"../x": {}}}, "labels name folders, so they may contain letters, digits"),
        ({"data": {"shapes3d": {"gray": False}}}, "data.shapes3d: unknown entry 'gray': known: .*resolution"),
        ({"data": {"shapes3d": {"resolutoin": 32}}}, "data.shapes3d: resolutoin does not apply .* resolution"),
        ({"data": {"mine": {"name": [[0.1, 0.2]]}}}, "data.mine: name must be a string, got"),
        ({"data": {"mine": {"path": 3}}}, "data.mine: path must be a string, got 3"),
        ({"data": {"mine": 3}}, "plan.data.mine must be an object, got 3"),
        (
            {"data": {"shapes3d": {"resolution": 6.4}}},
            "data.shapes3d: .*resolution must be .* got 6.4",
        ),
        ({"steps": True}, "plan.steps must be .* got True"),
        ({"tune_seeds": 0}, "tune_seeds must be at least 1, got 0"),
        ({"near_db": -1}, "near_db must be at least 0"),
        ({"metrics": ["dcj"]}, "unknown metric 'dcj'"),
        ({"rerun_seeds": 0}, "rerun_seeds is 0 and ae has no grid"),
        ({"size": "tiny"}, "plan.size must be one of 'full', 'small', got 'tiny'"),
        ({"metrics": [["dci"]]}, r"plan.metrics\[0\] must be str, got \['dci'\]"),
        ({"models": {"qlae": {"grid": [float("inf")]}}}, "models.qlae.grid.* must be a finite number"),
        ({"models": {"qlae": {"grid": [0.12345671, 0.12345672]}}}, "must differ in their first six digits"),
        ({"models": ["qlae", "ae", "qlae"]}, "models has more than one qlae"),
        ({"data": {"aggregated": {"name": "shapes3d"}}}, "the report has a file or column of this name"),
        ({"data": {"shapes3d": {"correlated": [["shape", "scale"]]}}}, "data.shapes3d: .*correlated.* length 3, got 2"),
        ({"name": "../../x"}, "without slashes"),
    ],
)
def test_errors_name_the_entry(change, message):
    with pytest.raises(ValueError, match=message):
        Plan.from_content(TINY | change)


def test_files_in_toml_and_json(tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps(TINY))
    assert read_plan(tmp_path / "mine.json") == Plan.from_content(TINY, name="mine")
    (tmp_path / "mine.toml").write_text('data = ["shapes3d"]\nmodels = ["qlae"]\n')
    assert read_plan(tmp_path / "mine.toml").models[0].grid == MODELS["qlae"].grid
    (tmp_path / "bad.toml").write_text("data = [")
    with pytest.raises(ValueError, match=r"bad\.toml: "):
        read_plan(tmp_path / "bad.toml")
    with pytest.raises(ValueError, match="is not a file; name a TOML or JSON file, or one of ablations, negative"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="unknown plan 'papper': did you mean \"paper\""):
        read_plan("papper")


def test_a_model_may_have_a_number_of_seeds_of_its_own():
    models = {"a": {"model": "qlae", "rerun_seeds": 4}, "b": {"model": "ae"}, "c": {"model": "qlae", "rerun_seeds": 0}}
    models["c"]["grid"] = [0.1]
    plan = Plan.from_content({"data": ["shapes3d"], "models": models, "tune": False, "tune_seeds": 1, "rerun_seeds": 2})
    jobs = rerun_jobs(plan, {("shapes3d", label): None for label in models})
    assert {label: [job.seed for job in jobs if job.model.label == label] for label in models} == {
        **{"a": [1, 2, 3, 4], "b": [1, 2], "c": []}
    }
    with pytest.raises(ValueError, match=r"models\.b: rerun_seeds must be at least 0, got -1"):
        Plan.from_content({"data": ["shapes3d"], "models": {"b": {"model": "ae", "rerun_seeds": -1}}})
    with pytest.raises(ValueError, match="rerun_seeds is 0 and b has no grid"):
        Plan.from_content({"data": ["shapes3d"], "models": {"b": {"model": "qlae", "grid": [], "rerun_seeds": 0}}})


@pytest.mark.parametrize(
    ("name", "num_jobs", "steps"),
    [("leaderboard", 4 * (5 + 9 * 2), 60_000), ("leaderboard-small", 4 * (2 * 5 + 7 * 2), 7_000)],
)
def test_the_leaderboard_has_every_model_with_the_same_number_of_updates(name, num_jobs, steps):
    plan = read_plan(Path(__file__).parents[2] / "results" / name / "plan.toml")
    pairs = {(data.label, model.label): None for data in plan.data for model in plan.models}
    jobs = rerun_jobs(plan, pairs)
    assert len(jobs) == num_jobs
    assert {job.steps for job in jobs} == {steps}


def size_plan(**entry):
    return tiny_plan(data={"mine": {"path": "."} | entry})


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, 64),
        ({"resolution": 32}, 32),
        ({"resolution": "32"}, 32),
        ({"resolution": "60x90"}, "60x90"),
        ({"resolution": [60, 90]}, "60x90"),
        ({"resolution": "60x90", "grey": True}, "60x90x1"),
        ({"grey": True}, "64x64x1"),
    ],
)
def test_resolutions_are_those_of_the_command_line(entry, expected):
    spec = planned_jobs(size_plan(**entry))[0].data.spec
    assert spec.size.plain == expected
    assert set(spec.paths()) == {"path"}


def test_a_resolution_that_is_none_is_refused():
    message = (
        "data.mine: .*resolution must be an integer from 8 to 1024, or height and width, such as 60x90, got 60by90"
    )
    with pytest.raises(ValueError, match=message):
        size_plan(resolution="60by90")


def test_arrays_in_files_keep_their_size_unless_the_plan_says_one(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((4, 28, 28, 1), np.uint8))
    jobs = [planned_jobs(size_plan(path=str(path), **entry))[0] for entry in ({}, {"resolution": 64, "grey": True})]
    assert [job.data.spec.preview().shape for job in jobs] == [(28, 28, 1), (64, 64, 1)]
