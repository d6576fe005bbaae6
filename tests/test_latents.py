"""The latent spaces: values, codes, and above all where gradients go."""

import math

import pytest
import torch

from qlae.models.latents import (
    ContinuousLatent,
    FiniteScalarLatent,
    GaussianLatent,
    QuantizedLatent,
    UniformLatent,
    VectorQuantizedLatent,
)


@pytest.fixture
def latent() -> QuantizedLatent:
    return QuantizedLatent(num_latents=4, num_values=5)


@pytest.fixture
def x() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(32, 4, generator=generator).requires_grad_()


def brute_force(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The nearest value, found by looking at each in turn."""
    codes = torch.empty(x.shape, dtype=torch.int64)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            codes[i, j] = min(range(values.shape[1]), key=lambda k: abs(float(x[i, j]) - float(values[j, k])))
    return codes


def test_initial_values_are_the_paper_s():
    values = QuantizedLatent(3, 10).values
    assert torch.equal(values, torch.linspace(-0.5, 0.5, 10).expand(3, 10))


def test_nearest_value_against_brute_force(latent, x):
    with torch.no_grad():
        latent.values.copy_(torch.randn(4, 5, generator=torch.Generator().manual_seed(1)))  # in no order
    output = latent(x)
    codes = brute_force(x.detach(), latent.values.detach())
    assert torch.equal(output.codes, codes)
    assert torch.equal(output.z, latent.values.detach().gather(1, codes.T).T)


def test_losses_are_the_paper_s_squared_norm(latent, x):
    output = latent(x)
    by_hand = ((x - latent.to_values(output.codes)) ** 2).sum(1).mean()
    assert torch.allclose(output.losses["quantize"], by_hand)
    assert torch.allclose(output.losses["commit"], by_hand)
    mean = QuantizedLatent(4, 5, reduction="mean")(x).losses
    assert torch.allclose(mean["quantize"], by_hand / 4)


def test_quantize_moves_the_codebook_only(latent, x):
    latent(x).losses["quantize"].backward()
    assert x.grad is None
    assert latent.values.grad is not None
    assert latent.values.grad.abs().sum() > 0


def test_quantize_gradient_is_exact(latent, x):
    output = latent(x)
    output.losses["quantize"].backward()
    expected = torch.zeros(4, 5)
    for j in range(4):
        for k in range(5):
            chosen = output.codes[:, j] == k
            expected[j, k] = 2 * (latent.values[j, k] - x[chosen, j]).sum() / len(x)
    assert torch.allclose(latent.values.grad, expected, atol=1e-6)


def test_commit_moves_the_encoder_only(latent, x):
    latent(x).losses["commit"].backward()
    assert latent.values.grad is None
    z = latent.to_values(latent.to_codes(x)).detach()
    assert torch.allclose(x.grad, 2 * (x.detach() - z) / len(x), atol=1e-6)


def test_reconstruction_goes_straight_through_to_the_encoder(latent, x):
    weight = torch.randn(32, 4, generator=torch.Generator().manual_seed(2))
    (latent(x).z * weight).sum().backward()
    assert torch.equal(x.grad, weight)
    assert latent.values.grad is None


def test_straight_through_value_is_the_codebook_s_to_the_last_bit(latent):
    x = 1e4 * torch.randn(1000, 4, generator=torch.Generator().manual_seed(3))
    output = latent(x)
    assert torch.equal(output.z, latent.to_values(output.codes))


def test_values_move_in_training(latent, x):
    before = latent.values.detach().clone()
    optimizer = torch.optim.Adam(latent.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        sum(latent(x).losses.values()).backward()
        optimizer.step()
    assert (latent.values - before).abs().max() > 0.01


def test_fixed_values_do_not_move(x):
    latent = QuantizedLatent(4, 5, learned=False)
    latent(x).losses["commit"].backward()
    assert not [p for p in latent.parameters() if p.requires_grad]


def test_one_number_of_values_a_dimension():
    latent = QuantizedLatent(3, [2, 5, 1])
    codes = latent.to_codes(torch.tensor([[9.0, 9.0, 9.0], [-9.0, -9.0, -9.0]]))
    assert codes.tolist() == [[1, 4, 0], [0, 0, 0]]
    sampled = latent.sample_codes(2000, torch.Generator().manual_seed(0))
    assert sampled.amax(0).tolist() == [1, 4, 0]


def test_shared_codebook_is_one_row_for_all(x):
    latent = QuantizedLatent(4, 5, shared=True)
    assert latent.values.shape == (1, 5)
    output = latent(x)
    assert torch.equal(output.codes, brute_force(x.detach(), latent.values.detach().expand(4, 5)))
    output.losses["quantize"].backward()
    assert latent.values.grad.shape == (1, 5)


def test_codes_and_values_go_both_ways(latent):
    codes = latent.sample_codes(100, torch.Generator().manual_seed(0))
    assert torch.equal(latent.to_codes(latent.to_values(codes)), codes)


def test_samples_are_uniform_and_seeded(latent):
    first = latent.sample(20_000, torch.Generator().manual_seed(7))
    assert torch.equal(first, latent.sample(20_000, torch.Generator().manual_seed(7)))
    shares = torch.nn.functional.one_hot(latent.to_codes(first)).double().mean(0)
    assert (shares - 0.2).abs().max() < 0.015


def test_distances_between_values_ignore_padding():
    latent = QuantizedLatent(2, [2, 4])
    latent.values.data[0] = torch.tensor([-3.0, 3.0, 99.0, 99.0])
    torch.testing.assert_close(latent.value_distances(), torch.tensor([6.0, 1 / 3]))
    assert QuantizedLatent(1, 1).value_distances().tolist() == [0.0]
    assert QuantizedLatent(3, 5, shared=True).value_distances().tolist() == [0.25] * 3


def test_a_huge_product_of_codebooks_costs_nothing():
    latent = QuantizedLatent(num_latents=200, num_values=50)  # 50^200 codes
    output = latent(torch.randn(8, 200))
    assert output.codes.shape == (8, 200)
    assert latent.sample(3).shape == (3, 200)
    assert sum(p.numel() for p in latent.parameters()) == 200 * 50


def test_leading_dimensions_are_free(latent):
    assert latent.to_values(latent.to_codes(torch.randn(2, 3, 4))).shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_latents": 0}, "num_latents must be a whole number of at least 1, got 0"),
        ({"num_latents": 2, "num_values": -1}, "num_values must be a whole number of at least 1, got -1"),
        ({"num_latents": 2, "num_values": [3]}, "1 entries for 2 latents"),
        ({"num_latents": 2, "num_values": [3, 4], "shared": True}, "a shared codebook has one size"),
        ({"num_latents": 2, "reduction": "max"}, "unknown reduction 'max'"),
    ],
)
def test_bad_arguments_are_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        QuantizedLatent(**arguments)


def test_continuous_latent_adds_nothing(x):
    output = ContinuousLatent(4)(x)
    assert output.z is x
    assert output.codes is None


def test_bioae_s_penalties_by_hand():
    losses = ContinuousLatent(2)(torch.tensor([[1.0, -2.0], [-4.0, 3.0]])).losses
    assert losses["nonnegative"] == (2 + 4) / 4
    assert losses["activity"] == (1 + 4 + 16 + 9) / 4


def test_gaussian_latent_draws_in_training_and_means_in_evaluation():
    latent = GaussianLatent(3)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    first = latent(x, torch.Generator().manual_seed(1)).z
    assert torch.equal(first, latent(x, torch.Generator().manual_seed(1)).z)
    assert not torch.equal(first, latent(x, torch.Generator().manual_seed(2)).z)
    assert torch.equal(latent.eval()(x).z, x[:, :3])


def test_gaussian_latent_has_the_deviation_of_softplus():
    x = torch.cat([torch.zeros(200_000, 1), torch.full((200_000, 1), 0.3)], dim=1)
    z = GaussianLatent(1)(x, torch.Generator().manual_seed(0)).z
    assert abs(float(z.std()) - math.log1p(math.exp(0.3))) < 0.005


def test_gaussian_gradients_reach_mean_and_deviation():
    x = torch.zeros(5, 4, requires_grad=True)
    GaussianLatent(2)(x, torch.Generator().manual_seed(0)).z.sum().backward()
    assert torch.equal(x.grad[:, :2], torch.ones(5, 2))
    assert (x.grad[:, 2:] != 0).all()


def test_uniform_latent_is_its_encoder_s_output_and_samples_the_unit_interval(x):
    latent = UniformLatent(4)
    assert latent(x) == (x, None, {})
    sample = latent.sample(5000, torch.Generator().manual_seed(0))
    assert sample.shape == (5000, 4)
    assert sample.min() >= 0
    assert sample.max() < 1
    assert (sample.mean(0) - 0.5).abs().max() < 0.02


@pytest.fixture
def vectors() -> VectorQuantizedLatent:
    torch.manual_seed(0)
    return VectorQuantizedLatent(num_latents=3, num_values=17, vector_size=5)


@pytest.fixture
def parts() -> torch.Tensor:
    return (0.5 * torch.randn(20, 15, generator=torch.Generator().manual_seed(1))).requires_grad_()


def test_nearest_vector_against_brute_force(vectors, parts):
    output = vectors(parts)
    for i in range(20):
        for j in range(3):
            part = parts[i, 5 * j : 5 * j + 5].detach()
            distances = [float((part - vector).norm()) for vector in vectors.vectors.detach()]
            assert output.codes[i, j] == distances.index(min(distances))
            assert torch.equal(output.z[i, 5 * j : 5 * j + 5], vectors.vectors[output.codes[i, j]])


def test_vectors_start_with_the_variance_of_one_over_their_size():
    torch.manual_seed(0)
    vectors = VectorQuantizedLatent(12).vectors.detach()
    assert vectors.shape == (512, 64)
    assert abs(float(vectors.var()) * 64 - 1) < 0.02
    assert vectors.abs().max() <= math.sqrt(3 / 64)


def test_vector_losses_and_where_their_gradients_go(vectors, parts):
    output = vectors(parts)
    z = vectors.to_values(output.codes).detach()
    assert torch.allclose(output.losses["quantize"], (parts - z).square().mean())
    output.losses["commit"].backward()
    assert vectors.vectors.grad is None
    assert torch.allclose(parts.grad, 2 * (parts.detach() - z) / parts.numel(), atol=1e-7)
    parts.grad = None
    output = vectors(parts)
    (output.losses["quantize"] + 0 * output.z.sum()).backward()
    assert torch.equal(parts.grad, torch.zeros_like(parts))
    expected = torch.zeros(17, 5)
    for i in range(20):
        for j in range(3):
            code = output.codes[i, j]
            expected[code] += (
                2 * (vectors.vectors[code].detach() - parts[i, 5 * j : 5 * j + 5].detach()) / parts.numel()
            )
    assert torch.allclose(vectors.vectors.grad, expected, atol=1e-7)


def test_vector_reconstruction_goes_straight_through(vectors, parts):
    weight = torch.randn(20, 15, generator=torch.Generator().manual_seed(2))
    (vectors(parts).z * weight).sum().backward()
    assert torch.equal(parts.grad, weight)
    assert vectors.vectors.grad is None


def test_vector_codes_go_both_ways(vectors):
    codes = vectors.sample_codes(50, torch.Generator().manual_seed(0))
    assert torch.equal(vectors.to_codes(vectors.to_values(codes)), codes)
    with pytest.raises(ValueError, match=r"expected \(..., 15\) encoder outputs, got shape \(2, 3\)"):
        vectors(torch.zeros(2, 3))


@pytest.mark.parametrize("num_values", [2, 3, 4, 10, [2, 3, 5, 8]])
def test_finite_scalars_are_the_nearest_of_the_grid(num_values, x):
    latent = FiniteScalarLatent(4, num_values)
    output = latent(3 * x)
    bounded = (3 * x).tanh() / 2
    for j, size in enumerate(latent.num_values):
        grid = torch.linspace(-0.5, 0.5, size)
        codes = (bounded[:, j, None] - grid).abs().argmin(1)
        assert torch.equal(output.codes[:, j], codes)
        assert torch.allclose(output.z[:, j], grid[codes], atol=1e-6)
        assert set(latent.to_codes(torch.linspace(-9, 9, 1000)[:, None].expand(-1, 4))[:, j].tolist()) == {*range(size)}


def test_finite_scalars_pass_the_gradient_of_tanh(x):
    latent = FiniteScalarLatent(4, 5)
    latent(x).z.sum().backward()
    assert torch.allclose(x.grad, (1 - x.detach().tanh() ** 2) / 2)
    assert not list(latent.parameters())
    assert latent(x).losses == {}


def test_finite_scalar_codes_go_both_ways():
    latent = FiniteScalarLatent(3, [2, 7, 10])
    codes = latent.sample_codes(100, torch.Generator().manual_seed(0))
    values = latent.to_values(codes)
    inside = torch.atanh((2 * values).clamp(-0.999999, 0.999999))
    assert torch.equal(latent.to_codes(inside), codes)
    with pytest.raises(ValueError, match="at least 2 values per dimension"):
        FiniteScalarLatent(2, 1)


def test_a_sample_of_a_learned_codebook_carries_its_gradient(latent):
    latent.sample(10, torch.Generator().manual_seed(0)).sum().backward()
    assert latent.values.grad.sum() == 40


def test_distances_of_many_dimensions_have_the_gradients_of_their_rows():
    latent = QuantizedLatent(3, 5)
    x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    found = []
    for given in (x, x.flatten(0, 1)):
        given = given.requires_grad_()
        losses = latent(given).losses
        found.append(torch.autograd.grad(losses["quantize"] + 2 * losses["commit"], (given, latent.values)))
    assert torch.equal(found[0][0].flatten(0, 1), found[1][0])
    assert torch.equal(found[0][1], found[1][1])


SPACES = {
    "continuous": lambda: ContinuousLatent(4),
    "gaussian": lambda: GaussianLatent(4),
    "decomposed": lambda: GaussianLatent(4, num_images=100),
    "uniform": lambda: UniformLatent(4),
    "quantized": lambda: QuantizedLatent(4, [3, 5, 2, 4]),
    "shared": lambda: QuantizedLatent(4, 5, shared=True),
    "vectors": lambda: VectorQuantizedLatent(4, 16, vector_size=3),
    "finite": lambda: FiniteScalarLatent(4, 5),
}


@pytest.mark.parametrize("kind", SPACES)
def test_wrong_widths_are_told_by_every_space(kind):
    space = SPACES[kind]()
    for width in (1, space.num_inputs - 1, space.num_inputs + 2):
        with pytest.raises(ValueError, match=rf"expected \(..., {space.num_inputs}\) encoder outputs, got shape"):
            space(torch.zeros(3, width))


@pytest.mark.parametrize("shape", [(0,), (), (2, 3)], ids=["empty", "no batch", "two"])
@pytest.mark.parametrize("kind", [kind for kind in SPACES if kind != "decomposed"])
def test_batches_of_any_shape_go_forwards_and_backwards(kind, shape):
    space = SPACES[kind]()
    x = torch.randn(*shape, space.num_inputs).requires_grad_()
    out = space(x)
    assert out.z.shape == (*shape, space.num_outputs)
    (out.z.sum() + sum(out.losses.values())).backward()
    assert x.grad.shape == x.shape


def test_the_decomposed_kl_takes_all_leading_dimensions_for_the_batch():
    space, x = SPACES["decomposed"](), torch.randn(2, 5, 8)
    losses = [space(rows, torch.Generator().manual_seed(0)).losses for rows in (x, x.view(10, 8))]
    assert all(torch.equal(losses[0][name], losses[1][name]) for name in losses[1])


@pytest.mark.parametrize("kind", ["quantized", "shared", "vectors", "finite"])
def test_codes_that_do_not_exist_are_told(kind):
    space = SPACES[kind]()
    for code in (-1, space.num_values[1]):
        codes = torch.zeros(2, 4, dtype=torch.int64)
        codes[1, 1] = code
        with pytest.raises(ValueError, match=f"codes of latent 1 range from 0 to {space.num_values[1] - 1}"):
            space.to_values(codes)


@pytest.mark.parametrize("kind", ["quantized", "shared", "vectors", "finite"])
def test_bfloat16_gives_bfloat16_and_codes_in_range(kind):
    space = SPACES[kind]().bfloat16()
    out = space(torch.randn(6, space.num_inputs, dtype=torch.bfloat16))
    assert out.z.dtype == torch.bfloat16
    assert QuantizedLatent(2, 259).bfloat16().sample_codes(20_000).max() == 258


@pytest.mark.parametrize("kind", ["quantized", "shared", "vectors", "finite"])
def test_nan_goes_through_so_that_training_can_tell_of_it(kind):
    space = SPACES[kind]()
    out = space(torch.full((2, space.num_inputs), torch.nan))
    assert out.z.shape == (2, space.num_outputs)
