"""The logistic regressions of InfoE: the published path, products with one-hot codes, and very many samples."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from qlae.metrics import newton
from qlae.metrics.infoe import DenseFeatures, fit_balanced
from qlae.metrics.logistic import OneHotFeatures, fit_codes, fit_continuous, whiten

SIZES = (7, 12, 30, 5)


@pytest.fixture(scope="module")
def sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, 6000) for size in SIZES])
    score = codes[:, 0] + 0.3 * codes[:, 1] + rng.normal(size=6000)
    return codes, np.digitize(score, [1.5, 4.0, 6.5])


def one_hot(codes: np.ndarray) -> np.ndarray:
    return np.hstack([np.eye(size)[column] for size, column in zip(SIZES, codes.T, strict=True)])


def test_products_are_those_of_the_one_hot_matrix(sample: tuple[np.ndarray, np.ndarray]) -> None:
    codes, _ = sample
    rng, X = np.random.default_rng(1), one_hot(codes)
    features = OneHotFeatures(codes, SIZES, double=True)
    weights, residuals = rng.normal(size=(X.shape[1], 3)), rng.normal(size=(X.shape[0], 3))
    np.testing.assert_allclose(features.forward(weights), X @ weights, atol=1e-12)
    np.testing.assert_allclose(features.backward(residuals), X.T @ residuals, atol=1e-10)
    blocks = features.blocks(2500)
    forward = np.concatenate([block.forward(weights.astype(np.float32)) for block in blocks])
    np.testing.assert_allclose(forward, X @ weights, atol=1e-5)


@pytest.mark.parametrize("size", [2, 4])
def test_the_published_fit_follows_scikit_learn(sample: tuple[np.ndarray, np.ndarray], size: int) -> None:
    codes, labels = sample
    labels, X = np.minimum(labels, size - 1), one_hot(codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=np.inf, tol=1e-4, max_iter=100, class_weight="balanced").fit(X, labels)
    theirs = -model.predict_log_proba(X)[np.arange(labels.size), labels].mean()
    assert fit_balanced(OneHotFeatures(codes, SIZES, double=True), labels, size) == pytest.approx(theirs, abs=1e-6)
    assert fit_balanced(DenseFeatures(X), labels, size) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("noise", [1.0, 0.25])
def test_a_part_of_many_samples_leads_to_the_same_minimum(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    rng = np.random.default_rng(2)
    codes = np.column_stack([rng.integers(0, size, 20_000) for size in SIZES])
    labels = np.digitize(codes[:, 0] + 0.3 * codes[:, 1] + noise * rng.normal(size=20_000), [1.5, 4.0, 6.5])
    features = whiten(codes.astype(float))
    direct = fit_codes(codes, SIZES, labels, 4, tolerance=1e-6), fit_continuous(features, labels, 4, tolerance=1e-6)
    monkeypatch.setattr(newton, "MANY", 1000)
    monkeypatch.setattr(newton, "_PART", 2000)
    monkeypatch.setattr(newton, "_DOUBTFUL", 4000)
    many = fit_codes(codes, SIZES, labels, 4, tolerance=1e-6), fit_continuous(features, labels, 4, tolerance=1e-6)
    for ours, whole in zip(many, direct, strict=True):
        assert ours.converged
        assert ours.loss == pytest.approx(whole.loss, abs=2e-5)
