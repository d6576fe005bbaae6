"""Files that version 0.1 wrote are still read: configs, checkpoints, exports, study folders, and names of modules."""

import dataclasses
import importlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import qlae
from qlae._moved import MODULES
from qlae.config import DataConfig, RunConfig
from qlae.data import data_config
from qlae.objectives.code_penalties import PENALTIES
from qlae.resolving import resolve
from qlae.runs.directory import Run
from qlae.training.trainer import train_run
from qlae.upgrade import upgrade_config, upgrade_tensors

RESULTS = Path(__file__).parents[1] / "results"
KNOWN_SOURCES = RESULTS / "known-sources"  # with loss weights of their own
CONFIGS = sorted(path for path in RESULTS.rglob("config.json") if not path.is_relative_to(KNOWN_SOURCES))
FIXTURES = Path(__file__).parent / "written_by_0.1"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.parent.relative_to(RESULTS)))
def test_committed_configs_are_those_of_today(path):
    """A config of 0.1 is the config that the same model, data and options give now."""
    content = json.loads(path.read_text())
    config = RunConfig.from_dict(content)
    again = RunConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    training, objective = config.training, config.objective
    today = resolve(
        config.model,
        config.data,
        len(config.data.source_names),
        size=config.networks.size,
        form=config.networks.form,
        steps=training.steps,
        batch_size=training.batch_size,
        schedule=training.schedule.kind,
        num_latents=config.latent.num_latents,
        num_values=getattr(config.latent, "num_values", None),
        weight_decay=training.optimizer.weight_decay,
        weights={name: objective.weights[name] for name in PENALTIES if name in objective.weights},
        weight_schedules={name: objective.schedules[name] for name in PENALTIES if name in objective.schedules},
        precision=training.precision,
        seed=training.seed,
    )
    assert config.difference(today) == {}


def test_there_are_committed_configs_of_every_kind():
    kinds = [RunConfig.from_dict(json.loads(path.read_text())) for path in CONFIGS]
    assert len(CONFIGS) > 40
    assert {type(config.latent).__name__ for config in kinds} >= {
        *("QuantizedConfig", "VectorQuantizedConfig", "GaussianConfig", "ContinuousConfig", "UniformConfig")
    }
    assert {type(config.objective).__name__ for config in kinds} == {
        *("AutoencodingConfig", "AdversarialConfig", "TripodConfig", "TotalCorrelationConfig")
    }


@pytest.mark.parametrize("name", ["qlae", "qlinfowgan-gp"])
def test_runs_of_0_1_load_resume_and_evaluate(tmp_path, name):
    run = tmp_path / name
    shutil.copytree(FIXTURES / name, run)
    expected = np.load(FIXTURES / f"{name}-expected.npz")
    model = qlae.load(run)
    data = qlae.load_data("shapes3d", resolution=8, sources=["floor hue", "shape"])
    images = np.asarray(data.images[:8])
    assert np.array_equal(model.encode(images), expected["codes"])
    if "critic" in expected.files:
        assert np.allclose(model.parts["critic"].weight.numpy(), expected["critic"])
    resumed = qlae.resume(run, steps=40, show=False, evaluate=False)
    assert resumed.config.training.steps == 40
    after = qlae.load(run, weights="raw").encode(images)
    assert (after == expected["codes_after_40"]).mean() >= 0.9  # all of them on the machine that wrote the files


def test_an_export_of_0_1_loads():
    model = qlae.load(FIXTURES / "export")
    assert model.latent.num_values == (4, 4, 4, 4)


def test_an_official_model_of_0_1_keeps_its_networks(tmp_path):
    """Biases in the style convolutions and ε = 1e-5, which the authors' code does not have."""
    model = qlae.load(FIXTURES / "export-official")
    assert model.origin.config.networks.revision == 1
    assert all(layer.conv.bias is not None for layer in model.decoder.layers)
    assert model.decoder.form.epsilon == 1e-5
    expected = np.load(FIXTURES / "export-official-expected.npz")
    data = qlae.load_data("shapes3d", resolution=8, sources=["floor hue", "shape"])
    assert np.array_equal(model.encode(np.asarray(data.images[:8])), expected["codes"])
    difference = model.decode(expected["codes"]).astype(int) - expected["decoded"]
    assert np.abs(difference).max() <= 1
    model.save_pretrained(tmp_path / "again")
    assert np.array_equal(qlae.load(tmp_path / "again").decode(expected["codes"]), model.decode(expected["codes"]))


def test_an_official_run_without_a_revision_resumes_exactly(tmp_path, tiny_data):
    """As versions before the revision wrote it, it goes on with the networks that it began with."""
    config = resolve("qlae", data_config(tiny_data), 2, size="small", form="official", steps=30, batch_size=8)
    training = dataclasses.replace(config.training, log_every=10)
    config = dataclasses.replace(config, networks=dataclasses.replace(config.networks, revision=1), training=training)
    for name, stops in (("whole", (30,)), ("parts", (10, 30))):
        run = Run(tmp_path / name)
        for steps in stops:
            planned = dataclasses.replace(config, training=dataclasses.replace(training, steps=steps))
            if run.config_path.exists():
                content = json.loads(run.config_path.read_text())
                del content["networks"]["revision"]
                run.config_path.write_text(json.dumps(content))
                qlae.resume(run.path, steps=steps, data=tiny_data, show=False, evaluate=False)
            else:
                train_run(run, planned, tiny_data, device="cpu", show=False)
    first, second = (load_file(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "parts"))
    assert "weights.decoder.layers.0.conv.bias" in first
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    with pytest.raises(ValueError, match=r"networks\.revision is 1, asked for 2"):
        qlae.train("qlae", tiny_data, out=tmp_path / "parts", size="small", form="official", steps=30, batch_size=8)


def test_only_official_networks_get_a_revision():
    config = resolve("qlae", DataConfig("shapes3d", 16), 2, size="small")
    content = config.to_dict()
    assert content["networks"]["revision"] == 2
    del content["networks"]["revision"]
    assert RunConfig.from_dict(content) == config
    content["networks"]["form"] = "official"
    assert RunConfig.from_dict(content).networks.revision == 1


def test_small_weight_decay_is_the_same_run(tiny_data):
    """0.1 wrote 0.30000000000000004."""
    config = resolve("qlae", data_config(tiny_data), 2, size="small")
    assert str(config.training.optimizer.weight_decay) == "0.3"
    old = json.loads((FIXTURES / "qlae" / "config.json").read_text())
    assert old["optimizer"]["weight_decay"] == 0.30000000000000004
    assert upgrade_config(old)["training"]["optimizer"]["weight_decay"] == 0.3


def test_warm_up_and_own_networks_of_0_1():
    old = json.loads((FIXTURES / "qlae" / "config.json").read_text())
    config = RunConfig.from_dict(old | {"warm_up": 50, "network": old["network"] | {"own": True}})
    assert config.objective.schedules == {"quantize": ((0, 0.0), (50, 1.0)), "commit": ((0, 0.0), (50, 1.0))}
    assert config.networks.own == ("encoder", "decoder")


def test_tensors_of_the_critic_are_renamed_and_others_are_not():
    names = ["weights.critic.weight", "average.critic.bias", "optimizer.encoder.critic.weight.first", "noise"]
    assert list(upgrade_tensors(dict.fromkeys(names))) == [
        *("weights.parts.critic.weight", "average.parts.critic.bias"),
        *("optimizer.encoder.parts.critic.weight.first", "noise"),
    ]


@pytest.mark.parametrize("old", MODULES)
def test_old_modules_are_found_with_a_warning(old):
    sys.modules.pop(f"qlae.{old}", None)
    with pytest.warns(DeprecationWarning, match=rf"qlae\.{old} is now qlae\.{MODULES[old]}"):
        importlib.import_module(f"qlae.{old}")


def test_old_names_of_configs_and_models_warn(tiny_data):
    config = resolve("qlinfowgan-gp", data_config(tiny_data), 2, size="small")
    with pytest.warns(DeprecationWarning, match="config.steps is now config.training.steps"):
        assert config.steps == config.training.steps
    with pytest.warns(DeprecationWarning, match="config.weights is now config.objective.weights"):
        assert config.weights == config.objective.weights
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = config.nonsense
    from qlae.models import build_model

    model = build_model(config)
    with pytest.warns(DeprecationWarning, match="model.critic is now"):
        assert isinstance(model.critic, torch.nn.Linear)


def test_committed_results_are_read():
    runs = [Run(path.parent) for path in CONFIGS if (path.parent / "results.json").exists()]
    assert all(0 <= run.results["averaged"]["infom"] <= 1 for run in runs)


def test_modules_inside_a_moved_package_are_the_moved_ones():
    sys.modules.pop("qlae.latents.quantized", None)
    with pytest.warns(DeprecationWarning, match=r"qlae\.latents\.quantized is now qlae\.models\.latents\.quantized"):
        module = importlib.import_module("qlae.latents.quantized")
    assert module.QuantizedLatent is qlae.QuantizedLatent


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_that_moved_elsewhere_than_their_module():
    from qlae.models.building import build_model

    assert importlib.import_module("qlae.model").build_model is build_model


def test_public_names_that_moved_are_found():
    import qlae.objectives
    import qlae.presets
    import qlae.training
    from qlae.objectives import players_of
    from qlae.pipeline import train

    with pytest.warns(DeprecationWarning, match=r"qlae\.training\.train is now qlae\.pipeline\.train"):
        assert qlae.training.train is train
    with pytest.warns(DeprecationWarning, match=r"build_players is now qlae\.objectives\.players_of"):
        assert qlae.objectives.build_players is players_of
    with pytest.warns(DeprecationWarning, match=r"qlae\.presets\.resolve is now qlae\.resolving\.resolve"):
        assert qlae.presets.resolve is resolve
    with pytest.raises(AttributeError, match=r"module 'qlae\.training' has no attribute 'trian'"):
        _ = qlae.training.trian
