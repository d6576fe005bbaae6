"""The sum that a player descends: terms times weights, of which some may warm up."""

from collections.abc import Collection, Mapping

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

    @property
    def names(self) -> tuple[str, ...]:
        """Of what a call gives."""
        return ("loss", *self.weights)

    def __call__(self, terms: Terms, number: Tensor) -> Terms:
        """The terms, unweighted, after their weighted sum ``loss``, at update ``number`` (from 1; a scalar tensor)."""
        share = (number / self.warm_up).clamp(max=1) if self.warmed_up else None
        loss = number.new_zeros(())
        for name, weight in self.weights.items():
            weighted = weight * terms[name]
            loss = loss + (weighted * share if share is not None and name in self.warmed_up else weighted)
        return {"loss": loss, **{name: terms[name] for name in self.weights}}
