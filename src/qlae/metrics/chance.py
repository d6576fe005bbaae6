"""What estimates of mutual information are by chance: for latents that are independent of the sources.

An estimate from a finite sample is not 0 for independent variables. InfoM and InfoC are ratios of such estimates, and a
ratio of two numbers that are both noise is not small: latents drawn at random score InfoM 0.4 to 0.9. The mean and the
standard deviation by chance, for each pair of a source and a latent, say which estimates are more than noise. The mask
of informative latents and the chance-corrected scores are computed from them.

* Discrete source, code: from the table of counts alone (see `permutation`), without random numbers.
* One discrete and one continuous variable, or two continuous ones: from shuffled samples. The estimates of KSG hardly
  depend on the distribution of a continuous variable, so all continuous columns share their shuffles. Their deviation
  shrinks as 1/√n, so a part of a large sample suffices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .inputs import Bools, Floats, Ints, Latents, Sources
from .ksg import Ordered, continuous_pair, rescale_and_jitter
from .permutation import shuffled_moments

_SAMPLES = 1_000  # rows of a shuffled sample
_PER_LABEL = 20  # or this many for each label, if that is more
_SHUFFLES = 64  # for each deviation
_CAUTION = 1.1  # a deviation from 64 shuffles has a standard error of 9%


@dataclass(frozen=True, eq=False)
class Chance:
    """Mean and standard deviation (n_s, n_z) of estimates of mutual information by chance, in nats."""

    mean: Floats
    deviation: Floats
    from_counts: Bools
    """(n_s, n_z) True for plug-in estimates, which are distributed as χ²; those of KSG are normal."""

    def evidence(self, nats: Floats) -> Floats:
        """Return how far estimates (n_s, n_z) exceed chance, in standard deviations of a normal distribution.

        Plug-in estimates are brought to that scale by the cube root (Wilson & Hilferty 1931).
        """
        usable = self.deviation > 1e-9 * np.maximum(self.mean, 1e-3)
        mean, deviation = np.where(usable, self.mean, 1.0), np.where(usable, self.deviation, 1.0)
        by_counts = chi_square_evidence(nats, np.maximum(mean, 1e-12), deviation)
        return np.where(usable, np.where(self.from_counts, by_counts, (nats - mean) / deviation), 0.0)


def chi_square_evidence(value: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Return a value ≥ 0 of a scaled χ² distribution with this mean and deviation on the scale of a standard normal.

    >>> import numpy as np
    >>> chi_square_evidence(*map(np.float64, (30.578, 15.0, 30**0.5))).round(2)  # the 99% quantile of χ² with 15
    np.float64(2.33)
    """
    nine_shapes = 9.0 * (mean / deviation) ** 2
    return np.asarray((np.cbrt(value / mean) - (1.0 - 1.0 / nine_shapes)) * np.sqrt(nine_shapes))


def information_by_chance(sources: Sources, latents: Latents, *, k: int, seed: int) -> Chance:
    """Return what `information.estimate` gives for each source and latent if the rows of one of them are shuffled.

    Args:
        sources, latents: the checked sample.
        k: number of neighbours in the KSG estimators.
        seed: of the shuffles and of the jitter.
    """
    shape = sources.num_sources, latents.num_latents
    mean, deviation = np.zeros(shape), np.zeros(shape)
    from_counts = np.zeros(shape, dtype=bool)
    varying = sources.varying
    discrete = np.flatnonzero(np.array(sources.discrete) & varying)
    continuous = np.flatnonzero(~np.array(sources.discrete) & varying)
    moving = np.flatnonzero(latents.varying if latents.codes is None else np.array(latents.sizes) > 1)
    if not moving.size:
        return Chance(mean, deviation, from_counts)
    random = np.random.default_rng(seed)
    jitter = np.random.RandomState(seed)
    smooth_sources = rescale_and_jitter(sources.values[:, continuous], jitter) if continuous.size else None
    if latents.codes is not None:
        if discrete.size:
            moments = _moments_of_codes(sources.labels[:, discrete], latents.codes[:, moving])
            mean[np.ix_(discrete, moving)], deviation[np.ix_(discrete, moving)] = moments
            from_counts[discrete] = True
        if smooth_sources is not None:
            moments = _moments_of_labels(smooth_sources, latents.codes[:, moving], k, random)
            mean[np.ix_(continuous, moving)], deviation[np.ix_(continuous, moving)] = moments
        return Chance(mean, deviation, from_counts)
    smooth = rescale_and_jitter(latents.values[:, moving], jitter)
    if discrete.size:
        by_source = _moments_of_labels(smooth, sources.labels[:, discrete], k, random)
        for array, values in zip((mean, deviation), by_source, strict=True):
            array[np.ix_(discrete, moving)] = values[:, None]
    if smooth_sources is not None:
        pair_mean, pair_deviation = _moments_of_pairs(smooth_sources, smooth, k, random)
        mean[np.ix_(continuous, moving)], deviation[np.ix_(continuous, moving)] = pair_mean, pair_deviation
    return Chance(mean, deviation, from_counts)


def _moments_of_codes(labels: Ints, codes: Ints) -> tuple[Floats, Floats]:
    """Return mean and deviation (n_s, n_z) of plug-in estimates."""
    label_counts = [np.bincount(column) for column in labels.T]
    code_counts = [np.bincount(column) for column in codes.T]
    moments = np.array([[shuffled_moments(a, b) for b in code_counts] for a in label_counts])
    return moments[:, :, 0], moments[:, :, 1]


def _moments_of_labels(smooth: Floats, labels: Ints, k: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return mean and deviation, for each column of labels (n, q), of its estimates with shuffled continuous columns.

    Args:
        smooth: (n, m) continuous columns, taken in turn.
        labels: (n, q).
        k: number of neighbours.
        random: generator of the shuffles.
    """
    n = labels.shape[0]
    sizes = [int(column.max()) + 1 for column in labels.T]
    part = min(n, max(_SAMPLES, _PER_LABEL * max(sizes)))
    estimates = np.zeros((_SHUFFLES, len(sizes)))
    for draw in range(_SHUFFLES):
        rows, others = random.choice(n, part, replace=False), random.choice(n, part, replace=False)
        ordered = Ordered(smooth[others, draw % smooth.shape[1]])
        for i, size in enumerate(sizes):
            estimates[draw, i] = ordered.with_labels(labels[rows, i], size, k)
    return _scaled(estimates, part / n)


def _moments_of_pairs(x: Floats, y: Floats, k: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return mean and deviation of the estimates of pairs of continuous columns, (n, m) and (n, q), one shuffled."""
    n = x.shape[0]
    part = min(n, _SAMPLES)
    estimates = np.zeros(_SHUFFLES)
    for draw in range(_SHUFFLES):
        rows, others = random.choice(n, part, replace=False), random.choice(n, part, replace=False)
        estimates[draw] = continuous_pair(x[rows, draw % x.shape[1]], y[others, draw % y.shape[1]], k)
    return _scaled(estimates, part / n)


def _scaled(estimates: Floats, share: float) -> tuple[Floats, Floats]:
    """Return mean and deviation over shuffles (the first axis), for a sample of which the shuffles had a share."""
    shrink = float(np.sqrt(share))
    deviation = _CAUTION * shrink * estimates.std(axis=0, ddof=1)
    return np.asarray(shrink * estimates.mean(axis=0)), np.asarray(deviation)
