"""The sum that a player descends: terms times weights, of which some may warm up."""

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

Terms = dict[str, Tensor]  # scalars by their config name


class Weighting:
    """Weighs terms by name.

    Args:
        weights: of the terms; terms without one are left out.
        warmed_up: the terms whose weights rise linearly from 0.
        warm_up: the number of updates that it takes them; 0 for none.
    """

    def __init__(self, weights: Mapping[str, float], *, warmed_up: Collection[str] = (), warm_up: int = 0):
        self.weights = dict(weights)
        self.warmed_up = frozenset(warmed_up) if warm_up else frozenset()
        self.warm_up = warm_up
        self._made: tuple[Tensor, Tensor] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of what a call gives."""
        return ("loss", *self.weights)

    def __call__(self, terms: Terms, number: Tensor) -> Terms:
        """The terms, unweighted, after their weighted sum ``loss``, at update ``number`` (from 1; a scalar tensor)."""
        chosen = torch.stack([terms[name] for name in self.weights])  # a few operations on all instead of a few on each
        weights, rising = self._vectors(chosen)
        if self.warmed_up:
            weights = torch.where(rising, weights * (number / self.warm_up).clamp(max=1), weights)
        return {"loss": (weights * chosen).sum(), **{name: terms[name] for name in self.weights}}

    def _vectors(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The weights, and which of them rise; made once, since they must travel to the device."""
        if self._made is None or self._made[0].device != like.device or self._made[0].dtype != like.dtype:
            rising = [name in self.warmed_up for name in self.weights]
            self._made = like.new_tensor(list(self.weights.values())), torch.tensor(rising, device=like.device)
        return self._made
