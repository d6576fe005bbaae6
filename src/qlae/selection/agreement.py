"""Agreement between the representations of two runs (after Duan et al. 2020, "Unsupervised model selection for
variational disentangled representation learning", UDR).

Runs that are disentangled are alike up to the order, the sign and the numbering of their latents, because there is one
set of sources; entangled runs are each entangled in a way of their own. So a run that agrees with many others is
probably disentangled.

For the latents i of one run and j of another, on the same images, the similarity is their mutual information without
what it is by chance, E I (see `metrics.chance`), as a share of the largest that the entropies allow:

    R_ij = (I_ij − E I_ij) / (min(H_i, H_j) − E I_ij),  0 if below 0.

So a latent with few values is similar to one with many if the latter determines the former. A latent agrees with the
other run as far as it resembles one latent there, or several that resemble each other:

    A_i = r_i Σ_jk s_ij s_ik R'_jk,  r_i = max_j R_ij,  s_ij = R_ij / Σ_k R_ik,

where R' are the similarities between the latents of the other run. If these are unlike each other (R'_jk = 0), the sum
is Σ_j s_ij², which is 1 for a single similar latent and 1/m for m of them. The agreement of two runs is the mean of A
over the latents of each, and the mean of the two.

Differences from UDR:

- R is a rank correlation or a regression weight there. Mutual information takes its place because codes of a VQ-VAE
  have no order, and because a latent may encode a hue in any order.
- A_i is r_i² / Σ_j R_ij there, which punishes a run whose sources are spread over several latents. InfoM does not, and
  latents of one source resemble each other.
"""

import numpy as np

from ..metrics.chance import shuffled_moments
from ..metrics.information import discrete_mutual_information
from ..metrics.inputs import Floats, Ints
from .representation import Representation

EXACT_CELLS = 2_000  # of a table of counts, up to which its mean by chance is computed exactly


def agreement(first: Representation, second: Representation) -> float:
    """Return how far two representations of the same images agree, from 0 to 1: the mean over the latents of both.

    >>> codes = np.stack(np.meshgrid(range(4), range(4), range(9)), -1).reshape(-1, 3)[:, :2]
    >>> from .representation import represent
    >>> round(agreement(represent(codes=codes), represent(codes=3 - codes[:, ::-1])), 3)
    1.0
    """
    return mean_agreement(similarity(first, second), similarity(first, first), similarity(second, second))


def similarity(first: Representation, second: Representation) -> Floats:
    """Return R, (n_1, n_2) from 0 to 1, for the used latents of two representations of the same images."""
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

    Args:
        between: similarities with the latents of the other run (n_1, n_2).
        within: similarities of these with each other (n_2, n_2).
    """
    shares = between / np.maximum(between.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(between.max(axis=1) * ((shares @ within) * shares).sum(axis=1))


def information(first: Representation, second: Representation) -> tuple[Floats, Floats]:
    """Return the mutual information (n_1, n_2) of the used latents, in nats, and what it is by chance."""
    if first.num_samples != second.num_samples:
        raise ValueError(
            f"the representations have {first.num_samples} and {second.num_samples} rows: encode the same images with "
            "both models, in the same order."
        )
    return _information(first.used_labels, second.used_labels), _chance(first.used_labels, second.used_labels)


def _information(first: Ints, second: Ints) -> Floats:
    """Return the plug-in mutual information (n_1, n_2) of columns of labels, in nats."""
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
