"""Bring the latents of a run into one form, labels per latent, so that any two runs can be compared.

Codes are labels already. Continuous latents are divided into bins that hold equally many images, so that only the order
of their values matters. A latent is *used* if it varies enough to count in InfoMEC and its labels have an entropy of at
least `MIN_ENTROPY`. Neither needs sources.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..metrics.information import entropy
from ..metrics.inputs import Bools, Floats, Ints, check_latents
from ..metrics.protocols import find_protocol

NUM_BINS = 20
MIN_ENTROPY = 0.05  # nats: about one image in a hundred has another code


@dataclass(frozen=True, eq=False)
class Representation:
    """What a run says about a sample of images.

    Attributes:
        labels: (n, n_z), 0 … size − 1 in each column.
        used: (n_z,) mask of the latents that count.
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

    @property
    def used_labels(self) -> Ints:
        """(n, num_used)."""
        return self.labels[:, self.used]


def represent(latents: Any | None = None, codes: Any | None = None) -> Representation:
    """Return the representation of a sample from its latents, its codes, or both.

    Args:
        latents: (n, n_z) continuous latents, or the values that codes stand for; None if latents are vectors.
        codes: (n, n_z) integers; None if latents are continuous.

    >>> import numpy as np
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
