"""One-dimensional convolutional encoder and style decoder of series.

They follow the paper's networks of images, with one difference. The encoder has no instance norms, which would remove
the level and the amplitude of every channel; these are often what a series is about. Its weights are scaled at the
start so that activations keep their size without norms. The decoder can restore both: its styles scale and shift.

Series whose length is not 4·2^k are padded with zeros, the mean of standardised values, and outputs are cropped.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._checks import require_known
from ...config import NetworksConfig
from ...observations import Observations
from ...ops.convolutions import linear
from ...ops.norms import leaky_norm
from ...registry import NETWORKS
from ..latents import LatentSpace
from .paper import PAPER, FeatureEncoder, Grid, NetworkSize, dense, doubled

SLOPE = PAPER.slope  # of the leaky ReLU


SIZES = {
    "full": NetworkSize(first_width=32, last_width=256, encoder_same=1, decoder_same=1, dense_width=256),
    "small": NetworkSize(first_width=32, last_width=64, encoder_same=0, decoder_same=1, dense_width=128),
}


@dataclass(frozen=True)
class SeriesNetworksConfig(NetworksConfig):
    """The settings of ``SeriesNetworks``; the form concerns the networks of images only."""


class SeriesEncoder(FeatureEncoder):
    """Standardised series (b, c, t) → (b, num_outputs): convolutions with leaky ReLU, two dense layers, and a head."""

    def __init__(self, length: int, channels: int, num_outputs: int, *, size: NetworkSize = SIZES["full"]):
        super().__init__()
        self.grid = Grid.of((length,))
        layers: list[nn.Conv1d] = []
        in_width = channels
        for width in doubled(size.first_width, size.last_width, self.grid.blocks):
            for kernel, stride in ((3, 1),) * size.encoder_same + ((4, 2),):
                layers.append(nn.Conv1d(in_width, width, kernel, stride, padding=1))
                in_width = width
        for layer in layers:
            nn.init.kaiming_normal_(layer.weight, SLOPE)
        self.layers = nn.ModuleList(layers)
        self.dense1 = nn.Linear(in_width * self.grid.start[0], size.dense_width)
        self.dense2 = nn.Linear(size.dense_width, size.dense_width)
        self.head = nn.Linear(size.dense_width, num_outputs)

    def features(self, x: Tensor) -> Tensor:
        x = self.grid.pad(x)
        for layer in self.layers:
            x = F.leaky_relu(layer(x), SLOPE)
        return dense(x.flatten(1), self.dense1, self.dense2)


class SeriesStyleLayer(nn.Module):
    """Transposed convolution, leaky ReLU, and adaptive instance norm: its scales and shifts are affine in ``w``."""

    def __init__(self, in_width: int, width: int, style_width: int, *, stride: int):
        super().__init__()
        self.conv = nn.ConvTranspose1d(in_width, width, 4 if stride == 2 else 3, stride, padding=1)
        self.style = nn.Linear(style_width, 2 * width)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """x (b or 1, in_width, t), style (b, 2 · width) → (b, width, t · stride)."""
        return leaky_norm(self.conv(x).unsqueeze(2), SLOPE, style).squeeze(2)


class SeriesDecoder(nn.Module):
    """Latents (b, num_inputs) → means of standardised series (b, c, t), by styling a learned start."""

    def __init__(self, length: int, channels: int, num_inputs: int, *, size: NetworkSize = SIZES["full"]):
        super().__init__()
        self.grid = Grid.of((length,))
        widths = doubled(size.first_width, size.last_width, self.grid.blocks)[::-1]
        self.dense1 = nn.Linear(num_inputs, size.dense_width)
        self.dense2 = nn.Linear(size.dense_width, size.dense_width)
        self.start = nn.Parameter(torch.full((1, widths[0], *self.grid.start), 0.1))
        layers = []
        in_width = widths[0]
        for width in widths:
            for stride in (1,) * size.decoder_same + (2,):
                layers.append(SeriesStyleLayer(in_width, width, size.dense_width, stride=stride))
                in_width = width
        self.layers = nn.ModuleList(layers)
        self.output = nn.Conv1d(in_width, channels, 1)

    def forward(self, z: Tensor) -> Tensor:
        w = dense(z, self.dense1, self.dense2)
        maps = [cast(SeriesStyleLayer, layer).style for layer in self.layers]
        styles = [linear(w, affine.weight, affine.bias) for affine in maps]
        x: Tensor = self.start
        for layer, style in zip(self.layers, styles, strict=True):
            x = layer(x, style)
        return self.grid.crop(self.output(x))


@NETWORKS.register("series", SeriesNetworksConfig)
class SeriesNetworks:
    """One-dimensional convolutional encoder and decoder."""

    @staticmethod
    def from_config(
        config: Any, observations: Observations, latent: LatentSpace
    ) -> tuple[SeriesEncoder, SeriesDecoder]:
        """Build the encoder and the decoder for a latent space."""
        size = SIZES[require_known(config.size, SIZES, "size")]
        length, channels = observations.shape
        return (
            SeriesEncoder(length, channels, latent.num_inputs, size=size),
            SeriesDecoder(length, channels, latent.num_outputs, size=size),
        )
