"""The paper's encoder and style decoder (Appendix "Network Architectures"), for images of any size and channels.

The paper's images are squares of 4·2^k pixels. Others are padded with zeros to the next size that can be halved as
often (see ``Grid``), and the decoder's outputs are cropped to the images.

``PAPER`` and ``OFFICIAL`` collect where the paper's text and the authors' code differ; ``FULL`` and ``SMALL`` are two
sizes of the same design.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._checks import require_known
from ...config import NetworksConfig
from ...observations import COLOURS, Observations, require_sides
from ...ops.convolutions import conv_norm, linear, pixel_conv
from ...ops.norms import EPSILON, leaky_norm
from ...registry import NETWORKS
from ..latents import LatentSpace

START_RESOLUTION = 4  # where the encoder ends and the decoder starts; the smaller side of others has 4 to 7


@dataclass(frozen=True)
class NetworkForm:
    """The choices on which the paper and the authors' code differ."""

    slope: float  # of the leaky ReLU
    norm_first: bool  # conv → norm (affine) → activation, and no convolution bias
    positive_style: bool  # a ReLU after the AdaIN projection: scale and shift are never negative
    output_kernel: int  # of the last convolution; 3 comes without a bias
    style_bias: bool  # whether the decoder's transposed convolutions have a bias
    epsilon: float  # added to the variance in every norm


PAPER = NetworkForm(
    slope=0.3, norm_first=False, positive_style=False, output_kernel=1, style_bias=True, epsilon=EPSILON
)
OFFICIAL = NetworkForm(slope=0.2, norm_first=True, positive_style=True, output_kernel=3, style_bias=False, epsilon=1e-6)


@dataclass(frozen=True)
class NetworkSize:
    """How large the networks are.

    With ``patch`` above 1 the encoder starts with one convolution over patches of that many pixels per side and the
    decoder ends with patches: everything in between runs at a lower resolution, which is what a CPU needs.
    """

    first_width: int  # channels at the highest resolution; doubled with every halving of it
    last_width: int  # channels are not doubled beyond this
    encoder_same: int  # resolution-preserving convolutions per block of the encoder
    decoder_same: int  # … and of the decoder
    dense_width: int  # of the two dense layers
    patch: int = 1  # pixels per side, fewer where the image is too small for them

    def grid_and_widths(self, resolution: int | tuple[int, int]) -> tuple["Grid", list[int]]:
        """Return how images of this size are halved, and the channels of the blocks, from the image inwards.

        With patches, of which at least 4×4 are left, the first entry is that of the patches.
        """
        sides = (resolution, resolution) if isinstance(resolution, int) else resolution
        require_sides(*sides)
        grid = Grid.of(sides, max(1, min(self.patch, min(sides) // START_RESOLUTION)))
        return grid, doubled(self.first_width, self.last_width, grid.blocks + (grid.patch > 1))


class Grid(NamedTuple):
    """How images or series are halved: ``start`` · patch · 2^blocks is their size, or the next larger one."""

    patch: int
    blocks: int
    start: tuple[int, ...]  # sides of the smallest maps
    sides: tuple[int, ...]  # of the inputs: height and width, or length

    @staticmethod
    def of(sides: tuple[int, ...], patch: int = 1) -> "Grid":
        """Return how inputs of this size are halved, until the smallest side has 4 to 7 patches."""
        blocks = num_blocks(min(sides), patch)
        return Grid(patch, blocks, tuple(-(-side // (patch << blocks)) for side in sides), sides)

    @property
    def margins(self) -> list[int]:
        """Entries that are missing before and after each side, the last side first, as ``F.pad`` takes them."""
        step = self.patch << self.blocks
        missing = [count * step - side for count, side in zip(self.start, self.sides, strict=True)]
        return [margin for n in reversed(missing) for margin in (n // 2, n - n // 2)]

    def pad(self, x: Tensor) -> Tensor:
        """Return inputs (b, c, *sides) with margins of zeros."""
        return F.pad(x, self.margins) if any(self.margins) else x

    def crop(self, maps: Tensor) -> Tensor:
        """Return maps without the margins, the inverse of ``pad``."""
        if any(self.margins):
            for axis, (before, side) in enumerate(zip(self.margins[-2::-2], self.sides, strict=True), start=2):
                maps = maps.narrow(axis, before, side)
        return maps


def doubled(first: int, last: int, count: int) -> list[int]:
    """Return widths that are doubled from block to block, up to the last one."""
    return [min(first << i, last) for i in range(count)]


FULL = NetworkSize(first_width=32, last_width=256, encoder_same=2, decoder_same=2, dense_width=256)
SMALL = NetworkSize(first_width=32, last_width=32, encoder_same=0, decoder_same=1, dense_width=128, patch=4)
# A critic sees the seams between patches at once, and a generator of patches never closes them.
SMALL_GAN = NetworkSize(first_width=32, last_width=64, encoder_same=0, decoder_same=1, dense_width=128)


def num_blocks(side: int, patch: int = 1) -> int:
    """Return how often a side can be halved until 4 to 7 patches are left: k of a side of 4·2^k.

    >>> num_blocks(64), num_blocks(60), num_blocks(28), num_blocks(64, patch=4)
    (4, 4, 2, 2)
    """
    blocks = (side // (START_RESOLUTION * patch)).bit_length() - 1
    start = -(-side // (patch << blocks))
    return blocks + (start == 2 * START_RESOLUTION)  # padded to a side that can be halved once more


class FeatureEncoder(nn.Module):
    """An encoder that ends in features and an affine head, so that a GAN's critic can be a second head."""

    head: nn.Linear

    def features(self, x: Tensor) -> Tensor:
        """Return the last feature layer, (b, width)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return linear(self.features(x), self.head.weight, self.head.bias)


class Affine(nn.Module):
    """A scale and a shift per channel, the same for all images."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, num_images: int) -> Tensor:
        """Return scales and shifts side by side, (num_images, 2 · width)."""
        return torch.cat((self.weight, self.bias)).expand(num_images, -1)


class EncoderLayer(nn.Module):
    """Convolution, leaky ReLU and instance norm, in the order of the form."""

    def __init__(self, in_width: int, width: int, *, kernel: int, stride: int, form: NetworkForm):
        super().__init__()
        self.form = form
        padding = (kernel - stride + 1) // 2
        self.conv = nn.Conv2d(in_width, width, kernel, stride, padding, bias=not form.norm_first)
        self.norm = Affine(width) if form.norm_first else None

    def forward(self, x: Tensor) -> Tensor:
        if self.norm is None:
            return conv_norm(self.conv, x, self.form.slope, epsilon=self.form.epsilon)
        normed = leaky_norm(self.conv(x), 1.0, self.norm(x.shape[0]), epsilon=self.form.epsilon)
        return F.leaky_relu(normed, self.form.slope)


def dense(x: Tensor, *layers: nn.Linear) -> Tensor:
    """Return x after dense layers, each with a ReLU."""
    for layer in layers:
        x = F.relu(linear(x, layer.weight, layer.bias))
    return x


def all_affine(layers: Sequence[nn.Linear], x: Tensor, *, positive: bool = False) -> Sequence[Tensor]:
    """Return the outputs of several dense layers on the same input, by one matrix product; with a ReLU if positive."""
    weights, biases = torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])
    outputs = linear(x, weights, biases)
    parts: Sequence[Tensor] = (F.relu(outputs) if positive else outputs).split([m.out_features for m in layers], dim=1)
    return parts


class ConvEncoder(FeatureEncoder):
    """Images (b, c, h, w) in [0, 1] → (b, num_outputs).

    Blocks of resolution-preserving 3×3 convolutions and one 4×4 convolution of stride 2, two dense layers, and an
    affine projection.

    Args:
        resolution: height and width, or one number for squares.
        num_outputs: entries of the output.
        channels: of the images.
        size, form: of the networks.
    """

    def __init__(
        self,
        resolution: int | tuple[int, int],
        num_outputs: int,
        *,
        channels: int = COLOURS,
        size: NetworkSize = FULL,
        form: NetworkForm = PAPER,
    ):
        super().__init__()
        self.grid, widths = size.grid_and_widths(resolution)
        layers: list[nn.Module] = []
        in_width, patch = channels, self.grid.patch
        if patch > 1:
            in_width, *widths = widths
            layers.append(EncoderLayer(channels, in_width, kernel=patch, stride=patch, form=form))
        for out_width in widths:
            for kernel, stride in ((3, 1),) * size.encoder_same + ((4, 2),):
                layers.append(EncoderLayer(in_width, out_width, kernel=kernel, stride=stride, form=form))
                in_width = out_width
        self.layers = nn.Sequential(*layers)
        self.dense1 = nn.Linear(in_width * self.grid.start[0] * self.grid.start[1], size.dense_width)
        self.dense2 = nn.Linear(size.dense_width, size.dense_width)
        self.head = nn.Linear(size.dense_width, num_outputs)

    def features(self, x: Tensor) -> Tensor:
        return dense(self.layers(self.grid.pad(x)).flatten(1), self.dense1, self.dense2)


class StyleLayer(nn.Module):
    """Transposed convolution, leaky ReLU, and adaptive instance norm: its scales and shifts are affine in ``w``."""

    def __init__(self, in_width: int, width: int, style_width: int, *, stride: int, form: NetworkForm):
        super().__init__()
        self.form = form
        kernel = 4 if stride == 2 else 3
        self.conv = nn.ConvTranspose2d(in_width, width, kernel, stride, padding=1, bias=form.style_bias)
        self.style = nn.Linear(style_width, 2 * width)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """x (b or 1, in_width, h, h), style (b, 2 · width) → (b, width, h·stride, h·stride)."""
        return conv_norm(self.conv, x, self.form.slope, style, epsilon=self.form.epsilon)


class StyleDecoder(nn.Module):
    """Latents (b, num_inputs) → image logits (b, c, h, w).

    A learned 4×4 feature map is styled layer by layer; the styles are affine in the output of two dense layers over the
    latents. The map is the same for every image, so the first convolution runs once per batch. Images that are not
    squares of 4·2^k pixels start from a larger map.

    Args:
        resolution: height and width, or one number for squares.
        num_inputs: entries of the input.
        channels: of the images.
        size, form: of the networks.
    """

    def __init__(
        self,
        resolution: int | tuple[int, int],
        num_inputs: int,
        *,
        channels: int = COLOURS,
        size: NetworkSize = FULL,
        form: NetworkForm = PAPER,
    ):
        super().__init__()
        self.grid, widths = size.grid_and_widths(resolution)
        widths.reverse()
        self.form = form
        self.dense1 = nn.Linear(num_inputs, size.dense_width)
        self.dense2 = nn.Linear(size.dense_width, size.dense_width)
        self.start = nn.Parameter(torch.full((1, widths[0], *self.grid.start), 0.1))
        layers: list[nn.Module] = []
        self.block_ends: list[int] = []  # number of layers up to the end of each block
        in_width = widths[0]
        for block, out_width in enumerate(widths):
            for stride in (1,) * size.decoder_same + (2,) * (block < self.grid.blocks):
                layers.append(StyleLayer(in_width, out_width, size.dense_width, stride=stride, form=form))
                in_width = out_width
            self.block_ends.append(len(layers))
        self.layers = nn.ModuleList(layers)
        kernel = form.output_kernel
        self.output = nn.Conv2d(in_width, channels * self.grid.patch**2, kernel, padding=kernel // 2, bias=kernel == 1)

    def forward(self, z: Tensor) -> Tensor:
        return self._logits(self._styled(self.start, dense(z, self.dense1, self.dense2), slice(None)))

    def activations(self, z: Tensor) -> tuple[Tensor, ...]:
        """Return the output of the dense layers (b, dense_width) and of all blocks but the last, (b, c, h, w) each.

        ``finish`` makes logits of them. Together they compute ``forward``, for penalties on the activations.
        """
        w = dense(z, self.dense1, self.dense2)
        x: Tensor = self.start
        outputs, start = [w], 0
        for end in self.block_ends[:-1]:
            x, start = self._styled(x, w, slice(start, end)), end
            outputs.append(x)
        return tuple(outputs)

    def finish(self, activations: Sequence[Tensor]) -> Tensor:
        """Return the logits that follow from ``activations``."""
        start = self.block_ends[-2] if len(self.block_ends) > 1 else 0
        x = activations[-1] if start else self.start
        return self._logits(self._styled(x, activations[0], slice(start, None)))

    def _logits(self, x: Tensor) -> Tensor:
        return self.grid.crop(unfolded(pixel_conv(self.output, x), self.grid.patch))

    def _styled(self, x: Tensor, w: Tensor, layers: slice) -> Tensor:
        for layer, style in zip(self.layers[layers], self.styles(w, layers), strict=True):
            x = layer(x, style)
        return x

    def styles(self, w: Tensor, layers: slice = slice(None)) -> Sequence[Tensor]:
        """Return the styles of a range of layers, (b, 2 · width) each, by one matrix product for all."""
        maps = [cast(StyleLayer, layer).style for layer in self.layers[layers]]
        return all_affine(maps, w, positive=self.form.positive_style)


def unfolded(patches: Tensor, side: int) -> Tensor:
    """Return patches (b, side · side · c, h, w), in rows, columns and colours, as images (b, c, h · side, w · side)."""
    if side == 1:
        return patches
    num_images, entries, height, width = patches.shape
    channels = entries // side**2
    pixels = patches.permute(0, 2, 3, 1).reshape(num_images, height, width, side, side, channels)
    image = pixels.permute(0, 1, 3, 2, 4, 5).reshape(num_images, height * side, width * side, channels)
    return image.permute(0, 3, 1, 2)


SIZES = {"full": FULL, "small": SMALL}
FORMS = {"paper": PAPER, "official": OFFICIAL}


@NETWORKS.register("paper", NetworksConfig)
class PaperNetworks:
    """The paper's encoder and decoder."""

    @staticmethod
    def from_config(config: Any, observations: Observations, latent: LatentSpace) -> tuple[ConvEncoder, StyleDecoder]:
        """Build the encoder and the decoder for a latent space.

        A pair that is registered from outside the package has the same method. It may return None in place of either
        module, which is then the paper's.
        """
        size = SIZES[require_known(config.size, SIZES, "size")]
        if size.patch > 1 and not config.patches:
            size = SMALL_GAN
        form = FORMS[require_known(config.form, FORMS, "form")]
        height, width, channels = observations.shape
        return (
            ConvEncoder((height, width), latent.num_inputs, channels=channels, size=size, form=form),
            StyleDecoder((height, width), latent.num_outputs, channels=channels, size=size, form=form),
        )
