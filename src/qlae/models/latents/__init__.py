"""The latent spaces: what stands between the encoder and the decoder."""

from .continuous import ContinuousLatent, GaussianLatent, UniformLatent
from .finite_scalar import FiniteScalarLatent
from .quantized import QuantizedLatent
from .space import CodeUsage, DiscreteLatent, LatentOutput, LatentSpace
from .vector_quantized import VectorQuantizedLatent

__all__ = [
    "CodeUsage",
    "ContinuousLatent",
    "DiscreteLatent",
    "FiniteScalarLatent",
    "GaussianLatent",
    "LatentOutput",
    "LatentSpace",
    "QuantizedLatent",
    "UniformLatent",
    "VectorQuantizedLatent",
]
