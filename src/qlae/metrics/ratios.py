"""InfoM and InfoC as ratios of a matrix of information, and the gaps that related metrics take from it."""

from __future__ import annotations

import numpy as np

from .inputs import Floats


def concentration(matrix: Floats) -> float:
    """Return the mean over rows of largest entry / sum, mapped from [1/columns, 1] to [0, 1], without rows of zeros.

    >>> import numpy as np
    >>> concentration(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    0.5
    """
    totals = matrix.sum(axis=1)
    rows = totals > 0
    if not rows.any():
        return 0.0
    if matrix.shape[1] == 1:
        return 1.0
    share = float(np.mean(matrix[rows].max(axis=1) / totals[rows]))
    floor = 1.0 / matrix.shape[1]
    return float(np.clip((share - floor) / (1.0 - floor), 0.0, 1.0))


def weighted_concentration(matrix: Floats, weights: Floats) -> float:
    """Return the mean over all rows of weight · largest entry / sum, mapped to [0, 1]; rows of zeros count as 0.

    Args:
        matrix: (rows, columns), at least 0.
        weights: (rows,) from 0 to 1.

    >>> import numpy as np
    >>> weighted_concentration(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0], [1.0, 0.0]]), np.array([1, 1, 1, 0.5]))
    0.375
    """
    if not matrix.size:
        return 0.0
    totals = matrix.sum(axis=1)
    share = matrix.max(axis=1) / np.where(totals > 0, totals, 1.0)
    floor = 1.0 / matrix.shape[1]
    mapped = (share - floor) / (1.0 - floor) if matrix.shape[1] > 1 else (totals > 0).astype(float)
    return float(np.mean(weights * np.clip(mapped, 0.0, 1.0)))


def top_two_gaps(matrix: Floats) -> Floats:
    """Return the largest minus the second largest entry of each row; with a single column, the entry itself.

    >>> import numpy as np
    >>> top_two_gaps(np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]]))
    array([0.5, 0. ])
    """
    if matrix.shape[1] == 1:
        return matrix[:, 0].copy()
    ordered = np.sort(matrix, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])
