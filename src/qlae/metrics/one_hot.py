"""Products with the one-hot matrix of codes, which is never stored.

A few latents at a time form a group with one table of joint codes. A sample has one entry per group instead of one per
latent, and a sum over the codes of a group is computed once per joint code instead of once per sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .inputs import Ints

if TYPE_CHECKING:
    from scipy import sparse

Reals = NDArray[np.floating]

_GROUP = 1024  # largest number of joint codes in a table that latents share


class OneHotFeatures:
    """The features of n samples of codes: D = Σ sizes columns, of which each sample has n_z ones."""

    def __init__(self, codes: Ints, sizes: Sequence[int], *, double: bool) -> None:
        """Prepare the tables.

        Args:
            codes: (n, n_z), 0 … size − 1 in each column.
            sizes: n_z sizes.
            double: whether products in double precision are frequent enough to keep a second copy of the matrix.
        """
        from scipy import sparse

        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.num_features = int(self.offsets[-1])
        n, start = codes.shape[0], 0
        columns, members = [], []
        for group in _groups(sizes):
            joint = np.zeros(n, dtype=np.int64)
            for j in group:
                joint = joint * sizes[j] + codes[:, j]
            columns.append((joint + start).astype(np.int32))
            cells = np.indices([sizes[j] for j in group]).reshape(len(group), -1)  # codes of each joint code
            members.append(indicator((cells + self.offsets[group][:, None]).T.astype(np.int32), self.num_features))
            start += cells.shape[1]
        self._joint = _Both(indicator(np.column_stack(columns), start), double)
        self._members = _Both(sparse.vstack(members, format="csr"), True)  # joint codes × codes

    def blocks(self, size: int) -> list[OneHotFeatures]:
        """Return the features of `size` samples at a time, which share the memory of these."""
        from scipy import sparse

        joint = self._joint.single
        each = joint.indptr[1]  # entries per sample
        result = []
        for start in range(0, joint.shape[0], size):
            end = min(start + size, joint.shape[0])
            parts = (part[start * each : end * each] for part in (joint.data, joint.indices))
            block = copy(self)
            rows = sparse.csr_matrix((*parts, joint.indptr[: end - start + 1]), shape=(end - start, joint.shape[1]))
            block._joint = _Both(rows, False)
            result.append(block)
        return result

    def forward(self, weights: Reals) -> Reals:
        """Return X W, (n, classes), in the precision of W (D, classes)."""
        return np.asarray(self._joint.of(weights) @ (self._members.of(weights) @ weights))

    def backward(self, residuals: Reals) -> Reals:
        """Return Xᵀ R, (D, classes), in the precision of R (n, classes)."""
        return np.asarray(self._members.of(residuals).T @ (self._joint.of(residuals).T @ residuals))


class _Both:
    """A sparse matrix in single and, if worth the memory, in double precision."""

    def __init__(self, matrix: sparse.csr_matrix, double: bool) -> None:
        self.single, self.double = matrix, matrix.astype(np.float64) if double else None

    def of(self, array: Reals) -> sparse.csr_matrix:
        """Return the matrix in the precision of an array, if there is one."""
        return self.double if array.dtype == np.float64 and self.double is not None else self.single


def indicator(columns: NDArray[np.int32], width: int) -> sparse.csr_matrix:
    """Return a matrix (n, width) with ones at `columns` (n, m) of each row."""
    from scipy import sparse

    n, each = columns.shape
    pointers = np.arange(0, n * each + 1, each, dtype=np.int32 if n * each < 2**31 else np.int64)
    ones = np.ones(n * each, dtype=np.float32)
    return sparse.csr_matrix((ones, np.ascontiguousarray(columns).reshape(-1), pointers), shape=(n, width))


def _groups(sizes: Sequence[int]) -> list[list[int]]:
    """Return groups of consecutive latents with at most `_GROUP` joint codes each.

    >>> _groups([10, 10, 10, 10, 5000, 2])
    [[0, 1, 2], [3], [4], [5]]
    """
    groups: list[list[int]] = []
    cells = _GROUP + 1
    for j, size in enumerate(sizes):
        if cells * size > _GROUP:
            groups.append([])
            cells = 1
        groups[-1].append(j)
        cells *= size
    return groups
