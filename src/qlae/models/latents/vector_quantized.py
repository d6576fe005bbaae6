"""Vector quantization, the latent space of VQ-VAE (van den Oord et al. 2017), as the paper's baseline has it."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._checks import require_known, whole_number
from ...config import DiscreteLatentConfig
from ...registry import LATENTS
from .space import REDUCTIONS, DiscreteLatent, LatentOutput, quantize_to_nearest, values_in_common


@dataclass(frozen=True)
class VectorQuantizedConfig(DiscreteLatentConfig):
    """The settings of ``VectorQuantizedLatent``, see there; ``num_values`` is one number."""

    num_values: int | tuple[int, ...] = 512
    vector_size: int = 64
    learned: bool = True
    reduction: str = "mean"

    @property
    def description(self) -> str:
        return f"each one of {self.num_values} vectors of {self.vector_size} numbers"


@LATENTS.register("vector-quantized", VectorQuantizedConfig)
class VectorQuantizedLatent(DiscreteLatent):
    """The encoder's output in ``num_latents`` parts, each replaced by the nearest vector of one global codebook.

    A latent's code is the index of its vector, and metrics score the codes. Gradients flow as in ``QuantizedLatent``.

    Args:
        num_latents: number of parts n_z.
        num_values: number of vectors in the codebook.
        vector_size: entries per vector; encoder and decoder see ``num_latents · vector_size`` numbers.
        reduction: how the two losses treat the entries: ``"mean"`` (the default, as in the authors' code: a sum over
            hundreds of entries would drown a reconstruction that is averaged over pixels) or ``"sum"``.
        learned: whether the vectors are trained.
    """

    def __init__(
        self,
        num_latents: int,
        num_values: int = 512,
        vector_size: int = 64,
        *,
        reduction: str = "mean",
        learned: bool = True,
    ):
        super().__init__(values_in_common(num_latents, num_values))
        self.vector_size = whole_number("vector_size", vector_size)
        self.num_inputs = self.num_outputs = num_latents * vector_size
        self.reduction = require_known(reduction, REDUCTIONS, "reduction")
        bound = math.sqrt(3 / vector_size)  # uniform of variance 1 / vector_size
        vectors = torch.empty(num_values, vector_size).uniform_(-bound, bound)
        self.vectors = nn.Parameter(vectors, requires_grad=learned)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        return quantize_to_nearest(self, x, self.reduction)

    def to_codes(self, x: Tensor) -> Tensor:
        """Return the index of the vector nearest to each part: (b, num_latents · vector_size) → (b, num_latents)."""
        self.require_inputs(x)
        parts = x.detach().unflatten(-1, (self.num_latents, self.vector_size))
        vectors = self.vectors.detach()
        # ‖x − v‖² without ‖x‖², which is the same for every v; one matrix product instead of b · n_z · n_v · size
        distance: Tensor = vectors.square().sum(-1) - 2 * (parts @ vectors.T)
        return distance.argmin(-1)

    def look_up(self, codes: Tensor) -> Tensor:
        """Return the vectors of codes, side by side: (b, num_latents) int64 → (b, num_latents · vector_size)."""
        return F.embedding(codes, self.vectors).flatten(-2)

    def ordered_codes(self, latent: int, codes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the most frequent codes of a sample; vectors have no order."""
        unique_codes, counts = np.unique(codes, return_counts=True)
        return np.sort(unique_codes[np.argsort(-counts, kind="stable")[:most]])
