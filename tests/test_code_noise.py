"""Noise on quantized latents: only in training, from the generator, in units of a codebook's distances."""

import pytest
import torch

from qlae.config import DataConfig, RunConfig
from qlae.data import data_config
from qlae.models.latents import QuantizedLatent
from qlae.resolving import resolve
from qlae.training.state import build_state

SHAPES = DataConfig("shapes3d")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_it_has_the_deviation_that_is_asked_for():
    latent = QuantizedLatent(2, [5, 3], noise=0.5).train()
    out = latent(torch.zeros(20_000, 2), seeded())
    noise = (out.z - latent.look_up(out.codes)).detach()
    assert noise.mean(0).abs().max() < 0.01
    torch.testing.assert_close(noise.std(0), torch.tensor([0.5 * 0.25, 0.5 * 0.5]), atol=0.01, rtol=0)  # 1/4, 1/2 apart


def test_it_follows_the_values_and_ignores_padding():
    latent = QuantizedLatent(2, [2, 4], noise=1.0)
    latent.values.data[0] = torch.tensor([-3.0, 3.0, 99.0, 99.0])
    torch.testing.assert_close(latent.value_distances(), torch.tensor([6.0, 1 / 3]))
    assert QuantizedLatent(1, 1, noise=1.0).value_distances().tolist() == [0.0]
    assert QuantizedLatent(3, 5, noise=1.0, shared=True).value_distances().tolist() == [0.25] * 3


def test_codes_losses_and_evaluation_are_as_without_it():
    x = torch.randn(64, 3, generator=seeded(1))
    noisy, plain = QuantizedLatent(3, 4, noise=0.3), QuantizedLatent(3, 4)
    for one, other in ((noisy.train()(x, seeded()), plain.train()(x)), (noisy.eval()(x), plain.eval()(x))):
        assert torch.equal(one.codes, other.codes)
        assert all(torch.equal(one.losses[name], other.losses[name]) for name in ("quantize", "commit"))
    assert torch.equal(noisy(x).z, plain(x).z)
    assert torch.equal(noisy.train()(x, seeded(5)).z, noisy(x, seeded(5)).z)
    assert not torch.equal(noisy(x, seeded(5)).z, noisy(x, seeded(6)).z)


def test_gradients_pass_straight_through_and_not_to_the_codebook():
    latent = QuantizedLatent(3, 4, noise=0.3).train()
    x = torch.randn(8, 3, generator=seeded(1)).requires_grad_()
    latent(x, seeded()).z.sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))
    assert latent.values.grad is None or not latent.values.grad.any()


def test_the_option_ends_in_the_config():
    assert resolve("qlae", SHAPES, 6).latent.noise == 0
    assert resolve("qlae", SHAPES, 6, code_noise=0.3).latent.noise == 0.3
    assert resolve("qlae-global-codebook", SHAPES, 6, code_noise=0.1).latent.noise == 0.1
    reasons = {"ae": "has the latent space 'continuous'", "fsq-ae": "has the latent space 'finite-scalar'"}
    for model, reason in (reasons | {"qlinfowgan-gp": "is a GAN"}).items():
        with pytest.raises(ValueError, match=f"with the latent space 'quantized', as qlae has, and {model} {reason}"):
            resolve(model, SHAPES, 6, code_noise=0.3)
    for wrong in (-0.1, float("nan"), float("inf"), "much", True):
        with pytest.raises(ValueError, match="code_noise must be a finite number of at least 0"):
            resolve("qlae", SHAPES, 6, code_noise=wrong)


def test_it_is_part_of_a_run_that_goes_on_exactly(tiny_data):
    config = resolve("qlae", data_config(tiny_data), 2, size="small", batch_size=8, code_noise=0.3)
    assert RunConfig.from_dict(config.to_dict()) == config
    whole, parts = (build_state(config, tiny_data, torch.device("cpu")) for _ in range(2))
    for step in (1, 2):
        whole.update(step)
    parts.from_checkpoint(whole.to_checkpoint())
    for state in (whole, parts):
        state.update(3)
    tensors = [state.to_checkpoint().tensors for state in (whole, parts)]
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])
