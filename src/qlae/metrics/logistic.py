"""Multinomial logistic regression to convergence: the minimal in-sample cross entropy (paper, section 4.2).

    H_V(s | z) = inf_{W, b} −(1/n) Σ_i log softmax(W z_i + b)_{s_i}      (no regularisation)

**Continuous latents** (`fit_continuous`) are centred and whitened, without directions that have no variance, and then
transformed to unit covariance within the classes. Linear discriminant analysis, at the best of a few scales, is the
start of Newton steps (newton.py), which are preconditioned by the Hessian of a part of the samples.

**One-hot codes** (`fit_codes`) have one weight W[j, l, c] for code l of latent j and class c. The problem is first
reduced: if code l of latent j never occurs with class c, W[j, l, c] → −∞ harms no sample, so class c is ruled out for
every sample with that code. A sample with one class left costs nothing and is removed; classes that its codes then no
longer occur with are ruled out in turn (at a slower rate to −∞, so that removed samples still cost nothing). A smaller
problem with the same infimum remains, and if nothing remains the infimum is exactly 0. The start is naive Bayes with a
power for each latent: W[j, l, c] = α_j log p(l | c) / p(l), α by a few Newton steps. The Newton steps of the fit are
preconditioned by the exact diagonal block of the Hessian of each class, or by the full Hessian if that is not enough.

**Products with the one-hot matrix** (`OneHotFeatures`) never store it. A few latents at a time form a group with one
table of joint codes. A sample has one entry per group instead of one per latent, and a sum over the codes of a group is
computed once per joint code instead of once per sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .inputs import Bools, Floats, Ints, plain_columns
from .newton import EASY, LARGE, Fit, Reals, Solve, minimise, minimise_in_blocks, working_type

if TYPE_CHECKING:
    from scipy import sparse


_BLOCK = 512  # samples summed into the Hessian at a time
_HESSIAN_WORK = 10**9  # multiplications that one Hessian may cost; limits the number of samples in it
_FULL_HESSIAN = 800  # largest number of weights for a full Hessian; with more, it has one block per class
# Of one-hot codes:
_BLOCK_WORK = 10**9  # multiplications to invert all blocks of the preconditioner; with more, it is diagonal
_BLOCK_SAMPLES = 20_000  # at most this many samples build the preconditioner
_HARD = 20  # after a step with more conjugate gradient iterations, the preconditioner is the full Hessian
_FULL_HESSIAN_OF_CODES = 2500
_LEAST = 1e-10  # share of the largest curvature added to the diagonal: one-hot codes have flat directions
_START_SAMPLES = 2_000  # at most this many samples fit the start
_GROUP = 1024  # largest number of joint codes in a table that latents share


def fit_continuous(features: Floats, labels: Ints, size: int, *, tolerance: float = 1e-7) -> Fit:
    """Minimise the cross entropy, in nats, of labels (n,), 0 … size − 1, given features (n, r + 1) from `whiten`.

    The fit ends when a step is expected to gain no more nats than the tolerance.
    """
    X, means = _within(features, labels, size)
    start = _discriminant_start(X, means, labels, size)
    if labels.size * size > LARGE:
        return minimise_in_blocks(lambda rows: _Dense(X[rows], size), labels, start, tolerance=tolerance)
    return minimise(_Dense(X, size), labels, start, tolerance=tolerance)


class _Dense:
    """The `Design` of whitened features and a column of ones."""

    def __init__(self, X: Reals, size: int) -> None:
        self.X, self.size = X, size
        self.working = working_type(X.shape[0], size)
        self.weight = np.ones(X.shape[1])
        self.upper = np.triu_indices(X.shape[1])
        # A few samples suffice for most Hessians; if the first is too poor, use as many as the work allows.
        weights = X.shape[1] * size
        many = max(2000, _HESSIAN_WORK // weights**2)
        few = min(max(2000, 15 * weights), many)
        self.strides = (max(1, X.shape[0] // few), max(1, X.shape[0] // many))
        self._products: dict[int, Reals] = {}

    @cached_property
    def narrow(self) -> Reals:
        return self.X.astype(self.working, copy=False)

    def products(self, stride: int) -> Reals:
        """Return (d (d + 1) / 2, m) products of two features, for every `stride`-th sample; computed once."""
        if stride not in self._products:
            part = np.ascontiguousarray(self.narrow[::stride].T)
            self._products[stride] = part[self.upper[0]]
            self._products[stride] *= part[self.upper[1]]
        return self._products[stride]

    def _in(self, precision: Any) -> Reals:
        return self.X if precision == self.X.dtype or precision != self.working else self.narrow

    def forward(self, weights: Reals) -> Reals:
        # Transposed, (classes, n), so that reductions over classes run along contiguous samples.
        return (weights.T @ self._in(weights.dtype).T).T

    def backward(self, residuals: Reals) -> Reals:
        return self._in(residuals.dtype).T @ residuals

    def preconditioner(self, probabilities: Reals, total: int, effort: int) -> Callable[[float], Solve]:
        stride = self.strides[effort > EASY]
        P, products = probabilities[::stride], self.products(stride)
        d = self.X.shape[1]
        if d * (self.size - 1) > _FULL_HESSIAN:
            sums = (products @ (P * (1 - P))).T
            return block_solver(self._squares(sums.astype(np.float64) / P.shape[0]), self.weight, self.working)
        free = self.size - 1  # the last class is the reference
        first, second = np.triu_indices(free)
        sums = np.zeros((first.size, self.upper[0].size), dtype=self.working)
        for start in range(0, P.shape[0], _BLOCK):
            part = np.ascontiguousarray(P[start : start + _BLOCK, :free].T)
            both = part[first]
            both *= part[second]
            sums -= both @ products[:, start : start + _BLOCK].T
        sums[first == second] += (products @ P[:, :free]).T
        return full_solver(self._squares(sums.astype(np.float64) / P.shape[0]), self.weight, self.working)

    def _squares(self, rows: Floats) -> Floats:
        """Return symmetric matrices (m, d, d) from their upper triangles (m, d (d + 1) / 2)."""
        d = self.X.shape[1]
        square = np.empty((rows.shape[0], d, d))
        square[:, self.upper[0], self.upper[1]] = rows
        square[:, self.upper[1], self.upper[0]] = rows
        return square


def block_solver(blocks: Floats, weight: Floats, working: type[np.floating]) -> Callable[[float], Solve]:
    """Return a function of λ that builds a solver with one (D, D) block per class, damped by λ diag(weight)."""
    diagonals = np.einsum("kii->ki", blocks)  # (classes, D)
    least = 1e-9 * max(float(diagonals.max()), 1e-9) * weight
    unit = 1.0 + (1e-5 if working is np.float32 else 1e-9)

    def build(damping: float) -> Solve:
        # Scaled to a unit diagonal, so that single precision suffices for the inverse.
        scale = 1.0 / np.sqrt(diagonals + damping * weight + least)
        scaled = blocks * scale[:, :, None] * scale[:, None, :]
        scaled[:, np.arange(weight.size), np.arange(weight.size)] = unit
        inverses = np.linalg.inv(scaled).astype(working)
        narrow = scale.astype(working)

        def solve(G: Reals) -> Reals:
            return np.ascontiguousarray((np.matmul(inverses, (G.T * narrow)[:, :, None])[:, :, 0] * narrow).T)

        return solve

    return build


def full_solver(
    squares: Floats, weight: Floats, working: type[np.floating], *, least: float = 0.0
) -> Callable[[float], Solve]:
    """Return a function of λ that builds a solver with the full Hessian, damped by λ diag(weight).

    `squares` (m, D, D) are the blocks of the Hessian for the pairs of all classes except the last, whose weights stay
    0, in the order of ``np.triu_indices``. A share `least` of the largest curvature is added to the diagonal.
    """
    from scipy.linalg import cho_factor, cho_solve

    D, free = weight.size, int((2 * squares.shape[0]) ** 0.5)
    first, second = np.triu_indices(free)
    blocks = np.empty((free, free, D, D))
    blocks[first, second] = squares
    blocks[second, first] = squares
    hessian = blocks.transpose(0, 2, 1, 3).reshape(free * D, free * D)
    largest = float(np.diag(hessian).max())

    def build(damping: float) -> Solve:
        # With the reference class at 0, a ridge on all classes is I − 11ᵀ/size on the others.
        ridge = np.kron(np.eye(free) - 1.0 / (free + 1), damping * np.diag(weight))
        extra = max(least, 1e-7 if working is np.float32 else 1e-14) * largest
        while True:
            try:
                factor = cho_factor(hessian + ridge + extra * np.eye(free * D), check_finite=False)
                break
            except np.linalg.LinAlgError:
                extra *= 10

        def solve(G: Reals) -> Reals:
            # The gradient sums to 0 over classes; let the step do the same.
            V = np.zeros((D, free + 1))
            V[:, :free] = cho_solve(factor, G[:, :free].T.reshape(-1), check_finite=False).reshape(free, D).T
            V -= V.mean(axis=1, keepdims=True)
            return V.astype(working)

        return solve

    return build


def whiten(latents: Floats) -> Floats:
    """Return centred latents (n, n_z) rotated to unit covariance, (n, r + 1), with a column of ones last.

    Directions without variance are dropped.
    """
    centred = plain_columns(latents)  # a copy, changed in place: this is where scoring takes the most memory
    largest = np.maximum(centred.max(axis=0), -centred.min(axis=0))
    centred -= centred.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    moving = spread > 1e-12 * np.maximum(1.0, largest)
    centred = centred[:, moving]
    centred /= spread[moving]
    if not moving.any():
        return np.ones((centred.shape[0], 1))
    values, vectors = np.linalg.eigh(centred.T @ centred / centred.shape[0])
    kept = values > 1e-10 * values.max()
    return _with_ones(centred, vectors[:, kept] / np.sqrt(values[kept]))


def _with_ones(values: Floats, turn: Floats) -> Floats:
    """Return values (n, m) times a matrix (m, r), with a column of ones last."""
    result = np.ones((values.shape[0], turn.shape[1] + 1))
    np.matmul(values, turn, out=result[:, :-1])
    return result


def _within(features: Floats, labels: Ints, size: int) -> tuple[Floats, Floats]:
    """Return features transformed to unit covariance within classes, and the means of the classes (size, r)."""
    Z = features[:, :-1]
    counts = np.bincount(labels, minlength=size)
    means = np.zeros((size, Z.shape[1]))
    for column in range(Z.shape[1]):
        means[:, column] = np.bincount(labels, weights=Z[:, column], minlength=size) / counts
    within = np.eye(Z.shape[1]) - (means.T * (counts / labels.size)) @ means  # total covariance is the identity
    values, vectors = np.linalg.eigh(within)
    turn = vectors / np.sqrt(np.maximum(values, 1e-6))
    return _with_ones(Z, turn), means @ turn


def _discriminant_start(X: Floats, means: Floats, labels: Ints, size: int) -> Floats:
    """Return weights of linear discriminant analysis (log priors, unit covariance) at the scale of least loss."""
    weights = np.vstack([means.T, -0.5 * np.sum(means**2, axis=1)])
    prior = np.zeros_like(weights)
    prior[-1] = np.log(np.bincount(labels, minlength=size) / labels.size)
    few = slice(None, None, max(1, labels.size // 2000))
    part, own = X[few], labels[few]

    def loss(scale: float) -> float:
        logits = part @ (prior + scale * weights)
        logits -= logits.max(axis=1, keepdims=True)
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(own.size), own]))

    best = min((1.0, 0.5, 0.2, 0.05, 0.0), key=loss)
    return np.asarray(prior + best * weights)


def fit_codes(codes: Ints, code_sizes: Sequence[int], labels: Ints, size: int, *, tolerance: float = 1e-6) -> Fit:
    """Minimise the cross entropy, in nats, of labels (n,), 0 … size − 1, given one-hot codes (n, n_z)."""
    rows, allowed = reduce_exactly(codes, code_sizes, labels, size)
    if not rows.size:
        return Fit(0.0, True, 0)
    kept, own = codes[rows], labels[rows]
    start = _naive_bayes(kept, np.concatenate([[0], np.cumsum(code_sizes)]), own, size, allowed)
    options: Any = {"allowed": allowed, "total": labels.size, "tolerance": tolerance}
    if own.size * size > LARGE:
        return minimise_in_blocks(lambda rows: _OneHot(kept[rows], code_sizes), own, start, **options)
    return minimise(_OneHot(kept, code_sizes), own, start, **options)


def reduce_exactly(codes: Ints, code_sizes: Sequence[int], labels: Ints, size: int) -> tuple[Ints, Bools]:
    """Return the rows of samples with more than one possible class, and the mask (rows, classes) of those classes."""
    rows = np.arange(labels.size)
    allowed = np.ones((labels.size, size), dtype=bool)
    while True:
        kept, now = codes[rows], labels[rows]
        for j, code_size in enumerate(code_sizes):
            met = np.bincount(kept[:, j] * size + now, minlength=code_size * size).reshape(code_size, size) > 0
            if not met.all():
                allowed &= met[kept[:, j]]
        choice = allowed.sum(axis=1) > 1
        if choice.all():
            return rows, allowed
        rows, allowed = rows[choice], allowed[choice]
        if not rows.size:
            return rows, allowed


class _OneHot:
    """The `Design` of one-hot codes, with preconditioners that know its structure."""

    def __init__(self, codes: Ints, code_sizes: Sequence[int]) -> None:
        self.codes, self.sizes = codes, list(code_sizes)
        n = codes.shape[0]
        self.stride = -(-n // _BLOCK_SAMPLES)
        features = OneHotFeatures(codes, code_sizes)
        self.forward, self.backward, self.offsets = features.forward, features.backward, features.offsets
        weight = [np.bincount(codes[:, j], minlength=s) for j, s in enumerate(code_sizes)]
        self.weight = np.maximum(np.concatenate(weight), 1) / n

    def preconditioner(self, probabilities: Reals, total: int, effort: int) -> Callable[[float], Solve]:
        size, D = probabilities.shape[1], int(self.offsets[-1])
        if size * D**3 > _BLOCK_WORK:
            return self._diagonal(probabilities, total)
        stride = self.stride
        P = probabilities[::stride]
        if effort > _HARD and D * (size - 1) <= _FULL_HESSIAN_OF_CODES:
            first, second = np.triu_indices(size - 1)  # the last class is the reference
            both = -P[:, first] * P[:, second]
            both[:, first == second] += P[:, :-1]
            squares = self._squares(both) * (stride / total)
            return full_solver(squares, self.weight, P.dtype.type, least=_LEAST)
        return block_solver(self._squares(P * (1 - P)) * (stride / total), self.weight, P.dtype.type)

    def _squares(self, weights: Reals) -> Floats:
        """Return sums over samples of the products of two features, (m, D, D), with weights (n, m)."""
        sums = self._pairs.T @ weights
        squares = np.zeros((weights.shape[1], int(self.offsets[-1]), int(self.offsets[-1])))
        place = 0
        for a in range(len(self.sizes)):
            for b in range(a + 1):
                cells = self.sizes[a] * self.sizes[b]
                part = sums[place : place + cells].reshape(self.sizes[a], self.sizes[b], -1).transpose(2, 0, 1)
                rows, columns = (slice(self.offsets[j], self.offsets[j + 1]) for j in (a, b))
                squares[:, rows, columns] = part
                squares[:, columns, rows] = part.transpose(0, 2, 1)
                place += cells
        return squares

    def _diagonal(self, P: Reals, total: int) -> Callable[[float], Solve]:
        curvature = self.backward(P * (1 - P)) / total
        least = 1e-9 * float(curvature.max()) * self.weight

        def build(damping: float) -> Solve:
            inverse = (1.0 / (curvature + (damping * self.weight + least)[:, None])).astype(P.dtype)
            return lambda G: np.asarray(inverse * G)

        return build

    @cached_property
    def _pairs(self) -> sparse.csr_matrix:
        """The indicator (n, all pairs of codes) of the codes of two latents in each sample that builds the Hessian."""
        codes = self.codes[:: self.stride]
        columns, place = [], 0
        for a in range(len(self.sizes)):
            for b in range(a + 1):
                columns.append(place + codes[:, a] * self.sizes[b] + codes[:, b])
                place += self.sizes[a] * self.sizes[b]
        return indicator(np.column_stack(columns).astype(np.int32), place)


def _naive_bayes(codes: Ints, offsets: Ints, labels: Ints, size: int, allowed: Bools) -> Floats:
    """Return weights (D, size): the log prior, and the log odds of each code times a fitted factor per latent."""
    n, num_latents = codes.shape
    prior = np.bincount(labels, minlength=size) / n
    known = prior > 0
    log_prior = np.log(np.where(known, prior, 1.0))
    odds = np.zeros((int(offsets[-1]), size))
    for j in range(num_latents):
        levels = int(offsets[j + 1] - offsets[j])
        counts = np.bincount(codes[:, j] * size + labels, minlength=levels * size).reshape(levels, size)
        met = counts > 0
        share = counts.sum(axis=1, keepdims=True) * prior
        odds[offsets[j] : offsets[j + 1]][met] = np.log(counts[met] / share[met])
    few = slice(None, None, -(-n // _START_SAMPLES))
    features = np.stack([odds[offsets[j] + codes[few, j]] for j in range(num_latents)], axis=-1)  # (m, size, n_z)
    ruled_out = ~allowed[few]
    own = labels[few]
    power = np.full(num_latents, 0.3)
    best, best_loss = power, np.inf
    for _ in range(5):
        logits = log_prior + features @ power
        logits[ruled_out] = -np.inf
        logits -= logits.max(axis=1, keepdims=True)
        P = np.exp(logits)
        sums = P.sum(axis=1)
        P /= sums[:, None]
        loss = float(np.mean(np.log(sums) - logits[np.arange(own.size), own]))
        if loss < best_loss:
            best, best_loss = power, loss
        mean = np.einsum("nk,nkj->nj", P, features)
        observed = features[np.arange(own.size), own]
        weighted = (features * P[:, :, None]).reshape(-1, num_latents)
        hessian = weighted.T @ features.reshape(-1, num_latents) - mean.T @ mean
        hessian += (1e-3 * np.trace(hessian) / num_latents + 1e-9) * np.eye(num_latents)
        power = power - np.clip(np.linalg.solve(hessian, (mean - observed).sum(axis=0)), -1.0, 1.0)
    weights = odds * np.repeat(best, np.diff(offsets))[:, None]
    weights[: offsets[1]] += log_prior
    return np.asarray(weights)


class OneHotFeatures:
    """The features of n samples of codes: D = Σ sizes columns, of which each sample has n_z ones."""

    def __init__(self, codes: Ints, sizes: Sequence[int]) -> None:
        """Prepare the tables of codes (n, n_z) with n_z sizes."""
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
        self._joint = _precisions(indicator(np.column_stack(columns), start))
        self._members = _precisions(sparse.vstack(members, format="csr"))  # joint codes × codes

    def forward(self, weights: Reals) -> Reals:
        return np.asarray(self._joint[weights.dtype] @ (self._members[weights.dtype] @ weights))

    def backward(self, residuals: Reals) -> Reals:
        return np.asarray(self._members[residuals.dtype].T @ (self._joint[residuals.dtype].T @ residuals))


def _precisions(matrix: sparse.csr_matrix) -> dict[Any, sparse.csr_matrix]:
    """Return a matrix by precision, single and double."""
    return {np.dtype(np.float32): matrix, np.dtype(np.float64): matrix.astype(np.float64)}


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
