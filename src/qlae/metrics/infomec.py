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
from .inputs import Bools, Floats, Latents, check_pair, leave_out_constant
from .protocols import find_protocol


@dataclass(frozen=True, eq=False)
class InfoMEC:
    """Scores in [0, 1] and what they were made from."""

    infom: float
    """Modularity: each latent informs about one source."""
    infoe: float
    """Explicitness: the sources can be read off the latents linearly; see `infoe_input`."""
    infoc: float
    """Compactness: each source is found in one latent."""
    infoe_scalar: float | None
    """Explicitness with codes as numbers instead of one-hot; None for continuous latents."""
    nmi: Floats
    """(n_s, n_z) normalised mutual information."""
    active: Bools
    """(n_z,) latents that move enough to count."""
    informative: Bools
    """(n_z,) latents that tell more of some source than shuffled samples would; the others are noise."""
    infoe_per_source: Floats
    """(n_s,) explicitness of each source."""
    infoe_input: str
    """What InfoE saw: "one-hot" codes or "scalar" values."""
    protocol: str
    num_samples: int
    seed: int

    @property
    def num_active(self) -> int:
        return int(self.active.sum())

    @property
    def modularity_gap(self) -> float:
        """Mean over active latents of the gap between the two sources they tell most of."""
        return float(top_two_gaps(self.nmi.T[self.active]).mean()) if self.active.any() else 0.0

    @property
    def compactness_gap(self) -> float:
        """Mean over sources of the gap between the two latents, active or not, that tell most of them."""
        return float(top_two_gaps(self.nmi).mean())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, fit for JSON; what was not computed is absent."""
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
        beside = "" if self.infoe_scalar is None else f", scalar {self.infoe_scalar:.3f}"
        silent = int((self.active & ~self.informative).sum())
        noise = f", {silent} of them without information" if silent else ""
        latents = f"{self.num_active} of {self.active.size} latents active{noise}"
        return (
            f"InfoM {self.infom:.3f}  InfoE {self.infoe:.3f} ({self.infoe_input}{beside})  InfoC {self.infoc:.3f}  "
            f"[{self.protocol}; {latents}; n = {self.num_samples:,}]"
        )

    def __repr__(self) -> str:
        return f"InfoMEC({self})"


def infomec(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "paper",
    seed: int = 0,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> InfoMEC:
    """InfoM, InfoE and InfoC of a representation.

    With NMI (n_s, n_z) over the active latents,

        InfoM = (mean_j max_i NMI_ij / Σ_i NMI_ij − 1/n_s) / (1 − 1/n_s)
        InfoC = (mean_i max_j NMI_ij / Σ_j NMI_ij − 1/n_z) / (1 − 1/n_z)
        InfoE = mean_i (1 − H_V(s_i | z) / H_V(s_i)), V the linear models.

    Where the formula divides 0 by 0: a latent (source) without any information is left out of the mean, which is 0 if
    all are; with a single source InfoM, with a single active latent InfoC, is 1 if there is any information; without an
    active latent all scores are 0. Constant sources are left out, with a warning.

    Parameters
    ----------
    sources : (n, n_s) integers, floats, booleans or strings.
    latents : (n, n_z) integers (codes) or floats (continuous).
    protocol : "paper", "official-train", "official-standalone" or "tripod": the published variants.
    seed : seed of the jitter that breaks ties among continuous latents.
    source_kinds : "auto", "discrete" or "continuous", for all or one a source.
    latent_kind : "auto", "codes" or "continuous".

    References
    ----------
    Hsu et al. (2023), "Disentanglement via Latent Quantization", section 4.

    >>> import numpy as np
    >>> sources = np.stack(np.meshgrid(range(4), range(3), range(5), indexing="ij"), -1).reshape(-1, 3)
    >>> print(infomec(sources, sources[:, [2, 0, 1]]))
    InfoM 1.000  InfoE 1.000 (one-hot, scalar 1.000)  InfoC 1.000  [paper; 3 of 3 latents active; n = 60]
    """
    chosen = find_protocol(protocol)
    checked, given = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(checked, but_for="InfoM" if chosen.counts_constant_sources else "")
    _warn_of_ties(given)
    nats = estimate(checked, given, k=chosen.k, seed=seed)
    matrix = normalise(np.maximum(nats, 0.0), checked, given)
    informative = informative_latents(checked, given, nats, k=chosen.k, seed=seed)
    active = chosen.active(given)
    counted = np.ones_like(varying) if chosen.counts_constant_sources else varying
    kept = matrix[np.ix_(counted, active)]
    how = chosen.code_input if given.discrete else "scalar"
    if active.any():
        explicit = explicitness_per_source(checked, given, chosen, how)
        scalar = explicit
        if given.discrete and how == "one-hot" and chosen.solver == "converged":
            scalar = explicitness_per_source(checked, given, chosen, "scalar")
    else:
        warnings.warn("no latent is active: all scores are 0.", stacklevel=2)
        explicit = scalar = np.zeros(checked.num_sources)
    both = given.discrete and (chosen.solver == "converged" or how == "scalar")
    for array in (matrix, active, informative, explicit):
        array.flags.writeable = False
    return InfoMEC(
        infom=concentration(kept.T),
        infoe=float(explicit[varying].mean()),
        infoc=concentration(kept),
        infoe_scalar=float(scalar[varying].mean()) if both else None,
        nmi=matrix,
        active=active,
        informative=informative,
        infoe_per_source=explicit,
        infoe_input=how,
        protocol=chosen.name,
        num_samples=checked.num_samples,
        seed=seed,
    )


def top_two_gaps(matrix: Floats) -> Floats:
    """Largest minus second largest entry of each row; 0 stands in where there is no second.

    >>> import numpy as np
    >>> top_two_gaps(np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]]))
    array([0.5, 0. ])
    """
    if matrix.shape[1] == 1:
        return matrix[:, 0].copy()
    ordered = np.sort(matrix, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def _warn_of_ties(latents: Latents) -> None:
    """Floats that take a handful of values are most likely codes that lost their type; rows may also repeat."""
    few = latents.values[:1000]
    if not latents.discrete and len(few) >= 200 and all(np.unique(column).size <= 32 for column in few.T):
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
    """Mean over rows of largest entry / sum, moved from [1/columns, 1] to [0, 1]; rows of zeros are left out.

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
