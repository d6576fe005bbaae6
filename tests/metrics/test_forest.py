"""One forest at every depth, and DCI by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from qlae.metrics import dci
from qlae.metrics.dci import specificity
from qlae.metrics.forest import read_prefixes


@pytest.fixture(scope="module")
def mixture() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 5, size=(600, 3))
    return sources, sources @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(600, 4))


@pytest.mark.parametrize("depth", [1, 3, 7])
def test_a_forest_at_its_full_depth_equals_scikit_learns(mixture: tuple[np.ndarray, np.ndarray], depth: int) -> None:
    sources, latents = mixture
    forest = RandomForestClassifier(20, criterion="entropy", max_depth=depth, random_state=0)
    forest.fit(latents[:500], sources[:500, 0])
    predictions, importances = read_prefixes(forest, latents[500:], [depth])
    np.testing.assert_array_equal(predictions[0], forest.predict_proba(latents[500:]))
    np.testing.assert_allclose(importances[0], forest.feature_importances_, atol=1e-15)


def test_a_regression_forest_too(mixture: tuple[np.ndarray, np.ndarray]) -> None:
    sources, latents = mixture
    forest = RandomForestRegressor(20, max_depth=6, random_state=0).fit(latents[:500], sources[:500, 1])
    predictions, importances = read_prefixes(forest, latents[500:], [6, 2])
    np.testing.assert_allclose(predictions[0, :, 0], forest.predict(latents[500:]), atol=1e-12)
    np.testing.assert_allclose(importances[0], forest.feature_importances_, atol=1e-14)


def test_a_prefix_is_the_truncated_tree() -> None:
    # Without random choices a tree fitted at depth 2 is the beginning of the tree fitted at depth 6.
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    options = {"criterion": "entropy", "bootstrap": False, "max_features": None, "random_state": 0}
    deep = RandomForestClassifier(1, max_depth=6, **options).fit(X, y)
    shallow = RandomForestClassifier(1, max_depth=2, **options).fit(X, y)
    predictions, importances = read_prefixes(deep, X, [2])
    np.testing.assert_allclose(predictions[0], shallow.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(importances[0], shallow.feature_importances_, atol=1e-12)


def test_the_curve_and_the_chosen_depth(mixture: tuple[np.ndarray, np.ndarray]) -> None:
    result = dci(*mixture, num_trees=20, depths=[1, 2, 4, 8])
    assert result.accuracy_by_depth is not None
    assert result.depth is not None
    assert result.accuracy_by_depth.shape == (3, 4)
    np.testing.assert_array_equal(result.depth, np.array([1, 2, 4, 8])[result.accuracy_by_depth.argmax(axis=1)])
    np.testing.assert_array_equal(result.accuracy, result.accuracy_by_depth.max(axis=1))
    np.testing.assert_allclose(result.importance.sum(axis=1), 1.0)


def test_identity_with_all_features_is_perfect() -> None:
    sources = np.random.default_rng(0).integers(0, [4, 6, 3], size=(800, 3))
    result = dci(sources, sources[:, [2, 0, 1]], num_trees=10, max_features=None)
    assert (result.d, result.c, result.i) == (1.0, 1.0, 1.0) or min(result.d, result.c, result.i) > 0.999
    np.testing.assert_array_equal(result.importance.argmax(axis=1), [1, 2, 0])


def test_continuous_sources_are_regressed() -> None:
    rng = np.random.default_rng(0)
    sources = rng.normal(size=(600, 2))
    result = dci(sources, np.column_stack([sources, rng.normal(size=600)]), num_trees=20, max_features=None)
    assert result.d > 0.9
    assert result.i > 0.9


def test_specificity_by_hand() -> None:
    matrix = np.array([[0.8, 0.2], [0.0, 1.0]])
    entropy = -(0.8 * np.log2(0.8) + 0.2 * np.log2(0.2))
    assert specificity(matrix) == pytest.approx((1 - entropy + 1) / 2, abs=1e-8)
    assert specificity(np.zeros((2, 3))) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "linear"}, "allowed are 'paper', 'tripod'"),
        ({"depths": []}, "depths are empty"),
        ({"depths": [0, 3]}, "give a whole number of at least 1"),
        ({"protocol": "disentanglement_lib", "depths": [3]}, "depths belong to random forests"),
    ],
)
def test_invalid_options(mixture: tuple[np.ndarray, np.ndarray], options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dci(*mixture, **options)
