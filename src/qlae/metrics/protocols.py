"""The published variants of InfoMEC, by name.

| | paper | official-train | official-standalone | tripod |
|---|---|---|---|---|
| KSG neighbours | 3 | 3 | 10 | 10 |
| active, continuous | range > max/20 | range > max/8 | range > max/20 | IQR > max IQR/10 |
| active, codes | range > 0 | range > max/8 | range > 0 | IQR > 0.1 |
| InfoE input for codes | one-hot; scalar beside it | scalar | one-hot | one-hot |
| logistic regression | converged, unweighted | L-BFGS ≤ 100 iterations, balanced | as before | as before |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import iqr

from .inputs import Bools, Latents


@dataclass(frozen=True)
class Protocol:
    """One way to compute InfoMEC. A latent is active if its spread exceeds a part of the largest spread, or a value."""

    name: str
    k: int
    spread: Literal["range", "iqr"]
    continuous_share: float
    code_share: float | None  # of the largest spread …
    code_floor: float  # … or, without a share, this much
    code_input: Literal["one-hot", "scalar"]
    solver: Literal["converged", "lbfgs-balanced"]
    counts_constant_sources: bool = False  # in InfoM's number of sources

    def active(self, latents: Latents) -> Bools:
        """(n_z,) the latents that move enough to count."""
        if latents.discrete and self.spread == "range" and self.code_share is None:
            return np.asarray(latents.sizes) > 1  # the same as a range above 0, however large the codes are
        spreads = np.ptp(latents.values, axis=0) if self.spread == "range" else iqr(latents.values, axis=0)
        spreads = np.atleast_1d(spreads)
        if latents.discrete and self.code_share is None:
            return np.asarray(spreads > self.code_floor)
        share = self.code_share if latents.discrete else self.continuous_share
        largest = spreads.max()
        if not largest > 0:
            return np.zeros(spreads.size, dtype=bool)
        return np.asarray(spreads / largest > share)


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
    """The protocol of that name, or an error that lists them."""
    if name not in PROTOCOLS:
        raise ValueError(f"protocol is {name!r}; allowed are {', '.join(map(repr, PROTOCOLS))}.")
    return PROTOCOLS[name]
