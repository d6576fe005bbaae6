"""Agreement between the representations of two runs (after Duan et al. 2020, "Unsupervised model selection for
variational disentangled representation learning", UDR).

Disentangled runs are alike up to the order, the sign and the numbering of their latents, because there is one set of
sources; entangled runs are each entangled in a different way.

For the latents i of one run and j of another, on the same observations, the similarity is their mutual information
minus the amount expected by chance, E I (see `metrics.chance`), as a share of the largest possible value:

    R_ij = (I_ij − E I_ij) / (min(H_i, H_j) − E I_ij),  0 if below 0.

So a latent with few values is similar to one with many if the latter determines the former. A latent agrees with the
other run as far as it resembles one latent there, or several that resemble each other:

    A_i = r_i Σ_jk s_ij s_ik R'_jk,  r_i = max_j R_ij,  s_ij = R_ij / Σ_k R_ik,

where R' are the similarities between the latents of the other run. The agreement of two runs is the mean of A over the
latents of each, and the mean of the two.

Latents are first turned into labels: codes are labels already, and continuous latents are divided into bins of equally
many observations. A latent is *used* if it varies enough to count in InfoMEC and its labels have an entropy of at least
`MIN_ENTROPY`. ``docs/selecting.md`` says how this differs from UDR, and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import rankdata

from .._progress import progress_bar
from ..metrics.chance import shuffled_moments
from ..metrics.infomec import find_protocol
from ..metrics.information import discrete_mutual_information, entropy
from ..metrics.inputs import Bools, Floats, Ints, check_latents

NUM_BINS = 20  # of a continuous latent
MIN_ENTROPY = 0.05  # nats: about one image in a hundred has another code
EXACT_CELLS = 2_000  # of a table of counts, up to which its mean by chance is computed exactly
NUM_SHUFFLED = 20  # pairs of runs, shuffled to find the agreement of unrelated ones


@dataclass(frozen=True, eq=False)
class Representation:
    """The latents of a run for a sample of observations, as labels.

    Attributes:
        labels: (n, n_z), 0 … size − 1 in each column.
        used: (n_z,) mask of the used latents.
        entropies: (n_z,) entropy of each column in nats.
    """

    labels: Ints
    used: Bools
    entropies: Floats

    @property
    def num_samples(self) -> int:
        return int(self.labels.shape[0])

    @property
    def num_latents(self) -> int:
        return int(self.labels.shape[1])

    @property
    def num_used(self) -> int:
        return int(self.used.sum())

    @cached_property
    def within(self) -> Floats:
        """Similarities of the used latents with each other."""
        return similarity(self, self)


def represent(latents: Any | None = None, codes: Any | None = None) -> Representation:
    """Return the representation of a sample from its latents, its codes, or both.

    Args:
        latents: (n, n_z) continuous latents, or the values that codes stand for; None if latents are vectors.
        codes: (n, n_z) integers; None if latents are continuous.

    >>> represent(np.linspace(0.0, 1.0, 40)[:, None]).labels[::4, 0].tolist()
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    """
    if codes is None and latents is None:
        raise ValueError("give latents, codes or both")
    if codes is None:
        checked = check_latents(latents, kind="continuous")
        labels = np.column_stack([_equal_bins(column) for column in checked.values.T])
    else:
        checked = check_latents(codes, kind="codes")
        assert checked.codes is not None
        labels = checked.codes
    entropies = np.array([entropy(column) for column in labels.T])
    used = find_protocol("paper").active(checked) & (entropies >= MIN_ENTROPY)
    return Representation(labels, used, entropies)


def _equal_bins(column: Floats) -> Ints:
    """Return the bin of each value (n,), numbered anew so that every bin occurs; equal values share a bin."""
    ranks = rankdata(column, method="average") - 0.5
    bins = np.minimum((ranks * NUM_BINS / column.size).astype(np.int64), NUM_BINS - 1)
    return np.unique(bins, return_inverse=True)[1].reshape(-1).astype(np.int64)


def agreement(first: Representation, second: Representation) -> float:
    """Return how far two representations of the same observations agree, from 0 to 1.

    >>> codes = np.stack(np.meshgrid(range(4), range(4), range(9)), -1).reshape(-1, 3)[:, :2]
    >>> round(agreement(represent(codes=codes), represent(codes=3 - codes[:, ::-1])), 3)
    1.0
    """
    return mean_agreement(similarity(first, second), first.within, second.within)


def similarity(first: Representation, second: Representation) -> Floats:
    """Return R, (n_1, n_2) from 0 to 1, for the used latents of two representations."""
    nats, chance = information(first, second)
    largest = np.minimum.outer(first.entropies[first.used], second.entropies[second.used])
    return np.asarray(np.clip((nats - chance) / np.maximum(largest - chance, 1e-9), 0.0, 1.0))


def mean_agreement(between: Floats, within_first: Floats, within_second: Floats) -> float:
    """Return the agreement of two runs from similarities between them (n_1, n_2) and within each (n, n)."""
    if not between.size:
        return 0.0
    sides = latent_agreement(between, within_second), latent_agreement(between.T, within_first)
    return float((sides[0].mean() + sides[1].mean()) / 2)


def latent_agreement(between: Floats, within: Floats) -> Floats:
    """Return for each latent of a run (n_1,) how clearly it corresponds to one part of the other run.

    ``between`` (n_1, n_2) are similarities with the latents of the other run, ``within`` (n_2, n_2) of these with each
    other.
    """
    shares = between / np.maximum(between.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(between.max(axis=1) * ((shares @ within) * shares).sum(axis=1))


def information(first: Representation, second: Representation) -> tuple[Floats, Floats]:
    """Return the mutual information (n_1, n_2) of the used latents, in nats, and the amount expected by chance."""
    if first.num_samples != second.num_samples:
        raise ValueError(
            f"the representations have {first.num_samples} and {second.num_samples} rows: encode the same "
            "observations with both models, in the same order."
        )
    labels = first.labels[:, first.used], second.labels[:, second.used]
    return _information(*labels), _chance(*labels)


def _information(first: Ints, second: Ints) -> Floats:
    sizes = [[int(column.max()) + 1 for column in labels.T] for labels in (first, second)]
    return discrete_mutual_information(first, sizes[0], second, sizes[1])


def _chance(first: Ints, second: Ints) -> Floats:
    """Return the expected mutual information (n_1, n_2) of columns of labels if the rows of one side are shuffled.

    Tables with very many cells, as those of two VQ-VAEs, deviate so little from their mean that one shuffle shows it.
    """
    counts = [[np.bincount(column) for column in labels.T] for labels in (first, second)]
    cells = np.outer([c.size for c in counts[0]], [c.size for c in counts[1]])
    chance = np.zeros(cells.shape)
    for i, j in np.argwhere(cells <= EXACT_CELLS):
        chance[i, j] = shuffled_moments(counts[0][i], counts[1][j])[0]
    rows, columns = (np.flatnonzero((cells > EXACT_CELLS).any(axis=axis)) for axis in (1, 0))
    if rows.size:
        order = np.random.default_rng(0).permutation(len(second))
        shuffled = np.zeros(cells.shape)
        shuffled[np.ix_(rows, columns)] = _information(first[:, rows], second[order][:, columns])
        chance = np.where(cells > EXACT_CELLS, shuffled, chance)
    return chance


def agreement_matrix(representations: Sequence[Representation], *, show: bool = False) -> Floats:
    """Return the agreement (n, n) of each pair of representations; NaN on the diagonal."""
    count = len(representations)
    matrix = np.full((count, count), np.nan)
    with progress_bar("comparing", count * (count - 1) // 2, show=show) as report:
        for done, (j, i) in enumerate(combinations(range(count), 2), start=1):
            matrix[i, j] = matrix[j, i] = agreement(representations[i], representations[j])
            report(done)
    return matrix


def scores_of(matrix: Floats) -> Floats:
    """Return the score of each run (n,): the mean of its agreements with the others.

    >>> scores_of(np.array([[np.nan, 0.2, 0.4], [0.2, np.nan, 0.9], [0.4, 0.9, np.nan]])).round(2).tolist()
    [0.3, 0.55, 0.65]
    """
    return np.asarray(np.nanmean(matrix, axis=1))


def chance_agreement(representations: Sequence[Representation]) -> float:
    """Return the mean agreement of pairs of runs if the rows of one of the two are shuffled.

    The similarity of single latents has its mean by chance subtracted, but is cut off at 0, and the largest of several
    counts; on few observations, runs without anything in common therefore agree a little.

    >>> codes = np.random.default_rng(0).integers(5, size=(2, 40, 6))
    >>> 0.01 < chance_agreement([represent(codes=codes[0]), represent(codes=codes[1])]) < 0.1
    True
    """
    random, count = np.random.default_rng(0), len(representations)
    values = []
    for i in (number % count for number in range(NUM_SHUFFLED)):
        j = int((i + random.integers(1, count)) % count)
        run, other = representations[i], representations[j]
        shuffled = replace(other, labels=other.labels[random.permutation(other.num_samples)])
        values.append(mean_agreement(similarity(run, shuffled), run.within, other.within))
    return float(np.mean(values))
