"""The KSG estimators against exact values, scikit-learn and hand-made samples."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixture_cases import CONTINUOUS, FOLDER, expected, load
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from qlae.metrics import mutual_information, nmi

PAIRS = np.load(FOLDER / "ksg_pairs.npz", allow_pickle=False)
RECORDED = json.loads((FOLDER / "ksg_expected.json").read_text())


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("pair", sorted(RECORDED))
def test_recorded_pairs(pair: str, k: int) -> None:
    recorded = RECORDED[pair][f"k={k}"]
    labels, values = PAIRS[f"d_{pair}"], PAIRS[f"c_{pair}"]
    if isinstance(recorded.get("random_state_0"), str):
        with pytest.raises(ValueError, match="never repeat"):
            mutual_information(labels, values, k=k)
        return
    ours = mutual_information(labels, values, k=k).item()
    if recorded.get("direct") is not None:
        exact = mutual_information(labels, values, k=k, jitter=False).item()
        assert exact == pytest.approx(recorded["direct"], abs=1e-9)
    counts = np.unique(labels, return_counts=True)[1]
    counts = counts[counts > 1]
    offset = "offset" in RECORDED[pair]["note"]
    if not RECORDED[pair]["ties"] and counts.min() > 2 * k + 1:
        assert ours == pytest.approx(recorded["random_state_0"], abs=0.01 if offset else 1e-9)
    else:
        wide = recorded["max"] - recorded["min"] + 0.03
        exact_low = recorded["direct"] if recorded.get("direct") is not None else np.inf
        assert recorded["min"] - wide <= ours <= max(recorded["max"] + wide, exact_low + 1e-3)


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_without_jitter_the_estimate_is_exact(name: str, k: int) -> None:
    recorded = np.array(expected(name, f"direct-ross[k={k}]", "nmi"), dtype=float)  # null becomes NaN
    if recorded.ndim == 0:
        pytest.skip("too many ties for an exact value")
    sources, latents = load(name)
    ours = nmi(sources, latents, k=k, jitter=False)
    known = np.isfinite(recorded)
    np.testing.assert_allclose(ours[known], recorded[known], atol=1e-9)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_equals_scikit_learn_for_the_same_seed(k: int) -> None:
    rng = np.random.default_rng(k)
    sources = np.column_stack([rng.integers(0, size, 1500) for size in (2, 7, 30)])
    latents = sources @ rng.normal(size=(3, 5)) * 0.3 + rng.normal(size=(1500, 5))
    ours = mutual_information(sources, latents, k=k, seed=5)
    theirs = [
        mutual_info_classif(latents, s, discrete_features=False, n_neighbors=k, random_state=5) for s in sources.T
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_continuous_pairs_equal_scikit_learn_for_the_same_seed() -> None:
    rng = np.random.default_rng(0)
    sources = rng.normal(size=(800, 2))
    latents = sources @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(800, 3))
    ours = mutual_information(sources, latents, seed=2)
    theirs = [mutual_info_regression(latents, s, n_neighbors=3, random_state=2) for s in sources.T]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    codes = np.digitize(latents, [-1.0, 0.0, 1.0])
    ours = mutual_information(sources, codes, seed=2)
    theirs = [
        mutual_info_regression(codes, s, discrete_features=True, n_neighbors=3, random_state=2) for s in sources.T
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_ross_by_hand() -> None:
    # Two labels, two samples each, k = 1: radii 1 and 1 (label 0), 1 and 1 (label 1); nobody else within.
    from scipy.special import digamma

    labels, values = np.array([0, 0, 1, 1]), np.array([0.0, 1.0, 10.0, 11.0])
    by_hand = digamma(4) + digamma(1) - digamma(2) - digamma(1)
    assert mutual_information(labels, values, k=1, jitter=False).item() == pytest.approx(by_hand)


def test_gaussian_pair_in_closed_form() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=20_000)
    y = 0.8 * x + 0.6 * rng.normal(size=x.size)  # correlation 0.8
    assert mutual_information(x, y).item() == pytest.approx(-0.5 * np.log(1 - 0.64), abs=0.02)
    assert nmi(x, y).item() == pytest.approx(0.64, abs=0.02)


def test_k_must_be_positive() -> None:
    with pytest.raises(ValueError, match="k is "):
        mutual_information([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], k=0)
