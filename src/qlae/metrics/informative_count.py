"""How many of the latents that InfoM counts are informative: the number that belongs beside every InfoM.

InfoM is a ratio, and a ratio of two estimates that are both noise is not small. Whoever shows InfoM, in a table, a page
or a model card, shows this count beside it, and its warning where most of the latents are noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


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
