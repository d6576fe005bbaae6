"""Agreement between the representations of two runs (after Duan et al. 2020, "Unsupervised model selection for
variational disentangled representation learning", UDR).

Runs that are disentangled are alike up to the order, the sign and the numbering of their latents, because there is one
set of sources; entangled runs are each entangled in a way of their own. So a run that agrees with many others is
probably disentangled.

For the latents i of one run and j of another, on the same images, the similarity is their mutual information without
what it is by chance, E I (see `metrics.permutation`), as a share of the largest that the entropies allow:

    R_ij = (I_ij − E I_ij) / (√(H_i H_j) − E I_ij),  0 if below 0.

In UDR, R is a rank correlation or a regression weight. Mutual information takes its place here because codes of a
VQ-VAE have no order, and because a latent may encode a hue in any order.
"""

from typing import Literal, get_args

import numpy as np

from .._checks import require_known
from ..metrics.discrete import discrete_mutual_information
from ..metrics.inputs import Floats, Ints
from ..metrics.permutation import shuffled_moments
from .representation import Representation

Form = Literal["udr", "coherence"]
FORMS: tuple[str, ...] = get_args(Form)
EXACT_CELLS = 2_000  # of a table of counts, up to which its mean by chance is computed exactly


def similarity(first: Representation, second: Representation) -> Floats:
    """Return R, (n_1, n_2) from 0 to 1, for the used latents of two representations of the same images."""
    if first.num_samples != second.num_samples:
        raise ValueError(
            f"the representations have {first.num_samples} and {second.num_samples} rows: encode the same images with "
            "both models, in the same order."
        )
    a, b = first.used_labels, second.used_labels
    nats, chance = _information(a, b), _chance(a, b)
    largest = np.sqrt(np.outer(first.entropies[first.used], second.entropies[second.used]))
    above = np.maximum(largest - chance, 1e-9)
    return np.asarray(np.clip((nats - chance) / above, 0.0, 1.0))


def agreement(first: Representation, second: Representation, *, form: Form = "udr") -> float:
    """Return how far two representations of the same images agree, from 0 to 1.

    Args:
        first, second: the representations.
        form: how the similarities of a latent become one number, see `latent_agreement`.
    """
    between = similarity(first, second)
    within = (similarity(first, first), similarity(second, second)) if form == "coherence" else (None, None)
    return mean_agreement(between, *within, form=form)


def mean_agreement(between: Floats, first: Floats | None, second: Floats | None, *, form: Form = "udr") -> float:
    """Return the agreement from similarities: between two runs (n_1, n_2), and within each of them."""
    if not between.size:
        return 0.0
    one, other = latent_agreement(between, second, form=form), latent_agreement(between.T, first, form=form)
    return float((one.mean() + other.mean()) / 2)


def latent_agreement(between: Floats, within: Floats | None, *, form: Form = "udr") -> Floats:
    """Return for each latent of a run (n_1,) how clearly it corresponds to something in the other run.

    With r_i = max_j R_ij and the shares w_ij = R_ij / Σ_j R_ij,

    - ``"udr"`` is r_i · max_j w_ij, as in UDR: a latent should resemble one latent of the other run and no other;
    - ``"coherence"`` is r_i · Σ_jk w_ij S_jk w_ik, where S are the similarities within the other run, and 1 for j = k:
      the latents that it resembles should be about the same thing, which several latents may share.

    Args:
        between: (n_1, n_2).
        within: (n_2, n_2), needed for ``"coherence"``.
        form: one of the two.
    """
    require_known(form, FORMS, "form")
    nearest = between.max(axis=1)
    shares = between / np.maximum(between.sum(axis=1, keepdims=True), 1e-12)
    if form == "udr":
        return np.asarray(nearest * shares.max(axis=1))
    assert within is not None
    related = within.copy()
    np.fill_diagonal(related, 1.0)
    return np.asarray(nearest * np.einsum("ij,jk,ik->i", shares, related, shares))


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
