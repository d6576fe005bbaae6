"""The result of InfoMEC: scores, what they were computed from, and their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .inputs import Bools, Floats
from .ratios import top_two_gaps


@dataclass(frozen=True, eq=False)
class InfoMEC:
    """Scores in [0, 1] and what they were computed from."""

    infom: float
    """Modularity: each latent is informative about one source. Read it together with `informative`."""
    infoe: float
    """Explicitness: a linear model can read the sources off the latents; see `infoe_input`."""
    infoc: float
    """Compactness: each source is encoded by one latent."""
    infoe_scalar: float | None
    """Explicitness with codes as numbers instead of one-hot; None for continuous latents."""
    infom_corrected: float
    """Modularity corrected for chance: 0 for latents that are independent of the sources."""
    infoe_corrected: float
    """Explicitness corrected for chance, of the same input as `infoe`."""
    infoc_corrected: float
    """Compactness corrected for chance."""
    nmi: Floats
    """(n_s, n_z) normalised mutual information."""
    nmi_corrected: Floats
    """(n_s, n_z) the same corrected for chance; entries that may be noise are 0."""
    active: Bools
    """(n_z,) latents that vary enough to count."""
    informative: Bools
    """(n_z,) latents that are more informative about some source than chance allows; the others are noise."""
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

    @property
    def num_active(self) -> int:
        return int(self.active.sum())

    @property
    def num_informative(self) -> int:
        """Number of latents that are active and informative; InfoM counts the other active latents, too."""
        return int((self.active & self.informative).sum())

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
            "infom_corrected": self.infom_corrected,
            "infoe_corrected": self.infoe_corrected,
            "infoc_corrected": self.infoc_corrected,
            "active": self.num_active,
            "informative": int(self.informative.sum()),
            "protocol": self.protocol,
            "prune": self.prune,
            "infoe_input": self.infoe_input,
            "continuous_nmi": self.continuous_nmi,
            "num_samples": self.num_samples,
            "seed": self.seed,
        }
        if self.infoe_scalar is not None:
            result["infoe_scalar"] = self.infoe_scalar
        return result

    def __str__(self) -> str:
        scalar = "" if self.infoe_scalar is None else f", scalar {self.infoe_scalar:.3f}"
        informative = f"{self.num_informative} of {self.num_active} active latents informative"
        latents = f"{self.num_active} of {self.active.size} latents active{'' if self.prune else ', not pruned'}"
        return (
            f"InfoM {self.infom:.3f} ({informative})  InfoE {self.infoe:.3f} ({self.infoe_input}{scalar})  "
            f"InfoC {self.infoc:.3f}  [{self.protocol}; {latents}; n = {self.num_samples:,}]\n"
            f"corrected for chance: InfoM {self.infom_corrected:.3f}  InfoE {self.infoe_corrected:.3f}  "
            f"InfoC {self.infoc_corrected:.3f}"
        )

    def __repr__(self) -> str:
        return f"InfoMEC({self})"
