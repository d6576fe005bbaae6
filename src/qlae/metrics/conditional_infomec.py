"""Conditional InfoM and InfoC: modularity and compactness for sources that depend on each other.

If sources are dependent, an exact copy of one of them is informative about all, and InfoM calls it entangled. What a
latent should not have is information about other sources *beyond* what its own source implies. With s* the main source
of a latent z, conditional InfoM is computed from the share

    N(z; s*) / (N(z; s*) + Σ_j N(z; s_j | s*)),        s_j all sources but s*,

instead of InfoM's N(z; s*) / Σ_i N(z; s_i). N is the normalised information of corrected InfoM (corrected.py): for a
discrete source I / H(s*) and I(z; s_j | s*) / H(s_j | s*), minus chance; for a continuous one 1 − exp(−2 I).

**Main source.** If z depends on s* alone, then I(z; s_j | s*) = 0 for all others, and I(z; s*) is at least every other
I(z; s_j) by the data processing inequality. InfoM's main source has the largest N instead, which divides by entropies.
The two can differ only if sources have different entropies. Both are tried, and the one with the larger share counts.

**Matrix.** Each latent has a column of these numbers: N(z; s*) at its main source, N(z; s_j | s*) at the others.
InfoM is the mean over columns of main entry / sum, InfoC the mean over rows of largest entry / sum, both mapped from
[1/count, 1] to [0, 1] and weighted by evidence as the corrected scores of InfoMEC are. So a source that is encoded only
as far as another one implies it counts as missing in InfoC.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .chance import chi_square_evidence
from .conditional import Variable, by_chance, conditional_entropy, conditional_information
from .corrected import CorrectedInformation, beyond_noise, correct_information, evidence_needed, evidence_weights
from .infomec import choose_protocol
from .information import entropy, estimate, r_squared, weighted_concentration
from .inputs import Bools, Floats, Ints, Latents, Sources, check_pair, leave_out_constant
from .metric import UNIT, Score, register_metric

_FUNCTION = 0.01  # share of a source's entropy that another one leaves, below which it is a function of the other
_EQUAL = 0.02  # shares of two candidates for the main source that differ less are equal


@dataclass(frozen=True, eq=False)
class ConditionalInfoMEC:
    """Scores in [0, 1], corrected for chance, and the matrix behind them."""

    infom: float
    """Modularity: beyond its main source, each latent is informative about no other."""
    infoc: float
    """Compactness: each source is encoded by one latent."""
    nmi: Floats
    """(n_s, n_z) normalised information: of the main source of each latent, and of the others given that one."""
    main_source: Ints
    """(n_z,) number of the main source of each latent; −1 for latents that are not informative."""
    informative: Bools
    """(n_z,) latents that are more informative about some source than chance allows."""
    active: Bools
    """(n_z,) latents that vary enough to count."""
    protocol: str
    num_samples: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON."""
        result: dict[str, Any] = {"infom_conditional": self.infom, "infoc_conditional": self.infoc}
        result |= {"main_source": self.main_source.tolist()}
        return result | {key: getattr(self, key) for key in ("protocol", "num_samples", "seed")}

    def __str__(self) -> str:
        counted = (
            f"{int((self.active & self.informative).sum())} of {int(self.active.sum())} active latents informative"
        )
        return (
            f"conditional InfoM {self.infom:.3f} ({counted})  conditional InfoC {self.infoc:.3f}  "
            f"[{self.protocol}; n = {self.num_samples:,}]"
        )

    def __repr__(self) -> str:
        return f"ConditionalInfoMEC({self})"


@register_metric(
    "conditional_infomec",
    scores=[
        Score("infom_conditional", "InfoM, conditional", meaning="modularity for dependent sources", bounds=UNIT),
        Score("infoc_conditional", "InfoC, conditional", meaning="compactness for dependent sources", bounds=UNIT),
    ],
    takes_protocol=True,
    takes_checked=True,
    in_all=False,
)
def conditional_infomec(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "paper",
    prune: bool = True,
    active: Any = None,
    seed: int = 0,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> ConditionalInfoMEC:
    """Compute InfoM and InfoC for sources that depend on each other; see the top of the module for their definition.

    An exact copy of the sources has 1 however strongly they depend on each other, and latents that are independent of
    the sources have 0. If the sources are independent and each latent depends on one of them, the scores are those of
    `InfoMEC.infom_corrected` and `InfoMEC.infoc_corrected`. A latent that mixes independent sources scores lower than
    there, because knowing one of the sources reveals more about the others. There is no conditional InfoE: InfoE is not
    lowered by dependence.

    Constant sources, and sources that repeat another one, are left out with a warning.

    Args:
        sources, latents, protocol, prune, active, seed, source_kinds, latent_kind: as for `infomec`. The protocol
            decides which latents are active and the number of neighbours.

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> first = random.integers(0, 4, 2000)
    >>> sources = np.column_stack([first, np.where(random.random(2000) < 0.7, first, random.integers(0, 4, 2000))])
    >>> result = conditional_infomec(sources, 3 - sources[:, ::-1])
    >>> result.infom, result.infoc, result.main_source.tolist()
    (1.0, 1.0, [1, 0])
    """
    rules = choose_protocol(protocol, prune=prune)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    kept = _without_repeats(s, leave_out_constant(s))
    counted = s.columns(np.flatnonzero(kept).tolist())
    nats = estimate(counted, z, k=rules.k, seed=seed)
    information = correct_information(nats, counted, z, k=rules.k, seed=seed)
    active = rules.choose_active(z, active)
    if not active.any():
        warnings.warn("no latent is active: all scores are 0.", stacklevel=2)
    matrix, evidence, main = _Conditional(counted, z, information, rules.k, seed).matrix(active)
    infom, infoc = _ratios(matrix[:, active], evidence[:, active], main[active], information)
    whole = np.zeros((s.num_sources, z.num_latents))
    whole[kept] = matrix
    numbers = np.append(np.flatnonzero(kept), -1)
    return ConditionalInfoMEC(
        infom, infoc, whole, numbers[main], information.informative, active, rules.name, s.num_samples, seed
    )


def _ratios(matrix: Floats, evidence: Floats, main: Ints, information: CorrectedInformation) -> tuple[float, float]:
    """Return conditional InfoM and InfoC of the active latents."""
    if not matrix.size:
        return 0.0, 0.0
    num_sources, columns = matrix.shape[0], np.arange(matrix.shape[1])
    weights = evidence_weights(evidence, information.num_tests)
    own = np.where(main >= 0, matrix[main, columns], 0.0)
    totals = matrix.sum(axis=0)
    share = np.divide(own, totals, out=np.zeros_like(own), where=totals > 0)
    floor = 1.0 / num_sources if num_sources > 1 else 0.0
    mapped = np.clip((share - floor) / (1.0 - floor), 0.0, 1.0)
    infom = float(np.mean(np.where(main >= 0, weights[main, columns], 0.0) * mapped))
    return infom, weighted_concentration(matrix, weights.max(axis=1))


class _Conditional:
    """The matrix of conditional InfoM and InfoC, computed for informative latents only."""

    def __init__(self, s: Sources, z: Latents, information: CorrectedInformation, k: int, seed: int) -> None:
        self.information, self.k, self.seed = information, k, seed
        self.sources = [
            Variable.of_labels(s.labels[:, i], s.sizes[i])
            if s.discrete[i]
            else Variable.of_values(s.values[:, i], seed)
            for i in range(s.num_sources)
        ]
        self.latents, self.codes = z, z.codes
        self.moments: dict[tuple[Any, ...], tuple[float, float]] = {}
        self.entropies: dict[tuple[int, int], float] = {}

    def matrix(self, active: Bools) -> tuple[Floats, Floats, Ints]:
        """Return the matrix (n_s, n_z), the evidence of its entries, and the main sources (n_z,), −1 for noise."""
        matrix, evidence = self.information.shares.copy(), self.information.evidence.copy()
        main = np.full(matrix.shape[1], -1)
        for j in np.flatnonzero(active & self.information.informative).tolist():
            latent = self._latent(j)
            columns = {i: self._column(latent, i, j) for i in self._candidates(j)}
            shares = {i: column[i] / max(column.sum(), 1e-300) for i, (column, _) in columns.items()}
            best = [i for i, share in shares.items() if share >= max(shares.values()) - _EQUAL]
            main[j] = max(best, key=lambda i: float(columns[i][0][i]))
            matrix[:, j], evidence[:, j] = columns[int(main[j])]
        return matrix, evidence, main

    def _latent(self, j: int) -> Variable:
        if self.codes is None:
            return Variable.of_values(self.latents.values[:, j], self.seed)
        return Variable.of_labels(self.codes[:, j], self.latents.sizes[j])

    def _candidates(self, j: int) -> set[int]:
        """Return the sources with the largest normalised information, and with the largest in nats."""
        shares = np.where(self.information.evidence[:, j] > self._needed, self.information.unshrunk[:, j], 0.0)
        nats = [
            share * entropy(source.labels) if source.labels is not None else -0.5 * np.log1p(-min(share, 1 - 1e-15))
            for share, source in zip(shares.tolist(), self.sources, strict=True)
        ]
        return {int(np.argmax(shares)), int(np.argmax(nats))}

    @property
    def _needed(self) -> float:
        return evidence_needed(self.information.num_tests)

    def _column(self, latent: Variable, main: int, j: int) -> tuple[Floats, Floats]:
        """Return a column of the matrix, and its evidence, if `main` is the main source of latent j."""
        column, evidence = self.information.shares[:, j].copy(), self.information.evidence[:, j].copy()
        for i in range(len(self.sources)):
            if i != main:
                column[i], evidence[i] = self._given(latent, i, main, j)
        return column, evidence

    def _given(self, latent: Variable, i: int, main: int, j: int) -> tuple[float, float]:
        """Return the normalised information of a latent about source i given the main source, and its evidence."""
        source, condition = self.sources[i], self.sources[main]
        room = self._entropy(i, main) if source.labels is not None else np.inf
        if source.labels is not None and room <= _FUNCTION * entropy(source.labels):
            return 0.0, 0.0  # a function of the main source
        nats = conditional_information(latent, source, condition, k=self.k, seed=self.seed)
        mean, deviation = self._chance(latent, i, main, j)
        if deviation <= 1e-9 * max(mean, 1e-3):
            return 0.0, 0.0
        if latent.labels is not None and source.labels is not None and condition.labels is not None:
            evidence = float(chi_square_evidence(*map(np.asarray, (nats, max(mean, 1e-12), deviation))))
        else:
            evidence = (nats - mean) / deviation
        beyond = max(nats - mean, 0.0)
        kept = float(beyond_noise(np.asarray(evidence)))
        if source.labels is None:
            return float(r_squared(np.asarray(beyond * kept))), evidence
        return (min(1.0, kept * beyond / (room - mean)) if room - mean > 1e-9 else 0.0), evidence

    def _entropy(self, i: int, main: int) -> float:
        if (i, main) not in self.entropies:
            self.entropies[i, main] = conditional_entropy(self.sources[i], self.sources[main])
        return self.entropies[i, main]

    def _chance(self, latent: Variable, i: int, main: int, j: int) -> tuple[float, float]:
        """Return mean and deviation by chance; continuous variables share theirs."""
        source, condition = self.sources[i], self.sources[main]
        discrete = (latent.is_discrete, source.is_discrete, condition.is_discrete)
        key = tuple(number if is_discrete else -1 for number, is_discrete in zip((j, i, main), discrete, strict=True))
        if key not in self.moments:
            self.moments[key] = by_chance(latent, source, condition, k=self.k, seed=self.seed)
        return self.moments[key]


def _without_repeats(sources: Sources, varying: Bools) -> Bools:
    """Return the mask (n_s,) of varying sources without those that repeat an earlier one under other names."""
    kept = varying.copy()
    for i in np.flatnonzero(varying).tolist():
        for earlier in np.flatnonzero(kept[:i]).tolist():
            if _repeats(sources, i, earlier):
                kept[i] = False
                warnings.warn(
                    f"sources {earlier} and {i} determine each other; they count as one source, {earlier}.",
                    stacklevel=3,
                )
                break
    return kept


def _repeats(sources: Sources, i: int, earlier: int) -> bool:
    """Return whether each of two sources of one kind is a function of the other."""
    if sources.discrete[i] != sources.discrete[earlier]:
        return False
    if sources.discrete[i]:
        if sources.sizes[i] != sources.sizes[earlier]:
            return False
        joint = sources.labels[:, i] * sources.sizes[earlier] + sources.labels[:, earlier]
        return int(np.unique(joint).size) == sources.sizes[i]
    order = np.argsort(sources.values[:, earlier])
    steps = np.diff(sources.values[order, i])
    return bool((steps >= 0).all() or (steps <= 0).all())
