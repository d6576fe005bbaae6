"""InfoMEC: modularity, explicitness and compactness in terms of information (paper, section 4)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .chance import information_by_chance
from .corrected import CorrectedInformation, correct_explicitness, correct_information
from .infoe import Input, explicitness_per_source
from .information import concentration, estimate, normalise, top_two_gaps
from .inputs import Bools, Floats, Latents, Sources, check_pair, leave_out_constant, require_choice
from .metric import UNIT, Score, register_metric
from .protocols import Protocol, choose_protocol


class _Information(NamedTuple):
    """The information of each pair of a source and a latent."""

    nmi: Floats  # (n_s, n_z)
    corrected: CorrectedInformation | None


class _Explicitness(NamedTuple):
    """The share of each source (n_s,) that linear models explain."""

    per_source: Floats
    scalar: Floats | None  # with codes as numbers
    corrected: Floats | None


def infomec_of_part(sources: Sources, latents: Latents, whole: InfoMEC, seed: int) -> dict[str, float]:
    """Return the scores of a part of a sample, counting the latents that are active in the whole sample."""
    if not sources.varying.any():
        return {}
    rules = choose_protocol(
        whole.protocol,
        prune=whole.prune,
        code_input=whole.infoe_input if latents.discrete else "auto",
        continuous_nmi=whole.continuous_nmi,
    )
    information = _measure(sources, latents, rules, seed, corrected=whole.informative is not None)
    return _scores(sources, latents, rules, information, whole.active, seed)[0]


@register_metric(
    "infomec",
    scores=[
        Score("infom", "InfoM", meaning="modularity: each latent encodes one source", bounds=UNIT, watched=True),
        Score("infoe", "InfoE", meaning="explicitness: a linear model reads the sources", bounds=UNIT, watched=True),
        Score("infoe_scalar", "InfoE, codes as numbers", meaning="InfoE with codes as numbers", bounds=UNIT),
        Score("infoc", "InfoC", meaning="compactness: one latent encodes each source", bounds=UNIT, watched=True),
        Score("infom_corrected", "InfoM, corrected", meaning="InfoM beyond chance: 0 for noise", bounds=UNIT),
        Score("infoe_corrected", "InfoE, corrected", meaning="InfoE beyond chance: 0 for noise", bounds=UNIT),
        Score("infoc_corrected", "InfoC, corrected", meaning="InfoC beyond chance: 0 for noise", bounds=UNIT),
    ],
    counts=[
        Score("active", "active", digits=0, meaning="latents that vary enough to count"),
        Score("informative", "informative", meaning="latents more informative than noise is", watched=True),
    ],
    takes_protocol=True,
    compute_part=infomec_of_part,
)
def infomec(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "paper",
    prune: bool = True,
    code_input: str = "auto",
    continuous_nmi: str = "denoised",
    corrected: bool = True,
    seed: int = 0,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> InfoMEC:
    """Compute InfoM, InfoE and InfoC of a representation (Hsu et al. 2023, section 4).

    With NMI (n_s, n_z) over the active latents,

        InfoM = (mean_j max_i NMI_ij / Σ_i NMI_ij − 1/n_s) / (1 − 1/n_s)
        InfoC = (mean_i max_j NMI_ij / Σ_j NMI_ij − 1/n_z) / (1 − 1/n_z)
        InfoE = mean_i (1 − H_V(s_i | z) / H_V(s_i)), V the linear models.

    Where a formula divides 0 by 0: a latent (source) without any information is left out of the mean, which is 0 if all
    are; with a single source InfoM, with a single active latent InfoC, is 1 if there is any information; without an
    active latent all scores are 0. Constant sources are left out, with a warning.

    The result also has scores that are corrected for chance (see `qlae.metrics.corrected`), because these ratios are
    not small for noise. A warning is issued if most of the latents that InfoM counts are noise, and if the rule for
    active latents leaves informative ones out.

    Args:
        sources: (n, n_s) integers, floats, booleans or strings.
        latents: (n, n_z) integers (codes) or floats (continuous).
        protocol: the published variant: "paper", "official-train", "official-standalone" or "tripod".
        prune: whether the protocol's rule decides which latents are active. It compares their scales; False counts
            every latent that varies.
        code_input: input of InfoE's linear model for codes: "one-hot", "scalar" (codes as numbers), or "auto" for that
            of the protocol.
        continuous_nmi: NMI of continuous sources: "denoised" or "r-squared"; see `qlae.metrics.nmi`.
        corrected: whether to compute the corrected scores, and with them which latents are informative. False saves
            their time; the result then has None in their place, and there are no warnings about noise.
        seed: of the jitter that breaks ties among continuous latents, and of shuffles.
        source_kinds: "auto", "discrete" or "continuous", for all sources or one per source.
        latent_kind: "auto", "codes" or "continuous".

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(3), range(5), indexing="ij"), -1).reshape(-1, 3)
    >>> result = infomec(sources, sources[:, [2, 0, 1]])
    >>> result.infom, result.infoe, result.infoc, result.num_informative
    (1.0, 1.0, 1.0, 3)
    """
    rules = choose_protocol(protocol, prune=prune, code_input=code_input, continuous_nmi=continuous_nmi)
    require_choice("corrected", corrected, (True, False))
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    if code_input == "one-hot" and not z.discrete:
        raise ValueError("code_input is 'one-hot', and the latents are continuous: give codes, or leave it at 'auto'.")
    leave_out_constant(s, but_for="InfoM" if rules.counts_constant_sources else "")
    _warn_about_ties(z)
    information = _measure(s, z, rules, seed, corrected=corrected)
    active, beyond = rules.active(z), information.corrected
    _warn_about_latents(active, beyond, rules, z)
    scores, explicit = _scores(s, z, rules, information, active, seed)
    arrays: dict[str, Any] = {"nmi": information.nmi, "active": active, "infoe_per_source": explicit}
    if beyond is not None:
        arrays |= {"nmi_corrected": beyond.shares, "informative": beyond.informative}
    for array in arrays.values():
        array.flags.writeable = False
    numbers: dict[str, Any] = {**scores}
    return InfoMEC(
        **numbers,
        **arrays,
        infoe_input=rules.code_input if z.discrete else "scalar",
        protocol=rules.name,
        prune=rules.prune,
        continuous_nmi=rules.continuous_nmi,
        num_samples=s.num_samples,
        seed=seed,
    )


def _measure(sources: Sources, latents: Latents, rules: Protocol, seed: int, *, corrected: bool) -> _Information:
    """Estimate the information of every pair, and correct it for chance if that is asked for."""
    nats = estimate(sources, latents, k=rules.k, seed=seed)
    nmi = normalise(np.maximum(nats, 0.0), sources, latents, k=rules.k, continuous_nmi=rules.continuous_nmi)
    if not corrected:
        return _Information(nmi, None)
    chance = information_by_chance(sources, latents, k=rules.k, seed=seed)
    return _Information(nmi, correct_information(nats, sources, chance))


def _scores(
    sources: Sources, latents: Latents, rules: Protocol, information: _Information, active: Bools, seed: int
) -> tuple[dict[str, float], Floats]:
    """Return the scores by key, and the explicitness of each source (n_s,).

    This is used both for whole samples and for parts, whose active latents (n_z,) are those of the whole.
    """
    varying = sources.varying
    counted = np.ones_like(varying) if rules.counts_constant_sources else varying
    kept = information.nmi[np.ix_(counted, active)]
    explicit = _explain(sources, latents, rules, information.corrected, seed, any_active=bool(active.any()))
    scores = {
        "infom": concentration(kept.T),
        "infoe": float(explicit.per_source[varying].mean()),
        "infoc": concentration(kept),
    }
    if information.corrected is not None and explicit.corrected is not None:
        scores["infom_corrected"], scores["infoc_corrected"] = information.corrected.ratios(varying, active)
        scores["infoe_corrected"] = float(explicit.corrected[varying].mean())
    if explicit.scalar is not None:
        scores["infoe_scalar"] = float(explicit.scalar[varying].mean())
    return scores, explicit.per_source


def _explain(
    sources: Sources,
    latents: Latents,
    rules: Protocol,
    information: CorrectedInformation | None,
    seed: int,
    *,
    any_active: bool,
) -> _Explicitness:
    """Fit linear models: by the protocol's input, and with codes as numbers where the protocol reports both."""
    how: Input = rules.code_input if latents.discrete else "scalar"
    both = how == "one-hot" and rules.solver == "converged"
    if not any_active:
        nothing = np.zeros(sources.num_sources)
        scalar_too = latents.discrete and (both or how == "scalar")
        return _Explicitness(nothing, nothing if scalar_too else None, nothing if information is not None else None)
    explicit = explicitness_per_source(sources, latents, rules, how)
    if both:
        scalar: Floats | None = explicitness_per_source(sources, latents, rules, "scalar")
    else:
        scalar = explicit if latents.discrete and how == "scalar" else None
    corrected: Floats | None = None
    if information is not None:
        corrected = correct_explicitness(sources, latents, explicit, information, protocol=rules, how=how, seed=seed)
    return _Explicitness(explicit, scalar, corrected)


def _warn_about_latents(
    active: Bools, information: CorrectedInformation | None, rules: Protocol, latents: Latents
) -> None:
    """Warn about scores that describe noise, and about informative latents that the activity rule leaves out."""
    if not active.any():
        warnings.warn("no latent is active: all scores are 0.", stacklevel=3)
    if information is None:
        return
    informative = information.informative
    count = InformativeCount(int((active & informative).sum()), int(active.sum()))
    if count.active and count.warning:
        warnings.warn(f"{count.warning} Read the corrected scores.", stacklevel=3)
    dropped = np.flatnonzero(informative & ~active)
    if dropped.size:
        names = ", ".join(f"z{j}" for j in dropped[:10]) + (", …" if dropped.size > 10 else "")
        warnings.warn(
            f"protocol {rules.name!r} leaves out {dropped.size} informative latent{'s' if dropped.size > 1 else ''} "
            f"({names}): a latent is active if its {rules.activity_rule(latents)}. InfoM and InfoC describe the other "
            f"{count.active}; prune=False counts every latent that varies.",
            stacklevel=3,
        )


def _warn_about_ties(latents: Latents) -> None:
    """Warn about floats that look like codes which lost their type, and about rows that repeat."""
    first = latents.values[:1000]
    if not latents.discrete and len(first) >= 200 and all(np.unique(column).size <= 32 for column in first.T):
        warnings.warn(
            "each latent takes at most 32 different float values: if they are codes, pass integers or say "
            "latent_kind='codes'; as continuous values their ties are broken at random.",
            stacklevel=3,
        )
    elif not latents.discrete and all(np.unique(column).size <= len(column) // 2 for column in latents.values.T):
        warnings.warn(
            "in every latent at least half of the values repeat others: rows that occur more than once spoil the "
            "estimates of information; give each row once.",
            stacklevel=3,
        )


@dataclass(frozen=True, eq=False)
class InfoMEC:
    """Scores in [0, 1] and the matrices and masks behind them."""

    infom: float
    """Modularity: each latent is informative about one source. Read it together with `informative`."""
    infoe: float
    """Explicitness: a linear model can read the sources off the latents; see `infoe_input`."""
    infoc: float
    """Compactness: each source is encoded by one latent."""
    nmi: Floats
    """(n_s, n_z) normalised mutual information."""
    active: Bools
    """(n_z,) latents that vary enough to count."""
    infoe_per_source: Floats
    """(n_s,) explicitness of each source."""
    infoe_input: str
    """Input of the linear model: "one-hot" codes or "scalar" values."""
    protocol: str
    prune: bool
    """Whether the protocol's rule decided which latents are active; if not, all that vary are."""
    continuous_nmi: str
    """NMI of continuous sources: "denoised" or "r-squared"; see `qlae.metrics.nmi`."""
    num_samples: int
    seed: int
    infoe_scalar: float | None = None
    """Explicitness with codes as numbers instead of one-hot; None for continuous latents."""
    infom_corrected: float | None = None
    """Modularity corrected for chance: 0 for latents that are independent of the sources. None, as the other fields
    that follow, if the corrected scores were turned off."""
    infoe_corrected: float | None = None
    """Explicitness corrected for chance, of the same input as `infoe`."""
    infoc_corrected: float | None = None
    """Compactness corrected for chance."""
    nmi_corrected: Floats | None = None
    """(n_s, n_z) NMI corrected for chance; entries that may be noise are 0."""
    informative: Bools | None = None
    """(n_z,) latents that are more informative about some source than chance allows; the others are noise."""

    @property
    def num_active(self) -> int:
        return int(self.active.sum())

    @property
    def num_informative(self) -> int | None:
        """Number of latents that are active and informative; InfoM counts the other active latents, too."""
        return None if self.informative is None else int((self.active & self.informative).sum())

    @property
    def modularity_gap(self) -> float:
        """Mean over active latents of the gap between the two sources they are most informative about."""
        return float(top_two_gaps(self.nmi.T[self.active]).mean()) if self.active.any() else 0.0

    @property
    def compactness_gap(self) -> float:
        """Mean over sources of the gap between the two most informative latents, active or not."""
        return float(top_two_gaps(self.nmi).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON, without scores that were not computed."""
        scores = ("infom", "infoe", "infoc", "infom_corrected", "infoe_corrected", "infoc_corrected")
        others = ("protocol", "prune", "infoe_input", "continuous_nmi", "num_samples", "seed", "infoe_scalar")
        informative = None if self.informative is None else int(self.informative.sum())
        result = {key: getattr(self, key) for key in scores}
        result |= {"active": self.num_active, "informative": informative}
        result |= {key: getattr(self, key) for key in others}
        return {key: value for key, value in result.items() if value is not None}

    def __str__(self) -> str:
        scalar = "" if self.infoe_scalar is None else f", scalar {self.infoe_scalar:.3f}"
        latents = f"{self.num_active} of {self.active.size} latents active{'' if self.prune else ', not pruned'}"
        informative = corrected = ""
        if self.informative is not None:
            informative = f" ({self.num_informative} of {self.num_active} active latents informative)"
            corrected = (
                f"\ncorrected for chance: InfoM {self.infom_corrected:.3f}  InfoE {self.infoe_corrected:.3f}  "
                f"InfoC {self.infoc_corrected:.3f}"
            )
        return (
            f"InfoM {self.infom:.3f}{informative}  InfoE {self.infoe:.3f} ({self.infoe_input}{scalar})  "
            f"InfoC {self.infoc:.3f}  [{self.protocol}; {latents}; n = {self.num_samples:,}]{corrected}"
        )

    def __repr__(self) -> str:
        return f"InfoMEC({self})"


class InformativeCount(NamedTuple):
    """The latents that InfoM counts, and how many of them are informative about some source.

    >>> print(InformativeCount(informative=1, active=12))
    1 of 12
    """

    informative: int
    active: int

    def __str__(self) -> str:
        return f"{self.informative} of {self.active}"

    @property
    def warning(self) -> str:
        """A sentence for readers of InfoM if most of the latents that it counts are noise; empty otherwise."""
        if 2 * self.informative >= self.active:
            return ""
        number = f"only {self.informative}" if self.informative else "none"
        verb = "are" if self.informative > 1 else "is"
        return (
            f"InfoM says little here: {number} of the {self.active} latents that it counts {verb} informative about a "
            "source, and noise has a high InfoM."
        )


def count_informative(scores: Mapping[str, Any]) -> InformativeCount | None:
    """Return the count of scores as ``results.json`` has them; None if they have no InfoM.

    >>> count_informative({"active_latents": [True, True, False], "informative_latents": [True, False, True]})
    InformativeCount(informative=1, active=2)
    """
    if "active_latents" not in scores or "informative_latents" not in scores:
        return None
    active = np.asarray(scores["active_latents"], dtype=bool)
    informative = np.asarray(scores["informative_latents"], dtype=bool)
    return InformativeCount(int((active & informative).sum()), int(active.sum()))
