"""InfoM, InfoE and InfoC corrected for chance: 0 for an encoder that ignores its input, 1 for a perfect one.

Each estimate of information I is compared with what it is by chance, mean μ and deviation (see `chance`), on the scale
of a standard normal: the *evidence* e. With M the largest value that the information of a source can have,

    A = (I − μ) / (M − μ) · max(0, 1 − (2 / e)²),    0 for e ≤ 2

takes the place of NMI: 0 by chance and 1 at most, as in adjusted mutual information, and entries that cannot be told
from noise are 0, so that the noise of many sources does not add up. InfoM and InfoC are then computed as published,
with two differences. A latent (source) that counts but has no information has 0 instead of being left out of the mean.
And each latent (source) is weighted by its evidence, the largest of its entries,

    w = clip(e / e₀ − 1, 0, 1),

where independent latents exceed e₀ in any of the n_s · n_z pairs with probability 10⁻⁴. So the score does not jump when
a latent becomes informative. The price is that a signal which is weaker than 2 e₀ ≈ 9 deviations counts in part only.

InfoE is in-sample, so a linear model explains a share E₀ of each source by chance; (E − E₀) / (1 − E₀) is weighted in
the same way. E₀ is known in closed form where it is small, and otherwise comes from one fit to shuffled latents.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from .chance import Chance, chi_square_evidence
from .discrete import entropy
from .infoe import Input, explicitness_per_source
from .inputs import Bools, Floats, Latents, Sources
from .protocols import Protocol
from .ratios import weighted_concentration

_ERROR = 1e-4  # probability that any of many independent pairs looks informative
_NOISE = 2.0  # evidence up to which an entry counts as 0
_CLOSED_FORM = 0.05  # E₀ up to which its first-order approximation is used
_SATURATED = 0.3  # E₀ from which the best latent alone may be the better measure


def evidence_needed(num_tests: int) -> float:
    """Return e₀: how much evidence at least one of many independent quantities exceeds with probability 10⁻⁴.

    >>> round(evidence_needed(72), 2)
    4.68
    """
    return float(norm.isf(_ERROR / max(num_tests, 1)))


def evidence_weights(evidence: Floats, num_tests: int) -> Floats:
    """Return weights in [0, 1]: 0 up to the evidence that is needed, and 1 from twice of it."""
    return np.asarray(np.clip(evidence / evidence_needed(num_tests) - 1.0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class CorrectedInformation:
    """Estimates of information (n_s, n_z) beyond chance, of all sources that vary and all latents."""

    shares: Floats
    """(n_s, n_z) adjusted for chance, in [0, 1] except for the noise of KSG; entries that may be noise are 0."""
    unshrunk: Floats
    """(n_s, n_z) the same with the noise, in [0, 1]."""
    evidence: Floats
    """(n_s, n_z) in standard deviations of a normal distribution."""

    @property
    def informative(self) -> Bools:
        """(n_z,) latents with more evidence than chance allows; the others are noise."""
        return np.asarray((self.evidence > evidence_needed(self.evidence.size)).any(axis=0))

    def ratios(self, counted: Bools, active: Bools) -> tuple[float, float]:
        """Return corrected InfoM and InfoC over the sources (n_s,) and latents (n_z,) that count."""
        kept = np.ix_(counted, active)
        shares, evidence = self.shares[kept], self.evidence[kept]
        if not shares.size:
            return 0.0, 0.0
        weights = evidence_weights(evidence, self.evidence.size)
        return (
            weighted_concentration(shares.T, weights.max(axis=0)),
            weighted_concentration(shares, weights.max(axis=1)),
        )


def correct_information(nats: Floats, largest: Floats, chance: Chance) -> CorrectedInformation:
    """Correct estimates for chance.

    Args:
        nats: (n_s, n_z) estimates, not clipped at 0.
        largest: (n_s,) the largest information that a source can have; 0 for constant sources.
        chance: of the same estimates.
    """
    evidence = chance.evidence(nats)
    room = np.maximum(largest[:, None] - chance.mean, 0.0)
    adjusted = np.divide(nats - chance.mean, room, out=np.zeros_like(nats), where=room > 1e-9)
    kept = np.maximum(0.0, 1.0 - (_NOISE / np.maximum(evidence, _NOISE)) ** 2)
    return CorrectedInformation(np.maximum(adjusted, 0.0) * kept, np.clip(adjusted, 0.0, 1.0), evidence)


def correct_explicitness(
    sources: Sources,
    latents: Latents,
    explicit: Floats,
    information: CorrectedInformation,
    *,
    protocol: Protocol,
    how: Input,
    seed: int,
) -> Floats:
    """Return the explicitness of each source (n_s,) beyond chance, in [0, 1].

    Where the sample is so small that the model explains much of a source by chance, the best latent alone may give a
    larger and more certain value: all latents together explain at least as much.

    Args:
        sources, latents: the checked sample.
        explicit: (n_s,) what the linear model of all latents explains.
        information: of the same sample, which says which latent is best.
        protocol: of the fit.
        how: input of the linear model.
        seed: of the shuffle.
    """
    chance = _explicitness_by_chance(sources, latents, protocol, how, seed)
    result = chance.beyond(explicit, sources.num_sources)
    for i in np.flatnonzero(chance.mean > _SATURATED).tolist():
        result[i] = max(result[i], _of_best_latent(sources, latents, i, information, protocol, how))
    return result


def _of_best_latent(
    sources: Sources, latents: Latents, i: int, information: CorrectedInformation, protocol: Protocol, how: Input
) -> float:
    """Return what the best latent alone explains of source i beyond chance.

    A linear model of one-hot codes explains the information itself; a linear model of numbers is fitted.
    """
    evidence = information.evidence[i]
    num_tests = information.evidence.size
    if how == "one-hot" and latents.discrete and sources.discrete[i]:
        return float((evidence_weights(evidence, num_tests) * information.unshrunk[i]).max())
    source, latent = sources.columns([i]), latents.columns([int(evidence.argmax())])
    explicit = explicitness_per_source(source, latent, protocol, how)
    return float(_first_order(source, latent, how).beyond(explicit, num_tests)[0])


@dataclass(frozen=True, eq=False)
class _ExplicitnessByChance:
    """The explicitness (n_s,) of shuffled latents."""

    mean: Floats
    typical: Floats
    """(n_s,) at least the mean; not 0 where the mean of an authors' fit is clipped at 0."""
    shape: Floats
    """(n_s,) squared ratio of mean and deviation, half of the degrees of freedom; 0 for constant sources."""

    def beyond(self, explicit: Floats, num_tests: int) -> Floats:
        """Return explicitness (n_s,) adjusted for chance and weighted by its evidence, in [0, 1]."""
        possible = (self.mean < 1.0) & (self.shape > 0) & (explicit > self.mean)
        mean = np.where(possible, self.mean, 0.0)
        typical, shape = np.where(possible, self.typical, 1.0), np.where(possible, self.shape, 1.0)
        evidence = chi_square_evidence(explicit, typical, typical / np.sqrt(shape))
        weights = evidence_weights(evidence, num_tests)
        return np.where(possible, np.clip(weights * (explicit - mean) / (1.0 - mean), 0.0, 1.0), 0.0)


def _explicitness_by_chance(
    sources: Sources, latents: Latents, protocol: Protocol, how: Input, seed: int
) -> _ExplicitnessByChance:
    """Return the closed form where it holds, and elsewhere a fit to shuffled latents."""
    closed = _first_order(sources, latents, how)
    weighted = protocol.solver != "converged"
    refit = np.array(sources.discrete) & sources.varying & (weighted | (closed.mean > _CLOSED_FORM))
    if not refit.any():
        return closed
    index = np.flatnonzero(refit).tolist()
    order = np.random.default_rng(seed).permutation(sources.num_samples)
    mean = closed.mean.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean[index] = explicitness_per_source(sources.columns(index), latents.rows(order), protocol, how)
    return _ExplicitnessByChance(mean, np.maximum(mean, np.minimum(closed.mean, 1.0)), closed.shape)


def _first_order(sources: Sources, latents: Latents, how: Input) -> _ExplicitnessByChance:
    """Return the explicitness of shuffled latents for models of few parameters.

    With d inputs, twice the gain in log likelihood of logistic regression is χ² with d (classes − 1) degrees of freedom
    (Wilks 1938), and the R² of linear regression has a beta distribution with mean d / (n − 1).
    """
    n = sources.num_samples
    inputs = _num_inputs(latents, how)
    mean, shape = np.zeros(sources.num_sources), np.zeros(sources.num_sources)
    for i in np.flatnonzero(sources.varying).tolist():
        if sources.discrete[i]:
            freedom = inputs * (sources.sizes[i] - 1)
            mean[i], shape[i] = freedom / (2 * n * entropy(sources.labels[:, i])), freedom / 2
        else:
            mean[i] = min(inputs / (n - 1), 1.0)
            shape[i] = mean[i] * (n + 1) / (2 * (1 - mean[i])) if mean[i] < 1 else 0.0
    return _ExplicitnessByChance(mean, mean, shape)


def _num_inputs(latents: Latents, how: Input) -> int:
    """Return the number of linearly independent inputs, beside the constant; for one-hot codes of all latents apart."""
    if how == "one-hot" and latents.discrete:
        return sum(size - 1 for size in latents.sizes)
    moving = latents.values[:, latents.varying]
    if moving.shape[1] < 2:
        return int(moving.shape[1])
    centred = moving - moving.mean(axis=0)
    scaled = centred / np.maximum(np.abs(centred).max(axis=0), np.finfo(float).tiny)
    lengths = np.linalg.norm(scaled, axis=0)
    unit = scaled / np.where(lengths > 0, lengths, 1.0)
    return int((np.linalg.eigvalsh(unit.T @ unit) > 1e-9).sum())
