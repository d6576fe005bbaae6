"""One forest at every depth, and DCI by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from qlae.metrics import dci, score
from qlae.metrics.compiled_forest import predict_by_depth
from qlae.metrics.dci import specificity
from qlae.metrics.forest import features_per_split, forest_by_depth, read_prefixes
from qlae.metrics.inputs import honest_split


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


DEPTHS = [1, 2, 4, 7]


@pytest.mark.parametrize("classify", [True, False])
def test_a_compiled_tree_without_random_choices_equals_scikit_learns(classify: bool) -> None:
    # Large nodes only, where no two features split equally well.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2400, 4)).astype(np.float32)
    signal = X @ rng.normal(size=4) + 0.5 * rng.normal(size=2400)
    y = np.digitize(signal, [-2.0, -0.5, 1.0]) if classify else signal
    options = {"max_depth": 7, "bootstrap": False, "max_features": None, "random_state": 0}
    entropy = RandomForestClassifier(1, criterion="entropy", **options)
    kind = entropy if classify else RandomForestRegressor(1, **options)
    theirs, their_importances = read_prefixes(kind.fit(X[:2000], y[:2000]), X[2000:], DEPTHS[:3])
    ours, importances = predict_by_depth(
        X[:2000],
        y[:2000],
        X[2000:],
        depths=DEPTHS[:3],
        num_classes=4 if classify else 0,
        num_trees=1,
        num_drawn=4,
        seed=0,
        n_jobs=1,
        bootstrap=False,
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(importances, their_importances, atol=1e-12)


def test_counted_levels_give_the_tree_of_sorted_levels() -> None:
    # Columns of few levels are counted, the same columns with a negligible jitter are sorted.
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 6, size=(1500, 3)).astype(float)
    labels = ((codes @ [3.0, 2.0, 1.0] + rng.normal(size=1500)) // 7).astype(int)
    options = {"depths": [3], "num_trees": 1, "num_drawn": 3, "seed": 0, "n_jobs": 1, "bootstrap": False}
    results = []
    for X in (codes, codes + 5e-8 * rng.random(size=codes.shape)):
        predictions, importances = predict_by_depth(X, labels, codes, num_classes=labels.max() + 1, **options)
        results.append((predictions, importances))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-12)


def test_constant_latents_are_passed_over_until_one_varies() -> None:
    X = np.zeros((60, 8))
    X[:, 5] = np.arange(60)
    y = (np.arange(60) >= 20).astype(int)
    for implementation in ("numba", "scikit-learn"):
        fit = forest_by_depth(
            X,
            y,
            X,
            depths=[1],
            classify=True,
            num_trees=5,
            num_drawn=1,
            seed=0,
            n_jobs=1,
            implementation=implementation,
        )
        np.testing.assert_array_equal(fit.importances[0], np.eye(8)[5])
        assert fit.scores(y)[0] > 0.9


@pytest.mark.parametrize("classify", [True, False])
def test_compiled_forests_agree_with_scikit_learns_in_distribution(
    mixture: tuple[np.ndarray, np.ndarray], classify: bool
) -> None:
    sources, latents = mixture
    target = sources[:, 0] if classify else sources @ [1.0, 0.5, 0.25]
    means, errors = [], []
    for implementation in ("numba", "scikit-learn"):
        rows = []
        for seed in range(12):
            fit = forest_by_depth(
                latents[:400],
                target[:400],
                latents[400:],
                depths=DEPTHS,
                classify=classify,
                num_trees=20,
                num_drawn=2,
                seed=seed,
                n_jobs=1,
                implementation=implementation,
            )
            rows.append(np.concatenate([fit.scores(target[400:]), fit.importances[[1, 3]].ravel()]))
        means.append(np.mean(rows, axis=0))
        errors.append(np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows)))
    t = (means[0] - means[1]) / np.hypot(*errors)
    assert np.abs(t).max() < 4.0  # of 12 numbers; both sides are seeded
    assert np.abs(means[0] - means[1]).max() < 0.06


def test_the_result_depends_on_the_seed_and_not_on_threads(mixture: tuple[np.ndarray, np.ndarray]) -> None:
    one, two, other = (
        dci(*mixture, num_trees=25, depths=[6], forest="numba", **options)
        for options in ({"n_jobs": 1}, {"n_jobs": 2}, {"seed": 1})
    )
    np.testing.assert_array_equal(one.importance, two.importance)
    assert one.i == two.i
    assert not np.array_equal(one.importance, other.importance)


def test_the_result_says_how_it_was_made(mixture: tuple[np.ndarray, np.ndarray]) -> None:
    result = dci(*mixture, num_trees=5, depths=[2, 3], forest="scikit-learn")
    assert result.to_dict()["forest"] == "scikit-learn"
    assert result.to_dict()["max_features"] == "sqrt"
    assert dci(*mixture, num_trees=5, depths=[2]).forest == "numba"
    assert "√n_z latents per split" in str(result)


def test_an_honest_split_is_at_chance_for_noise() -> None:
    rng = np.random.default_rng(0)
    sources, noise = rng.integers(0, 4, size=(1500, 4)), rng.normal(size=(1500, 6))
    paper = dci(sources, noise, num_trees=10)
    honest = dci(sources, noise, num_trees=10, split="honest")
    assert paper.i > paper.mean_chance + 0.01  # the best of 16 depths on the rows that chose it
    assert abs(honest.i - 0.25) < 0.045
    assert abs(honest.mean_chance - 0.25) < 0.045
    assert honest.to_dict()["split"] == "honest"


def test_an_honest_split_has_no_row_twice() -> None:
    rows = honest_split(101, seed=3)
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(101))
    assert [part.size for part in rows] == [81, 10, 10]
    with pytest.raises(ValueError, match="at least 3 rows"):
        honest_split(2, seed=0)


def test_options_reach_dci_through_score(mixture: tuple[np.ndarray, np.ndarray]) -> None:
    options = {"max_features": "all", "split": "honest", "num_trees": 5}
    result = score(*mixture, metrics=["dci"], metric_options={"dci": options}).results["dci"]
    direct = dci(*mixture, **options)
    assert (result.d, result.max_features, result.split) == (direct.d, "all", "honest")
    with pytest.raises(ValueError, match=r"'trees' for 'dci'.*num_trees"):
        score(*mixture, metrics=["dci"], metric_options={"dci": {"trees": 5}})


def test_the_number_of_latents_per_split() -> None:
    assert [features_per_split(value, 9) for value in (None, "sqrt", 20, 1, 1.0, 0.01)] == [9, 3, 9, 1, 9, 1]
    for wrong in ("half", 0, -1, 1.5, 0.0, True):
        with pytest.raises(ValueError, match="give 'sqrt', 'log2', 'all'"):
            features_per_split(wrong, 9)


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
        ({"protocol": "linear"}, "protocol is 'linear'"),
        ({"depths": []}, "depths are empty"),
        ({"split": "fair"}, "split is 'fair'"),
        ({"split": "honest", "protocol": "tripod"}, "has its own split"),
        ({"forest": "torch"}, "forest is 'torch'"),
        ({"max_features": "half"}, "give 'sqrt', 'log2', 'all'"),
        ({"depths": [0, 3]}, "depth is 0"),
        ({"protocol": "disentanglement_lib", "depths": [3]}, "depths"),
    ],
)
def test_invalid_options(mixture: tuple[np.ndarray, np.ndarray], options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dci(*mixture, **options)
