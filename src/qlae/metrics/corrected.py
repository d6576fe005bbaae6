"""InfoMEC corrected for chance: 0 for an encoder that ignores its input, 1 for a perfect one.

**InfoM and InfoC.** Each estimate of information I is compared with its mean μ and deviation by chance (chance.py), on
the scale of a standard normal: the *evidence* e. With H the entropy of the source,

    A = (I − μ) / (H − μ) · max(0, 1 − (3 / e)²),    0 for e ≤ 3

takes the place of NMI: 0 by chance and 1 at most, as in adjusted mutual information. Entries that cannot be
distinguished from noise are 0, so that the noise of many sources does not add up. (For a continuous source, A is
1 − exp(−2 I) of the remaining I.) InfoM and InfoC are then computed as published, with two differences. A latent
(source) that counts but has no information has 0 instead of being left out of the mean. And each latent (source) is
weighted by its evidence, the largest of its entries,

    w = clip(e / e₀ − 1, 0, 1),

where independent latents exceed e₀ in any of the n_s · n_z pairs with probability 10⁻⁴. So the score does not jump when
a latent becomes informative. The price is that a signal weaker than 2 e₀ ≈ 9 deviations counts only in part.

**InfoE.** The fit is in-sample, so a model with d inputs explains a share E₀ of a source even if the latents are
independent of it. Logistic regression with K classes gains x = d (K − 1) / 2 n H by chance, in units of the entropy H,
while x is small (Wilks 1938). Fits to noise show E₀ ≈ x (1 + x) up to x = 0.3, for 2 to 40 classes, codes or numbers;
beyond that E₀ approaches 1 quickly, because the classes of so small a sample become separable. The R² of linear
regression is d / (n − 1) on average. The authors' fit weights classes; if these have different sizes there is no closed
form, and the fit is repeated for shuffled latents. (E − E₀) / (1 − E₀) is weighted by its evidence as InfoM and InfoC
are. Where x exceeds 0.3, a fit to all latents is uninformative. There the most informative latents are fitted alone, as
many as the sample allows: all latents explain at least as much.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from .chance import chi_square_evidence, information_by_chance
from .infoe import Input, Solver, explicitness_per_source
from .information import entropy, r_squared, weighted_concentration
from .inputs import Bools, Floats, Latents, Sources

_ERROR = 1e-4  # probability that any of many independent pairs looks informative
_NOISE = 3.0  # evidence up to which an entry counts as 0
_SATURATED = 0.3  # share explained by chance (to first order) beyond which a fit says nothing
_BALANCED = 1.05  # imbalance up to which classes are as good as equal in size


def evidence_needed(num_tests: int) -> float:
    """Return e₀: how much evidence at least one of many independent quantities exceeds with probability 10⁻⁴.

    >>> round(evidence_needed(72), 2)
    4.69
    """
    from scipy.special import ndtri

    return -float(ndtri(_ERROR / max(num_tests, 1)))


def evidence_weights(evidence: Floats, num_tests: int) -> Floats:
    """Return weights in [0, 1]: 0 up to the evidence that is needed, and 1 from twice of it."""
    return np.asarray(np.clip(evidence / evidence_needed(num_tests) - 1.0, 0.0, 1.0))


def beyond_noise(evidence: Floats) -> Floats:
    """Return factors in [0, 1] for estimates with this evidence: 0 for those that may be noise."""
    return np.asarray(np.maximum(0.0, 1.0 - (_NOISE / np.maximum(evidence, _NOISE)) ** 2))


@dataclass(frozen=True, eq=False)
class CorrectedInformation:
    """Estimates of information (n_s, n_z) beyond chance, of all sources that vary and all latents."""

    shares: Floats
    """(n_s, n_z) adjusted for chance, in [0, 1] except for the noise of KSG; entries that may be noise are 0."""
    unshrunk: Floats
    """(n_s, n_z) adjusted for chance, with the noise, in [0, 1]."""
    evidence: Floats
    """(n_s, n_z) in standard deviations of a normal distribution."""
    num_tests: int
    """Number of pairs among which a large value might occur by chance."""

    @property
    def informative(self) -> Bools:
        """(n_z,) latents with more evidence than chance allows; the others are noise."""
        return np.asarray((self.evidence > evidence_needed(self.num_tests)).any(axis=0))

    def ratios(self, counted: Bools, active: Bools) -> tuple[float, float]:
        """Return corrected InfoM and InfoC over the sources (n_s,) and latents (n_z,) that count."""
        kept = np.ix_(counted, active)
        shares, evidence = self.shares[kept], self.evidence[kept]
        if not shares.size:
            return 0.0, 0.0
        weights = evidence_weights(evidence, self.num_tests)
        return (
            weighted_concentration(shares.T, weights.max(axis=0)),
            weighted_concentration(shares, weights.max(axis=1)),
        )


def correct_information(nats: Floats, sources: Sources, latents: Latents, *, k: int, seed: int) -> CorrectedInformation:
    """Correct estimates (n_s, n_z), not clipped at 0, for chance; the other arguments are those of the estimate."""
    chance = information_by_chance(sources, latents, k=k, seed=seed)
    evidence = chance.evidence(nats)
    kept = beyond_noise(evidence)
    beyond = np.maximum(nats - chance.mean, 0.0)
    shares, unshrunk = np.zeros_like(nats), np.zeros_like(nats)
    for i in np.flatnonzero(sources.varying).tolist():
        if sources.discrete[i]:
            room = np.maximum(entropy(sources.labels[:, i]) - chance.mean[i], 0.0)
            adjusted = np.divide(beyond[i], room, out=np.zeros_like(room), where=room > 1e-9)
            shares[i], unshrunk[i] = adjusted * kept[i], np.minimum(adjusted, 1.0)
        else:
            shares[i], unshrunk[i] = r_squared(beyond[i] * kept[i]), r_squared(beyond[i])
    return CorrectedInformation(shares, unshrunk, evidence, evidence.size)


def correct_explicitness(
    sources: Sources,
    latents: Latents,
    explicit: Floats,
    information: CorrectedInformation,
    *,
    solver: Solver,
    how: Input,
    seed: int,
) -> Floats:
    """Return the explicitness of each source (n_s,) beyond chance, in [0, 1].

    `explicit` (n_s,) is the share of each source that the linear model of all latents explains, and `information` of
    the same sample says which latents are informative.
    """
    chance = _closed_form(sources, latents, how)
    saturated = chance.first_order > _SATURATED
    if solver != "converged":
        index = [i for i in np.flatnonzero(sources.varying & ~saturated).tolist() if _is_unbalanced(sources, i)]
        chance.mean[index] = _of_shuffled_latents(sources.columns(index), latents, solver, how, seed)
    result = np.where(saturated, 0.0, chance.beyond(explicit, sources.num_sources))
    for i in np.flatnonzero(saturated & sources.varying).tolist():
        result[i] = _of_best_latents(sources.columns([i]), latents, information, i, solver, how)
    return result


def _of_shuffled_latents(sources: Sources, latents: Latents, solver: Solver, how: Input, seed: int) -> Floats:
    order = np.random.default_rng(seed).permutation(sources.num_samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return explicitness_per_source(sources, latents.rows(order), solver, how)


def _is_unbalanced(sources: Sources, i: int) -> bool:
    """Return whether a fit that weights classes inflates the variance of noise, as for classes of unequal size."""
    if not sources.discrete[i]:
        return False
    shares = np.bincount(sources.labels[:, i]) / sources.num_samples
    return float(np.mean(1.0 / shares[shares > 0]) / sources.sizes[i]) > _BALANCED


@dataclass(frozen=True, eq=False)
class _ExplicitnessByChance:
    """The explicitness (n_s,) of latents that are independent of the sources."""

    mean: Floats
    first_order: Floats
    """(n_s,) x, for models of few parameters."""
    shape: Floats
    """(n_s,) squared ratio of mean and deviation; 0 for constant sources."""

    def beyond(self, explicit: Floats, num_tests: int) -> Floats:
        """Return explicitness (n_s,) adjusted for chance and weighted by its evidence, in [0, 1]."""
        possible = (self.mean < 1.0) & (self.shape > 0) & (explicit > self.mean)
        mean, shape = np.where(possible, self.mean, 0.0), np.where(possible, self.shape, 1.0)
        typical = np.where(possible, np.maximum(self.mean, np.minimum(self.first_order, 1.0)), 1.0)
        evidence = chi_square_evidence(explicit, typical, typical / np.sqrt(shape))
        weights = evidence_weights(evidence, num_tests)
        return np.where(possible, np.clip(weights * (explicit - mean) / (1.0 - mean), 0.0, 1.0), 0.0)


def _closed_form(sources: Sources, latents: Latents, how: Input) -> _ExplicitnessByChance:
    n = sources.num_samples
    inputs = _num_inputs(latents, how)
    mean, first_order, shape = (np.zeros(sources.num_sources) for _ in range(3))
    for i in np.flatnonzero(sources.varying).tolist():
        if sources.discrete[i]:
            freedom = inputs * (sources.sizes[i] - 1)
            x = freedom / (2 * n * entropy(sources.labels[:, i]))
            mean[i], first_order[i] = min(x * (1 + x), 1.0), x
            shape[i] = freedom / 2 / (1 + 2 * x) ** 2
        else:
            mean[i] = first_order[i] = min(inputs / (n - 1), 1.0)
            shape[i] = mean[i] * (n + 1) / (2 * (1 - mean[i])) if mean[i] < 1 else 0.0
    return _ExplicitnessByChance(mean, first_order, shape)


def _of_best_latents(
    source: Sources, latents: Latents, information: CorrectedInformation, i: int, solver: Solver, how: Input
) -> float:
    """Return the share of source i that the most informative latents explain beyond chance.

    A linear model of one-hot codes explains at least the information of each single latent, which needs no fit.
    """
    evidence = information.evidence[i]
    best = np.argsort(-evidence)
    best = best[evidence[best] > evidence_needed(information.num_tests)].tolist()
    if not best:
        return 0.0
    one_hot = how == "one-hot" and latents.discrete and source.discrete[0]
    weights = evidence_weights(evidence, information.num_tests)
    alone = float((weights * information.unshrunk[i]).max()) if one_hot else 0.0
    shares = [float(_closed_form(source, latents.columns([j]), how).first_order[0]) for j in best]
    num_kept = int((np.cumsum(shares) <= _SATURATED / 2).sum())
    if not num_kept:
        return alone
    kept = latents.columns(best[:num_kept])
    explicit = explicitness_per_source(source, kept, solver, how)
    beyond = _closed_form(source, kept, how).beyond(explicit, information.num_tests)
    return max(alone, float(weights.max() * beyond[0]))


def _num_inputs(latents: Latents, how: Input) -> int:
    """Return the number of inputs without the constant; numbers that depend linearly on others do not count."""
    if how == "one-hot" and latents.discrete:
        return sum(size - 1 for size in latents.sizes)
    unit = latents.values[:, latents.varying]  # a copy, changed in place to save memory
    if unit.shape[1] < 2:
        return int(unit.shape[1])
    unit -= unit.mean(axis=0)
    unit /= np.maximum(np.abs(unit).max(axis=0), np.finfo(float).tiny)
    lengths = np.linalg.norm(unit, axis=0)
    unit /= np.where(lengths > 0, lengths, 1.0)
    return int((np.linalg.eigvalsh(unit.T @ unit) > 1e-9).sum())
