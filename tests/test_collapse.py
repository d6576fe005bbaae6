"""A run whose latents stop varying says so while it trains; the others train as if nobody had looked."""

import warnings

import pytest
import torch

from qlae.data import data_config
from qlae.data.batches import HostBatches
from qlae.models.latents import GaussianLatent
from qlae.pipeline import train
from qlae.resolving import resolve
from qlae.training import trainer
from qlae.training.state import build_state
from qlae.training.trainer import CollapseCheck, num_varying

OPTIONS = {"size": "small", "batch_size": 8, "device": "cpu", "show": False, "evaluate": False}


def small_state(data, model="qlae", **options):
    config = resolve(model, data_config(data), 2, size="small", batch_size=8, **options)
    return build_state(config, data, torch.device("cpu"))


@pytest.mark.parametrize("model", ["qlae", "qlinfowgan-gp"])
def test_a_latent_with_one_value_is_refused(tmp_path, tiny_data, model):
    for num_values in (1, [4, 1, 4, 4]):
        with pytest.raises(ValueError, match="num_values must be at least 2 for each latent"):
            train(model, tiny_data, out=tmp_path / "run", num_values=num_values, num_latents=4, **OPTIONS)


@pytest.mark.parametrize(
    ("model", "weights", "remedy"),
    [
        ("qlae", {}, "Lower weight_decay or learning_rate, or give latents more values by num_values$"),
        ("qlae", {"entropy": 1e-3}, "Lower weight_decay or learning_rate or the weight of entropy, or give latents"),
        ("ae", {}, "Lower weight_decay or learning_rate$"),
    ],
)
def test_the_remedy_is_one_that_the_model_has(tmp_path, tiny_data, monkeypatch, model, weights, remedy):
    monkeypatch.setattr(trainer, "num_varying", lambda *_: 0)
    with pytest.warns(UserWarning, match=remedy):
        train(model, tiny_data, out=tmp_path / "run", steps=200, weights=weights, **OPTIONS)


def test_a_run_that_learns_is_left_alone(tmp_path, tiny_data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train("qlae", tiny_data, out=tmp_path / "run", steps=300, **OPTIONS)


def test_one_look_is_not_enough_and_one_warning_is(monkeypatch, tiny_data):
    looks = iter([0, 3, 0, 0, 0, 0, 0, 0, 0, 0])
    monkeypatch.setattr(trainer, "num_varying", lambda *_: next(looks))
    config = resolve("qlae", data_config(tiny_data), 2, size="small", steps=1000)
    check = CollapseCheck(None, None, config)  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(50, 1001, 50):
            check.look(step)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "after update 400 of 1,000" in message
    assert "weight_decay" in message
    assert not {"--", "Ctrl-C"} & set(message.split())  # also a call from Python, and `QLAE.fit`, may be the reader's
    assert next(looks, None) is None


def test_latents_that_vary_are_counted(tiny_data):
    state = small_state(tiny_data, "ae", num_latents=4)
    images = tiny_data.images[:]
    on_host = HostBatches(images, 8, torch.Generator(), torch.device("cpu"))
    assert num_varying(state.model, state.update.batches) == num_varying(state.model, on_host) == 4
    last = list(state.model.encoder.parameters())[-2:]
    with torch.no_grad():
        last[0][:3] = 0
    assert num_varying(state.model, state.update.batches) == 1


def test_means_that_vanish_beside_the_noise_carry_nothing(tiny_data):
    state = small_state(tiny_data, "beta-vae", num_latents=3)
    last = list(state.model.encoder.parameters())[-2]
    with torch.no_grad():
        last[:3] *= 1e-4
    assert isinstance(state.model.latent, GaussianLatent)
    assert num_varying(state.model, state.update.batches) == 0


def test_looking_leaves_no_trace(tiny_data):
    looked_at, other = small_state(tiny_data), small_state(tiny_data)
    random = torch.get_rng_state()
    num_varying(looked_at.model, looked_at.update.batches)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training for module in looked_at.model.modules())
    for state in (looked_at, other):
        state.updates.advance(0, 1)
    assert all(torch.equal(a, b) for a, b in zip(looked_at.model.parameters(), other.model.parameters(), strict=True))
