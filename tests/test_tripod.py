"""Tripod: its two penalties against closed forms and finite differences, its networks, and its published settings."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

import qlae
from qlae.config import DataConfig
from qlae.data import data_config
from qlae.models import build_model
from qlae.models.networks import FULL, SMALL, ResidualDecoder, ResidualEncoder, StyleDecoder
from qlae.models.networks import residual as networks
from qlae.objectives import Tripod, reconstruction_terms
from qlae.objectives.tripod import (
    TINY,
    TripodConfig,
    hessian_penalty,
    multi_information,
    points_around,
    silverman_factor,
    tripod_terms,
)
from qlae.presets import ModelSpec
from qlae.registry import OBJECTIVES
from qlae.resolving import resolve

WEIGHTS = {"reconstruct": 1.0, "multi_information": 1e-4, "hessian": 1e-2}


def noise(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=noise(seed), dtype=torch.float64)


def tripod(data, **options):
    options = {"size": "small", "batch_size": 8} | options
    return resolve("tripod", data_config(data), 2, **options)


# --- multi-information ---------------------------------------------------------------------------------------------


def test_multi_information_by_scipy():
    """log q(z) − Σ log q_k(z_k) with SciPy's densities: Silverman's bandwidth for the joint, deviations elsewhere."""
    z, deviation = normal(40, 3).numpy(), np.array([0.5, 1.0, 2.0])
    factor = (4 / 5) ** (1 / 7) * 40 ** (-1 / 7)
    assert silverman_factor(3, 40) == pytest.approx(factor)
    kernels = scipy.stats.norm.pdf(z[:, None], z[None], factor * deviation).prod(-1)
    marginals = scipy.stats.norm.pdf(z[:, None], z[None], deviation).mean(1)
    expected = (np.log(kernels.mean(1)) - np.log(marginals).sum(-1)).mean()
    value = multi_information(torch.from_numpy(z), torch.from_numpy(deviation))
    assert value.item() == pytest.approx(expected, rel=1e-10)


def test_multi_information_of_independent_values_is_zero():
    """All combinations of values, equally often: the joint estimate is the product of the marginal ones."""
    grid = torch.tensor(list(itertools.product([-1.0, 0.2, 1.0], [0.0, 0.5], [-0.3, 0.3])), dtype=torch.float64)
    value = multi_information(grid, grid.std(0), joint_factor=0.7, marginal_factor=0.7)
    assert abs(value.item()) < 1e-12


@pytest.mark.parametrize("copies", [2, 3])
def test_multi_information_of_a_duplicated_latent(copies):
    """One fair coin, copied: with narrow kernels the multi-information is (copies − 1) · log 2."""
    z = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(8)[:, None].expand(-1, copies)
    value = multi_information(z, torch.ones(copies), joint_factor=0.1, marginal_factor=0.1)
    assert value.item() == pytest.approx((copies - 1) * math.log(2), abs=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_multi_information_of_gaussians(correlation):
    """In a large batch, a kernel estimate of N(0, S) is N(0, S + bandwidth²), whose log density is known."""
    covariance = np.array([[1.0, correlation], [correlation, 1.0]])
    z = normal(3000, 2).numpy() @ np.linalg.cholesky(covariance).T
    factor = 0.5

    def mean_log_density(own: np.ndarray, bandwidth: float) -> float:
        smoothed = own + bandwidth**2 * np.eye(len(own))
        quadratic = np.trace(np.linalg.solve(smoothed, own))
        return -0.5 * (len(own) * math.log(2 * math.pi) + math.log(np.linalg.det(smoothed)) + quadratic)

    expected = mean_log_density(covariance, factor) - 2 * mean_log_density(np.eye(1), 1.0)
    value = multi_information(torch.from_numpy(z), torch.ones(2, dtype=torch.float64), joint_factor=factor)
    assert value.item() == pytest.approx(expected, abs=0.03)


def test_gradient_of_multi_information_by_finite_differences():
    z, deviation = normal(6, 3).requires_grad_(), (normal(3, seed=1).abs() + 0.5).requires_grad_()
    assert torch.autograd.gradcheck(multi_information, (z, deviation))


def test_multi_information_grows_with_dependence():
    z = normal(64, 4)
    dependent = z.clone()
    dependent[:, 1] = z[:, 0]
    one = torch.ones(4, dtype=torch.float64)
    assert multi_information(dependent, one) > multi_information(z, one) + 0.2


# --- Hessian penalty -----------------------------------------------------------------------------------------------


def quadratic(hessian: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    return ((points @ hessian) * points).sum(-1, keepdim=True) / 2 + points.sum(-1, keepdim=True) + 3


def symmetric(size: int) -> torch.Tensor:
    matrix = normal(size, size, seed=4)
    return matrix + matrix.T


def test_hessian_penalty_of_a_quadratic_function():
    """For many draws it is Σ_{i≠j} H_ij² / Σ_ij H_ij² of the Hessian in units of the deviations."""
    hessian, deviation = symmetric(4), torch.tensor([0.5, 1.0, 2.0, 0.7], dtype=torch.float64)
    how = {"num_draws": 100_000, "epsilon": 0.1}
    points = points_around(normal(1, 4, seed=2), deviation, generator=noise(), **how)
    scaled = hessian * deviation * deviation[:, None]
    expected = 1 - scaled.diag().square().sum() / scaled.square().sum()
    assert hessian_penalty([quadratic(hessian, points)], **how).item() == pytest.approx(expected.item(), rel=0.03)


def test_hessian_penalty_by_the_definition():
    """Two draws of each kind, several activations per image, central differences with f(z), variances by NumPy."""
    z, deviation, epsilon = normal(5, 3), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64), 0.1
    layer = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 6)).double()
    points = points_around(z, deviation, num_draws=2, epsilon=epsilon, generator=noise())
    with torch.no_grad():
        centre, rows = layer(z).numpy(), layer(points).numpy()
        value = hessian_penalty([layer(points)], num_draws=2, epsilon=epsilon).item()
    above, below = rows.reshape(2, 4, 5, 6)
    curvature = (above - 2 * centre + below) / epsilon**2
    signs, gaussian = (draws.var(0).mean(1) for draws in (curvature[:2], curvature[2:]))
    assert value == pytest.approx((signs / (gaussian + TINY)).mean(), rel=1e-8)
    steps = (points.reshape(2, 4, 5, 3)[0] - z) / (epsilon * deviation)
    assert torch.allclose(steps[:2].abs(), torch.ones(1, dtype=torch.float64))  # signs come first
    assert not torch.allclose(steps[2:].abs(), torch.ones(1, dtype=torch.float64))
    assert torch.allclose(points.reshape(2, 4, 5, 3).mean(0), z.expand(4, -1, -1))


def test_differences_are_the_curvature():
    """Small central differences of a network equal vᵀHv of its Hessian by automatic differentiation."""
    layer = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    z, one, epsilon = normal(1, 3), torch.ones(3, dtype=torch.float64), 1e-3
    points = points_around(z, one, num_draws=2, epsilon=epsilon, generator=noise())
    hessian = torch.autograd.functional.hessian(lambda x: layer(x).sum(), z[0])
    directions = (points[:4] - z) / epsilon
    exact = torch.einsum("di,ij,dj->d", directions, hessian, directions)
    with torch.no_grad():
        above, below = layer(points).reshape(2, 4)
    assert torch.allclose((above - 2 * layer(z)[0] + below) / epsilon**2, exact, rtol=1e-3, atol=1e-5)
    signs, gaussian = exact[:2].var(correction=0), exact[2:].var(correction=0)
    value = hessian_penalty([layer(points)], num_draws=2, epsilon=epsilon)
    assert value.item() == pytest.approx((signs / gaussian).item(), rel=1e-2)


def test_hessian_penalty_is_zero_without_interactions_and_one_without_anything_else():
    z, one = normal(8, 3), torch.ones(3, dtype=torch.float64)
    how = {"num_draws": 2, "epsilon": 0.1}
    points = points_around(z, one, generator=noise(), **how)
    assert hessian_penalty([points.square() @ torch.tensor([[1.0], [2.0], [3.0]]).double()], **how) < 1e-20
    assert hessian_penalty([points @ normal(3, 2)], **how) < 1e-15  # a linear function has no curvature
    product = (points[:, :1] * points[:, 1:2]).repeat(1, 2)
    assert hessian_penalty([product], **how) > 0.1


def test_hessian_penalty_does_not_depend_on_the_scale_of_a_layer_and_adds_layers():
    z, one = normal(4, 3), torch.ones(3, dtype=torch.float64)
    how = {"num_draws": 2, "epsilon": 0.1}
    rows = torch.sin(points_around(z, one, generator=noise(), **how) @ normal(3, 5))
    value = hessian_penalty([rows], **how)
    assert torch.allclose(hessian_penalty([100 * rows], **how), value)
    assert torch.allclose(hessian_penalty([rows, rows], **how), 2 * value)


def test_gradient_of_the_hessian_penalty_by_finite_differences():
    z, weight = normal(3, 3).requires_grad_(), normal(3, 4, seed=1).requires_grad_()
    deviation = (normal(3, seed=2).abs() + 0.5).requires_grad_()

    def penalty(z, weight, deviation):
        points = points_around(z, deviation, num_draws=2, epsilon=0.1, generator=noise())
        return hessian_penalty([torch.tanh(points @ weight)], num_draws=2, epsilon=0.1)

    assert torch.autograd.gradcheck(penalty, (z, weight, deviation), atol=1e-4)


# --- networks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resolution", "size"), [(8, "small"), (16, "small"), (32, "small"), (128, "small"), (64, "full")]
)
def test_shapes_of_the_networks(resolution, size):
    encoder = ResidualEncoder(resolution, 7, size=networks.SIZES[size])
    decoder = ResidualDecoder(resolution, 5, size=networks.SIZES[size])
    images = torch.rand(2, 3, resolution, resolution)
    with torch.no_grad():
        assert encoder(images).shape == (2, 7)
        assert decoder(torch.randn(2, 5)).shape == (2, 3, resolution, resolution)


def test_full_networks_are_the_authors():
    """Channels, resolutions and penalised activations at 64×64."""
    decoder = ResidualDecoder(64, 12)
    with torch.no_grad():
        activations = decoder.activations(torch.randn(2, 12))
    assert [tuple(a.shape[1:]) for a in activations] == [(256,), (256, 8, 8), (128, 16, 16), (64, 32, 32)]
    encoder = ResidualEncoder(64, 12)
    assert [stage.down.out_channels for stage in encoder.stages] == [64, 128, 256, 512]
    assert [len(stage.blocks) for stage in encoder.stages] == [2, 2, 2, 2]
    assert torch.equal(decoder.start, torch.ones(1, 512, 4, 4))


@pytest.mark.parametrize("resolution", [8, 16, 32])
@pytest.mark.parametrize("size", ["full", "small"])
def test_activations_and_finish_compose_the_decoder(resolution, size):
    torch.manual_seed(0)
    style = StyleDecoder(resolution, 5, size={"full": FULL, "small": SMALL}[size])
    for decoder in (ResidualDecoder(resolution, 5, size=networks.SIZES[size]), style):
        z = torch.randn(3, 5)
        with torch.no_grad():
            activations = decoder.activations(z)
            assert len(activations) >= 1
            assert torch.allclose(decoder.finish(activations), decoder(z), atol=1e-6)


# --- the objective -------------------------------------------------------------------------------------------------


def test_one_batch_gives_what_single_passes_give(tiny_data):
    config = tripod(tiny_data)
    model = build_model(config).double()
    images = torch.rand(4, 3, 16, 16, generator=noise(), dtype=torch.float64)
    terms = tripod_terms(model, images, noise(5), config.objective)
    assert torch.allclose(terms["reconstruct"], reconstruction_terms(model, images)["reconstruct"])
    x = model.encoder(images)
    z, bounded = model.latent(x).z, x.tanh()
    deviation = bounded.std(0, correction=0)
    assert torch.allclose(terms["multi_information"], multi_information(z, deviation), atol=1e-9)
    points = points_around(z, deviation, num_draws=2, epsilon=0.1, generator=noise(5))
    single = [model.decoder.activations(part) for part in points.split(4)]  # eight passes
    layers = [torch.cat(rows) for rows in zip(*single, strict=True)]
    assert torch.allclose(terms["hessian"], hessian_penalty(layers, num_draws=2, epsilon=0.1), rtol=1e-4)


def test_penalties_reach_encoder_and_decoder(tiny_data):
    config = tripod(tiny_data)
    model = build_model(config)
    images = torch.from_numpy(np.asarray(tiny_data.images[::5])).permute(0, 3, 1, 2) / 255
    with torch.no_grad():  # so that images have different codes
        head, (std, mean) = model.encoder.head, torch.std_mean(model.encoder(images), 0)
        head.weight.div_(std[:, None])
        head.bias.sub_(mean).div_(std)
    terms = tripod_terms(model, images, noise(), config.objective)
    for name, modules in {"multi_information": [model.encoder], "hessian": [model.encoder, model.decoder]}.items():
        for module in modules:
            gradients = torch.autograd.grad(
                terms[name], list(module.parameters()), retain_graph=True, allow_unused=True, materialize_grads=True
            )
            assert sum(g.abs().sum() for g in gradients) > 0
    last = torch.autograd.grad(terms["hessian"], list(model.decoder.stages[-1].parameters()), allow_unused=True)
    assert all(gradient is None for gradient in last)  # logits are not penalised


def test_a_latent_that_is_constant_over_a_batch_has_finite_gradients(tiny_data):
    config = tripod(tiny_data)
    model = build_model(config)
    images = torch.zeros(8, 3, 16, 16)
    (player,) = OBJECTIVES.build(config.objective).players(model)
    loss = player.loss(images, noise(), torch.tensor(1.0))["loss"]
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_penalties_without_a_weight_are_not_computed(tiny_data):
    spec = ModelSpec("plain", "finite-scalar", {"reconstruct": 1.0, "hessian": 1e-2}, objective="tripod")
    config = resolve(spec, data_config(tiny_data), 2, size="small")
    model = build_model(config)
    assert set(tripod_terms(model, torch.rand(4, 3, 16, 16), noise(), config.objective)) == {"reconstruct", "hessian"}


@pytest.mark.parametrize("networks", ["paper", "tripod"])
def test_the_penalties_serve_other_latent_spaces(tmp_path, tiny_data, networks):
    spec = ModelSpec(
        "qlae-tripod", "quantized", WEIGHTS | {"quantize": 0.01, "commit": 0.01}, objective="tripod", networks=networks
    )
    run = qlae.train(
        spec, tiny_data, out=tmp_path, size="small", steps=100, batch_size=8, evaluate=False, show=False, threads=1
    )
    assert all(np.isfinite(value) for value in run.log()[-1].values())
    assert run.log()[-1]["hessian"] > 0


def test_schedules_apply_to_the_penalties(tiny_data):
    config = tripod(tiny_data, weight_schedules={"hessian": [[0, 0.0], [100, 1.0]]})
    model = build_model(config)
    (player,) = OBJECTIVES.build(config.objective).players(model)
    terms = player.loss(torch.rand(8, 3, 16, 16), noise(), torch.tensor(50.0))
    expected = terms["reconstruct"] + 1e-4 * terms["multi_information"] + 0.5e-2 * terms["hessian"]
    assert torch.allclose(terms["loss"], expected)


def test_errors_say_what_is_needed(tiny_data):
    vectors = ModelSpec("vectors", "vector-quantized", WEIGHTS | {"quantize": 1.0, "commit": 0.25}, objective="tripod")
    config = resolve(vectors, data_config(tiny_data), 2, size="small")
    with pytest.raises(ValueError, match=r"latents of one number each, and those of VectorQuantizedLatent have 64"):
        Tripod(config.objective).players(build_model(config))
    model = build_model(tripod(tiny_data))
    model.decoder = nn.Linear(4, 3)
    with pytest.raises(ValueError, match=r"the decoder needs activations\(z\) .*; Linear does not have them"):
        Tripod(TripodConfig(WEIGHTS)).players(model)
    with pytest.raises(ValueError, match="epsilon must be above 0, got 0"):
        TripodConfig(WEIGHTS, epsilon=0.0)
    with pytest.raises(ValueError, match="num_draws must be"):
        TripodConfig(WEIGHTS, num_draws=1)


@pytest.mark.parametrize(
    ("data", "multi", "hessian"),
    [("shapes3d", 1e-4, 1e-2), ("mpi3d", 1e-8, 1e-4), ("falcor3d", 1e-10, 1e-2), ("isaac3d", 1e-4, 1e-8)],
)
def test_published_settings(data, multi, hessian):
    config = resolve("tripod", DataConfig(data), 6)
    assert config.objective.weights == {"reconstruct": 1.0, "multi_information": multi, "hessian": hessian}
    assert (config.latent.num_values, config.latent.low, config.latent.high) == (12, -1.0, 1.0)
    optimizer, training = config.training.optimizer, config.training
    assert (optimizer.learning_rate, optimizer.beta1, optimizer.beta2) == (2e-4, 0.9, 0.999)
    assert (optimizer.weight_decay, optimizer.clip) == (0.0, 1.0)
    assert (training.batch_size, training.steps) == (64, 250_000)
    assert (config.objective.num_draws, config.objective.epsilon) == (2, 0.1)


def test_trains_in_float32_by_default():
    assert not Tripod.trains_in_bfloat16  # where second differences would be rounding errors
