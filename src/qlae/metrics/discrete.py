"""Entropy and mutual information of discrete variables, from counts (the plug-in estimator).

With joint counts c_xy of n samples, in nats,

    H(x) = log n − (1/n) Σ_x c_x log c_x
    I(x; y) = log n + (1/n) (Σ_xy c_xy log c_xy − Σ_x c_x log c_x − Σ_y c_y log c_y).

The counts are integers, so the result does not depend on the order of the samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .inputs import Floats, Ints

_ROUNDING = 1e-13  # nats; smaller results are rounding errors of exact zeros
_DENSE_CELLS = 1 << 22  # tables with more cells than this, and than samples, count only the pairs that occur


def sum_count_log_count(counts: Ints) -> float:
    """Return Σ c log c over the cells of a table of counts, with 0 log 0 = 0."""
    from scipy.special import xlogy

    return float(xlogy(counts, counts).sum())


def entropy(labels: Ints) -> float:
    """Return the entropy of labels (n,), 0 … size − 1, in nats.

    >>> import numpy as np
    >>> round(entropy(np.array([0, 1, 0, 1])), 4)
    0.6931
    """
    return max(0.0, float(np.log(labels.size)) - sum_count_log_count(np.bincount(labels)) / labels.size)


def discrete_mutual_information(
    labels: Ints, label_sizes: Sequence[int], codes: Ints, code_sizes: Sequence[int]
) -> Floats:
    """Return (n_s, n_z) mutual information in nats of every pair of columns.

    Args:
        labels: (n, n_s), 0 … size − 1 in each column.
        label_sizes: n_s sizes.
        codes: (n, n_z), 0 … size − 1 in each column.
        code_sizes: n_z sizes.
    """
    n = labels.shape[0]
    code_terms = [sum_count_log_count(np.bincount(codes[:, j])) for j in range(codes.shape[1])]
    result = np.zeros((labels.shape[1], codes.shape[1]))
    narrow = np.asfortranarray(codes, dtype=np.intp)
    for i in range(labels.shape[1]):
        label_term = sum_count_log_count(np.bincount(labels[:, i]))
        for j, code_size in enumerate(code_sizes):
            cells = label_sizes[i] * code_size
            pair = labels[:, i] * code_size + narrow[:, j]
            if cells > max(_DENSE_CELLS, n):
                joint = np.unique(pair, return_counts=True)[1]
            else:
                joint = np.bincount(pair, minlength=cells)
            nats = np.log(n) + (sum_count_log_count(joint) - label_term - code_terms[j]) / n
            result[i, j] = nats if nats > _ROUNDING else 0.0
    return result
