"""Random forests compiled by numba, which score every depth while their trees grow.

The trees are those of scikit-learn's `RandomForestClassifier(criterion="entropy")` and `RandomForestRegressor`: each
draws its rows with replacement; each node draws features until it has seen `max_features` of them and at least one that
is not constant; the best threshold lies midway between two values in single precision, more than 1e-7 apart; a node is
split unless it is pure, all its features are constant or the depth is reached. Only the random numbers differ.

Why it is fast:

* Values are replaced by their ranks once. A node sorts integers instead of floats, by counting if it is large.
* Bootstrap counts are integers, so the entropy is a sum of x log x from a table. Moving a sample across the threshold
  changes two terms of it, however many classes there are.
* Codes with few levels are not sorted: one table of levels and classes gives all thresholds.
* Trees are not stored. Test rows are sorted into the nodes together with the training rows, and each node adds its
  prediction to the depths at which it is a leaf of the truncated tree.

This module imports numba; `forest.py` imports it on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .inputs import Floats, Ints

_TREES = 10  # per job: the sums over trees have the same order for any number of threads
_FEW = 64  # up to this many rows are sorted by NumPy
_LEVELS = 64  # up to this many levels are counted instead of sorted,
_DENSE = 2  # if the table of levels and classes has no more cells than this times the rows
_DIGIT = 8  # bits that one pass of counting sorts by
_CLOSE = np.float32(1e-7)  # values that differ by no more count as equal, as in scikit-learn
_CONSTANT = -2  # instead of a rank: the node has one value of this feature
_PURE = 2.220446049250313e-16  # variance up to which a node is pure, as in scikit-learn


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function on its first call and, where a folder can be written, caches it."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        except RuntimeError:  # no folder for the cache can be written
            return numba.njit(nogil=True, error_model="numpy", **options)(function)

    return decorate


def predict_by_depth(
    train: Floats,
    targets: NDArray[Any],
    test: Floats,
    *,
    depths: Sequence[int],
    num_classes: int,
    num_trees: int,
    num_drawn: int,
    seed: int,
    n_jobs: int | None,
    bootstrap: bool = True,
) -> tuple[Floats, Floats]:
    """Return mean predictions (num_depths, num_test, outputs) and importances (num_depths, n_z) of truncated trees.

    The arguments are those of `forest.forest_by_depth`; targets (num_rows,) are labels 0 … num_classes − 1, or values
    if `num_classes` is 0, which have their mean as single output. Without `bootstrap` each tree has all rows.
    """
    ranks, levels, offsets = rank_columns(np.asarray(train, dtype=np.float32))
    classify = num_classes > 0
    labels = np.array(targets if classify else np.zeros(len(targets)), dtype=np.int32)
    values = np.array(np.zeros(len(targets)) if classify else targets, dtype=np.float64)
    middle = float(values.mean())
    n = labels.size
    xlogx = np.arange(n + 1) * np.log(np.maximum(np.arange(n + 1), 1)) if classify else np.zeros(1)
    targets = labels, values - middle  # so that sums of squares lose no digits
    tested = np.ascontiguousarray(np.asarray(test, dtype=np.float32).T), xlogx, np.array(depths, dtype=np.int64)
    data = (ranks, levels, offsets, *targets, *tested, max(num_classes, 1), classify, num_drawn, bootstrap)
    seeds = np.random.SeedSequence(seed).generate_state(num_trees, np.uint64)
    jobs = (delayed(_grow_trees)(seeds[i : i + _TREES], data) for i in range(0, num_trees, _TREES))
    predictions: Any = 0.0
    importances: Any = 0.0
    for predicted, important in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs):
        predictions, importances = predictions + predicted, importances + important
    totals = importances.sum(axis=1, keepdims=True)
    importances = np.divide(importances, totals, out=importances, where=totals > 0)
    return predictions.transpose(1, 0, 2) / num_trees + (0.0 if classify else middle), importances


def rank_columns(columns: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float32], Ints]:
    """Return ranks (n_z, num_rows) of the values in each column, their different values, and where each column starts.

    >>> import numpy as np
    >>> ranks, levels, offsets = rank_columns(np.array([[0.5, 7], [0.1, 7], [0.5, 8]], dtype=np.float32))
    >>> ranks.tolist(), offsets.tolist()
    ([[1, 0, 1], [0, 0, 1]], [0, 2, 4])
    """
    pairs = [np.unique(column, return_inverse=True) for column in columns.T]
    ranks = np.stack([rank.reshape(-1).astype(np.int32) for _, rank in pairs])
    offsets = np.cumsum([0, *(level.size for level, _ in pairs)])
    return ranks, np.concatenate([level for level, _ in pairs]), offsets.astype(np.int64)


@compiled()
def _grow_trees(seeds: Any, data: Any) -> Any:
    """Grow one tree per seed; return the sums of predictions (num_test, num_depths, outputs) and of importances.

    `data` has ranks, levels and offsets from `rank_columns`; labels and values (n,), the targets of a classification or
    of a regression; test (n_z, num_test) values; x log x (n + 1,); ascending depths; the number of outputs; and
    classify, num_drawn and bootstrap as for `predict_by_depth`.
    """
    ranks, levels, offsets, labels, values, test, xlogx, depths, outputs, classify, num_drawn, bootstrap = data
    num_features, n = ranks.shape
    num_test = test.shape[1]
    predictions = np.zeros((num_test, depths.size, outputs))
    importances = np.zeros((depths.size, num_features))
    max_depth = min(depths[-1], n)
    # Working memory of all trees. `own_…` belong to one node, and start at 0.
    weights, rows, test_rows = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(num_test, np.int32)
    spare = np.empty(max(n, num_test), np.int32)
    own_weights, own_labels, own_values = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
    counts, left, right = np.empty(outputs, np.int64), np.zeros(outputs, np.int64), np.zeros(outputs, np.int64)
    table = np.zeros((_LEVELS, outputs), np.int64)
    keys, other, buckets = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(1 << _DIGIT, np.int64)
    order, share = np.arange(num_features), np.empty(outputs)
    stack = np.empty((max_depth + 2, 5), np.int64)
    gains = np.empty((max_depth + 1, num_features))
    state = np.empty(1, np.uint64)
    for seed in seeds:
        state[0] = seed
        num_rows = _draw_rows(state, weights, rows, bootstrap)
        for t in range(num_test):
            test_rows[t] = t
        gains[:] = 0.0
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = 0, num_rows, 0, num_test, 0
        size = 1
        while size > 0:
            size -= 1
            start, end, depth = stack[size, 0], stack[size, 1], stack[size, 4]
            test_start, test_end = stack[size, 2], stack[size, 3]
            node, m = rows[start:end], end - start
            if classify:
                total, own, pure = _count(node, labels, weights, xlogx, counts, own_labels, own_weights)
                own_part = own - xlogx[total]
            else:
                total, own, pure = _sum(node, values, weights, own_values, own_weights)
                own_part = own * own / total
            best, feature, last, threshold = -np.inf, -1, 0, 0.0
            visited = useful = 0
            while not pure and depth < max_depth and visited < num_features and (visited < num_drawn or useful == 0):
                pick = visited + _below(state, num_features - visited)
                f = order[pick]
                order[pick], order[visited] = order[visited], f
                visited += 1
                own_levels = levels[offsets[f] : offsets[f + 1]]
                if classify and own_levels.size <= _LEVELS and own_levels.size * outputs <= _DENSE * m:
                    table[: own_levels.size] = 0
                    for i in range(m):
                        table[ranks[f, node[i]], own_labels[i]] += own_weights[i]
                    gain, place, after = _scan_table(table, own_levels, xlogx, counts, total, left)
                else:
                    low, high = _gather(ranks[f], node, keys)
                    if own_levels[high] <= own_levels[low] + _CLOSE:
                        continue
                    if m <= _FEW:
                        ordered = keys[:m]
                        ordered.sort()
                    else:
                        ordered = _sort(keys, other, m, low, high, buckets)[:m]
                    if classify:
                        gain, place, after = _scan_classes(
                            ordered, own_levels, own_labels, own_weights, xlogx, counts, total, own, left, right
                        )
                    else:
                        gain, place, after = _scan_values(ordered, own_levels, own_values, own_weights, total, own)
                if place == _CONSTANT:
                    continue
                useful += 1
                if gain > best:
                    best, feature, last = gain, f, place
                    threshold = own_levels[place] / 2.0 + own_levels[after] / 2.0
            if test_end > test_start:
                # A leaf of the tree truncated at this depth; without a split, of the larger ones, too.
                first = 0
                while depths[first] < depth:
                    first += 1
                final = depths.size if feature < 0 else first + 1
                if feature < 0 or depths[first] == depth:
                    for c in range(outputs):
                        share[c] = counts[c] / total if classify else own / total
                    for t in range(test_start, test_end):
                        for d in range(first, final):
                            for c in range(outputs):
                                predictions[test_rows[t], d, c] += share[c]
            if feature >= 0:
                gains[depth + 1, feature] += max(best - own_part, 0.0)
                middle = _divide(ranks, feature, rows, start, end, last, spare)
                test_middle = _divide(test, feature, test_rows, test_start, test_end, threshold, spare)
                stack[size, 0], stack[size, 1], stack[size, 4] = middle, end, depth + 1
                stack[size, 2], stack[size, 3] = test_middle, test_end
                stack[size + 1, 0], stack[size + 1, 1], stack[size + 1, 4] = start, middle, depth + 1
                stack[size + 1, 2], stack[size + 1, 3] = test_start, test_middle
                size += 2
        _add_importances(gains, depths, importances)
    return predictions, importances


@compiled(inline="always")
def _below(state: Any, limit: int) -> int:
    """Return a random whole number from 0 to limit − 1 (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.int64(((x >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@compiled()
def _draw_rows(state: Any, weights: Any, rows: Any, bootstrap: bool) -> int:
    """Draw rows with replacement: set how often each occurs, list those that do, and return how many do."""
    n = weights.size
    for row in range(n):
        weights[row] = 0 if bootstrap else 1
    if bootstrap:
        for _ in range(n):
            weights[_below(state, n)] += 1
    num_rows = 0
    for row in range(n):
        rows[num_rows] = row
        num_rows += np.int64(weights[row] > 0)
    return num_rows


@compiled()
def _count(rows: Any, labels: Any, weights: Any, xlogx: Any, counts: Any, own_labels: Any, own_weights: Any) -> Any:
    """Copy labels and weights of a node and count classes.

    Returns:
        The sum of weights, the sum of x log x over classes, and whether one class has all.
    """
    counts[:] = 0
    total = 0
    for i in range(rows.size):
        row = rows[i]
        label, weight = labels[row], weights[row]
        own_labels[i], own_weights[i] = label, weight
        counts[label] += weight
        total += weight
    own, largest = 0.0, 0
    for c in range(counts.size):
        own += xlogx[counts[c]]
        largest = max(largest, counts[c])
    return total, own, largest == total


@compiled()
def _sum(rows: Any, values: Any, weights: Any, own_values: Any, own_weights: Any) -> Any:
    """Copy weighted values and weights of a node; return the sum of weights, of values, and whether they are equal."""
    total, own, squares = 0, 0.0, 0.0
    for i in range(rows.size):
        row = rows[i]
        value, weight = values[row], weights[row]
        own_values[i], own_weights[i] = weight * value, weight
        total += weight
        own += weight * value
        squares += weight * value * value
    mean = own / total
    return total, own, rows.size < 2 or squares / total - mean * mean <= _PURE


@compiled()
def _gather(ranks: Any, rows: Any, keys: Any) -> Any:
    """Write rank · 2³² + position of each row of a node into `keys`; return the smallest and the largest rank."""
    low, high = np.int64(1 << 31), np.int64(-1)
    for i in range(rows.size):
        rank = np.int64(ranks[rows[i]])
        keys[i] = (rank << 32) | i
        low, high = min(low, rank), max(high, rank)
    return low, high


@compiled()
def _sort(keys: Any, other: Any, m: int, low: int, high: int, buckets: Any) -> Any:
    """Return the first m keys in the order of their ranks, in one of the two buffers."""
    bits = 1
    while (high - low) >> bits:
        bits += 1
    passes = (bits + _DIGIT - 1) // _DIGIT
    digit = (bits + passes - 1) // passes
    mask = (1 << digit) - 1
    for step in range(passes):
        shift = step * digit
        for b in range(mask + 1):
            buckets[b] = 0
        for i in range(m):
            buckets[(((keys[i] >> 32) - low) >> shift) & mask] += 1
        place = 0
        for b in range(mask + 1):
            place, buckets[b] = place + buckets[b], place
        for i in range(m):
            b = (((keys[i] >> 32) - low) >> shift) & mask
            other[buckets[b]] = keys[i]
            buckets[b] += 1
        keys, other = other, keys
    return keys


@compiled()
def _scan_classes(
    keys: Any,
    levels: Any,
    labels: Any,
    weights: Any,
    xlogx: Any,
    counts: Any,
    total: int,
    own: float,
    left: Any,
    right: Any,
) -> Any:
    """Return the largest −(weighted entropy) of a threshold, and the ranks of the values below and above it."""
    for i in range(keys.size):
        c = labels[keys[i] & 0xFFFFFFFF]
        left[c] = 0
        right[c] = counts[c]
    below, above = 0.0, own  # sums of x log x
    best, num_left, place, after = -np.inf, 0, np.int64(-1), np.int64(-1)
    following = keys[0]
    for i in range(keys.size - 1):
        key, following = following, keys[i + 1]
        position = key & 0xFFFFFFFF
        c, weight = labels[position], weights[position]
        below += xlogx[left[c] + weight] - xlogx[left[c]]
        above += xlogx[right[c] - weight] - xlogx[right[c]]
        left[c] += weight
        right[c] -= weight
        num_left += weight
        rank, upper = key >> 32, following >> 32
        if rank != upper:
            gain = below - xlogx[num_left] + above - xlogx[total - num_left]
            if gain > best and levels[upper] > levels[rank] + _CLOSE:
                best, place, after = gain, rank, upper
    return best, place, after


@compiled()
def _scan_table(table: Any, levels: Any, xlogx: Any, counts: Any, total: int, left: Any) -> Any:
    """Return the same as `_scan_classes` from counts of each level and class; `_CONSTANT` as rank of a constant."""
    left[:] = 0
    best, num_left, place, after = -np.inf, 0, np.int64(-1), np.int64(-1)
    first, rank, gain = np.int64(-1), np.int64(-1), 0.0  # the first and the last level with samples so far
    for upper in range(levels.size):
        here = 0
        for c in range(left.size):
            here += table[upper, c]
        if here == 0:
            continue
        if rank < 0:
            first = upper
        elif gain > best and levels[upper] > levels[rank] + _CLOSE:
            best, place, after = gain, rank, upper
        num_left += here
        if num_left == total:
            rank = upper
            break
        below = above = 0.0
        for c in range(left.size):
            left[c] += table[upper, c]
            below += xlogx[left[c]]
            above += xlogx[counts[c] - left[c]]
        rank, gain = upper, below - xlogx[num_left] + above - xlogx[total - num_left]
    if levels[rank] <= levels[first] + _CLOSE:
        place = _CONSTANT
    return best, place, after


@compiled()
def _scan_values(keys: Any, levels: Any, values: Any, weights: Any, total: int, own: float) -> Any:
    """Return the largest sum of squares explained by a threshold, and the ranks of the values below and above it."""
    below, best, num_left, place, after = 0.0, -np.inf, 0, np.int64(-1), np.int64(-1)
    for i in range(keys.size - 1):
        position = keys[i] & 0xFFFFFFFF
        below += values[position]
        num_left += weights[position]
        rank, upper = keys[i] >> 32, keys[i + 1] >> 32
        if rank != upper:
            above = own - below
            gain = below * below / num_left + above * above / (total - num_left)
            if gain > best and levels[upper] > levels[rank] + _CLOSE:
                best, place, after = gain, rank, upper
    return best, place, after


@compiled()
def _divide(values: Any, feature: int, rows: Any, start: int, end: int, limit: Any, spare: Any) -> int:
    """Move rows with values or ranks up to `limit` to the front, in order, and return where the others start."""
    middle, moved = start, 0
    for i in range(start, end):  # without a branch, which processors could not predict
        row = rows[i]
        rows[middle], spare[moved] = row, row
        goes_left = np.int64(values[feature, row] <= limit)
        middle += goes_left
        moved += 1 - goes_left
    for i in range(moved):
        rows[middle + i] = spare[i]
    return middle


@compiled()
def _add_importances(gains: Any, depths: Any, importances: Any) -> None:
    """Add the gains (max_depth + 1, n_z) of the splits above each depth, normalised to 1; they become cumulative."""
    num_features = gains.shape[1]
    for depth in range(1, gains.shape[0]):
        for f in range(num_features):
            gains[depth, f] += gains[depth - 1, f]
    for d in range(depths.size):
        row = min(depths[d], gains.shape[0] - 1)
        total = 0.0
        for f in range(num_features):
            total += gains[row, f]
        for f in range(num_features):
            importances[d, f] += gains[row, f] / total if total > 0.0 else 0.0
