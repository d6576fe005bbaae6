"""Conditional InfoM and InfoC: information given a third variable against closed forms, and what the scores reward."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from qlae.metrics import conditional_infomec, infomec, score
from qlae.metrics.conditional import Variable, by_chance, conditional_entropy, conditional_information

RNG = np.random.default_rng(0)


def gaussian(n: int, correlation: float, seed: int = 0, num_sources: int = 4) -> np.ndarray:
    covariance = np.full((num_sources, num_sources), correlation) + (1 - correlation) * np.eye(num_sources)
    return np.random.default_rng(seed).multivariate_normal(np.zeros(num_sources), covariance, size=n)


def classes(values: np.ndarray, num_classes: int) -> np.ndarray:
    """Return each column in classes of equal size."""
    return num_classes * np.argsort(np.argsort(values, axis=0), axis=0) // len(values)


def labels(values: np.ndarray) -> Variable:
    return Variable.of_labels(values, int(values.max()) + 1)


def information(x: np.ndarray, y: np.ndarray, given: np.ndarray, k: int = 3) -> float:
    variables = [labels(v) if v.dtype.kind == "i" else Variable.of_values(v) for v in (x, y, given)]
    return conditional_information(*variables, k=k)


# Information given a third variable ----------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
@pytest.mark.parametrize(("leak", "noise"), [(0.0, 0.0), (0.0, 0.1), (0.5, 0.5), (1.0, 0.2), (0.1, 0.1)])
def test_gaussian_variables_have_the_closed_form(correlation: float, leak: float, noise: float) -> None:
    rng = np.random.default_rng(1)
    s = gaussian(2000, correlation)
    z = s[:, 0] + leak * s[:, 1] + noise * rng.normal(size=2000)
    expected = 0.5 * np.log1p(leak**2 * (1 - correlation**2) / noise**2) if noise else 0.0
    assert information(z, s[:, 1], s[:, 0]) == pytest.approx(expected, abs=0.08)


def test_monotone_maps_change_nothing() -> None:
    s = gaussian(500, 0.7)
    z = s[:, 0] + 0.4 * s[:, 1] + 0.3 * np.random.default_rng(1).normal(size=500)
    plain = information(z, s[:, 1], s[:, 0])
    assert information(np.exp(3 * z), s[:, 1] ** 3, np.arctan(s[:, 0])) == pytest.approx(plain, abs=1e-12)


def table(counts: list[list[list[int]]]) -> np.ndarray:
    """Return samples (n, 3) of x, y and c with these counts[c][x][y]."""
    return np.array([(x, y, c) for (c, x, y), count in np.ndenumerate(np.array(counts)) for _ in range(count)])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([[[5, 5], [5, 5]], [[2, 2], [2, 2]]], 0.0),  # independent in both parts
        ([[[6, 0], [0, 6]], [[4, 4], [4, 4]]], 12 / 28 * np.log(2)),  # equal in the first part only
        ([[[6, 0], [0, 6]], [[0, 3], [3, 0]]], np.log(2)),  # y is x xor c, which is independent of x alone
        ([[[9, 0], [0, 0]], [[0, 0], [0, 7]]], 0.0),  # both are c
    ],
)
def test_tables_by_hand(counts: list[list[list[int]]], expected: float) -> None:
    x, y, c = table(counts).T
    assert information(x, y, c) == pytest.approx(expected, abs=1e-12)
    assert information(y, x, c) == pytest.approx(expected, abs=1e-12)


def test_chance_of_tables_is_that_of_shuffles_within_parts() -> None:
    rng = np.random.default_rng(0)
    x, y, c = rng.integers(0, [4, 5, 3], size=(90, 3)).T
    mean, deviation = by_chance(labels(x), labels(y), labels(c), k=3, seed=0)
    drawn = []
    for _ in range(300):
        shuffled = x.copy()
        for part in range(3):
            rows = np.flatnonzero(c == part)
            shuffled[rows] = rng.permutation(x[rows])
        drawn.append(information(shuffled, y, c))
    assert mean == pytest.approx(np.mean(drawn), rel=0.05)
    assert deviation == pytest.approx(np.std(drawn), rel=0.15)


@pytest.mark.parametrize("kinds", ["dcd", "cdd", "ccd", "dcc", "cdc", "ddc"])
def test_mixed_kinds_agree_with_the_discrete_estimate(kinds: str) -> None:
    """y copies x in half of the samples; c is independent, or x almost follows from it."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, 3000)
    y = np.where(rng.random(3000) < 0.5, x, rng.integers(0, 4, 3000))
    c = rng.integers(0, 3, 3000)
    expected = information(x, y, c)
    given = [v + 1e-3 * rng.random(3000) if kind == "c" else v for v, kind in zip((x, y, c), kinds, strict=True)]
    assert information(*given) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("kinds", ["dcd", "ccd", "dcc", "ddc", "ccc"])
def test_what_follows_from_the_condition_is_within_chance(kinds: str) -> None:
    s = gaussian(1500, 0.9)
    columns = s[:, 0] + 0.05 * np.random.default_rng(1).normal(size=1500), s[:, 1], s[:, 0]
    discrete = classes(np.column_stack(columns), 6)
    if kinds[2] == "d":  # the latent follows from the classes of the condition
        columns = discrete[:, 2] + 0.3 * np.random.default_rng(2).normal(size=1500), s[:, 1], s[:, 0]
        discrete = np.column_stack([np.round(columns[0]).astype(int) + 2, discrete[:, 1], discrete[:, 2]])
    variables = [
        labels(discrete[:, i]) if kind == "d" else Variable.of_values(columns[i]) for i, kind in enumerate(kinds)
    ]
    mean, deviation = by_chance(*variables, k=3, seed=0)
    assert abs(conditional_information(*variables, k=3) - mean) < 4 * deviation


def test_entropy_given_a_variable() -> None:
    x = np.repeat([0, 1, 2, 3], 50)
    assert conditional_entropy(labels(x), labels(x // 2)) == pytest.approx(np.log(2))
    assert conditional_entropy(labels(x), labels(x)) == pytest.approx(0.0)
    assert conditional_entropy(labels(x), Variable.of_values(x // 2 + 1e-3 * RNG.random(200))) == pytest.approx(
        np.log(2), abs=0.05
    )


# Scores -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "correlation"),
    [*(("codes", c) for c in (0.0, 0.5, 0.75, 0.95)), ("continuous", 0.0), ("continuous", 0.95), ("discrete", 0.9)],
)
def test_a_copy_has_1_at_any_correlation_and_a_rotation_does_not(kind: str, correlation: float) -> None:
    rng = np.random.default_rng(5)
    s = gaussian(600, correlation, num_sources=3)
    sources = s if kind == "continuous" else classes(s, 6)
    copy, turn = sources[:, [2, 0, 1]], np.array([[2, 2, 1], [-2, 1, 2], [1, -2, 2]]) / 3
    turned = sources @ turn
    if kind == "discrete":
        copy, turned = copy + 0.1 * rng.normal(size=copy.shape), turned + 0.01 * rng.normal(size=copy.shape)
    if kind == "codes":
        turned = classes(turned, 12)
    result = conditional_infomec(sources, copy)
    assert min(result.infom, result.infoc) > 0.99
    assert result.main_source.tolist() == [2, 0, 1]
    turned_result = conditional_infomec(sources, turned)
    assert max(turned_result.infom, turned_result.infoc) < 0.6


def test_noise_has_0() -> None:
    for sources in (gaussian(400, 0.9), classes(gaussian(400, 0.9), 5)):
        for latents in (RNG.normal(size=(400, 6)), RNG.integers(0, 8, size=(400, 6))):
            result = conditional_infomec(sources, latents)
            assert (result.infom, result.infoc) == (0.0, 0.0)
            assert result.main_source.tolist() == [-1] * 6


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_for_independent_sources_it_equals_corrected_infomec(kind: str) -> None:
    s = gaussian(1000, 0.0)
    sources = s if kind == "continuous" else classes(s, 6)
    noise = np.random.default_rng(3).normal(size=(1000, 8))
    latents = np.column_stack([sources / sources.std(axis=0), -(sources[:, :2] ** 3) / 9, noise[:, :2]]) + 0.1 * noise
    conditional, plain = conditional_infomec(sources, latents), infomec(sources, latents)
    assert conditional.infom == pytest.approx(plain.infom_corrected, abs=0.03)
    assert conditional.infoc == pytest.approx(plain.infoc_corrected, abs=0.03)


def test_it_is_the_share_of_partial_correlations() -> None:
    """For Gaussian variables: squared correlation and squared partial correlation."""
    s = gaussian(5000, 0.6, num_sources=2)
    z = s[:, 0] + 0.5 * s[:, 1] + 0.5 * np.random.default_rng(1).normal(size=5000)
    own = np.corrcoef(z, s[:, 0])[0, 1] ** 2
    given = 0.25 * (1 - 0.36) / (0.25 * (1 - 0.36) + 0.25)
    expected = 2 * own / (own + given) - 1
    result = conditional_infomec(s, z[:, None])
    np.testing.assert_allclose(result.nmi[:, 0], [own, given], atol=0.03)
    assert result.infom == pytest.approx(expected, abs=0.06)


def test_a_source_that_only_others_imply_is_missing_in_infoc() -> None:
    s = gaussian(800, 0.9)
    result = conditional_infomec(s, s[:, :3])
    assert result.infom > 0.99
    assert result.infoc == pytest.approx(0.75, abs=0.01)


def test_a_source_that_is_a_function_of_another() -> None:
    rng = np.random.default_rng(0)
    fine = rng.integers(0, 8, 1000)
    sources = np.column_stack([fine, fine // 4, rng.integers(0, 3, 1000)])
    copy = conditional_infomec(sources, sources)
    assert (copy.infom, copy.infoc) == (1.0, 1.0)
    assert copy.main_source.tolist() == [0, 1, 2]
    noisy = sources + 0.6 * rng.normal(size=sources.shape)  # says more, as a share, about the coarse source
    assert conditional_infomec(sources, noisy).infom > 0.97


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_sources_that_repeat_another_count_once(kind: str) -> None:
    s = gaussian(500, 0.5) if kind == "continuous" else classes(gaussian(500, 0.5), 5)
    with pytest.warns(UserWarning, match=r"sources 1 and 4 determine each other; they count as one source, 1"):
        result = conditional_infomec(np.column_stack([s, 7 - 2 * s[:, 1]]), s)
    assert (result.infom, result.infoc) == (1.0, 1.0)
    assert result.nmi.shape == (5, 4)


@pytest.mark.parametrize("n", [3, 5, 20])
def test_tiny_samples_have_finite_scores(n: int) -> None:
    rng = np.random.default_rng(n)
    for sources in (rng.normal(size=(n, 3)), np.arange(n)[:, None] % 2 + np.zeros((1, 2), dtype=int)):
        for latents in (rng.normal(size=(n, 2)), np.arange(2 * n).reshape(n, 2) // 4):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = conditional_infomec(sources, latents)
            assert 0.0 <= result.infom <= 1.0
            assert 0.0 <= result.infoc <= 1.0


def test_constant_sources_and_latents() -> None:
    s = np.column_stack([gaussian(300, 0.8), np.ones(300)])
    with pytest.warns(UserWarning, match="constant sources"):
        result = conditional_infomec(s, s)  # its last latent is constant, too
    assert (result.infom, result.infoc) == (1.0, 1.0)
    with pytest.warns(UserWarning, match="no latent is active"):
        assert conditional_infomec(s[:, :2], np.zeros((300, 2))).infom == 0.0
    with pytest.raises(ValueError, match="every source is constant"):
        conditional_infomec(np.ones((300, 2)), s)


def test_classes_that_never_repeat_are_no_source() -> None:
    names = np.arange(200)
    assert conditional_infomec(np.column_stack([names, names % 3]), RNG.integers(0, 5, (200, 2))).infom == 0.0
    with pytest.raises(ValueError, match="every sample has a different label"):
        conditional_infomec(names, RNG.normal(size=(200, 2)))


def test_a_single_source_and_strings() -> None:
    words = np.array(["a", "b", "c"])[RNG.integers(0, 3, (300, 1))]
    result = conditional_infomec(words, np.unique(words, return_inverse=True)[1].reshape(-1, 1))
    assert (result.infom, result.infoc) == (1.0, 1.0)


def test_it_is_a_metric_of_the_table() -> None:
    s = classes(gaussian(300, 0.8), 4)
    scores = score(s, s, metrics=["infomec", "conditional_infomec"], bootstrap=2)
    assert scores["infom_conditional"] == conditional_infomec(s, s).infom == 1.0
    assert "infom_conditional" in scores.intervals
    assert json.loads(json.dumps(scores.to_dict()))["conditional_infomec"]["main_source"] == [0, 1, 2, 3]
    assert "conditional InfoM 1.000 (4 of 4 active latents informative)" in str(scores)
