"""Penalties on the use of codes: their values, their gradients, and which models offer them."""

import math

import pytest
import torch

from qlae.config import DataConfig, RunConfig
from qlae.data import data_config
from qlae.models.latents import ContinuousLatent, FiniteScalarLatent, QuantizedLatent
from qlae.objectives import players_of, reconstruction_terms
from qlae.objectives.code_penalties import PENALTIES, code_entropy, penalty_terms
from qlae.resolving import resolve
from qlae.training.state import build_state

SHAPES = DataConfig("shapes3d")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def concave(entropy: float) -> float:
    return 0.5 * math.log(1 + entropy / 0.5)


def test_the_value_is_a_concave_function_of_the_entropies():
    codes = torch.tensor([[0, 0, 1], [1, 0, 1], [2, 0, 1], [3, 0, 0]])
    weights = torch.rand(4, 3, 4, generator=seeded())
    expected = concave(math.log(4)) + 0 + concave(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert code_entropy(weights, codes).item() == pytest.approx(expected, abs=1e-6)


def test_the_gradient_is_the_code_length_of_each_value_times_the_price_of_the_latent():
    codes = torch.tensor([[0], [0], [0], [1]])
    weights = torch.zeros(4, 1, 3, requires_grad=True)
    code_entropy(weights, codes).backward()
    lengths = [-math.log((count + 0.5) / (4 + 1.5)) for count in (3, 1, 0)]
    price = 1 / (1 + (-0.75 * math.log(0.75) - 0.25 * math.log(0.25)) / 0.5)
    torch.testing.assert_close(weights.grad, price * torch.tensor(lengths).expand(4, 1, 3) / 4)


def test_a_nat_is_dearer_near_rest():
    """One latent is nearly at rest, another has all values: an image that leaves its value costs the former more."""
    rare, all_values = torch.zeros(60, dtype=torch.long), torch.arange(60) % 6
    rare[0] = 1
    weights = torch.zeros(60, 2, 6, requires_grad=True)
    code_entropy(weights, torch.stack((rare, all_values), 1)).backward()
    entropies = [-(1 / 60) * math.log(1 / 60) - (59 / 60) * math.log(59 / 60), math.log(6)]
    prices = [1 / (1 + entropy / 0.5) for entropy in entropies]
    assert prices[0] > 0.8
    assert prices[1] < 0.25
    lengths = [-math.log(1.5 / 63), -math.log(10.5 / 63)]  # of the value 1
    torch.testing.assert_close(weights.grad[0, :, 1] * 60, torch.tensor(prices) * torch.tensor(lengths))


def test_it_is_the_gradient_of_the_function_of_soft_shares():
    """With many samples the extra half counts vanish, and the function of the soft shares has the same gradient."""
    latent = QuantizedLatent(2, 4)
    x = (torch.rand(200_000, 2, generator=seeded()).double() ** 2 - 0.5).requires_grad_()
    latent = latent.double()
    # Shares of codes and soft shares differ; give the function the soft ones by drawing codes from the assignments.
    weights = latent.soft_codes(x)
    codes = torch.distributions.Categorical(weights.detach()).sample()
    (ours,) = torch.autograd.grad(code_entropy(weights, codes), x, retain_graph=True)
    shares = weights.mean(0)
    entropies = -(shares * shares.log()).sum(-1)
    (exact,) = torch.autograd.grad((0.5 * (entropies / 0.5).log1p()).sum(), x)
    assert (ours - exact).norm() < 0.02 * exact.norm()


def test_descending_it_empties_rare_values_and_stops_at_one():
    latent = QuantizedLatent(1, 5)
    x = torch.nn.Parameter(torch.cat((torch.full((40, 1), 0.01), torch.full((8, 1), 0.26))))
    optimizer = torch.optim.SGD([x], lr=0.05)
    before = latent(x).codes.unique().numel()
    for _ in range(400):
        optimizer.zero_grad()
        out = latent(x)
        code_entropy(latent.soft_codes(x), out.codes).backward()
        optimizer.step()
    assert before == 2
    assert latent(x).codes.unique().numel() == 1
    assert code_entropy(latent.soft_codes(x), latent(x).codes).item() == 0


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("latent", [QuantizedLatent(3, [2, 4, 3]), QuantizedLatent(3, 4, shared=True)], ids=str)
def test_only_the_encoder_gets_a_gradient(latent, penalty):
    x = torch.randn(16, 3, generator=seeded()).mul(0.3).requires_grad_()
    images = torch.rand(16, 3, 8, 8, generator=seeded(1)).requires_grad_()
    penalty_terms([penalty], latent, x, latent(x), images)[penalty].backward()
    assert x.grad.abs().sum() > 0
    assert latent.values.grad is None
    assert images.grad is None


def test_soft_codes_sum_to_one_and_leave_out_padding():
    for latent in (QuantizedLatent(2, [2, 5]), FiniteScalarLatent(2, [2, 5]), QuantizedLatent(2, [1, 5])):
        x = torch.randn(32, 2, generator=seeded()).mul(0.4)
        weights = latent.soft_codes(x)
        torch.testing.assert_close(weights.sum(-1), torch.ones(32, 2))
        assert not weights[:, 0, latent.num_values[0] :].any()
        assert torch.equal(weights.argmax(-1), latent.to_codes(x))
        assert torch.isfinite(weights).all()


def test_codebooks_that_have_shrunk_to_a_point_give_no_nan():
    latent = QuantizedLatent(1, 4)
    latent.values.data.fill_(0.25)
    x = torch.full((8, 1), 0.25).requires_grad_()
    code_entropy(latent.soft_codes(x), latent(x).codes).backward()
    assert torch.isfinite(x.grad).all()


def test_they_are_relative_to_the_variance_of_the_batch():
    latent = QuantizedLatent(2, 4)
    x = torch.randn(64, 2, generator=seeded()).mul(0.3)
    images = torch.rand(64, 3, 4, 4, generator=seeded(1))
    out = latent(x)
    terms, darker, grey = (
        penalty_terms(PENALTIES, latent, x, out, one) for one in (images, images * 0.5, torch.full_like(images, 0.5))
    )
    variance = images.var(0, correction=0).mean().item()
    values = {
        "entropy": code_entropy(latent.soft_codes(x), out.codes).item(),
    }
    for name in PENALTIES:
        assert terms[name].item() == pytest.approx(values[name] * variance)
        assert darker[name].item() == pytest.approx(terms[name].item() / 4)
        assert grey[name].item() == 0
    assert penalty_terms([], latent, x, out, images) == {}


def test_models_with_codebooks_of_scalars_offer_them():
    for model in ("qlae", "qlae-global-codebook", "fsq-ae"):
        weights = {"entropy": 0.1}
        assert resolve(model, SHAPES, 6, weights=weights).objective.weights.items() >= weights.items()
        assert not set(PENALTIES) & set(resolve(model, SHAPES, 6).objective.weights)
    for model in ("ae", "vq-vae", "beta-vae", "qlinfowgan-gp", "tripod", "factor-qvae"):
        for name in PENALTIES:
            with pytest.raises(ValueError, match=f"unknown loss term of {model} '{name}'"):
                resolve(model, SHAPES, 6, weights={name: 0.1})


def test_other_latent_spaces_are_refused(tiny_data):
    config = resolve("qlae", data_config(tiny_data), 2, size="small", weights={"entropy": 0.1})
    state = build_state(config, tiny_data, torch.device("cpu"))
    state.model.latent = ContinuousLatent(4)
    with pytest.raises(ValueError, match=r"'entropy' needs latents that are rounded to .* which Continuous"):
        players_of(config, state.model)
    for method in (lambda latent: latent.soft_codes(torch.zeros(2, 4)), lambda latent: latent.value_distances()):
        with pytest.raises(NotImplementedError, match="ContinuousLatent has no codebooks of scalars"):
            method(state.model.latent)


def test_the_other_terms_stay_as_they_are(tiny_data):
    config = resolve("qlae", data_config(tiny_data), 2, size="small")
    model = build_state(config, tiny_data, torch.device("cpu")).model
    images = torch.rand(8, 3, 16, 16, generator=seeded())
    without, with_them = (reconstruction_terms(model, images, penalties=names) for names in ((), PENALTIES))
    assert set(with_them) - set(without) == set(PENALTIES)
    assert all(torch.equal(without[name], with_them[name]) for name in without)


def test_they_are_part_of_a_run_that_resumes_exactly(tiny_data):
    config = resolve("qlae", data_config(tiny_data), 2, size="small", batch_size=8, recipe="fast", steps=10)
    assert RunConfig.from_dict(config.to_dict()) == config
    whole, parts = (build_state(config, tiny_data, torch.device("cpu")) for _ in range(2))
    for step in range(1, 6):
        whole.update(step)
    parts.from_checkpoint(whole.to_checkpoint())
    for state in (whole, parts):
        state.update(6)
    tensors = [state.to_checkpoint().tensors for state in (whole, parts)]
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])


def test_the_recipe_scales_its_schedule_with_the_run():
    curve = resolve("qlae", SHAPES, 6, recipe="fast", steps=1000).objective.schedules["entropy"]
    assert [step for step, _ in curve] == [0, 60, 300, 600, 900]
    assert resolve("qlae", SHAPES, 6, recipe="fast", weight_schedules={"entropy": "0:1"}).objective.schedules == {
        "entropy": ((0, 1.0),)
    }
