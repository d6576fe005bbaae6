"""The networks: shapes at every resolution, the two forms, and what is told of bad input."""

import pytest
import torch
from torch import nn

from qlae.models.networks import FULL, OFFICIAL, PAPER, SMALL, ConvEncoder, StyleDecoder
from qlae.models.networks.paper import dense, num_blocks, unfolded


@pytest.mark.parametrize("form", [PAPER, OFFICIAL])
@pytest.mark.parametrize(
    ("resolution", "size"), [(8, SMALL), (16, SMALL), (32, SMALL), (128, SMALL), (8, FULL), (64, FULL)]
)
def test_shapes(resolution, size, form):
    encoder = ConvEncoder(resolution, 7, size=size, form=form)
    decoder = StyleDecoder(resolution, 7, size=size, form=form)
    images = torch.rand(2, 3, resolution, resolution)
    z = encoder(images)
    assert z.shape == (2, 7)
    assert decoder(z).shape == images.shape


@pytest.mark.parametrize("resolution", [0, -4, 4, 7, 257, 300, 768])
def test_other_resolutions_are_told(resolution):
    with pytest.raises(ValueError, match=rf"8 to 256 pixels per side, or squares of 512, .* got {resolution}"):
        ConvEncoder(resolution, 4, size=SMALL)


def test_the_papers_resolutions_have_the_papers_blocks():
    assert [num_blocks(4 << k) for k in range(1, 9)] == list(range(1, 9))
    assert SMALL.grid_and_widths(512)[0].blocks == 5


def test_small_networks_work_on_patches():
    encoder, decoder = ConvEncoder(32, 12, size=SMALL), StyleDecoder(32, 12, size=SMALL)
    assert [tuple(layer.conv.weight.shape) for layer in encoder.layers] == [(32, 3, 4, 4), (32, 32, 4, 4)]
    shapes = [(layer.conv.out_channels, layer.conv.stride[0]) for layer in decoder.layers]
    assert shapes == [(32, 1), (32, 2), (32, 1)]
    assert decoder.output.out_channels == 3 * 4 * 4


def test_patches_are_put_where_they_belong():
    image = torch.arange(2 * 3 * 8 * 8.0).view(2, 3, 8, 8)
    cut = image.view(2, 3, 2, 4, 2, 4).permute(0, 3, 5, 1, 2, 4).reshape(2, 48, 2, 2)  # rows, columns, colours
    assert torch.equal(unfolded(cut, 4), image)
    assert unfolded(image, 1) is image


def test_full_size_is_the_paper_s_appendix():
    encoder, decoder = ConvEncoder(64, 12), StyleDecoder(64, 12)
    convs = [m for m in encoder.modules() if isinstance(m, nn.Conv2d)]
    assert [(c.out_channels, c.kernel_size[0], c.stride[0]) for c in convs] == [
        (width, kernel, stride) for width in (32, 64, 128, 256) for kernel, stride in ((3, 1), (3, 1), (4, 2))
    ]
    assert encoder.dense1.in_features == 256 * 4 * 4
    transposed = [m for m in decoder.modules() if isinstance(m, nn.ConvTranspose2d)]
    assert [(c.out_channels, c.kernel_size[0], c.stride[0]) for c in transposed] == [
        (width, kernel, stride) for width in (256, 128, 64, 32) for kernel, stride in ((3, 1), (3, 1), (4, 2))
    ]
    assert decoder.start.shape == (1, 256, 4, 4)
    assert torch.equal(decoder.start, torch.full_like(decoder.start, 0.1))
    assert decoder.output.kernel_size == (1, 1)


def test_official_form_drops_biases_and_keeps_styles_positive():
    encoder, decoder = ConvEncoder(16, 4, size=SMALL, form=OFFICIAL), StyleDecoder(16, 4, size=SMALL, form=OFFICIAL)
    assert all(layer.conv.bias is None for layer in encoder.layers)
    assert all(layer.norm is not None for layer in encoder.layers)
    assert decoder.output.bias is None
    assert all(layer.conv.bias is None for layer in decoder.layers)
    assert decoder.output.kernel_size == (3, 3)
    with torch.no_grad():
        decoder.layers[0].style.bias.fill_(-1.0)
    styles = decoder.styles(torch.zeros(2, decoder.dense2.out_features))
    assert styles[0].abs().max() == 0
    assert all(style.min() >= 0 for style in decoder.styles(torch.randn(2, decoder.dense2.out_features)))


def test_paper_encoder_layer_by_hand():
    layer = ConvEncoder(16, 4, size=SMALL).layers[0]
    x = torch.rand(2, 3, 16, 16)
    y = torch.nn.functional.leaky_relu(layer.conv(x), 0.3)
    mean, var = y.mean((2, 3), keepdim=True), y.var((2, 3), keepdim=True, unbiased=False)
    assert torch.allclose(layer(x), (y - mean) / (var + 1e-5).sqrt(), atol=1e-5)


@pytest.mark.parametrize(("form", "epsilon"), [(PAPER, 1e-5), (OFFICIAL, 1e-6)])
def test_norms_have_the_epsilon_of_their_form(form, epsilon):
    """Dark images and small feature maps, whose variance is no larger than ε."""
    encoder, decoder = ConvEncoder(16, 4, size=SMALL, form=form), StyleDecoder(16, 4, size=SMALL, form=form)
    first, last = encoder.layers[0], decoder.layers[-1]
    x = 1e-3 * torch.rand(2, 3, 16, 16)
    y = first.conv(x)
    if form is PAPER:
        y = nn.functional.leaky_relu(y, form.slope)
    mean, var = y.mean((2, 3), keepdim=True), y.var((2, 3), keepdim=True, unbiased=False)
    normed = (y - mean) / (var + epsilon).sqrt()
    expected = normed if form is PAPER else nn.functional.leaky_relu(normed, form.slope)
    assert var.max() < 1e-5
    assert torch.allclose(first(x), expected, atol=1e-5)
    x, style = 1e-3 * torch.rand(2, last.conv.in_channels, 4, 4), torch.ones(2, 2 * last.conv.out_channels)
    y = nn.functional.leaky_relu(last.conv(x), form.slope)
    mean, var = y.mean((2, 3), keepdim=True), y.var((2, 3), keepdim=True, unbiased=False)
    assert torch.allclose(last(x, style), (y - mean) / (var + epsilon).sqrt() + 1, atol=1e-5)


def test_images_differ_by_their_latents_from_the_start():
    """Styles that start at scale 1 and shift 0 let a decoder ignore its latents for long, and a GAN never recovers."""
    torch.manual_seed(0)
    decoder = StyleDecoder(64, 12, size=FULL)
    w = dense(torch.rand(8, 12) - 0.5, decoder.dense1, decoder.dense2)
    scales = torch.cat([style.chunk(2, 1)[0] for style in decoder.styles(w)], 1)
    assert scales.std(0).median() > 0.1 * scales.abs().mean()


def test_style_is_per_image_and_per_channel():
    decoder = StyleDecoder(16, 4, size=SMALL)
    z = torch.randn(3, 4)
    together, alone = decoder(z), torch.cat([decoder(row[None]) for row in z])
    assert torch.allclose(together, alone, atol=1e-5)
    layer = decoder.layers[0]
    w = torch.rand(1, decoder.dense2.out_features)
    for style, each in zip(decoder.styles(w), decoder.layers, strict=True):
        assert torch.allclose(style, each.style(w), atol=1e-6)
    style = layer.style(w)
    width = style.shape[1] // 2
    features = layer(10 * torch.randn_like(decoder.start), style)
    assert torch.allclose(features.mean((2, 3)), style[:, width:], atol=1e-5)
    spread = features.var((2, 3), unbiased=False).sqrt()
    assert torch.allclose(spread, style[:, :width].abs(), atol=1e-3)
