"""The latent spaces: what stands between the encoder and the decoder.

A latent space maps the encoder's output ``x`` to the decoder's input ``z`` and brings its own losses, so that one
objective serves every model. ``QuantizedLatent`` is the paper's contribution (Section 3, Equation 4, Algorithm 1).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .divergences import decomposed_kl, gaussian_kl


class LatentOutput(NamedTuple):
    """What a latent space makes of a batch."""

    z: Tensor  # (b, num_outputs), the decoder's input
    codes: Tensor | None  # (b, num_latents) int64, None where latents are continuous
    losses: dict[str, Tensor]  # scalar terms, unweighted, by their config name


class CodeUsage(NamedTuple):
    """How a sample of codes uses the codebooks."""

    counts: Tensor  # (num_latents, max_values) int64
    used: Tensor  # (num_latents,) int64, values that occur at all
    perplexity: Tensor  # (num_latents,) float, exp(entropy of the empirical code distribution)


class LatentSpace(nn.Module, ABC):
    """The seam between encoder and decoder.

    Attributes:
        num_latents: dimensions that a person would inspect and a metric scores.
        num_inputs: size of the encoder's output.
        num_outputs: size of the decoder's input.
        discrete: whether ``forward`` gives codes.
        nats: the losses that are nats an image; an objective that averages over pixels divides them likewise.
    """

    num_latents: int
    num_inputs: int
    num_outputs: int
    discrete: bool
    nats: tuple[str, ...] = ()

    @abstractmethod
    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        """Map encoder outputs ``x`` (b, num_inputs) to decoder inputs, codes and losses.

        What is random in training mode is drawn from ``generator``; nothing is random in evaluation mode.
        """

    @abstractmethod
    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw decoder inputs (num_samples, num_outputs) from the prior."""


class ContinuousLatent(LatentSpace):
    """The plain autoencoder's latent space: ``z`` is the encoder's output.

    It offers BioAE's two penalties (Whittington et al. 2023), to which ``ae`` gives no weight: ``nonnegative``, the
    mean of relu(−z), and ``activity``, the mean of z².
    """

    discrete = False

    def __init__(self, num_latents: int):
        super().__init__()
        self.num_latents = self.num_inputs = self.num_outputs = positive_count("num_latents", num_latents)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        return LatentOutput(x, None, {"nonnegative": F.relu(-x).mean(), "activity": x.square().mean()})

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        raise ValueError("a continuous latent space has no prior to sample from; encode images instead")


class GaussianLatent(LatentSpace):
    """The variational autoencoder's latent space: a diagonal Gaussian q(z | x), σ = softplus, and the prior N(0, I).

    In training ``z`` is drawn from q, in evaluation it is the mean. The loss is ``kl``, D_KL(q(z | x) ‖ p(z)) in nats
    an image, or with ``num_images`` its decomposition (Chen et al. 2018) by minibatch-weighted sampling:
    ``mutual_information`` + ``total_correlation`` + ``dimension_kl``, which sum to a one-sample estimate of ``kl``.

    Args:
        num_latents: dimensions n_z; the encoder gives twice as many numbers, means and pre-softplus deviations.
        num_images: size of the data set, for the decomposition.
    """

    discrete = False
    nats = ("kl", "mutual_information", "total_correlation", "dimension_kl")

    def __init__(self, num_latents: int, num_images: int | None = None):
        super().__init__()
        self.num_latents = self.num_outputs = positive_count("num_latents", num_latents)
        self.num_inputs = 2 * num_latents
        self.num_images = None if num_images is None else positive_count("num_images", num_images)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        mean, deviation = x.chunk(2, dim=-1)
        deviation = F.softplus(deviation)
        if not self.training:
            return LatentOutput(mean, None, {"kl": gaussian_kl(mean, deviation)})
        noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        z = mean + deviation * noise
        if self.num_images is None:
            return LatentOutput(z, None, {"kl": gaussian_kl(mean, deviation)})
        return LatentOutput(z, None, decomposed_kl(z, mean, deviation, self.num_images))

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Decoder inputs drawn from the prior."""
        device = None if generator is None else generator.device
        return torch.randn(num_samples, self.num_latents, generator=generator, device=device)


class QuantizedLatent(LatentSpace):
    """Latent quantization: a learnable scalar codebook per dimension.

    Every entry ``x_j`` goes to the nearest of the values ``V_j`` of its own dimension. The set of all codes is the
    product of the codebooks (10^12 for 12 latents of 10 values), but it is never enumerated: distances cost
    ``b · num_latents · num_values``.

    Gradients, as in the paper:

    - ``quantize = ‖stop(x) − z‖²`` moves the codebook only,
    - ``commit   = ‖x − stop(z)‖²`` moves the encoder only,
    - whatever is computed from the returned ``z`` reaches the encoder straight through, never the codebook.

    Args:
        num_latents: dimensions n_z.
        num_values: values a codebook, one number for all dimensions or one a dimension.
        shared: one codebook for all dimensions (the paper's "global codebook" ablation).
        reduction: how the two losses treat latents: ``"sum"`` (the paper's squared norm) or ``"mean"`` (the
            authors' code). Both average over the batch.
        learned: whether values move; ``False`` keeps the initial grid.
        low, high: ends of the initial, evenly spaced values.

    Example:
        >>> import torch
        >>> latent = QuantizedLatent(num_latents=2, num_values=[3, 5])
        >>> out = latent(torch.tensor([[0.4, -0.3]]))
        >>> out.codes.tolist(), out.z.tolist()
        ([[2, 1]], [[0.5, -0.25]])
    """

    discrete = True
    mask: Tensor

    def __init__(
        self,
        num_latents: int,
        num_values: int | Sequence[int] = 10,
        *,
        shared: bool = False,
        reduction: str = "sum",
        learned: bool = True,
        low: float = -0.5,
        high: float = 0.5,
    ):
        super().__init__()
        self.num_latents = self.num_inputs = self.num_outputs = positive_count("num_latents", num_latents)
        self.num_values = _values_per_latent(num_latents, num_values)
        if shared and len(set(self.num_values)) > 1:
            raise ValueError(f"a shared codebook has one size, got num_values={list(self.num_values)}")
        if reduction not in ("sum", "mean"):
            raise ValueError(f"reduction must be 'sum' or 'mean', got {reduction!r}")
        if not low < high:
            raise ValueError(f"low must be below high, got low={low}, high={high}")
        self.shared = shared
        self.reduction = reduction

        # One row a codebook, padded to the longest; padding is masked out of every distance.
        sizes = self.num_values[:1] if shared else self.num_values
        values = torch.full((len(sizes), max(sizes)), high)
        mask = torch.zeros(values.shape, dtype=torch.bool)
        for row, size in enumerate(sizes):
            values[row, :size] = torch.linspace(low, high, size) if size > 1 else (low + high) / 2
            mask[row, :size] = True
        self.values = nn.Parameter(values, requires_grad=learned)
        self.register_buffer("mask", mask, persistent=False)

    def codebook(self) -> Tensor:
        """The values of every dimension, (num_latents, max_values); entries beyond a dimension's size mean nothing."""
        return self.values.expand(self.num_latents, -1)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        codes = self.to_codes(x)
        z = self.to_values(codes)
        reduce = torch.sum if self.reduction == "sum" else torch.mean
        losses = {
            "quantize": reduce((x.detach() - z).square(), dim=-1).mean(),
            "commit": reduce((x - z.detach()).square(), dim=-1).mean(),
        }
        # Straight through. x − stop(x) is exactly zero, so the value is the codebook's to the last bit.
        return LatentOutput(z.detach() + (x - x.detach()), codes, losses)

    def to_codes(self, x: Tensor) -> Tensor:
        """The index of the nearest value in each dimension: (..., num_latents) floats → int64."""
        if x.shape[-1] != self.num_latents:
            raise ValueError(f"expected (..., {self.num_latents}) latents, got shape {tuple(x.shape)}")
        distance = (x.detach().unsqueeze(-1) - self.codebook().detach()).abs()  # (..., n_z, n_v)
        return distance.masked_fill(~self.mask, torch.inf).argmin(-1)

    def to_values(self, codes: Tensor) -> Tensor:
        """The values behind codes: (..., num_latents) int64 → floats; differentiable in the codebook."""
        if codes.shape[-1] != self.num_latents:
            raise ValueError(f"expected (..., {self.num_latents}) codes, got shape {tuple(codes.shape)}")
        return self.codebook().expand(*codes.shape, -1).gather(-1, codes.unsqueeze(-1)).squeeze(-1)

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Values of codes drawn uniformly from the product of the codebooks."""
        return self.to_values(self.sample_codes(num_samples, generator))

    def sample_codes(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Codes (num_samples, num_latents) drawn uniformly, each dimension by itself."""
        device = self.values.device
        uniform = torch.rand(num_samples, self.num_latents, generator=generator, device=device)
        sizes = torch.tensor(self.num_values, device=device)
        return torch.minimum((uniform * sizes).long(), sizes - 1)

    def usage(self, codes: Tensor) -> CodeUsage:
        """Counts, used values and perplexity of every dimension over a sample of codes (n, num_latents)."""
        num_values = self.values.shape[1]
        offset = torch.arange(self.num_latents, device=codes.device) * num_values
        counts = torch.bincount((codes + offset).flatten(), minlength=self.num_latents * num_values)
        counts = counts.view(self.num_latents, num_values)
        frequency = counts / counts.sum(1, keepdim=True).clamp(min=1)
        entropy = -torch.special.xlogy(frequency, frequency).sum(1)
        return CodeUsage(counts, (counts > 0).sum(1), entropy.exp())

    def extra_repr(self) -> str:
        sizes = self.num_values[0] if len(set(self.num_values)) == 1 else list(self.num_values)
        return f"num_latents={self.num_latents}, num_values={sizes}, shared={self.shared}"


def positive_count(name: str, value: int) -> int:
    """``value`` if it is a whole number of at least one, else an error that names it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return value


def _values_per_latent(num_latents: int, num_values: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(num_values, int):
        return (positive_count("num_values", num_values),) * num_latents
    sizes = tuple(positive_count("num_values", size) for size in num_values)
    if len(sizes) != num_latents:
        raise ValueError(
            f"num_values has {len(sizes)} entries for {num_latents} latents; give one a latent or one number"
        )
    return sizes
