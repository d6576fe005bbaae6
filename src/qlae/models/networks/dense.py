"""Dense encoder and decoder of vectors: hidden layers of equal width with ReLU, and an affine output.

The paper has images only.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..._checks import require_known
from ...config import NetworksConfig
from ...observations import Observations
from ...ops.convolutions import linear
from ...registry import NETWORKS
from ..latents import LatentSpace
from .paper import FeatureEncoder, dense

#: size → widths of the hidden layers.
WIDTHS = {"full": (512, 512, 512), "small": (128, 128)}


@dataclass(frozen=True)
class DenseNetworksConfig(NetworksConfig):
    """The settings of ``DenseNetworks``; the form concerns the networks of images only."""


class DenseEncoder(FeatureEncoder):
    """Vectors (b, d) → (b, num_outputs)."""

    def __init__(self, num_features: int, num_outputs: int, widths: tuple[int, ...] = WIDTHS["full"]):
        super().__init__()
        self.layers = _hidden_layers(num_features, widths)
        self.head = nn.Linear(widths[-1], num_outputs)

    def features(self, x: Tensor) -> Tensor:
        return dense(x, *self.layers)


class DenseDecoder(nn.Module):
    """Latents (b, num_inputs) → means of the features (b, d)."""

    def __init__(self, num_features: int, num_inputs: int, widths: tuple[int, ...] = WIDTHS["full"]):
        super().__init__()
        self.layers = _hidden_layers(num_inputs, widths)
        self.output = nn.Linear(widths[-1], num_features)

    def forward(self, z: Tensor) -> Tensor:
        return linear(dense(z, *self.layers), self.output.weight, self.output.bias)


def _hidden_layers(num_inputs: int, widths: tuple[int, ...]) -> nn.ModuleList:
    pairs = zip((num_inputs, *widths[:-1]), widths, strict=True)
    return nn.ModuleList(nn.Linear(before, after) for before, after in pairs)


@NETWORKS.register("vectors", DenseNetworksConfig)
class DenseNetworks:
    """Dense encoder and decoder."""

    @staticmethod
    def from_config(config: Any, observations: Observations, latent: LatentSpace) -> tuple[DenseEncoder, DenseDecoder]:
        """Build the encoder and the decoder for a latent space."""
        widths = WIDTHS[require_known(config.size, WIDTHS, "size")]
        (num_features,) = observations.shape
        encoder = DenseEncoder(num_features, latent.num_inputs, widths)
        return encoder, DenseDecoder(num_features, latent.num_outputs, widths)
