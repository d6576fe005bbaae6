"""What every latent space is: the seam between encoder and decoder.

A latent space maps the encoder's output ``x`` to the decoder's input ``z`` and brings its own losses, so that one
objective serves every model.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


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
        nats: the losses that are nats an image; an objective that averages over pixels divides them likewise.
    """

    num_latents: int
    num_inputs: int
    num_outputs: int
    nats: tuple[str, ...] = ()

    @abstractmethod
    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        """Map encoder outputs ``x`` (b, num_inputs) to decoder inputs, codes and losses.

        What is random in training mode is drawn from ``generator``; nothing is random in evaluation mode.
        """

    @abstractmethod
    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw decoder inputs (num_samples, num_outputs) from the prior."""

    def require_inputs(self, x: Tensor) -> None:
        """An error unless the last dimension is what the encoder must give."""
        if x.shape[-1:] != (self.num_inputs,):
            raise ValueError(f"expected (..., {self.num_inputs}) encoder outputs, got shape {tuple(x.shape)}")


class DiscreteLatent(LatentSpace, ABC):
    """A latent space of codes: in each dimension an index into finitely many values.

    Attributes:
        num_values: of each dimension.
    """

    num_values: tuple[int, ...]
    sizes: Tensor  # the same on the device, (num_latents,) floats

    def __init__(self, num_values: tuple[int, ...]):
        super().__init__()
        self.num_values = num_values
        self.register_buffer("sizes", torch.tensor(num_values, dtype=torch.float32), persistent=False)

    def _apply(self, *arguments: Any, **options: Any) -> "DiscreteLatent":
        super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]
        self.sizes = self.sizes.new_tensor(self.num_values, dtype=torch.float32)  # exact, whatever the rest becomes
        return self

    @abstractmethod
    def to_codes(self, x: Tensor) -> Tensor:
        """The codes of encoder outputs: (b, num_inputs) floats → (b, num_latents) int64."""

    @abstractmethod
    def look_up(self, codes: Tensor) -> Tensor:
        """`to_values` of codes that are known to exist, as those of `to_codes` are."""

    def to_values(self, codes: Tensor) -> Tensor:
        """The decoder inputs behind codes: (b, num_latents) int64 → (b, num_outputs); differentiable in a codebook."""
        self.require_codes(codes)
        return self.look_up(codes)

    def require_codes(self, codes: Tensor) -> None:
        """An error unless the last dimension is one code a latent; on a CPU also unless all codes exist."""
        if codes.shape[-1:] != (self.num_latents,) or codes.dtype.is_floating_point:
            raise ValueError(f"expected (..., {self.num_latents}) integers, got {codes.dtype} {tuple(codes.shape)}")
        if codes.device.type != "cpu" or torch.compiler.is_compiling():  # a GPU would have to be waited for
            return
        wrong = (codes < 0) | (codes >= self.sizes)
        if wrong.any():
            latent = int(wrong.nonzero()[0, -1])
            raise ValueError(f"the codes of latent {latent} run from 0 to {self.num_values[latent] - 1}; others came")

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Decoder inputs of codes drawn uniformly, each dimension by itself; differentiable in a codebook."""
        return self.look_up(self.sample_codes(num_samples, generator))

    def sample_codes(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Codes (num_samples, num_latents) drawn uniformly, each dimension by itself."""
        uniform = torch.rand(num_samples, self.num_latents, generator=generator, device=self.sizes.device)
        return torch.minimum(uniform * self.sizes, self.sizes - 1).long()

    def usage(self, codes: Tensor) -> CodeUsage:
        """Counts, used values and perplexity of every dimension over a sample of codes (n, num_latents)."""
        self.require_codes(codes)
        num_values = max(self.num_values)
        offset = torch.arange(self.num_latents, device=codes.device) * num_values
        counts = torch.bincount((codes + offset).flatten(), minlength=self.num_latents * num_values)
        counts = counts.view(self.num_latents, num_values)
        frequency = counts / counts.sum(1, keepdim=True).clamp(min=1)
        entropy = -torch.special.xlogy(frequency, frequency).sum(1)
        return CodeUsage(counts, (counts > 0).sum(1), entropy.exp())


def quantized(latent: DiscreteLatent, x: Tensor, reduction: str) -> LatentOutput:
    """What a latent space with a codebook makes of encoder outputs: the values of its codes, straight through.

    ``quantize = ‖stop(x) − z‖²`` and ``commit = ‖x − stop(z)‖²`` (Equation 4) are averaged over the batch.
    """
    codes = latent.to_codes(x)
    values = latent.look_up(codes)
    z, quantize, commit = _Quantized.apply(x, values, reduction)  # type: ignore[no-untyped-call]
    return LatentOutput(z, codes, {"quantize": quantize, "commit": commit})


def num_averaged(x: Tensor, reduction: str) -> int:
    """What the sum of all squares of x (..., n_z) is divided by: the entries, or the rows where latents are summed."""
    return max(x.numel() if reduction == "mean" else x.numel() // x.shape[-1], 1)


class _Quantized(torch.autograd.Function):
    """The values with the gradient of x, and twice the squared distance of the two: one moves the values, one x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
        difference = x - values
        ctx.save_for_backward(difference)
        ctx.reduction = reduction
        ctx.set_materialize_grads(False)
        squares = difference.square()
        distance = squares.mean() if reduction == "mean" else squares.sum(-1).mean()
        return values.clone(), distance, distance.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, of_z: Tensor | None, of_quantize: Tensor | None, of_commit: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        (difference,) = ctx.saved_tensors
        slope = difference * (2 / num_averaged(difference, ctx.reduction))
        of_x = None if of_commit is None else slope * of_commit
        if of_z is not None:
            of_x = of_z if of_x is None else of_x + of_z
        return of_x, None if of_quantize is None else -slope * of_quantize, None


def straight_through(x: Tensor, z: Tensor) -> Tensor:
    """``z`` with the gradient of ``x``.

    x − stop(x) is exactly zero, so the value is that of ``z`` to the last bit, where the usual x + stop(z − x) is off
    by a rounding.
    """
    return z.detach() + (x - x.detach())


def require_reduction(reduction: str) -> str:
    """``reduction`` if it is one of the two, else an error."""
    if reduction not in ("sum", "mean"):
        raise ValueError(f"reduction must be 'sum' or 'mean', got {reduction!r}")
    return reduction
