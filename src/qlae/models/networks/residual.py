"""The residual encoder and decoder of Tripod (Hsu et al. 2024, arXiv:2404.10282; code: kylehkhsu/tripod).

A residual block adds two layers to its input, each a 3×3 convolution, an instance norm and a GELU. The norms of the
encoder have a scale and a shift per channel; those of the decoder are adaptive (AdaIN), affine in a *condition* that
two dense layers with layer norms compute from the latents. Every stage of the encoder ends by folding 2×2 pixels into
channels and a 1×1 convolution, every stage of the decoder by doubling the pixels and a 3×3 convolution. The decoder
starts from a learned 4×4 map of ones.

At 64×64 the encoder has stages of 32, 64, 128 and 256 channels and ends with 512, and the decoder has stages of 512,
256, 128 and 64, as the authors' code has. At other resolutions (4·2^k) there are k stages.

Deviations from the authors' code:

- Convolutions in front of a norm have no bias, since the norm removes it.
- A scale is s instead of 1 + s, and the bias of s starts at 1 more; the functions and their gradients are the same.
- ``SMALL`` is ours, for a CPU: one block per stage, few channels, and both networks work on patches of pixels.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._checks import require_known
from ...config import NetworksConfig
from ...observations import COLOURS, Observations
from ...ops.convolutions import conv_norm
from ...registry import NETWORKS
from ..latents import LatentSpace
from .paper import START_RESOLUTION, Affine, all_affine, doubled, num_blocks, unfolded


@dataclass(frozen=True)
class TripodSize:
    """How large the networks are."""

    first_width: int  # channels at the highest resolution; doubled with every halving of it
    last_width: int  # channels are not doubled beyond this
    num_same: int  # residual blocks per stage
    dense_width: int  # of the encoder's dense layer
    condition_width: int  # of the decoder's two dense layers
    max_patch: int = 1  # pixels per side of a patch

    def patch_at(self, resolution: int) -> int:
        """Return the pixels per side of a patch; two stages are left wherever the image allows it."""
        return max(1, min(self.max_patch, resolution // (4 * START_RESOLUTION)))

    def widths(self, resolution: int) -> list[int]:
        """Return the channels of the encoder's stages, and those after the last of them."""
        return doubled(self.first_width, self.last_width, num_blocks(resolution, self.patch_at(resolution)) + 1)


FULL = TripodSize(first_width=32, last_width=512, num_same=2, dense_width=512, condition_width=256)
SMALL = TripodSize(first_width=32, last_width=32, num_same=1, dense_width=128, condition_width=128, max_patch=4)
SIZES = {"full": FULL, "small": SMALL}


def gelu(x: Tensor) -> Tensor:
    """Return the GELU in the tanh form, which is JAX's default."""
    return F.gelu(x, approximate="tanh")


def dense_block(in_width: int, width: int) -> nn.Sequential:
    """Return a dense layer with a layer norm and a GELU."""
    return nn.Sequential(nn.Linear(in_width, width), nn.LayerNorm(width), nn.GELU(approximate="tanh"))


class NormedConv(nn.Module):
    """3×3 convolution → instance norm with a given scale and shift → GELU."""

    def __init__(self, in_width: int, width: int):
        super().__init__()
        self.conv = nn.Conv2d(in_width, width, 3, padding=1, bias=False)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """x (b or 1, in_width, h, h), style (b, 2 · width) → (b, width, h, h)."""
        return gelu(conv_norm(self.conv, x, 1.0, style))


class ResidualBlock(nn.Module):
    """Two layers that are added to their input, which a 1×1 convolution widens if necessary."""

    def __init__(self, in_width: int, width: int):
        super().__init__()
        self.first, self.second = NormedConv(in_width, width), NormedConv(width, width)
        self.skip = nn.Identity() if in_width == width else nn.Conv2d(in_width, width, 1)

    def forward(self, x: Tensor, first_style: Tensor, second_style: Tensor) -> Tensor:
        out: Tensor = self.skip(x) + self.second(self.first(x, first_style), second_style)
        return out


class EncoderStage(nn.Module):
    """Residual blocks with norms, then 2×2 pixels become channels and a 1×1 convolution mixes them."""

    def __init__(self, in_width: int, width: int, out_width: int, num_same: int):
        super().__init__()
        widths = [in_width, *[width] * num_same]
        self.blocks = nn.ModuleList(ResidualBlock(a, b) for a, b in itertools.pairwise(widths))
        self.norms = nn.ModuleList(Affine(width) for _ in range(2 * num_same))
        self.down = nn.Conv2d(4 * width, out_width, 1)

    def forward(self, x: Tensor) -> Tensor:
        for i, block in enumerate(self.blocks):
            x = block(x, self.norms[2 * i](len(x)), self.norms[2 * i + 1](len(x)))
        out: Tensor = self.down(folded(x, 2))
        return out


class ResidualEncoder(nn.Module):
    """Images (b, 3, r, r) in [0, 1] → (b, num_outputs)."""

    def __init__(self, resolution: int, num_outputs: int, *, size: TripodSize = FULL):
        super().__init__()
        self.patch = size.patch_at(resolution)
        widths = size.widths(resolution)
        stages, in_width = [], 3 * self.patch**2
        for width, out_width in itertools.pairwise(widths):
            stages.append(EncoderStage(in_width, width, out_width, size.num_same))
            in_width = out_width
        self.stages = nn.Sequential(*stages)
        self.dense = dense_block(in_width, size.dense_width)
        self.head = nn.Linear(size.dense_width, num_outputs)

    def features(self, images: Tensor) -> Tensor:
        """Return the last feature layer, (b, dense_width)."""
        maps = self.stages(folded(2 * images - 1, self.patch))
        features: Tensor = self.dense(maps.mean((2, 3)))
        return features

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.head(self.features(images))
        return out


class DecoderStage(nn.Module):
    """Residual blocks with adaptive norms, then twice the resolution and a 3×3 convolution."""

    def __init__(self, width: int, out_width: int, condition_width: int, num_same: int):
        super().__init__()
        self.blocks = nn.ModuleList(ResidualBlock(width, width) for _ in range(num_same))
        self.styles = nn.ModuleList(nn.Linear(condition_width, 2 * width) for _ in range(2 * num_same))
        for style in self.styles:
            cast(nn.Linear, style).bias.data[:width] += 1  # scales start around 1
        self.up = nn.Conv2d(width, out_width, 3, padding=1)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (b or 1, width, h, h), condition (b, condition_width) → (b, out_width, 2h, 2h)."""
        styles = all_affine([cast(nn.Linear, style) for style in self.styles], condition)
        for i, block in enumerate(self.blocks):
            x = block(x, styles[2 * i], styles[2 * i + 1])
        out: Tensor = self.up(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return out


class ResidualDecoder(nn.Module):
    """Latents (b, num_inputs) → image logits (b, 3, r, r).

    ``activations`` and ``finish`` compose ``forward``, so that a penalty on the activations can run the stages before
    the last on more rows than the last, the most expensive one.
    """

    def __init__(self, resolution: int, num_inputs: int, *, size: TripodSize = FULL):
        super().__init__()
        self.patch = size.patch_at(resolution)
        widths = size.widths(resolution)[:0:-1]
        self.condition = nn.Sequential(
            dense_block(num_inputs, size.condition_width), dense_block(size.condition_width, size.condition_width)
        )
        self.start = nn.Parameter(torch.ones(1, widths[0], START_RESOLUTION, START_RESOLUTION))
        out_widths = [*widths[1:], 3 * self.patch**2]
        self.stages = nn.ModuleList(
            DecoderStage(width, out_width, size.condition_width, size.num_same)
            for width, out_width in zip(widths, out_widths, strict=True)
        )

    def activations(self, z: Tensor) -> tuple[Tensor, ...]:
        """Return the condition (b, condition_width) and the outputs of all stages but the last, (b, c, h, h) each."""
        condition = self.condition(z)
        x, outputs = self.start, [condition]
        for stage in self.stages[:-1]:
            x = stage(x, condition)
            outputs.append(x)
        return tuple(outputs)

    def finish(self, activations: Sequence[Tensor]) -> Tensor:
        """Return the logits that follow from ``activations``."""
        x = activations[-1] if len(activations) > 1 else self.start
        return unfolded(self.stages[-1](x, activations[0]), self.patch)

    def forward(self, z: Tensor) -> Tensor:
        return self.finish(self.activations(z))


def folded(images: Tensor, side: int) -> Tensor:
    """Return maps (b, c, h, w) with side × side pixels in the channels, (b, c · side², h / side, w / side)."""
    if side == 1:
        return images
    return F.pixel_unshuffle(images, side).contiguous(memory_format=torch.channels_last)


@dataclass(frozen=True)
class TripodNetworksConfig(NetworksConfig):
    """The settings of ``TripodNetworks``. There is one form of them, and small ones always work on patches."""


@NETWORKS.register("tripod", TripodNetworksConfig)
class TripodNetworks:
    """Tripod's encoder and decoder."""

    @staticmethod
    def from_config(
        config: Any, observations: Observations, latent: LatentSpace
    ) -> tuple[ResidualEncoder, ResidualDecoder]:
        """Build the encoder and the decoder for a latent space."""
        resolution = observations.shape[0]
        if observations.shape != (resolution, resolution, COLOURS) or resolution.bit_count() != 1:
            raise ValueError(
                f"Tripod's networks take square RGB images of 8, 16, 32, 64, … pixels per side, and the data have "
                f"{observations.traits.many} of {observations.size}; resize the images, or use networks="
                f"{observations.traits.networks!r}"
            )
        size = SIZES[require_known(config.size, SIZES, "size")]
        return (
            ResidualEncoder(resolution, latent.num_inputs, size=size),
            ResidualDecoder(resolution, latent.num_outputs, size=size),
        )
