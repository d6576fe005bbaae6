"""Changes of a sample that must not change a score, checked on random samples."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qlae.metrics import dci, explicitness, infomec, irs, mcc, mig, modularity, mutual_information, nmi, sap

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def samples(draw: st.DrawFn) -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    """Sources, continuous latents and codes, with more or less noise."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(40, 150))
    sizes = draw(st.lists(st.integers(2, 6), min_size=1, max_size=3))
    sources = np.column_stack([np.resize(rng.permutation(size), n)[rng.permutation(n)] for size in sizes])
    mix = rng.normal(size=(len(sizes), draw(st.integers(1, 4))))
    values = sources @ mix + draw(st.floats(0.05, 2.0)) * rng.normal(size=(n, mix.shape[1]))
    codes = np.floor(3 * values / values.std()).astype(int)
    return rng, sources, values, codes


def triple(sources: np.ndarray, latents: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = infomec(sources, latents, corrected=False)
    return np.array([result.infom, result.infoe, result.infoc])


@QUICK
@given(samples())
def test_the_order_of_samples_does_not_matter(sample) -> None:
    rng, sources, values, codes = sample
    order = rng.permutation(len(sources))
    np.testing.assert_allclose(triple(sources, codes), triple(sources[order], codes[order]), atol=1e-4)
    np.testing.assert_allclose(
        nmi(sources, values, jitter=False), nmi(sources[order], values[order], jitter=False), atol=1e-12
    )


@QUICK
@given(samples())
def test_the_order_of_latents_does_not_matter(sample) -> None:
    rng, sources, values, codes = sample
    order = rng.permutation(codes.shape[1])
    np.testing.assert_allclose(triple(sources, codes), triple(sources, codes[:, order]), atol=1e-4)
    np.testing.assert_allclose(
        nmi(sources, values, jitter=False)[:, order], nmi(sources, values[:, order], jitter=False), atol=1e-12
    )


@QUICK
@given(samples())
def test_names_of_codes_and_sources_do_not_matter(sample) -> None:
    rng, sources, _, codes = sample
    codes = codes - codes.min()
    other = np.column_stack([rng.permutation(codes.max() + 1)[column] * 3 - 50 for column in codes.T])
    renamed = np.column_stack([rng.permutation(column.max() + 1)[column] for column in sources.T])
    np.testing.assert_allclose(triple(sources, codes), triple(renamed, other), atol=1e-4)


@QUICK
@given(samples(), st.floats(0.01, 100), st.floats(-1000, 1000), st.booleans())
def test_scale_shift_and_sign_of_a_continuous_latent_do_not_matter(sample, scale, shift, flip) -> None:
    _, sources, values, _ = sample
    moved = (-scale if flip else scale) * values + shift
    np.testing.assert_allclose(nmi(sources, values), nmi(sources, moved), atol=0.02)


def test_the_scale_of_latents_does_not_matter_to_sap() -> None:
    values = np.random.default_rng(0).normal(size=(300, 2))
    assert sap(values * 1e-9, values * 1e-9).score == pytest.approx(sap(values, values).score, abs=1e-9)


def test_large_scales_and_offsets_change_no_score() -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, [4, 3], size=(400, 2))
    smooth = rng.uniform(size=(400, 2))

    def scores(sources: np.ndarray, latents: np.ndarray) -> list[float]:
        trees = dci(sources, latents, num_trees=5)
        scores = [*triple(sources, latents), trees.d, trees.i, mcc(sources, latents).score]
        return [*scores, explicitness(sources, latents).score] if sources.dtype.kind == "i" else scores

    for s in (sources, smooth):
        latents = s + 0.3 * rng.normal(size=s.shape)
        expected = scores(s, latents)
        for moved in (latents * 2.0**-40, latents * 2.0**-900, latents * 2.0**80, latents + 2.0**30):
            np.testing.assert_allclose(scores(s, moved), expected, atol=1e-5)
        np.testing.assert_allclose(scores(s, latents * [1e-3, 1])[3:], expected[3:], atol=1e-5)
        if s is smooth:
            for moved in (s * 2.0**-40, s * 2.0**-900, s + 2.0**30):
                np.testing.assert_allclose(scores(moved, latents), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_large_scales_and_offsets_do_not_change_boosted_trees(kind: str) -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 3, size=(150, 1)) if kind == "discrete" else rng.uniform(size=(150, 1))
    latents = sources + 0.3 * rng.normal(size=(150, 2))
    expected = dci(sources, latents, protocol="disentanglement_lib")
    for moved in (latents * 2.0**-900, latents * 2.0**80, latents + 2.0**30):
        result = dci(sources, moved, protocol="disentanglement_lib")
        np.testing.assert_allclose([result.d, result.i], [expected.d, expected.i], atol=1e-5)


def test_codes_too_large_for_floats_count_as_labels() -> None:
    rng = np.random.default_rng(0)
    names = 2**62 + np.arange(5)
    index = rng.integers(0, 5, size=(300, 2))
    assert sap(index, names[index]).score == sap(index, index).score
    assert dci(names[index], names[index], num_trees=5).d == dci(index, index, num_trees=5).d
    assert mcc(names[index], index).score == pytest.approx(1.0)


def test_booleans_may_be_declared_continuous() -> None:
    rng = np.random.default_rng(0)
    sources = rng.random((200, 2)) < 0.5
    latents = sources + rng.normal(size=(200, 2))
    numbers = infomec(sources.astype(float), latents, source_kinds="continuous")
    assert infomec(sources, latents, source_kinds="continuous").infoe == numbers.infoe


def test_a_monotone_map_moves_nmi_by_little() -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 5, size=(4000, 2))
    values = sources + 0.4 * rng.normal(size=sources.shape)
    plain = nmi(sources, values)
    for bent in (np.exp(values / 3), values**3 + values, np.arctan(values)):
        np.testing.assert_allclose(nmi(sources, bent), plain, atol=0.02)


@QUICK
@given(samples())
def test_every_score_lies_between_0_and_1(sample) -> None:
    _, sources, values, codes = sample
    for latents in (values, codes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scores = [*triple(sources, latents)]
            scores += [metric(sources, latents).score for metric in (mig, sap, modularity, explicitness, irs, mcc)]
        assert all(0.0 <= score <= 1.0 for score in scores), scores


@settings(max_examples=8, deadline=None)
@given(samples())
def test_dci_lies_between_0_and_1(sample) -> None:
    _, sources, values, _ = sample
    result = dci(sources, values, num_trees=5, depths=[1, 3])
    assert all(0.0 <= score <= 1.0 for score in (result.d, result.c, result.i))


@QUICK
@given(samples())
def test_information_of_codes_is_symmetric_and_bounded(sample) -> None:
    _, sources, _, codes = sample
    matrix = mutual_information(sources, codes)
    np.testing.assert_allclose(matrix, mutual_information(codes, sources).T, atol=1e-12)
    own = np.diag(mutual_information(sources, sources))  # the entropies
    assert np.all(matrix <= own[:, None] + 1e-12)


@QUICK
@given(samples())
def test_merging_codes_loses_information(sample) -> None:
    _, sources, _, codes = sample
    assert np.all(nmi(sources, codes // 2) <= nmi(sources, codes) + 1e-12)


@QUICK
@given(samples())
def test_a_linear_model_of_codes_knows_at_least_what_each_code_knows(sample) -> None:
    _, sources, _, codes = sample
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = infomec(sources, codes, corrected=False)
    assert np.all(result.infoe_per_source >= result.nmi.max(axis=1) - 1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_seed_one_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sources = rng.integers(0, 4, size=(200, 2))
    latents = np.round(sources + rng.normal(size=(200, 2)), 1)  # ties, so that the jitter matters
    first, second = infomec(sources, latents, seed=seed), infomec(sources, latents, seed=seed)
    np.testing.assert_array_equal(first.nmi, second.nmi)
    assert first.to_dict() == second.to_dict()


def test_modularity_of_latents_equally_informative_about_every_source_is_exactly_0() -> None:
    latents = np.random.default_rng(0).integers(0, 5, (200, 50))
    for latent in latents.T:
        assert modularity(np.repeat(latent[:, None] % 2, 3, axis=1), latent[:, None]).score >= 0.0
