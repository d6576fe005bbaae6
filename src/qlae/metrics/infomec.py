"""InfoMEC: modularity, explicitness and compactness in terms of information (paper, section 4).

The published variants are the protocols:

| | paper | official-train | official-standalone | tripod |
|---|---|---|---|---|
| KSG neighbours | 3 | 3 | 10 | 10 |
| active, continuous | range > max/20 | range > max/8 | range > max/20 | IQR > max IQR/10 |
| active, codes | range > 0 | range > max/8 | range > 0 | IQR > 0.1 |
| InfoE input for codes | one-hot; scalar as well | scalar | one-hot | one-hot |
| logistic regression | converged, unweighted | L-BFGS ≤ 100 iterations, balanced | as before | as before |

The authors' training script (`official-train`) takes the type of the latents: the values of a quantized model are
floats and enter as numbers, the indices of a VQ-VAE are integers and enter one-hot. `code_input` says which.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from .corrected import CorrectedInformation, correct_explicitness, correct_information
from .infoe import Input, Solver, explicitness_per_source
from .information import CONTINUOUS_NMI, concentration, estimate, normalise
from .inputs import Bools, Floats, Latents, Sources, check_latents, check_pair, leave_out_constant, require_choice
from .metric import UNIT, Score, register_metric


@dataclass(frozen=True)
class Protocol:
    """One way to compute InfoMEC.

    A latent is active if its spread exceeds a share of the largest spread, or for codes without a share a fixed value.
    Without pruning, every latent that varies is active.
    """

    name: str
    k: int
    spread: Literal["range", "iqr"]
    continuous_share: float
    code_share: float | None
    code_floor: float  # used if there is no code_share
    code_input: Input
    solver: Solver
    counts_constant_sources: bool = False  # in InfoM's number of sources
    prune: bool = True
    continuous_nmi: str = "denoised"

    def active(self, latents: Latents) -> Bools:
        """Return the mask (n_z,) of latents that vary enough to count."""
        share = self._share(latents)
        if not self.prune or (self.spread == "range" and share is None):  # a range above 0, for codes of any size
            return np.asarray(latents.sizes) > 1 if latents.discrete else latents.varying
        if self.spread == "range":
            spreads = np.ptp(latents.values, axis=0)
        else:
            from scipy.stats import iqr  # which takes half a second to import

            spreads = np.atleast_1d(iqr(latents.values, axis=0))
        if share is None:
            return np.asarray(spreads > self.code_floor)
        largest = spreads.max()
        return np.asarray(spreads / largest > share) if largest > 0 else np.zeros(spreads.size, dtype=bool)

    def choose_active(self, latents: Latents, given: Any) -> Bools:
        """Return the mask (n_z,) that a caller gives, or that of the rule if it is None."""
        active = self.active(latents) if given is None else np.array(given)
        if active.dtype != bool or active.shape != (latents.num_latents,):
            raise ValueError(f"active has type {active.dtype} and shape {active.shape}; give one boolean per latent.")
        return active

    def activity_rule(self, latents: Latents) -> str:
        """Describe the condition under which `active` counts a latent."""
        if not self.prune:
            return "range > 0"
        share, name = self._share(latents), "range" if self.spread == "range" else "interquartile range"
        return f"{name} > {self.code_floor:g}" if share is None else f"{name} > 1/{1 / share:.0f} of the largest"

    def _share(self, latents: Latents) -> float | None:
        return self.code_share if latents.discrete else self.continuous_share


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("paper", 3, "range", 1 / 20, None, 0.0, "one-hot", "converged"),
        Protocol("official-train", 3, "range", 1 / 8, 1 / 8, 0.0, "scalar", "lbfgs-balanced", True),
        Protocol("official-standalone", 10, "range", 1 / 20, None, 0.0, "one-hot", "lbfgs-balanced"),
        Protocol("tripod", 10, "iqr", 1 / 10, None, 0.1, "one-hot", "lbfgs-balanced"),
    )
}


def find_protocol(name: str) -> Protocol:
    """Return the protocol of that name, or raise a ``ValueError`` that lists them."""
    require_choice("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]


def choose_protocol(
    name: str, *, prune: bool = True, code_input: str = "auto", continuous_nmi: str = "denoised"
) -> Protocol:
    """Return the protocol of that name with the given options; see `qlae.metrics.infomec`."""
    protocol = find_protocol(name)
    require_choice("prune", prune, (True, False))
    require_choice("code_input", code_input, ("auto", "one-hot", "scalar"))
    require_choice("continuous_nmi", continuous_nmi, CONTINUOUS_NMI)
    how: Any = protocol.code_input if code_input == "auto" else code_input
    return replace(protocol, prune=bool(prune), code_input=how, continuous_nmi=continuous_nmi)


def active_latents(latents: Any, *, protocol: str = "paper", latent_kind: str = "auto") -> Bools:
    """Return which latents vary enough to count in InfoMEC.

    Args:
        latents, protocol, latent_kind: as for `infomec`.

    Returns:
        (n_z,) mask.

    >>> active_latents([[0.0, 1.0], [0.01, 2.0], [0.02, 5.0]])
    array([False,  True])
    """
    return find_protocol(protocol).active(check_latents(latents, kind=latent_kind))


#: Of a corrected score. Chance also lowers raw scores: latents seem to be informative about further sources.
CORRECTED = "0 for noise; exceeds {} where chance lowers that"


@register_metric(
    "infomec",
    scores=[
        Score("infom", "InfoM", meaning="modularity: each latent encodes one source", bounds=UNIT, watched=True),
        Score("infoe", "InfoE", meaning="explicitness: a linear model reads the sources", bounds=UNIT, watched=True),
        Score("infoe_scalar", "InfoE, codes as numbers", meaning="InfoE with codes as numbers", bounds=UNIT),
        Score("infoc", "InfoC", meaning="compactness: one latent encodes each source", bounds=UNIT, watched=True),
        Score("infom_corrected", "InfoM, corrected", meaning=CORRECTED.format("InfoM"), bounds=UNIT),
        Score("infoe_corrected", "InfoE, corrected", meaning=CORRECTED.format("InfoE"), bounds=UNIT),
        Score("infoc_corrected", "InfoC, corrected", meaning=CORRECTED.format("InfoC"), bounds=UNIT),
    ],
    counts=[
        Score("active", "active", digits=0, meaning="latents that vary enough to count"),
        Score("informative", "informative", meaning="latents more informative than noise is", watched=True),
    ],
    takes_protocol=True,
    takes_checked=True,
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
    active: Any = None,
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
        active: (n_z,) mask of the latents that count, instead of those that the rule of the protocol leaves.
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
    varying = leave_out_constant(s, but_for="InfoM" if rules.counts_constant_sources else "")
    _warn_about_ties(z)
    nats = estimate(s, z, k=rules.k, seed=seed)
    matrix = normalise(np.maximum(nats, 0.0), s, z, k=rules.k, continuous_nmi=rules.continuous_nmi)
    information = correct_information(nats, s, z, k=rules.k, seed=seed) if corrected else None
    active = rules.choose_active(z, active)
    _warn_about_latents(active, information, rules, z)
    kept = matrix[np.ix_(np.ones_like(varying) if rules.counts_constant_sources else varying, active)]
    explicit = _explicitness(s, z, rules, active, information, seed)
    fields: dict[str, Any] = {"nmi": matrix, "active": active, **explicit}
    if information is not None:
        fields["infom_corrected"], fields["infoc_corrected"] = information.ratios(varying, active)
        fields |= {"nmi_corrected": information.shares, "informative": information.informative}
    for value in fields.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    fields |= {"protocol": rules.name, "prune": rules.prune, "continuous_nmi": rules.continuous_nmi, "seed": seed}
    return InfoMEC(infom=concentration(kept.T), infoc=concentration(kept), num_samples=s.num_samples, **fields)


def _explicitness(
    s: Sources, z: Latents, rules: Protocol, active: Bools, information: CorrectedInformation | None, seed: int
) -> dict[str, Any]:
    """Return the fields of `InfoMEC` about InfoE."""
    varying, any_active = s.varying, bool(active.any())
    how: Input = rules.code_input if z.discrete else "scalar"

    def explain(how: Input) -> Floats:
        return explicitness_per_source(s, z, rules.solver, how) if any_active else np.zeros(s.num_sources)

    explicit = explain(how)
    fields = {"infoe_per_source": explicit, "infoe": float(explicit[varying].mean()), "infoe_input": how}
    if z.discrete and how == "scalar":
        fields["infoe_scalar"] = fields["infoe"]
    elif how == "one-hot" and rules.solver == "converged":
        fields["infoe_scalar"] = float(explain("scalar")[varying].mean())
    if information is not None:
        beyond = explicit
        if any_active:
            beyond = correct_explicitness(s, z, explicit, information, solver=rules.solver, how=how, seed=seed)
        fields["infoe_corrected"] = float(beyond[varying].mean())
    return fields


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
    def activity(self) -> str:
        """How many latents are active, for readers."""
        return f"{self.num_active} of {self.active.size} latents active{'' if self.prune else ', not pruned'}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON, without scores that were not computed."""
        scores = ("infom", "infoe", "infoc", "infom_corrected", "infoe_corrected", "infoc_corrected")
        others = ("protocol", "prune", "infoe_input", "continuous_nmi", "num_samples", "seed", "infoe_scalar")
        informative = None if self.informative is None else int(self.informative.sum())
        result = {key: getattr(self, key) for key in scores} | {"active": self.num_active, "informative": informative}
        result |= {key: getattr(self, key) for key in others}
        return {key: value for key, value in result.items() if value is not None}

    def __str__(self) -> str:
        scalar = "" if self.infoe_scalar is None else f", scalar {self.infoe_scalar:.3f}"
        informative = corrected = ""
        if self.informative is not None:
            informative = f" ({self.num_informative} of {self.num_active} active latents informative)"
            corrected = (
                f"\ncorrected for chance: InfoM {self.infom_corrected:.3f}  InfoE {self.infoe_corrected:.3f}  "
                f"InfoC {self.infoc_corrected:.3f}"
            )
        return (
            f"InfoM {self.infom:.3f}{informative}  InfoE {self.infoe:.3f} ({self.infoe_input}{scalar})  "
            f"InfoC {self.infoc:.3f}  [{self.protocol}; {self.activity}; n = {self.num_samples:,}]{corrected}"
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
