"""SNC and NK: is one latent enough to predict a source, and does the source suffer without it?

Mahon, Sha & Lukasiewicz (2024), "Correcting Flaws in Common Disentanglement Metrics", as in Lou1sM/snc_nk. Each source
gets its own latent, by the assignment with the most mutual information (latents in as many bins of equal frequency as
the source has classes).

**SNC**, single-neuron classification: the accuracy of predicting a source from its latent alone. The bins of the latent
are matched to classes one to one, so the latent must separate the classes. Latents that mix sources cannot.

Bins have equal frequency, so classes of unequal size lower the score even of a copy.

**NK**, neuron knockout: how much the accuracy of a network with one hidden layer, trained on all latents, drops if it
is trained without the source's latent. It is low if the source is also encoded elsewhere.

Both are held-out: the first ⌈0.9 n⌉ rows train, the rest test. NK depends on how well the networks are trained. The
reference takes 10 epochs of batches of 4,096 on hundreds of thousands of samples; here batches have 200 samples, so
that 10 epochs suffice for some thousand.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .information import discrete_mutual_information
from .inputs import (
    Floats,
    Ints,
    Latents,
    Sources,
    check_pair,
    leave_out_constant,
    plain_columns,
    require_discrete,
    train_size,
    warn_if_ordered,
    whole_number,
)
from .mcc import match
from .metric import UNIT, MetricResult, Score, register_metric

_HIDDEN, _RATE, _BATCH, _EPOCHS = 256, 1e-2, 200, 10
_PROTOCOL = "snc_nk"


@register_metric(
    "snc",
    scores=[Score("snc", "SNC", meaning="accuracy of predicting each source from its own latent", bounds=UNIT)],
    needs_discrete=True,
    holds_rows_out=True,
    takes_checked=True,
    in_all=False,
)
def snc(
    sources: Any,
    latents: Any,
    *,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute single-neuron classification (Mahon et al. 2024), a held-out accuracy.

    `matrix` is the information of binned latents in nats.
    ``details["chance"]`` is the accuracy of guessing the most frequent class, which noise reaches about.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`; continuous sources raise a `ValueError`.

    >>> import numpy as np
    >>> sources = np.tile(np.indices((4, 4)).reshape(2, -1).T, (20, 1))  # classes of equal size
    >>> print(snc(sources, np.exp(sources[:, ::-1])))
    SNC 1.000  [snc_nk; n = 320]
    """
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    cut, matrix, pairs = _assign(s, z, "SNC")
    accuracy, chance = np.zeros(s.num_sources), np.zeros(s.num_sources)
    for i in np.flatnonzero(s.varying).tolist():
        labels = s.labels[:, i]
        chance[i] = float(np.mean(labels[cut:] == np.bincount(labels[:cut]).argmax()))
        if i in pairs:
            accuracy[i] = _accuracy_of_bins(z.values[:, pairs[i]], labels, s.sizes[i], cut)
    varying = s.varying
    details = {"accuracy_per_source": accuracy, "chance": float(chance[varying].mean()), "latent_of_source": pairs}
    return MetricResult("snc", float(accuracy[varying].mean()), matrix, _PROTOCOL, s.num_samples, details)


@register_metric(
    "nk",
    scores=[Score("nk", "NK", meaning="accuracy lost without the latent of each source", bounds=UNIT)],
    needs_discrete=True,
    holds_rows_out=True,
    takes_checked=True,
    in_all=False,
)
def nk(
    sources: Any,
    latents: Any,
    *,
    epochs: int = _EPOCHS,
    seed: int = 0,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> MetricResult:
    """Compute neuron knockout (Mahon et al. 2024), a difference of held-out accuracies.

    A source without a latent of its own, if there are fewer latents than sources, counts as 0.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`; continuous sources raise a `ValueError`.
        epochs: passes of each network over the training rows.
        seed: of the networks.
    """
    whole_number("epochs", epochs, 1, 10_000)
    whole_number("seed", seed, 0)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    cut, matrix, pairs = _assign(s, z, "NK")
    values = plain_columns(z.values)
    deviation = values[:cut].std(axis=0)
    inputs = (values - values[:cut].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    whole, without = np.zeros(s.num_sources), np.zeros(s.num_sources)
    for i, j in pairs.items():
        whole[i] = _accuracy_of_network(inputs, s.labels[:, i], cut, epochs, seed)
        without[i] = _accuracy_of_network(np.delete(inputs, j, axis=1), s.labels[:, i], cut, epochs, seed)
    drops = np.maximum(whole - without, 0.0)
    details = {"accuracy_per_source": whole, "accuracy_without_latent": without, "latent_of_source": pairs}
    return MetricResult("nk", float(drops[s.varying].mean()), matrix, _PROTOCOL, s.num_samples, details)


def _assign(s: Sources, z: Latents, metric: str) -> tuple[int, Floats, dict[int, int]]:
    """Return the number of training rows, the information (n_s, n_z) of binned latents, and each source's latent."""
    varying = leave_out_constant(s)
    require_discrete(s, metric)
    cut = train_size(s.num_samples)
    warn_if_ordered(s, slice(cut, None))
    matrix = np.zeros((s.num_sources, z.num_latents))
    for i in np.flatnonzero(varying).tolist():
        labels, size = s.labels[:cut, i], s.sizes[i]
        bins = np.column_stack([_bins(column, _dividers(column[:cut], size))[:cut] for column in z.values.T])
        matrix[i] = discrete_mutual_information(labels[:, None], [size], bins, [size + 1] * z.num_latents)
    return cut, matrix, match(matrix, varying)[1]


def _dividers(values: Floats, num_bins: int) -> Floats:
    """Return the lower edges of bins of equal frequency; the first is the least value."""
    return np.asarray(np.sort(values)[(np.arange(num_bins) * values.size / num_bins).astype(int)])


def _bins(values: Floats, dividers: Floats) -> Ints:
    """Return the number of dividers that are at most each value, less 1; values below all are in the first bin."""
    return np.asarray(np.maximum(np.searchsorted(dividers, values, side="right") - 1, 0))


def _accuracy_of_bins(values: Floats, labels: Ints, size: int, cut: int) -> float:
    """Return the accuracy in the test rows if each bin stands for one class."""
    from scipy.optimize import linear_sum_assignment

    bins = _bins(values, _dividers(values[:cut], size))
    counts = np.zeros((size, size))
    np.add.at(counts, (bins[:cut], labels[:cut]), 1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    class_of_bin = np.empty(size, dtype=np.int64)
    class_of_bin[rows] = columns
    return float(np.mean(class_of_bin[bins[cut:]] == labels[cut:]))


def _accuracy_of_network(inputs: Floats, labels: Ints, cut: int, epochs: int, seed: int) -> float:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    if not inputs.shape[1] or np.unique(labels[:cut]).size < 2:
        return float(np.mean(labels[cut:] == np.bincount(labels[:cut]).argmax()))
    network = MLPClassifier(
        (_HIDDEN,), learning_rate_init=_RATE, batch_size=min(_BATCH, cut), max_iter=epochs, alpha=0.0, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(inputs[:cut], labels[:cut])
    return float(network.score(inputs[cut:], labels[cut:]))
