"""What pictures say about each latent: its label, and whether it is active and informative."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..metrics.heatmap import INACTIVE, UNINFORMATIVE, escape_math


class LatentLabels(NamedTuple):
    """The latents of a model, as pictures label them."""

    active: NDArray[np.bool_]  # (num_latents,)
    informative: NDArray[np.bool_]  # (num_latents,)
    meanings: list[str]  # name of the source that each latent is most informative about; may be empty

    def text(self, latent: int) -> str:
        """Return the label of a latent, in the notation of matplotlib."""
        return f"$z_{{{latent}}}$ {escape_math(self.meanings[latent])}".rstrip()

    def colour(self, latent: int) -> Any:
        """Return the colour of a latent's label: red if it is inactive, grey if it is uninformative."""
        if not self.active[latent]:
            return INACTIVE
        return "black" if self.informative[latent] else UNINFORMATIVE
