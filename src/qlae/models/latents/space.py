"""The interface of latent spaces, which connect the encoder to the decoder.

A latent space maps the encoder's output ``x`` to the decoder's input ``z`` and brings its own losses, so that one
objective serves every model. To add one, subclass ``LatentSpace`` (or ``DiscreteLatent``) and register it with a config
(``registry.LATENTS``); see ``docs/extending.md``.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._checks import values_per_latent
from ...ops.quantization import quantization_terms

REDUCTIONS = ("sum", "mean")  # of the losses of a codebook, over latents
ASSIGNMENT_DEVIATION = 0.5  # of soft codes, as a share of the distance between neighbouring values


class LatentOutput(NamedTuple):
    """What a latent space returns for a batch."""

    z: Tensor  # (b, num_outputs), the decoder's input
    codes: Tensor | None  # (b, num_latents) int64, None where latents are continuous
    losses: dict[str, Tensor]  # scalar terms, unweighted, by their config name


class LatentSpace(nn.Module, ABC):
    """The base class of latent spaces, between encoder and decoder.

    Attributes:
        num_latents: number of dimensions that a person would inspect and a metric scores.
        num_inputs: size of the encoder's output.
        num_outputs: size of the decoder's input.
        nats: names of the losses that are in nats per image; an objective that averages over pixels divides them by the
            number of pixels and channels as well.
        has_codes: whether each latent takes one of finitely many values.
        has_prior: whether ``sample`` can draw latents.
        is_fitted_after_training: whether ``fit`` must be called once the networks are trained.
        has_scalar_codes: whether each latent is one number from a codebook; then there are ``soft_codes`` and
            ``value_distances``, and penalties on the use of codes apply.
        least_range: a latent whose values differ by less carries nothing.
    """

    num_latents: int
    num_inputs: int
    num_outputs: int
    nats: tuple[str, ...] = ()
    has_codes: ClassVar[bool] = False
    has_prior: ClassVar[bool] = True
    is_fitted_after_training: ClassVar[bool] = False
    has_scalar_codes: ClassVar[bool] = False
    least_range: ClassVar[float] = 0.0

    @classmethod
    def from_config(cls, config: Any, *, num_images: int) -> "LatentSpace":
        """Build the latent space that a config describes.

        Args:
            config: an instance of the config that the class was registered with.
            num_images: size of the data set.
        """
        return cls(**vars(config))

    @abstractmethod
    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        """Map encoder outputs ``x`` (b, num_inputs) to decoder inputs, codes and losses.

        In training mode, random numbers are drawn from ``generator``. In evaluation mode nothing is random.
        """

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw latents (num_samples, num_outputs) from the prior."""
        raise ValueError(f"{type(self).__name__} has no prior to sample from; encode images instead")

    def decoder_inputs(self, z: Tensor) -> Tensor:
        """Return what the decoder sees for latents ``z`` (b, num_outputs): the latents themselves, for most spaces."""
        return z

    def unrounded(self, x: Tensor) -> Tensor:
        """Return the latents (b, num_outputs) of encoder outputs before rounding and noise; for penalties on them."""
        return x

    def soft_codes(self, x: Tensor) -> Tensor:
        """Return weights (b, num_latents, max_values) by which encoder outputs (b, num_inputs) belong to the values.

        The weights of each latent sum to 1, and their gradient reaches the encoder; for penalties on the use of codes.
        """
        raise NotImplementedError(f"{type(self).__name__} has no codebooks of scalars")

    def value_distances(self) -> Tensor:
        """Return the mean distance between neighbouring values of each latent, (num_latents,); 0 for a single value."""
        raise NotImplementedError(f"{type(self).__name__} has no codebooks of scalars")

    @property
    def num_features(self) -> int:
        """Numbers per latent in the features of ``with_features``."""
        return self.num_outputs // self.num_latents

    def with_features(
        self, x: Tensor, generator: torch.Generator | None = None, number: Tensor | None = None
    ) -> tuple[LatentOutput, Tensor]:
        """Return the output of ``forward`` and the representation of each latent that a discriminator sees.

        Args:
            x: encoder outputs (b, num_inputs).
            generator: of random numbers.
            number: of the update, from 1, a scalar tensor, for spaces that change while they are trained.

        Returns:
            The output, and features (b, num_latents, num_features); the latents themselves, for most spaces.
        """
        output: LatentOutput = self(x, generator)
        return output, output.z.unflatten(-1, (self.num_latents, self.num_features))

    def fit(self, x: NDArray[Any]) -> None:
        """Fit parameters that gradients do not train to encoder outputs (n, num_inputs) of training images."""

    def require_inputs(self, x: Tensor) -> None:
        """Raise an error unless the last dimension of ``x`` has ``num_inputs`` entries."""
        if x.shape[-1:] != (self.num_inputs,):
            raise ValueError(f"expected (..., {self.num_inputs}) encoder outputs, got shape {tuple(x.shape)}")


class DiscreteLatent(LatentSpace, ABC):
    """A latent space of codes: in each dimension an index into finitely many values.

    Attributes:
        num_values: number of values of each dimension.
        sizes: the same on the device, (num_latents,) floats.
    """

    has_codes = True
    num_values: tuple[int, ...]
    sizes: Tensor

    def __init__(self, num_values: tuple[int, ...]):
        super().__init__()
        self.num_values = num_values
        self.num_latents = self.num_inputs = self.num_outputs = len(num_values)
        self.register_buffer("sizes", torch.tensor(num_values, dtype=torch.float32), persistent=False)

    def _apply(self, *arguments: Any, **options: Any) -> "DiscreteLatent":
        super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]
        self.sizes = self.sizes.new_tensor(self.num_values, dtype=torch.float32)  # exact, whatever the rest is cast to
        return self

    @abstractmethod
    def to_codes(self, x: Tensor) -> Tensor:
        """Return the codes of encoder outputs: (b, num_inputs) floats → (b, num_latents) int64."""

    @abstractmethod
    def look_up(self, codes: Tensor) -> Tensor:
        """Return ``to_values`` of codes that are known to be valid, as those of ``to_codes`` are."""

    def to_values(self, codes: Tensor) -> Tensor:
        """Return the decoder inputs of codes: (b, num_latents) int64 → (b, num_outputs); differentiable in a codebook.

        Raises:
            ValueError: if the shape is wrong or, on a CPU, if a code does not exist.
        """
        self.require_codes(codes)
        return self.look_up(codes)

    def require_codes(self, codes: Tensor) -> None:
        """Raise an error unless there is one integer per latent and, on a CPU, unless every code exists."""
        if codes.shape[-1:] != (self.num_latents,) or codes.dtype.is_floating_point:
            raise ValueError(f"expected (..., {self.num_latents}) integers, got {codes.dtype} {tuple(codes.shape)}")
        if codes.device.type != "cpu" or torch.compiler.is_compiling():  # checking on a GPU would wait for it
            return
        wrong = ((codes < 0) | (codes >= codes.new_tensor(self.num_values))).nonzero()
        if len(wrong):
            latent, code = int(wrong[0][-1]), int(codes[tuple(wrong[0])])
            raise ValueError(f"the codes of latent {latent} range from 0 to {self.num_values[latent] - 1}, got {code}")

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw codes uniformly, each dimension by itself, and return their decoder inputs; differentiable in a
        codebook."""
        return self.look_up(self.sample_codes(num_samples, generator))

    def sample_codes(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw codes (num_samples, num_latents) uniformly, each dimension by itself."""
        uniform = torch.rand(num_samples, self.num_latents, generator=generator, device=self.sizes.device)
        return torch.minimum(uniform * self.sizes, self.sizes - 1).long()

    def ordered_codes(self, latent: int, codes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the codes that an intervention on one latent steps through.

        Args:
            latent: which latent.
            codes: its codes over a sample, (n,).
            most: number of codes above which a latent space without an order keeps the most frequent ones.
        """
        return np.arange(codes.min(), codes.max() + 1)

    def extra_repr(self) -> str:
        sizes = self.num_values[0] if len(set(self.num_values)) == 1 else list(self.num_values)
        return f"num_latents={self.num_latents}, num_values={sizes}"


def quantize_to_nearest(latent: DiscreteLatent, x: Tensor, reduction: str) -> LatentOutput:
    """Return the codebook values nearest to encoder outputs, straight through, with ``quantize`` and ``commit``."""
    codes = latent.to_codes(x)
    z, quantize, commit = quantization_terms(x, latent.look_up(codes), reduction)
    return LatentOutput(z, codes, {"quantize": quantize, "commit": commit})


def soft_assignments(x: Tensor, values: Tensor, distances: Tensor, mask: Tensor) -> Tensor:
    """Return weights (..., n, m) that fall with the distance from values as a Gaussian does, and sum to 1.

    Args:
        x: (..., n).
        values: (n, m).
        distances: between neighbouring values (n,); half of it is the deviation of the Gaussian.
        mask: (n, m), true where there is a value.
    """
    deviations = (ASSIGNMENT_DEVIATION * distances).clamp(min=torch.finfo(x.dtype).eps).unsqueeze(-1)
    exponents = -((x.unsqueeze(-1) - values) / deviations).square() / 2
    return exponents.masked_fill(~mask, -torch.inf).softmax(-1)


def values_in_common(num_latents: int, num_values: int) -> tuple[int, ...]:
    """Return one number of values per latent for latents that share one codebook."""
    if np.ndim(num_values):
        raise ValueError(f"all latents share one codebook: num_values takes one number, got {num_values}")
    return values_per_latent(num_latents, num_values)
