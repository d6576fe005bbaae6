"""The order in which values are decided, and what `qlae.configure` says about them."""

import pytest

import qlae
from qlae.presets import MODELS, ModelSpec
from qlae.resolving import Origin

LEARNING_RATE = "training.optimizer.learning_rate"
WEIGHT_DECAY = "training.optimizer.weight_decay"


def origins(model="qlae", data="shapes3d", **options):
    configuration = qlae.configure(model, data, device="cpu", **options)
    return {name: str(origin) for name, origin in configuration.origins.items()}, configuration.values


def test_each_step_overrides_those_before_it():
    expected = [
        ({"size": "full"}, 1e-3, "model qlae"),
        ({"size": "small"}, 2e-3, "size small"),
        ({"size": "small", "recipe": "fast"}, 2e-3, "size small"),
        ({"size": "small", "recipe": "fast", "learning_rate": 0.5}, 0.5, "your option learning_rate"),
    ]
    for options, value, origin in expected:
        by_name, values = origins(**options)
        assert (values[LEARNING_RATE], by_name[LEARNING_RATE]) == (value, origin)
    by_name, values = origins(data="mpi3d", size="full", recipe="fast")
    assert (values[WEIGHT_DECAY], by_name[WEIGHT_DECAY]) == (0.001, "data set mpi3d")
    assert (values["training.steps"], by_name["training.steps"]) == (60_000, "recipe fast")
    assert by_name["training.schedule.kind"] == by_name["objective.weights.entropy"] == "recipe fast"


def test_factors_and_shares_say_how_they_follow():
    by_name, values = origins(data="mpi3d", size="small", recipe="fast")
    assert (values[WEIGHT_DECAY], by_name[WEIGHT_DECAY]) == (0.003, "data set mpi3d, times 3 for size small")
    assert by_name["training.schedule.decay_steps"] == "recipe fast, 50% of the updates"
    assert by_name["latent.num_latents"] == "data set mpi3d"
    assert by_name["latent.num_values"] == "size small"


def test_the_official_form_is_a_choice_about_the_model():
    by_name, _ = origins(form="official")
    changed = {name for name, origin in by_name.items() if origin == "form official"}
    assert changed >= {"training.optimizer.beta2", "training.optimizer.clip", "latent.reduction"}
    assert by_name["networks.form"] == "your option form"


def test_training_values_of_a_model_win_over_size_and_recipe_but_not_over_the_user():
    spec = ModelSpec("own", "quantized", MODELS["qlae"].weights, training={"learning_rate": 5e-4, "steps": 9})
    by_name, values = origins(spec, size="small", recipe="fast", steps=7)
    assert (values[LEARNING_RATE], by_name[LEARNING_RATE]) == (5e-4, "model own")
    assert (values["training.steps"], by_name["training.steps"]) == (7, "your option steps")


@pytest.mark.parametrize("model", MODELS)
def test_every_value_has_an_origin(model):
    configuration = qlae.configure(model, "shapes3d", size="small")
    assert set(configuration.origins) == set(configuration.values)
    layers = {origin.layer for origin in configuration.origins.values()}
    assert layers <= {"default", "model", "size", "recipe", "data set", "option"}
    assert configuration.origins["latent.kind"] == Origin("model", model)


@pytest.mark.parametrize("model", ["qlae", "qlinfowgan-gp", "factor-vae"])
def test_the_table_ends_with_what_a_training_takes(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("qlae.configuring.TIMED_SECONDS", 0.0)
    configuration = qlae.configure(model, qlae.load_data("shapes3d", resolution=16), size="small", steps=10, threads=1)
    lines = str(configuration).splitlines()
    assert any(line.split()[:2] == [LEARNING_RATE, str(configuration.values[LEARNING_RATE])] for line in lines)
    assert f"{configuration.requirements.num_parameters:,}" in lines[-3]
    assert "10 updates" in lines[-1]
    assert "timed" in lines[-1]
    assert configuration.requirements.memory > 20 * configuration.requirements.num_parameters
    assert configuration.requirements.seconds_per_update > 0
    assert not list(tmp_path.iterdir())


def test_a_large_batch_is_timed_in_part_and_leaves_the_random_numbers_alone(monkeypatch):
    import torch

    monkeypatch.setattr("qlae.configuring.SHORT_UPDATE", 0.0)
    monkeypatch.setattr("qlae.configuring.TIMED_SECONDS", 0.0)
    before = torch.get_rng_state()
    configuration = qlae.configure("ae", "sensors", size="small", threads=1)
    assert configuration.requirements.num_rows == configuration.config.training.batch_size // 16
    assert "scaled" in str(configuration)
    assert torch.equal(before, torch.get_rng_state())
