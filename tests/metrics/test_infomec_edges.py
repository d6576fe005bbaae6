"""Where the published code divides 0 by 0 or raises: defined values here; and answers known by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixture_cases import expected, load
from sklearn.exceptions import ConvergenceWarning

from qlae.metrics import infomec, logistic, newton, nmi
from qlae.metrics.logistic import fit_codes, fit_continuous, whiten
from qlae.metrics.newton import minimise

GRID = np.stack(np.meshgrid(range(4), range(3), range(5), indexing="ij"), -1).reshape(-1, 3)


def test_identity_permuted_and_relabelled() -> None:
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.permutation(10)[GRID[:, i]] for i in (2, 0, 1)])
    result = infomec(GRID, codes)
    assert (result.infom, result.infoe, result.infoc) == (1.0, 1.0, 1.0)
    assert result.infoe_input == "one-hot"
    np.testing.assert_allclose(result.nmi, np.eye(3)[:, [2, 0, 1]], atol=1e-12)


def test_duplicates_halve_compactness() -> None:
    # Two latents per source: the largest share of a row is 1/2, mapped from [1/6, 1] to [0, 1].
    result = infomec(GRID, np.hstack([GRID, GRID]))
    assert result.infom == 1.0
    assert result.infoc == pytest.approx((1 / 2 - 1 / 6) / (1 - 1 / 6))


def test_a_known_mixture() -> None:
    # One latent encodes both bits, so each source completely: NMI (1, 1), ratio 1/2, InfoM 0, InfoC 1 (one latent).
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    result = infomec(bits, bits[:, :1] * 2 + bits[:, 1:])
    np.testing.assert_allclose(result.nmi, [[1.0], [1.0]], atol=1e-12)
    assert result.infom == pytest.approx(0.0, abs=1e-12)
    assert result.infoc == 1.0
    assert result.infoe == 1.0


def test_exclusive_or_is_invisible_to_single_latents_and_linear_models() -> None:
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    result = infomec(bits[:, 0] ^ bits[:, 1], bits)
    np.testing.assert_allclose(result.nmi, 0.0, atol=1e-12)
    assert result.infoe == pytest.approx(0.0, abs=1e-6)
    assert not result.informative.any()


def test_one_hot_and_scalar_differ_where_codes_are_not_ordered() -> None:
    codes = np.repeat(np.arange(6), 40)
    source = np.array([0, 1, 0, 1, 0, 1])[codes]
    result = infomec(source, codes)
    assert result.infoe == 1.0
    assert result.infoe_scalar is not None
    assert result.infoe_scalar < 0.1


@pytest.mark.parametrize("protocol", ["paper", "official-train", "official-standalone", "tripod"])
def test_no_active_latent(protocol: str) -> None:
    sources, latents = load("all_constant_codes")
    with pytest.warns(UserWarning, match="no latent is active"):
        result = infomec(sources, latents, protocol=protocol)
    assert (result.infom, result.infoe, result.infoc, result.num_active) == (0.0, 0.0, 0.0, 0)
    with pytest.warns(UserWarning, match="no latent is active"):
        assert infomec(sources, np.full((200, 2), 0.3), protocol=protocol).infom == 0.0


def test_one_active_latent_is_compact() -> None:
    assert expected("one_active_codes", "official-standalone", "infoc") == "NaN"
    result = infomec(*load("one_active_codes"))
    assert result.infoc == 1.0
    assert result.infom == pytest.approx(expected("one_active_codes", "official-standalone", "infom"), abs=1e-9)


def test_one_source_is_modular() -> None:
    assert expected("single_source", "official-standalone", "infom") == "NaN"
    assert infomec(*load("single_source")).infom == 1.0


def test_a_latent_without_information_is_left_out() -> None:
    assert expected("small_n_continuous", "official-standalone", "infom") == "NaN"
    result = infomec(*load("small_n_continuous"), protocol="official-standalone")
    kept = result.nmi[:, result.nmi.sum(axis=0) > 0]
    by_hand = (np.mean(kept.max(axis=0) / kept.sum(axis=0)) - 1 / 3) / (1 - 1 / 3)
    assert result.infom == pytest.approx(by_hand)


def test_constant_sources_are_left_out() -> None:
    sources, latents = load("constant_source")
    with pytest.warns(UserWarning, match="left out of the scores.*columns 2"):
        result = infomec(sources, latents)
    without = infomec(sources[:, :2], latents)
    assert (result.infom, result.infoe, result.infoc) == (without.infom, without.infoe, without.infoc)
    np.testing.assert_array_equal(result.nmi[2], 0.0)
    recorded = expected("constant_source", "official-standalone[unweighted,converged]", "infoe_per_source")
    np.testing.assert_allclose(result.infoe_per_source[:2], recorded[:2], atol=1e-4)
    with pytest.warns(UserWarning, match="left out of the scores, except InfoM by this protocol"):
        train = infomec(sources, latents, protocol="official-train")
    assert train.infom == pytest.approx(expected("constant_source", "official-train", "infom"), abs=1e-9)


def test_only_constant_sources_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="every source is constant"):
        infomec(np.ones((10, 2), dtype=int), np.arange(20).reshape(10, 2))


def test_noise_is_not_informative() -> None:
    result = infomec(*load("noise_only_continuous"))
    assert result.infom > 0.4  # as published: a ratio of two small numbers is not small
    assert not result.informative.any()
    assert "(0 of 4 active latents informative)" in str(result)
    np.testing.assert_array_equal(
        infomec(*load("noise_codes")).informative, [True, False, True, True, False, False, False]
    )


def test_two_samples() -> None:
    result = infomec([[0], [1]], [[0], [1]])
    assert result.infoe == 1.0
    assert 0.0 <= infomec([[0], [1], [0], [1]], [[0.1], [0.9], [0.2], [0.8]]).infoe <= 1.0


def test_a_constant_continuous_latent_has_no_information() -> None:
    sources, latents = load("inactive_continuous")
    matrix = nmi(sources, latents)
    np.testing.assert_array_equal(matrix[:, [1, 4]], 0.0)


def test_perfect_separation_gives_exactly_one() -> None:
    rng = np.random.default_rng(0)
    source = rng.integers(0, 7, 500)
    assert infomec(source, source[:, None] + rng.uniform(-0.3, 0.3, size=(500, 1))).infoe == 1.0
    assert infomec(source, 20 - 3 * source).infoe_scalar == 1.0


def test_two_classes_in_closed_form() -> None:
    # One binary code: the best logistic model predicts the class shares of each code.
    codes = np.repeat([0, 1], 100)
    source = np.concatenate([np.repeat([0, 1], [80, 20]), np.repeat([0, 1], [30, 70])])
    binary = lambda p: -(p * np.log(p) + (1 - p) * np.log(1 - p))  # noqa: E731
    by_hand = 1 - (binary(0.2) + binary(0.7)) / 2 / binary(0.45)
    result = infomec(source, codes)
    assert result.infoe == pytest.approx(by_hand, abs=1e-7)
    assert result.infoe_scalar == pytest.approx(by_hand, abs=1e-7)


def test_a_fit_that_could_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried(*arguments, **options):
        return minimise(*arguments, **options, max_iterations=1)

    monkeypatch.setattr("qlae.metrics.logistic.minimise", hurried)
    sources, latents = load("noisy_medium")
    with pytest.warns(ConvergenceWarning, match="InfoE is a lower bound"):
        infomec(sources, latents)


def test_more_classes_than_the_full_hessian_takes() -> None:
    # 60 classes × 17 features: beyond the size up to which the Hessian is built whole.
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    source = rng.integers(0, 60, 1500)
    latents = rng.normal(size=(60, 16))[source] * 0.4 + rng.normal(size=(1500, 16))
    fit = fit_continuous(whiten(latents), source, 60, tolerance=1e-6)
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=5000).fit(latents, source)
    loss = -model.predict_log_proba(latents)[np.arange(1500), source].mean()
    assert fit.converged
    assert fit.loss == pytest.approx(loss, abs=2e-4)


def test_the_full_hessian_and_its_blocks_give_the_same_fit(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 800)
    codes = np.where(rng.random((800, 4)) < 0.4, rng.integers(0, 6, (800, 4)), labels[:, None])
    losses, built = [], []
    full_solver = logistic.full_solver
    monkeypatch.setattr(logistic, "full_solver", lambda *a, **k: built.append(1) or full_solver(*a, **k))
    for hard in (10**6, 0):
        monkeypatch.setattr(logistic, "_HARD", hard)
        fit = fit_codes(codes, [6] * 4, labels, 5, tolerance=1e-8)
        assert fit.converged
        losses.append(fit.loss)
        assert bool(built) == (hard == 0)
    assert losses[0] > 0.1
    assert losses[1] == pytest.approx(losses[0], abs=1e-7)


@pytest.mark.parametrize("promised", [5e-7, 0.0])
def test_steps_that_fail_in_single_precision_are_computed_in_double(promised: float, monkeypatch) -> None:
    # Nearly separated classes do that: the step promises next to nothing, leads uphill, and is the same next time.
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 500)
    codes = np.where(rng.random((500, 3)) < 0.3, rng.integers(0, 4, (500, 3)), labels[:, None])
    wanted = fit_codes(codes, [4] * 3, labels, 4, tolerance=1e-6)
    solved = newton._conjugate_gradients
    spoiled = 0

    def solve(design, probabilities, *how):
        nonlocal spoiled
        step, *rest = solved(design, probabilities, *how)
        if probabilities.dtype == np.float64:
            return step, *rest
        spoiled += 1
        return -step, promised, True, rest[-1]

    monkeypatch.setattr(newton, "_DOUBLE_STEPS", 0)
    monkeypatch.setattr(newton, "_conjugate_gradients", solve)
    fit = fit_codes(codes, [4] * 3, labels, 4, tolerance=1e-6)
    assert spoiled == 1
    assert fit.converged
    assert fit.loss == pytest.approx(wanted.loss, abs=1e-6)


def test_the_result_is_frozen_and_plain() -> None:
    result = infomec(GRID, GRID)
    with pytest.raises(AttributeError):
        result.infom = 0.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        result.nmi[0, 0] = 0.0
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["infom"] == 1.0
    assert plain["active"] == 3
    assert plain["infoe_scalar"] == 1.0
    assert "infoe_scalar" not in infomec(GRID, GRID + 0.1 * np.sin(np.arange(60))[:, None]).to_dict()
    assert repr(result).startswith("InfoMEC(InfoM 1.000")


def test_codes_stored_as_floats_raise_a_warning() -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 4, size=(300, 1))
    with pytest.warns(UserWarning, match="if they are codes, pass integers"):
        infomec(sources, sources / 3 - 0.5)


def test_a_large_codebook_takes_the_diagonal_preconditioner(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, latents = load("quantized_mixes")
    blocks = infomec(sources, latents).infoe_per_source
    monkeypatch.setattr("qlae.metrics.logistic._BLOCK_WORK", 0)
    diagonal = infomec(sources, latents).infoe_per_source
    np.testing.assert_allclose(diagonal, blocks, atol=3e-5)
    recorded = expected("quantized_mixes", "official-standalone[unweighted,converged]", "infoe_per_source")
    np.testing.assert_allclose(diagonal, recorded, atol=1e-4)
