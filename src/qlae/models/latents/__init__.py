"""The latent spaces, which stand between the encoder and the decoder."""

from ...config import DiscreteLatentConfig, LatentConfig
from .continuous import ContinuousLatent, GaussianLatent, UniformLatent
from .finite_scalar import FiniteScalarLatent
from .independent import IndependentComponents
from .quantized import QuantizedLatent
from .relaxed import RelaxedLatent
from .space import DiscreteLatent, LatentOutput, LatentSpace
from .vector_quantized import VectorQuantizedLatent

__all__ = [
    "ContinuousLatent",
    "DiscreteLatent",
    "DiscreteLatentConfig",
    "FiniteScalarLatent",
    "GaussianLatent",
    "IndependentComponents",
    "LatentConfig",
    "LatentOutput",
    "LatentSpace",
    "QuantizedLatent",
    "RelaxedLatent",
    "UniformLatent",
    "VectorQuantizedLatent",
]
