"""The published variants of InfoMEC, by name.

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

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .information import CONTINUOUS_NMI
from .inputs import Bools, Latents, check_latents, require_choice


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
    code_input: Literal["one-hot", "scalar"]
    solver: Literal["converged", "lbfgs-balanced"]
    counts_constant_sources: bool = False  # in InfoM's number of sources
    prune: bool = True
    continuous_nmi: str = "denoised"

    def _rule(self, latents: Latents) -> tuple[str, float | None, float]:
        """Return the spread that counts, the share of the largest that it must exceed, or without one the value."""
        if not self.prune:
            return "range", None, 0.0
        return self.spread, self.code_share if latents.discrete else self.continuous_share, self.code_floor

    def active(self, latents: Latents) -> Bools:
        """Return the mask (n_z,) of latents that vary enough to count."""
        spread, share, floor = self._rule(latents)
        if spread == "range" and share is None:  # a range above 0, for codes of any size
            return np.asarray(latents.sizes) > 1 if latents.discrete else latents.varying
        if spread == "range":
            spreads = np.ptp(latents.values, axis=0)
        else:
            from scipy.stats import iqr  # which takes half a second to import

            spreads = np.atleast_1d(iqr(latents.values, axis=0))
        if share is None:
            return np.asarray(spreads > floor)
        largest = spreads.max()
        return np.asarray(spreads / largest > share) if largest > 0 else np.zeros(spreads.size, dtype=bool)

    def activity_rule(self, latents: Latents) -> str:
        """Describe the condition under which `active` counts a latent."""
        spread, share, floor = self._rule(latents)
        name = "range" if spread == "range" else "interquartile range"
        return f"{name} > {floor:g}" if share is None else f"{name} > 1/{1 / share:.0f} of the largest"


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
