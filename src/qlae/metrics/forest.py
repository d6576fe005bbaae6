"""A random forest at every depth, from one fit.

A tree truncated at depth d is a prefix of the tree grown to full depth: its leaves are the nodes at depth d and the
leaves above them, its importances count the splits above depth d. So one forest, grown to the largest depth, gives the
held-out score and the importances at each smaller depth. A forest fitted at that depth differs only in random draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from .inputs import Floats

_TEST_ROWS = 2000  # test samples processed at a time


@dataclass(frozen=True, eq=False)
class ForestByDepth:
    """Held-out score (accuracy, or R² of a regression) and importances of a forest truncated at each depth."""

    depths: tuple[int, ...]
    scores: Floats  # (num_depths,)
    importances: Floats  # (num_depths, n_z); each row sums to 1, or to 0 if no tree splits


def forest_by_depth(
    train: Any,
    train_targets: Any,
    test: Any,
    test_targets: Any,
    *,
    depths: Sequence[int],
    classify: bool,
    num_trees: int,
    max_features: Any,
    seed: int,
    n_jobs: int | None,
) -> ForestByDepth:
    """Fit one forest to the largest of `depths` and evaluate it at all of them.

    Args:
        train, test: (num_rows, n_z) latents of the training and test rows.
        train_targets, test_targets: (num_rows,) labels or values of one source.
        depths: at which to truncate the forest.
        classify: whether targets are labels.
        num_trees, max_features, seed, n_jobs: of the forest, as in scikit-learn.
    """
    kind = RandomForestClassifier if classify else RandomForestRegressor
    forest = kind(
        num_trees,
        criterion="entropy" if classify else "squared_error",
        max_depth=max(depths),
        max_features=max_features,
        random_state=seed,
        n_jobs=n_jobs,
    )
    with config_context(assume_finite=True, skip_parameter_validation=True):  # already checked, not once per tree
        forest.fit(train, train_targets)
    predictions, importances = read_prefixes(forest, test, depths)
    if classify:
        predicted = forest.classes_[predictions.argmax(axis=2)]
        scores = (predicted == test_targets).mean(axis=1)
    else:
        residual = ((predictions[:, :, 0] - test_targets) ** 2).sum(axis=1)
        scores = 1.0 - residual / max(float(((test_targets - test_targets.mean()) ** 2).sum()), 1e-300)
    return ForestByDepth(tuple(depths), scores, importances)


def read_prefixes(forest: Any, test: Any, depths: Sequence[int]) -> tuple[Floats, Floats]:
    """Return mean predictions (num_depths, num_test, outputs) and importances (num_depths, n_z) of truncated trees."""
    X = np.asarray(test, dtype=np.float32)
    outputs = forest.estimators_[0].tree_.value.shape[2]
    predictions = np.zeros((len(depths), X.shape[0], outputs))
    importances = np.zeros((len(depths), X.shape[1]))
    for estimator in forest.estimators_:
        _add_tree(estimator.tree_, X, depths, predictions, importances)
    totals = importances.sum(axis=1, keepdims=True)
    return predictions / len(forest.estimators_), np.divide(importances, totals, where=totals > 0, out=importances)


def _add_tree(tree: Any, X: Any, depths: Sequence[int], predictions: Floats, importances: Floats) -> None:
    """Add one tree, truncated at each depth, to `predictions` and `importances`, in place."""
    value = tree.value[:, 0, :]
    if value.shape[1] > 1 and value[0].sum() > 1.5:  # older scikit-learn keeps counts instead of shares
        value = value / value.sum(axis=1, keepdims=True)
    path = tree.decision_path(X)  # each sample's nodes, from the root down
    lengths = np.diff(path.indptr) - 1
    reach = np.array(depths)[:, None]
    for start in range(0, X.shape[0], _TEST_ROWS):
        rows = slice(start, start + _TEST_ROWS)
        nodes = path.indices[path.indptr[:-1][rows] + np.minimum(reach, lengths[rows])]  # (num_depths, rows)
        predictions[:, rows] += np.take(value, nodes, axis=0)  # faster than value[nodes]
    above = np.cumsum(_gains(tree, X.shape[1]), axis=0)[np.minimum(depths, tree.max_depth) - 1]
    totals = above.sum(axis=1, keepdims=True)
    importances += np.divide(above, totals, out=np.zeros_like(above), where=totals > 0)


def _gains(tree: Any, num_features: int) -> Floats:
    """Return (depth of the tree, n_z), at least one row: the impurity decrease by depth and feature of the split."""
    num_depths = max(tree.max_depth, 1)
    split = np.flatnonzero(tree.children_left >= 0)
    weight = tree.weighted_n_node_samples * tree.impurity
    decrease = weight[split] - weight[tree.children_left[split]] - weight[tree.children_right[split]]
    place = (tree.compute_node_depths()[split] - 1) * num_features + tree.feature[split]
    gains = np.bincount(place.astype(np.int64), weights=decrease, minlength=num_depths * num_features)
    return gains.reshape(num_depths, num_features).astype(np.float64, copy=False)
