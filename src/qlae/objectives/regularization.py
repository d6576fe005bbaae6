"""ℓ1 regularization of parameters, one of the paper's negative results (Appendix "Negative Results").

The term ``l1`` is the ℓ1 norm of a player's parameter vector: the sum of the absolute values of all weights and biases
of its networks. Codebooks are left out, as they are of weight decay. It is part of the loss, so Adam rescales its
gradient together with those of the other terms; weight decay is decoupled and is not rescaled.
"""

from collections.abc import Collection, Iterable, Sequence

import torch
from torch import Tensor, nn

from .weighting import Terms, TermsFunction

L1 = "l1"  # name of the term as config weight, log key and column


def with_l1(terms_of: TermsFunction, modules: Iterable[nn.Module], weights: Collection[str]) -> TermsFunction:
    """Return a function of loss terms that also returns ``l1`` of some modules, if it has a weight.

    Args:
        terms_of: computes the unweighted terms.
        modules: whose parameters are regularized; those that are not trained are left out.
        weights: names of the terms that have a weight.
    """
    if L1 not in weights:
        return terms_of
    parameters = [parameter for module in modules for parameter in module.parameters() if parameter.requires_grad]

    def regularized(images: Tensor, generator: torch.Generator | None) -> Terms:
        return terms_of(images, generator) | {L1: l1_norm(parameters)}

    return regularized


def l1_norm(parameters: Sequence[Tensor]) -> Tensor:
    """Return the sum of the absolute values of all entries, in float32 at least.

    >>> l1_norm([torch.tensor([1.0, -2.0]), torch.tensor([[0.5]])]).item()
    3.5
    """
    sums = [p.abs().sum(dtype=torch.promote_types(p.dtype, torch.float32)) for p in parameters]
    return torch.stack(sums).sum()
