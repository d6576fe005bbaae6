"""A random forest at every depth, from one fit.

A tree truncated at depth d is a prefix of the tree grown to full depth: its leaves are the nodes at depth d and the
leaves above them, its importances count the splits above depth d. So one forest, grown to the largest depth, gives the
held-out predictions and the importances at each smaller depth. A forest fitted at that depth differs only in random
draws.

Two implementations grow the same trees from different random numbers: `compiled_forest.py`, compiled by numba, which
DCI uses, and scikit-learn, which is slower and available by ``dci(forest="scikit-learn")``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inputs import Floats

IMPLEMENTATIONS = ("numba", "scikit-learn")
_TEST_ROWS = 2000  # test samples processed at a time


@dataclass(frozen=True, eq=False)
class ForestByDepth:
    """Predictions for test rows, and importances, of a forest truncated at each depth."""

    predicted: NDArray[Any]  # (num_depths, num_test) labels, or values of a regression
    importances: Floats  # (num_depths, n_z); each row sums to 1, or to 0 if no tree splits
    classify: bool

    def scores(self, targets: NDArray[Any], rows: slice = slice(None)) -> Floats:
        """Return the accuracy, or R², of targets (num_test,) on some of the test rows at each depth, (num_depths,)."""
        predicted, targets = self.predicted[:, rows], targets[rows]
        if self.classify:
            return np.asarray((predicted == targets).mean(axis=1))
        residual = ((predicted - targets) ** 2).sum(axis=1)
        return np.asarray(1.0 - residual / max(float(((targets - targets.mean()) ** 2).sum()), 1e-300))


def forest_by_depth(
    train: Floats,
    targets: NDArray[Any],
    test: Floats,
    *,
    depths: Sequence[int],
    classify: bool,
    num_trees: int,
    num_drawn: int,
    seed: int,
    n_jobs: int | None,
    implementation: str = "numba",
) -> ForestByDepth:
    """Fit one forest to the largest of `depths`, to targets (num_train,), and predict test rows at all of them.

    Rows are (num_rows, n_z) latents; targets are labels if `classify`. Each split considers `num_drawn` latents. The
    result does not depend on the number of threads.
    """
    classes, own = np.unique(targets, return_inverse=True) if classify else (np.zeros(0), targets)
    if implementation == "numba":
        from .compiled_forest import predict_by_depth  # numba takes half a second to import

        ascending, place = np.unique(depths, return_inverse=True)
        options: dict[str, Any] = {"num_trees": num_trees, "num_drawn": num_drawn, "seed": seed, "n_jobs": n_jobs}
        predictions, importances = predict_by_depth(
            train, own, test, depths=ascending.tolist(), num_classes=classes.size, **options
        )
        predictions, importances = predictions[place], importances[place]
    else:
        options = {"max_features": num_drawn, "random_state": seed, "n_jobs": n_jobs}
        forest = _fit_scikit_learn(train, own, classify, max_depth=max(depths), n_estimators=num_trees, **options)
        predictions, importances = read_prefixes(forest, test, depths)
    predicted = classes[predictions.argmax(axis=2)] if classify else predictions[:, :, 0]
    return ForestByDepth(predicted, importances, classify)


def _fit_scikit_learn(train: Floats, targets: NDArray[Any], classify: bool, **options: Any) -> Any:
    from sklearn import config_context
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = RandomForestClassifier(criterion="entropy") if classify else RandomForestRegressor()
    with config_context(assume_finite=True, skip_parameter_validation=True):  # already checked, not once per tree
        return forest.set_params(**options).fit(train, targets)


def features_per_split(max_features: Any, num_latents: int) -> int:
    """Return the number of latents that each split considers.

    Args:
        max_features: "sqrt", "log2", "all" (or None), a whole number of latents, or a share above 0 and up to 1.
        num_latents: n_z.

    >>> [features_per_split(word, 12) for word in ("sqrt", "log2", "all", 5, 0.5)]
    [3, 3, 12, 5, 6]
    """
    if max_features in ("all", None):
        return num_latents
    if max_features in ("sqrt", "log2"):
        return max(1, int(math.sqrt(num_latents) if max_features == "sqrt" else math.log2(num_latents)))
    if isinstance(max_features, (int, np.integer)) and not isinstance(max_features, bool) and max_features >= 1:
        return min(int(max_features), num_latents)
    if isinstance(max_features, (float, np.floating)) and 0.0 < max_features <= 1.0:
        return max(1, int(max_features * num_latents))
    raise ValueError(
        f"max_features is {repr(max_features)[:60]}; give 'sqrt', 'log2', 'all', a whole number of latents, or a share "
        "of them above 0 and up to 1.0."
    )


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
