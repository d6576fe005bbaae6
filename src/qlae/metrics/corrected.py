"""InfoM and InfoC corrected for chance: 0 for an encoder that ignores its input, 1 for a perfect one.

Each estimate of information I is compared with what it is by chance, mean μ and deviation (see `chance`), on the scale
of a standard normal: the *evidence* e. With H the entropy of the source,

    A = (I − μ) / (H − μ) · max(0, 1 − (3 / e)²),    0 for e ≤ 3

takes the place of NMI: 0 by chance and 1 at most, as in adjusted mutual information. Entries that cannot be
distinguished from noise are 0, so that the noise of many sources does not add up. (For a continuous source, A is
1 − exp(−2 I) of what is left of I.) InfoM and InfoC are then computed as published, with two differences. A latent
(source) that counts but has no information has 0 instead of being left out of the mean. And each latent (source) is
weighted by its evidence, the largest of its entries,

    w = clip(e / e₀ − 1, 0, 1),

where independent latents exceed e₀ in any of the n_s · n_z pairs with probability 10⁻⁴. So the score does not jump when
a latent becomes informative. The price is that a signal which is weaker than 2 e₀ ≈ 9 deviations counts in part only.

InfoE is in-sample, so a linear model explains a share E₀ of each source by chance; (E − E₀) / (1 − E₀) is weighted in
the same way (see `corrected_explicitness`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .chance import Chance
from .discrete import entropy
from .information import r_squared
from .inputs import Bools, Floats, Sources
from .ratios import weighted_concentration

_ERROR = 1e-4  # probability that any of many independent pairs looks informative
_NOISE = 3.0  # evidence up to which an entry counts as 0


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

    def of_source(self, i: int) -> CorrectedInformation:
        """Return the part (1, n_z) of one source."""
        row = slice(i, i + 1)
        return CorrectedInformation(self.shares[row], self.unshrunk[row], self.evidence[row], self.num_tests)

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


def correct_information(nats: Floats, sources: Sources, chance: Chance) -> CorrectedInformation:
    """Correct estimates for chance.

    Args:
        nats: (n_s, n_z) estimates, not clipped at 0.
        sources: the checked sources.
        chance: of the same estimates.
    """
    evidence = chance.evidence(nats)
    kept = np.maximum(0.0, 1.0 - (_NOISE / np.maximum(evidence, _NOISE)) ** 2)
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
