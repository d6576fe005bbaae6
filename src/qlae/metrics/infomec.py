"""InfoMEC: modularity, explicitness and compactness in terms of information (paper, section 4)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .infoe import explicitness_per_source
from .information import estimate, normalise
from .informative import informative_latents
from .inputs import Bools, Floats, Latents, Sources, check_pair, leave_out_constant
from .protocols import Protocol, find_protocol
from .registry import UNIT, Score, register_metric


@dataclass(frozen=True, eq=False)
class InfoMEC:
    """Scores in [0, 1] and what they were computed from."""

    infom: float
    """Modularity: each latent is informative about one source."""
    infoe: float
    """Explicitness: a linear model can read the sources off the latents; see `infoe_input`."""
    infoc: float
    """Compactness: each source is encoded by one latent."""
    infoe_scalar: float | None
    """Explicitness with codes as numbers instead of one-hot; None for continuous latents."""
    nmi: Floats
    """(n_s, n_z) normalised mutual information."""
    active: Bools
    """(n_z,) latents that vary enough to count."""
    informative: Bools
    """(n_z,) latents that are more informative about some source than shuffled samples are; the others are noise."""
    infoe_per_source: Floats
    """(n_s,) explicitness of each source."""
    infoe_input: str
    """Input of the linear model: "one-hot" codes or "scalar" values."""
    protocol: str
    num_samples: int
    seed: int

    @property
    def num_active(self) -> int:
        return int(self.active.sum())

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
        result: dict[str, Any] = {
            "infom": self.infom,
            "infoe": self.infoe,
            "infoc": self.infoc,
            "active": self.num_active,
            "informative": int(self.informative.sum()),
            "protocol": self.protocol,
            "infoe_input": self.infoe_input,
            "num_samples": self.num_samples,
            "seed": self.seed,
        }
        if self.infoe_scalar is not None:
            result["infoe_scalar"] = self.infoe_scalar
        return result

    def __str__(self) -> str:
        scalar = "" if self.infoe_scalar is None else f", scalar {self.infoe_scalar:.3f}"
        num_noise = int((self.active & ~self.informative).sum())
        noise = f", {num_noise} of them without information" if num_noise else ""
        latents = f"{self.num_active} of {self.active.size} latents active{noise}"
        return (
            f"InfoM {self.infom:.3f}  InfoE {self.infoe:.3f} ({self.infoe_input}{scalar})  InfoC {self.infoc:.3f}  "
            f"[{self.protocol}; {latents}; n = {self.num_samples:,}]"
        )

    def __repr__(self) -> str:
        return f"InfoMEC({self})"


def infomec_of_part(sources: Sources, latents: Latents, whole: InfoMEC, seed: int) -> dict[str, float]:
    """Return the scores of a part of a sample, counting the latents that are active in the whole sample."""
    protocol, varying = find_protocol(whole.protocol), sources.varying
    if not varying.any():
        return {}
    nmi = normalise(np.maximum(estimate(sources, latents, k=protocol.k, seed=seed), 0.0), sources, latents)
    infom, infoc = _ratios(nmi, varying, whole.active)
    explicit, scalar = _explicitness(sources, latents, protocol)
    scores = {"infom": infom, "infoc": infoc, "infoe": float(explicit[varying].mean())}
    if latents.discrete and protocol.solver == "converged":
        scores["infoe_scalar"] = float(scalar[varying].mean())
    return scores


@register_metric(
    "infomec",
    scores=[
        Score("infom", "InfoM", meaning="modularity: each latent encodes one source", bounds=UNIT, watched=True),
        Score("infoe", "InfoE", meaning="explicitness: a linear model reads the sources", bounds=UNIT, watched=True),
        Score("infoe_scalar", "InfoE, codes as numbers", meaning="InfoE with codes as numbers", bounds=UNIT),
        Score("infoc", "InfoC", meaning="compactness: one latent encodes each source", bounds=UNIT, watched=True),
    ],
    counts=[
        Score("active", "active", digits=0, meaning="latents that vary enough to count"),
        Score("informative", "informative", meaning="latents more informative than noise is", watched=True),
    ],
    takes_protocol=True,
    validates=True,
    compute_part=infomec_of_part,
)
def infomec(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "paper",
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

    Args:
        sources: (n, n_s) integers, floats, booleans or strings.
        latents: (n, n_z) integers (codes) or floats (continuous).
        protocol: the published variant: "paper", "official-train", "official-standalone" or "tripod".
        seed: of the jitter that breaks ties among continuous latents.
        source_kinds: "auto", "discrete" or "continuous", for all sources or one per source.
        latent_kind: "auto", "codes" or "continuous".

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(3), range(5), indexing="ij"), -1).reshape(-1, 3)
    >>> print(infomec(sources, sources[:, [2, 0, 1]]))
    InfoM 1.000  InfoE 1.000 (one-hot, scalar 1.000)  InfoC 1.000  [paper; 3 of 3 latents active; n = 60]
    """
    rules = find_protocol(protocol)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s, but_for="InfoM" if rules.counts_constant_sources else "")
    _warn_about_ties(z)
    nats = estimate(s, z, k=rules.k, seed=seed)
    nmi = normalise(np.maximum(nats, 0.0), s, z)
    informative = informative_latents(s, z, nats, k=rules.k, seed=seed)
    active = rules.active(z)
    infom, infoc = _ratios(nmi, np.ones_like(varying) if rules.counts_constant_sources else varying, active)
    if active.any():
        explicit, scalar = _explicitness(s, z, rules)
    else:
        warnings.warn("no latent is active: all scores are 0.", stacklevel=2)
        explicit = scalar = np.zeros(s.num_sources)
    has_scalar = z.discrete and (rules.solver == "converged" or rules.code_input == "scalar")
    for array in (nmi, active, informative, explicit):
        array.flags.writeable = False
    return InfoMEC(
        infom=infom,
        infoe=float(explicit[varying].mean()),
        infoc=infoc,
        infoe_scalar=float(scalar[varying].mean()) if has_scalar else None,
        nmi=nmi,
        active=active,
        informative=informative,
        infoe_per_source=explicit,
        infoe_input=rules.code_input if z.discrete else "scalar",
        protocol=rules.name,
        num_samples=s.num_samples,
        seed=seed,
    )


def _ratios(nmi: Floats, counted: Bools, active: Bools) -> tuple[float, float]:
    """Return InfoM and InfoC from NMI (n_s, n_z), the sources that count (n_s,) and the active latents (n_z,)."""
    kept = nmi[np.ix_(counted, active)]
    return concentration(kept.T), concentration(kept)


def _explicitness(sources: Sources, latents: Latents, protocol: Protocol) -> tuple[Floats, Floats]:
    """Return explicitness per source (n_s,), twice: by the protocol's input, and with codes as numbers.

    The second is computed only where the protocol reports both, and else equals the first.
    """
    one_hot = latents.discrete and protocol.code_input == "one-hot"
    explicit = explicitness_per_source(sources, latents, protocol, "one-hot" if one_hot else "scalar")
    if one_hot and protocol.solver == "converged":
        return explicit, explicitness_per_source(sources, latents, protocol, "scalar")
    return explicit, explicit


def top_two_gaps(matrix: Floats) -> Floats:
    """Return the largest minus the second largest entry of each row; with a single column, the entry itself.

    >>> import numpy as np
    >>> top_two_gaps(np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]]))
    array([0.5, 0. ])
    """
    if matrix.shape[1] == 1:
        return matrix[:, 0].copy()
    ordered = np.sort(matrix, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


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


def concentration(matrix: Floats) -> float:
    """Return the mean over rows of largest entry / sum, mapped from [1/columns, 1] to [0, 1], without rows of zeros.

    >>> import numpy as np
    >>> concentration(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    0.5
    """
    totals = matrix.sum(axis=1)
    rows = totals > 0
    if not rows.any():
        return 0.0
    if matrix.shape[1] == 1:
        return 1.0
    share = float(np.mean(matrix[rows].max(axis=1) / totals[rows]))
    floor = 1.0 / matrix.shape[1]
    return float(np.clip((share - floor) / (1.0 - floor), 0.0, 1.0))
