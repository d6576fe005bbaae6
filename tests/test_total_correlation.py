"""FactorVAE and FactorQVAE: the two players by hand, a total correlation that is known, and the published settings."""

import dataclasses
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from qlae.config import DataConfig
from qlae.data import data_config
from qlae.models import build_model
from qlae.models.latents import RelaxedLatent
from qlae.objectives.total_correlation import Factorisation, TotalCorrelationConfig, permuted
from qlae.registry import OBJECTIVES
from qlae.resolving import resolve
from qlae.training.state import build_state

FACTOR = ("factor-vae", "factor-qvae")
ONE = torch.tensor(1.0)


def noise(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(data, model, **options):
    return resolve(model, data_config(data), 2, **{"size": "small", "batch_size": 8} | options)


def test_permuting_keeps_each_latent_and_breaks_their_dependence():
    features = torch.randn(500, 1, 1, generator=noise()).expand(-1, 3, 2) * torch.tensor([1.0, -1.0])
    mixed = permuted(features, noise(1))
    for j in range(3):
        assert torch.equal(mixed[:, j, 0].sort().values, features[:, j, 0].sort().values)
    assert torch.equal(mixed[..., 0], -mixed[..., 1])  # the numbers of one latent stay together
    assert torch.corrcoef(mixed[..., 0].T)[0, 1].abs() < 0.15
    assert torch.equal(permuted(features, noise(1)), mixed)


@pytest.mark.parametrize("model", FACTOR)
def test_terms_by_hand(tiny_data, model):
    config = small(tiny_data, model)
    built = build_model(config)
    autoencoder, discriminator = OBJECTIVES.build(config.objective).players(built)
    images = torch.rand(8, 3, 16, 16, generator=noise())
    terms = autoencoder.loss(images, noise(1), ONE)

    latent, features = built.latent.with_features(built.encoder(images[:4]), noise(1), ONE)
    guesses = built.parts["discriminator"](features.flatten(1))
    difference = (guesses[:, 0] - guesses[:, 1]).mean()
    logits = built.decoder(latent.z)
    if model == "factor-vae":
        expected = {
            "reconstruct": F.binary_cross_entropy_with_logits(logits, images[:4]),
            "total_correlation": difference / 768,
            "kl": latent.losses["kl"] / 768,
        }
    else:
        expected = {
            "reconstruct": F.mse_loss(logits.sigmoid(), images[:4]),
            "total_correlation": difference,
            "kl": latent.losses["kl"],
        }
    for name, value in expected.items():
        assert torch.allclose(terms[name], value, atol=1e-6), name
    weights = config.objective.weights
    assert torch.allclose(terms["loss"], sum(weights[name] * value for name, value in expected.items()), atol=1e-6)

    # The autoencoder sees the first half of the batch only, the discriminator both.
    other = images.clone()
    other[4:] = 0
    assert torch.equal(autoencoder.loss(other, noise(1), ONE)["loss"], terms["loss"])
    before = discriminator.loss(images, noise(2), ONE)["loss"]
    assert not torch.equal(discriminator.loss(other, noise(2), ONE)["loss"], before)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        torch.autograd.grad(before, list(built.encoder.parameters()))


def test_the_discriminator_learns_a_known_total_correlation():
    """Two Gaussian latents of correlation ρ have a total correlation of −log(1 − ρ²) / 2."""
    correlation = 0.9

    class Known(torch.nn.Module):
        num_latents, num_features = 2, 1

        def with_features(self, x, generator, number):
            z = torch.randn(len(x), 2, generator=generator)
            z[:, 1] = correlation * z[:, 0] + math.sqrt(1 - correlation**2) * z[:, 1]
            return None, z.unsqueeze(-1)

    torch.manual_seed(0)
    model = torch.nn.Module()
    model.encoder, model.latent = torch.nn.Identity(), Known()
    net = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.LeakyReLU(0.2), torch.nn.Linear(64, 64))
    net.extend([torch.nn.LeakyReLU(0.2), torch.nn.Linear(64, 2)])
    model.parts = {"discriminator": net}
    game = Factorisation(model, TotalCorrelationConfig({"reconstruct": 1.0}))
    optimizer, generator = torch.optim.Adam(net.parameters(), 3e-3), noise()
    images = torch.zeros(1024, 1)
    for _ in range(400):
        optimizer.zero_grad()
        game.discriminator_terms(images, generator, ONE)["loss"].backward()
        optimizer.step()
    _, features = model.latent.with_features(torch.zeros(20_000, 1), generator, ONE)
    guesses = net(features.flatten(1))
    estimate = (guesses[:, 0] - guesses[:, 1]).mean().item()
    assert estimate == pytest.approx(-math.log(1 - correlation**2) / 2, abs=0.12)


def test_odd_batches_and_batches_of_one(tiny_data):
    built = build_model(small(tiny_data, "factor-vae"))
    game = Factorisation(built, TotalCorrelationConfig({"reconstruct": 1.0}))
    assert torch.isfinite(game.discriminator_terms(torch.rand(3, 3, 16, 16), noise(), ONE)["loss"])
    with pytest.raises(ValueError, match="batch_size must be at least 2, got 1"):
        game.autoencoder_terms(torch.rand(1, 3, 16, 16), noise(), ONE)


def test_published_settings_of_factor_vae():
    config = resolve("factor-vae", DataConfig("shapes3d"), 6)
    assert config.objective.weights == {"reconstruct": 1.0, "kl": 1.0, "total_correlation": 7.0}
    optimizer = config.training.optimizer
    assert (optimizer.learning_rate, optimizer.beta1, optimizer.beta2, optimizer.weight_decay) == (1e-4, 0.9, 0.999, 0)
    assert config.training.batch_size == 2 * 64
    rival = config.objective.discriminator
    assert (rival.learning_rate, rival.beta1, rival.beta2, rival.weight_decay) == (1e-4, 0.5, 0.9, 0.0)
    layers = [m for m in build_model(config).parts["discriminator"] if isinstance(m, torch.nn.Linear)]
    assert [layer.out_features for layer in layers] == [1000] * 6 + [2]


@pytest.mark.parametrize(
    ("data", "kl", "gamma"), [("shapes3d", 1e-3, 1e-4), ("mpi3d", 5e-5, 1e-6), ("isaac3d", 5e-5, 5e-5)]
)
def test_published_settings_of_factor_qvae(data, kl, gamma):
    config = resolve("factor-qvae", DataConfig(data), 6)
    assert config.objective.weights == {"reconstruct": 1.0, "kl": kl, "total_correlation": gamma}
    assert (config.latent.num_values, config.training.batch_size) == (64, 2 * 256)
    schedule = config.training.schedule
    assert (schedule.kind, schedule.decay_steps, config.training.steps) == ("cosine", 50_000, 50_000)
    assert schedule.floor * config.training.optimizer.learning_rate == pytest.approx(1.25e-6)
    shorter = resolve("factor-qvae", DataConfig(data), 6, steps=300)
    assert shorter.training.schedule.decay_steps == 300
    constant = resolve("factor-qvae", DataConfig(data), 6, schedule="constant")
    assert constant.training.schedule.is_constant


def test_the_discriminator_of_factor_qvae_follows_the_schedule_of_the_run(tiny_data):
    for model, follows in (("factor-qvae", True), ("factor-vae", False)):
        options = {} if follows else {"schedule": "cosine"}
        state = build_state(small(tiny_data, model, steps=10, **options), tiny_data, torch.device("cpu"))
        for step in (1, 2, 8):
            state.update(step)
        autoencoder, discriminator = state.update.turns
        assert autoencoder.rates.factors[0] < 0.7
        assert (discriminator.rates.factors[0] == autoencoder.rates.factors[0]) == follows
        assert {config.learning_rate for _, config in discriminator.optimizer._groups} == {2e-3}


# --- the latent space of FactorQVAE --------------------------------------------------------------------------------


def relaxed(num_values: int = 4, **options) -> RelaxedLatent:
    latent = RelaxedLatent(3, num_values, **options)
    with torch.no_grad():
        latent.values.copy_(torch.linspace(-1.5, 1.5, num_values))
    return latent


def test_relaxed_values_in_training_and_nearest_ones_in_evaluation():
    latent, x = relaxed(), torch.tensor([[-2.0, 0.4, 0.6], [1.2, -0.1, 9.0]])
    output, weights = latent.with_features(x, noise(), ONE)
    assert weights.shape == (2, 3, latent.num_features)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3))
    assert torch.allclose(output.z, (weights * latent.values).sum(-1))
    assert torch.equal(output.codes, weights.argmax(-1))
    latent.eval()
    output = latent(x)
    assert output.codes.tolist() == [[0, 2, 2], [3, 1, 3]]
    assert torch.equal(output.z, latent.to_values(output.codes))
    assert torch.equal(output.codes, latent.to_codes(x))
    assert output.z.tolist() == [[-1.5, 0.5, 0.5], [1.5, -0.5, 1.5]]


def test_choices_have_the_posterior_s_probabilities():
    latent, x = relaxed(), torch.tensor([[0.3, 0.3, 0.3]]).expand(20_000, -1)
    codes = latent(x, noise()).codes.flatten()
    shares = torch.bincount(codes, minlength=4) / len(codes)
    assert torch.allclose(shares, (-(0.3 - latent.values.detach()).square()).softmax(0), atol=0.01)


def test_kl_against_uniform():
    latent = relaxed(num_values=2)
    assert latent(torch.zeros(5, 3), noise()).losses["kl"].item() == pytest.approx(0, abs=1e-6)  # both equally near
    assert latent(torch.full((5, 3), 50.0), noise()).losses["kl"].item() == pytest.approx(math.log(2), rel=1e-5)


def test_the_temperature_falls_with_the_updates():
    latent, x = relaxed(temperature_decay=1e-3), torch.zeros(1000, 3)
    entropies = []
    for number in (1.0, 1000.0, 5000.0):
        weights = latent.with_features(x, noise(), torch.tensor(number))[1]
        entropies.append(-torch.special.xlogy(weights, weights).sum(-1).mean().item())
    assert entropies[0] > entropies[1] > entropies[2]
    assert entropies[2] < 0.1
    assert torch.equal(latent.with_features(x, noise(), torch.tensor(1.0))[1], latent.with_features(x, noise())[1])


@pytest.mark.parametrize(("size", "steps"), [("full", 50_000), ("small", 7_000)])
def test_the_temperature_ends_at_the_same_value_at_both_sizes(tiny_data, size, steps):
    config = resolve("factor-qvae", data_config(tiny_data), 4, size=size)
    assert config.training.steps == steps
    assert config.latent.temperature_decay * steps == pytest.approx(1.0)


def test_one_codebook_has_one_size(tiny_data):
    with pytest.raises(ValueError, match="num_values takes one number"):
        build_model(small(tiny_data, "factor-qvae", num_values=[4, 4, 8, 8]))
    with pytest.raises(ValueError, match="temperature_decay must not be negative"):
        RelaxedLatent(2, temperature_decay=-1.0)


def test_codes_are_stepped_through_in_the_order_of_their_values():
    latent = relaxed()
    with torch.no_grad():
        latent.values.copy_(torch.tensor([0.5, -1.0, 2.0, 0.0]))
    assert latent.ordered_codes(0, np.array([2, 0, 0, 1]), 10).tolist() == [1, 0, 2]


def test_without_a_weight_there_is_no_discriminator(tiny_data):
    config = small(tiny_data, "factor-vae")
    weights = {"reconstruct": 1.0, "kl": 1.0}
    config = dataclasses.replace(config, objective=dataclasses.replace(config.objective, weights=weights))
    built = build_model(config)
    (player,) = OBJECTIVES.build(config.objective).players(built)
    assert set(player.loss(torch.rand(4, 3, 16, 16), noise(), ONE)) == {"loss", "reconstruct", "kl"}
