"""Agreement between the representations of two runs (after Duan et al. 2020, "Unsupervised model selection for
variational disentangled representation learning", UDR).

Runs that are disentangled are alike up to the order, the sign and the numbering of their latents, because there is one
set of sources; entangled runs are each entangled in a way of their own. So a run that agrees with many others is
probably disentangled.

For the latents i of one run and j of another, on the same images, the similarity is their mutual information without
what it is by chance, E I (see `metrics.permutation`), as a share of the largest that the entropies allow:

    R_ij = (I_ij − E I_ij) / (√(H_i H_j) − E I_ij),  0 if below 0.

A latent agrees with the other run as far as it resembles one latent there, and no other:

    A_i = r_i² / Σ_j R_ij,  r_i = max_j R_ij.

The agreement of two runs is the mean of A over the latents of each, and the mean of the two.

In UDR, R is a rank correlation or a regression weight. Mutual information takes its place here because codes of a
VQ-VAE have no order, and because a latent may encode a hue in any order.
"""

import numpy as np

from ..metrics.discrete import discrete_mutual_information
from ..metrics.inputs import Floats, Ints
from ..metrics.permutation import shuffled_moments
from .representation import Representation

EXACT_CELLS = 2_000  # of a table of counts, up to which its mean by chance is computed exactly


def agreement(first: Representation, second: Representation) -> float:
    """Return how far two representations of the same images agree, from 0 to 1: the mean over the latents of both.

    >>> codes = np.stack(np.meshgrid(range(4), range(4), range(9)), -1).reshape(-1, 3)[:, :2]
    >>> from .representation import represent
    >>> round(agreement(represent(codes=codes), represent(codes=3 - codes[:, ::-1])), 3)
    1.0
    """
    return mean_agreement(similarity(first, second))


def similarity(first: Representation, second: Representation) -> Floats:
    """Return R, (n_1, n_2) from 0 to 1, for the used latents of two representations of the same images."""
    nats, chance = information(first, second)
    largest = np.sqrt(np.outer(first.entropies[first.used], second.entropies[second.used]))
    return np.asarray(np.clip((nats - chance) / np.maximum(largest - chance, 1e-9), 0.0, 1.0))


def mean_agreement(between: Floats) -> float:
    """Return the agreement of two runs from their similarities (n_1, n_2)."""
    if not between.size:
        return 0.0
    return float((latent_agreement(between).mean() + latent_agreement(between.T).mean()) / 2)


def latent_agreement(between: Floats) -> Floats:
    """Return for each latent of a run (n_1,) how clearly it corresponds to one latent of the other run (n_2)."""
    nearest = between.max(axis=1)
    return np.asarray(nearest**2 / np.maximum(between.sum(axis=1), 1e-12))


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
