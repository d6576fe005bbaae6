"""A random forest at every depth, from one fit.

A tree cut off at depth d is a prefix of the tree grown to full depth: its leaves are the nodes at depth d and the
leaves above them, its importances count the splits above depth d. So one forest, grown to the largest depth, gives the
held-out score and the importances of each smaller depth, as a forest fitted at that depth would, up to random draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from qlae.metrics.inputs import Floats


@dataclass(frozen=True, eq=False)
class ForestByDepth:
    """Held-out score (accuracy, or R² of a regression) and importances of a forest cut off at each depth."""

    depths: tuple[int, ...]
    scores: Floats  # (num_depths,)
    importances: Floats  # (num_depths, n_z), each row with sum 1, or 0 if no tree splits


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
    """Fit one forest to the largest of `depths` and read off all."""
    kind = RandomForestClassifier if classify else RandomForestRegressor
    forest = kind(
        num_trees,
        criterion="entropy" if classify else "squared_error",
        max_depth=max(depths),
        max_features=max_features,
        random_state=seed,
        n_jobs=n_jobs,
    )
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
    """Mean predictions (num_depths, num_test, outputs) and importances (num_depths, n_z) of the trees cut off."""
    X = np.asarray(test, dtype=np.float32)
    outputs = forest.estimators_[0].tree_.value.shape[2]
    predictions = np.zeros((len(depths), X.shape[0], outputs))
    importances = np.zeros((len(depths), X.shape[1]))
    for estimator in forest.estimators_:
        _add_tree(estimator.tree_, X, depths, predictions, importances)
    totals = importances.sum(axis=1, keepdims=True)
    return predictions / len(forest.estimators_), np.divide(importances, totals, where=totals > 0, out=importances)


def _add_tree(tree: Any, X: Any, depths: Sequence[int], predictions: Floats, importances: Floats) -> None:
    left, right, feature, threshold = tree.children_left, tree.children_right, tree.feature, tree.threshold
    value = tree.value[:, 0, :]
    if value.shape[1] > 1 and value[0].sum() > 1.5:  # older scikit-learn keeps counts instead of shares
        value = value / value.sum(axis=1, keepdims=True)
    gains, depth_of = _gains(tree)
    rows = np.arange(X.shape[0])
    node = np.zeros(X.shape[0], dtype=np.int64)
    depth, last = 0, None
    for place in np.argsort(depths):
        moved = False
        while depth < depths[place]:
            inner = left[node] >= 0
            if not inner.any():
                break
            goes_left = X[rows, feature[node]] <= threshold[node]
            node = np.where(inner, np.where(goes_left, left[node], right[node]), node)
            depth, moved = depth + 1, True
        if moved or last is None:
            last = value[node]
        predictions[place] += last
        above = depth_of < depths[place]
        by_feature = np.bincount(feature[above], weights=gains[above], minlength=X.shape[1])
        total = by_feature.sum()
        if total > 0:
            importances[place] += by_feature / total


def _gains(tree: Any) -> tuple[Floats, Any]:
    """Impurity decrease of each node (0 for leaves) and its depth (huge for leaves, so that they count nowhere)."""
    left, right = tree.children_left, tree.children_right
    weight = tree.weighted_n_node_samples * tree.impurity
    inner = np.flatnonzero(left >= 0)
    gains = np.zeros(tree.node_count)
    gains[inner] = weight[inner] - weight[left[inner]] - weight[right[inner]]
    depth = np.zeros(tree.node_count, dtype=np.int64)
    level = np.array([0])
    while level.size:  # level by level: children lie one deeper
        parents = level[left[level] >= 0]
        children = np.concatenate([left[parents], right[parents]])
        depth[children] = np.concatenate([depth[parents], depth[parents]]) + 1
        level = children
    depth[left < 0] = np.iinfo(np.int64).max
    return gains, depth
