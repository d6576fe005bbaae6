"""KL and its decomposition, against closed forms and against a direct computation."""

import math

import torch
from torch.distributions import Normal, kl_divergence

from qlae.ops.divergences import decomposed_kl, gaussian_kl, log_normal

RANDOM = torch.Generator().manual_seed(0)
MEAN = torch.randn(6, 3, generator=RANDOM, dtype=torch.float64)
DEVIATION = torch.rand(6, 3, generator=RANDOM, dtype=torch.float64) + 0.1
Z = MEAN + DEVIATION * torch.randn(6, 3, generator=RANDOM, dtype=torch.float64)


def test_kl_of_known_gaussians():
    zero, one = torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 2, dtype=torch.float64)
    assert gaussian_kl(zero, one) == 0
    assert torch.isclose(gaussian_kl(3 * one, one), torch.tensor(9.0, dtype=torch.float64))  # 2 · 3²/2
    expected = 2 * (0.5 * (0.25 - 1) - math.log(0.5))
    assert torch.isclose(gaussian_kl(zero, 0.5 * one), torch.tensor(expected, dtype=torch.float64))


def test_kl_against_torch_distributions():
    expected = kl_divergence(Normal(MEAN, DEVIATION), Normal(0.0, 1.0)).sum(-1).mean()
    assert torch.isclose(gaussian_kl(MEAN, DEVIATION), expected)


def test_log_normal_against_torch_distributions():
    assert torch.allclose(log_normal(Z, MEAN, DEVIATION), Normal(MEAN, DEVIATION).log_prob(Z))


def test_parts_sum_to_the_one_sample_estimate_of_the_kl():
    parts = decomposed_kl(Z, MEAN, DEVIATION, num_images=1000)
    estimate = (Normal(MEAN, DEVIATION).log_prob(Z) - Normal(0.0, 1.0).log_prob(Z)).sum(-1).mean()
    assert torch.isclose(sum(parts.values()), estimate)


def test_parts_against_a_direct_computation():
    """Densities evaluated one by one, sums of plain exponentials: nothing shared with the code under test."""
    num_images, size = 1000, len(Z)

    def density(z: float, m: float, s: float) -> float:
        return math.exp(-0.5 * ((z - m) / s) ** 2) / (s * math.sqrt(2 * math.pi))

    mutual_information = total_correlation = dimension_kl = 0.0
    for i in range(size):
        given = math.prod(density(Z[i, j], MEAN[i, j], DEVIATION[i, j]) for j in range(3))
        joint = sum(math.prod(density(Z[i, j], MEAN[m, j], DEVIATION[m, j]) for j in range(3)) for m in range(size)) / (
            num_images * size
        )
        marginals = [
            sum(density(Z[i, j], MEAN[m, j], DEVIATION[m, j]) for m in range(size)) / (num_images * size)
            for j in range(3)
        ]
        prior = math.prod(density(Z[i, j], 0.0, 1.0) for j in range(3))
        mutual_information += math.log(given / joint) / size
        total_correlation += math.log(joint / math.prod(marginals)) / size
        dimension_kl += math.log(math.prod(marginals) / prior) / size
    parts = decomposed_kl(Z, MEAN, DEVIATION, num_images)
    assert math.isclose(parts["mutual_information"], mutual_information, rel_tol=1e-9)
    assert math.isclose(parts["total_correlation"], total_correlation, rel_tol=1e-9)
    assert math.isclose(parts["dimension_kl"], dimension_kl, rel_tol=1e-9)
