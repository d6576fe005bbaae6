"""The logistic regressions of InfoE: the published path, and products with one-hot codes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from qlae.metrics import logistic, newton
from qlae.metrics.infoe import DenseFeatures, fit_balanced
from qlae.metrics.logistic import OneHotFeatures

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
    features = OneHotFeatures(codes, SIZES)
    weights, residuals = rng.normal(size=(X.shape[1], 3)), rng.normal(size=(X.shape[0], 3))
    np.testing.assert_allclose(features.forward(weights), X @ weights, atol=1e-12)
    np.testing.assert_allclose(features.backward(residuals), X.T @ residuals, atol=1e-10)


@pytest.mark.parametrize("size", [2, 4])
def test_the_published_fit_follows_scikit_learn(sample: tuple[np.ndarray, np.ndarray], size: int) -> None:
    codes, labels = sample
    labels, X = np.minimum(labels, size - 1), one_hot(codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=np.inf, tol=1e-4, max_iter=100, class_weight="balanced").fit(X, labels)
    theirs = -model.predict_log_proba(X)[np.arange(labels.size), labels].mean()
    assert fit_balanced(OneHotFeatures(codes, SIZES), labels, size) == pytest.approx(theirs, abs=1e-6)
    assert fit_balanced(DenseFeatures(X), labels, size) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("kind", ["codes", "continuous"])
def test_large_problems_are_solved_block_by_block_to_the_same_loss(
    sample: tuple[np.ndarray, np.ndarray], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, labels = sample

    def fit() -> newton.Fit:
        if kind == "codes":
            return logistic.fit_codes(codes, SIZES, labels, 4, tolerance=1e-5)
        return logistic.fit_continuous(logistic.whiten(codes.astype(float)), labels, 4, tolerance=1e-5)

    whole = fit()
    for module in (logistic, newton):
        monkeypatch.setattr(module, "LARGE", 1000)
    monkeypatch.setattr(newton, "_BLOCK_ENTRIES", 8000)  # 2,000 of the 6,000 samples
    in_blocks = fit()
    assert whole.converged
    assert in_blocks.converged
    assert in_blocks.loss == pytest.approx(whole.loss, abs=3e-5)


def test_separable_classes_have_no_loss_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (logistic, newton):
        monkeypatch.setattr(module, "LARGE", 100)
    monkeypatch.setattr(newton, "_BLOCK_ENTRIES", 300)
    values = np.random.default_rng(0).normal(size=(400, 2))
    labels = (values[:, 0] > 0.1).astype(int) + (values[:, 0] > 1.0)
    gap = values + labels[:, None]
    assert logistic.fit_continuous(logistic.whiten(gap), labels, 3, tolerance=1e-6).loss < 1e-4
