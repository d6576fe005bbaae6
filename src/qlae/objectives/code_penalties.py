"""Penalties on the use of codes: ``entropy`` and ``support``, for autoencoders that round each latent to a value.

Both are multiplied by the variance of the batch per entry (pixel and channel, or feature), which is not differentiated.
The factor makes a weight mean the same for all data and resolutions: with a weight of 0.02 of ``entropy``, the first
nat of a latent must lower the error of the reconstruction by a hundredth of the variance. Without it, a weight that
suits images with bright walls of any hue would erase a small object in front of a constant background.
"""

from collections.abc import Collection

from torch import Tensor

from ..models.latents import LatentOutput, LatentSpace
from .code_entropy import code_entropy
from .code_support import support_gap
from .weighting import Terms

# Names of the terms as config weights, log keys and columns.
ENTROPY = "entropy"
SUPPORT = "support"
PENALTIES = (ENTROPY, SUPPORT)


def penalty_terms(
    names: Collection[str], latent: LatentSpace, x: Tensor, output: LatentOutput, images: Tensor
) -> Terms:
    """Return the penalties of these names on a batch, unweighted.

    Args:
        names: of the penalties.
        latent: a space of scalar codes.
        x: encoder outputs (b, num_inputs).
        output: of the latent space for them.
        images: the inputs of the encoder (b, ...).
    """
    terms: Terms = {}
    if ENTROPY in names:
        assert output.codes is not None
        terms[ENTROPY] = code_entropy(latent.soft_codes(x), output.codes)
    if SUPPORT in names:
        terms[SUPPORT] = support_gap(latent.unrounded(x), latent.value_distances())
    if terms:
        variance = images.detach().var(0, correction=0).mean()
        terms = {name: variance * term for name, term in terms.items()}
    return terms


def require_scalar_codes(latent: LatentSpace, names: Collection[str]) -> None:
    """Raise an error if there are penalties on codes, and the latent space does not round each latent."""
    if names and not latent.has_scalar_codes:
        raise ValueError(
            f"the loss term {sorted(names)[0]!r} needs latents that are rounded to one of a few values each, as those "
            f"of qlae and fsq-ae are, which {type(latent).__name__} does not do; remove its weight"
        )
