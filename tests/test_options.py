"""What goes beyond the paper's configurations: warm-up, other weights, fixed codebooks, any number of values."""

import pytest
import torch

from qlae.config import DataConfig
from qlae.data import data_config
from qlae.models.building import build_model
from qlae.objectives.objective import Weighting
from qlae.resolving import resolve
from qlae.schedules import warm_up_curve
from qlae.training.state import build_state

CPU = torch.device("cpu")


def small(data, model, **options):
    return resolve(model, data_config(data), 2, size="small", batch_size=8, **options)


def test_warm_up_is_linear():
    weigh = Weighting({"reconstruct": 2.0, "kl": 3.0}, {"kl": warm_up_curve(10)})
    terms = {"reconstruct": torch.tensor(5.0), "kl": torch.tensor(7.0)}
    for number, share in ((1, 0.1), (4, 0.4), (10, 1.0), (25, 1.0)):
        assert torch.allclose(weigh(terms, torch.tensor(float(number)))["loss"], torch.tensor(10.0 + 21.0 * share))
    assert weigh(terms, torch.tensor(1.0))["kl"] == 7.0  # terms are logged as they are
    assert Weighting({"kl": 3.0})(terms, torch.tensor(1.0))["loss"] == 21.0


@pytest.mark.parametrize("model", ["beta-vae", "beta-tcvae", "qlae", "qlinfowgan-gp"])
def test_warm_up_starts_without_the_latent_s_terms(tiny_data, model):
    """The first update of a million barely feels them, and gives what weights of 0 give."""
    options = {"warm_up": 10**9}
    config = small(tiny_data, model, **options)
    own = [
        name
        for name in config.objective.weights
        if name in ("kl", "total_correlation", "dimension_kl", "quantize", "commit")
    ]
    own += [name for name in config.objective.weights if name == "mutual_information"]
    without = small(tiny_data, model, weights=dict.fromkeys(own, 0.0))
    states = [build_state(c, tiny_data, CPU) for c in (config, without)]
    losses = []
    for state in states:
        state.update(1)
        losses.append(state.update.turns[0].window.values[0, 0])
    assert torch.allclose(*losses, atol=1e-5)


def test_warm_up_goes_on_exactly(tiny_data):
    config = small(tiny_data, "beta-vae", warm_up=6)
    whole, parts = (build_state(config, tiny_data, CPU) for _ in range(2))
    for step in range(1, 9):
        whole.update(step)
        if step == 3:
            parts.from_checkpoint(whole.to_checkpoint())
        if step > 3:
            parts.update(step)
    first, second = whole.to_checkpoint().tensors, parts.to_checkpoint().tensors
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_weights_may_be_chosen():
    config = resolve("beta-vae", DataConfig("shapes3d"), 6, weights={"kl": 4.0})
    assert config.objective.weights == {"reconstruct": 1.0, "kl": 4.0}
    with pytest.raises(ValueError, match=r'unknown loss term of beta-vae .kll.: did you mean "kl"'):
        resolve("beta-vae", DataConfig("shapes3d"), 6, weights={"kll": 4.0})
    with pytest.raises(ValueError, match="the weight of kl must be a finite number of at least 0"):
        resolve("beta-vae", DataConfig("shapes3d"), 6, weights={"kl": -4.0})


@pytest.mark.parametrize(
    ("model", "options"),
    [("ae", {"num_values": 5}), ("beta-vae", {"fixed_values": True}), ("fsq-ae", {"fixed_values": True})],
)
def test_options_that_a_model_has_no_use_for_are_told(model, options):
    with pytest.warns(UserWarning, match=f"{model} has no codebooks.*changes nothing"):
        resolve(model, DataConfig("shapes3d"), 6, **options)


@pytest.mark.parametrize("model", ["qlae", "qlae-global-codebook", "vq-vae", "qlinfowgan-gp"])
def test_fixed_values_stay(tiny_data, model):
    state = build_state(small(tiny_data, model, fixed_values=True), tiny_data, CPU)
    before = {name: p.detach().clone() for name, p in state.model.latent.named_parameters()}
    for step in range(1, 11):
        state.update(step)
    assert before
    assert all(torch.equal(before[name], p) for name, p in state.model.latent.named_parameters())


@pytest.mark.parametrize("num_values", [2, 37, [2, 3, 4, 5, 6]])
@pytest.mark.parametrize("model", ["qlae", "fsq-ae"])
def test_any_number_of_values_and_latents(tiny_data, model, num_values):
    config = small(tiny_data, model, num_latents=5, num_values=num_values)
    state = build_state(config, tiny_data, CPU)
    state.update(1)
    assert state.model.latent.num_values == config.latent.values_each
    assert len(config.latent.values_each) == 5


def test_numbers_of_values_that_do_not_fit_are_told(tiny_data):
    with pytest.raises(ValueError, match="2 entries for 4 latents"):
        build_model(small(tiny_data, "qlae", num_values=[3, 4]))
    with pytest.raises(ValueError, match="num_values takes one number, got"):
        build_model(small(tiny_data, "vq-vae", num_values=[3, 4, 5, 6]))
    with pytest.raises(ValueError, match="num_values must be a whole number of at least 1, got 0"):
        small(tiny_data, "qlae", num_values=[3, 4, 0, 6])
