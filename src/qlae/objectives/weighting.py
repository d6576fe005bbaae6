"""The sum that a player descends: loss terms times their weights, of which some may follow a schedule."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from ..schedules import Curve, curve_factor

Terms = dict[str, Tensor]  # scalars by their config name
TermsFunction = Callable[[Tensor, torch.Generator | None], Terms]
LossFunction = Callable[[Tensor, torch.Generator | None, Tensor], Terms]


class Weighting:
    """Weighs loss terms by name.

    Args:
        weights: of the terms; terms without a weight are left out.
        schedules: factors on single weights by update.
    """

    def __init__(self, weights: Mapping[str, float], schedules: Mapping[str, Curve] | None = None):
        if not weights:
            raise ValueError('a loss needs at least one term; give weights, such as {"reconstruct": 1.0}')
        self.weights = dict(weights)
        self.schedules = {name: curve for name, curve in (schedules or {}).items() if name in self.weights}
        self._vector: Tensor | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms that a call returns."""
        return ("loss", *self.weights)

    def __call__(self, terms: Terms, number: Tensor) -> Terms:
        """Return the weighted sum ``loss`` and the terms, unweighted.

        Args:
            terms: by name.
            number: of the update, from 1, a scalar tensor.
        """
        self._require_terms(terms)
        # A few operations on all terms at once instead of a few on each.
        term_values = torch.stack([terms[name] for name in self.weights])
        weights = self._weights(term_values)
        if self.schedules:
            one = torch.ones_like(number)
            factors = [
                curve_factor(self.schedules[name], number) if name in self.schedules else one for name in self.weights
            ]
            weights = weights * torch.stack(factors).to(weights.dtype)
        return {"loss": (weights * term_values).sum(), **{name: terms[name] for name in self.weights}}

    def loss(self, terms_of: TermsFunction) -> LossFunction:
        """Return the loss function of a player from a function that computes the unweighted terms."""

        def loss(images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
            return self(terms_of(images, generator), number)

        return loss

    def _require_terms(self, terms: Terms) -> None:
        for name in self.weights:
            if name not in terms:
                raise ValueError(
                    f"there is a weight for the loss term {name!r}, which neither the objective nor the latent space "
                    f"computes; they compute {', '.join(terms) or 'none'}"
                )
            if not isinstance(terms[name], Tensor) or terms[name].dim():
                shape = f"of shape {tuple(terms[name].shape)}" if isinstance(terms[name], Tensor) else repr(terms[name])
                raise ValueError(f"loss terms are scalar tensors, and {name!r} is {shape}; take its mean")

    def _weights(self, like: Tensor) -> Tensor:
        """Return the weights as a tensor, made once, since it must travel to the device."""
        if self._vector is None or self._vector.device != like.device or self._vector.dtype != like.dtype:
            self._vector = like.new_tensor(list(self.weights.values()))
        return self._vector
