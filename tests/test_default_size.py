"""Without a GPU networks are small unless the caller, the model, the run or the plan says otherwise."""

import dataclasses

import pytest
import torch

import qlae
from qlae.cli import main
from qlae.presets import MODELS
from qlae.resolving import resolve
from qlae.study import StudyFolder, read_plan, run_study
from qlae.study.plan import plan_names
from qlae.study.run import sized_plan
from study.study_fixtures import InlineEngine, tiny_plan

OPTIONS = {"steps": 2, "batch_size": 4, "num_latents": 2, "device": "cpu", "evaluate": False}
SIZE = "networks.size"


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_the_device_decides_and_the_table_says_so(monkeypatch):
    configuration = qlae.configure("qlae", "shapes3d")
    assert (configuration.values[SIZE], str(configuration.origins[SIZE])) == ("small", "default, for this device")
    assert configuration.values["training.steps"] == 7_000
    asked = qlae.configure("qlae", "shapes3d", size="full")
    assert (asked.values[SIZE], str(asked.origins[SIZE])) == ("full", "your option size")
    own = dataclasses.replace(MODELS["qlae"], name="own", training={"size": "full"})
    assert str(qlae.configure(own, "shapes3d").origins[SIZE]) == "model own"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert qlae.configure("qlae", "shapes3d", precision="float32").values[SIZE] == "full"
    assert qlae.configure("qlae", "shapes3d", device="cpu").values[SIZE] == "small"


def test_a_training_prints_a_line_first_and_a_run_that_has_begun_keeps_its_size(tiny_data, tmp_path, capsys):
    qlae.train("ae", tiny_data, out=tmp_path / "run", **OPTIONS)
    assert capsys.readouterr().err.splitlines()[0].endswith("since there is no GPU; size='full' trains the paper's")
    qlae.train("ae", tiny_data, out=tmp_path / "full", show=False, size="full", **OPTIONS)
    run = qlae.train("ae", tiny_data, out=tmp_path / "full", **OPTIONS | {"steps": 3})
    assert run.config.networks.size == "full"
    assert "size" not in capsys.readouterr().err


def test_the_command_line_names_its_flag_and_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["train", "ae", "--resolution", "16", "--sources", "shape", "--device", "cpu", "--no-evaluate"]
    with pytest.raises(SystemExit) as stop:
        main([*command, "--steps", "1", "--batch-size", "4"])
    assert not stop.value.code
    assert "no GPU; --size full trains the paper's" in capsys.readouterr().err
    assert (tmp_path / "runs" / "shapes3d-ae-small-s0" / "config.json").is_file()


def test_several_seeds_print_the_line_once(tmp_path, capsys):
    data = qlae.load_data("shapes3d", resolution=16, sources=["shape", "floor hue"])
    qlae.train_seeds("ae", data, out=tmp_path / "seeds", seeds=2, **OPTIONS | {"evaluate": True})
    assert capsys.readouterr().err.count("no GPU") == 1


def test_a_study_keeps_the_size_that_it_began_with(tmp_path):
    plan = tiny_plan(models={"ae": {"grid": []}}, rerun_seeds=1)
    unsized = type(plan).from_content({k: v for k, v in plan.content.items() if k != "size"}, name="tiny")
    run_study(unsized, tmp_path / "study", InlineEngine())
    folder = StudyFolder(tmp_path / "study")
    assert folder.plan.content["size"] == "small"
    assert sized_plan(unsized, folder.path, has_gpu=True, show=False).content["size"] == "small"
    assert sized_plan(unsized, tmp_path / "new", has_gpu=True, show=False).content["size"] == "full"


def test_plans_that_come_with_qlae_name_their_size():
    assert not [name for name in plan_names() if read_plan(name).has_unsized_models]


def test_runs_that_ray_gives_a_gpu_are_full(capsys, monkeypatch):
    monkeypatch.setattr("qlae.configuring.TIMED_SECONDS", 0.0)
    for options, size in (([], "small"), (["--engine", "ray", "--gpus-per-run", "1"], "full")):
        with pytest.raises(SystemExit):
            main(["train", "ae", "--seeds", "2", "--resolution", "8", "--batch-size", "2", "--dry-run", *options])
        rows = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines() if line.startswith("networks."))
        assert rows[SIZE] == size


def test_a_config_without_a_device_is_full():
    data = qlae.data.data_config(qlae.load_data("shapes3d", resolution=16))
    assert resolve("qlae", data, 6).networks.size == "full"
