"""The Triton kernels against their plain forms: on a GPU where there is one, else by Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from qlae.ops import convolutions as operations
from qlae.ops import dispatch, kernels

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is first imported
triton = pytest.importorskip("triton")

from qlae.config import OptimizerConfig  # noqa: E402
from qlae.models.latents import QuantizedLatent  # noqa: E402
from qlae.ops.convolutions import Geometry, _Conv, _ConvNorm, _Linear, _PixelConv, penalized  # noqa: E402
from qlae.ops.cross_entropy import cross_entropy  # noqa: E402
from qlae.ops.divergences import decomposed_kl  # noqa: E402
from qlae.ops.kernels import image_conv, leaky_norm, narrow_conv, pixel_conv  # noqa: E402
from qlae.ops.kernels.launching import launch, rehearsal  # noqa: E402
from qlae.ops.norms import EPSILON, _LeakyNorm, plain_leaky_norm  # noqa: E402
from qlae.ops.overlap import Overlap  # noqa: E402
from qlae.training.optimizer import AdamW, FlatParameters  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The interpreter takes the bits of bfloat16 for whole numbers in products of matrices.
FACTORS = [torch.float32, torch.bfloat16] if torch.cuda.is_available() else [torch.float32]


@pytest.fixture(autouse=True)
def _kernels(monkeypatch):
    monkeypatch.setattr(dispatch, "uses_kernels", lambda x: True)


def one_stream() -> Overlap:
    """Weight gradients on the stream of the others, as where a weight is used twice."""
    overlap = Overlap(None)
    overlap.is_safe = False
    return overlap


def inputs(shape, biased, styled, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    num_images, num_channels = shape[:2]
    x = (3 + 2 * torch.randn(shape, generator=generator)).contiguous(memory_format=torch.channels_last)
    bias = torch.randn(num_channels, generator=generator) if biased else None
    style = torch.randn(num_images, 2 * num_channels, generator=generator) if styled else None
    return [None if t is None else t.to(DEVICE, dtype).requires_grad_() for t in (x, bias, style)]


def random(*shape, seed=0, dtype=torch.float32):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)
    return values.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else values


def exactly(*tensors):
    return [None if t is None else t.detach().double().requires_grad_(t.requires_grad) for t in tensors]


def close(found, expected, tolerance):
    error = (found.float() - expected.float()).norm() / expected.float().norm()
    return bool(error <= tolerance)


SHAPES = [(2, 32, 8, 8), (3, 64, 4, 4), (2, 48, 16, 16), (2, 3, 8, 8), (1, 16, 64, 64)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("styled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_leaky_norm(shape, biased, styled, dtype):
    x, bias, style = inputs(shape, biased, styled, dtype)
    given = [t for t in (x, bias, style) if t is not None]
    found = _LeakyNorm.apply(x, bias, style, 0.3, EPSILON, True)
    exact = [None if t is None else t.detach().double().requires_grad_() for t in (x, bias, style)]
    expected = plain_leaky_norm(exact[0], 0.3, exact[2], exact[1])
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    assert found.dtype == dtype
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert close(found, expected, tolerance)
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(DEVICE, dtype)
    derivatives = torch.autograd.grad(found, given, gradient)
    wanted = torch.autograd.grad(expected, [t for t in exact if t is not None], gradient.double())
    assert all(close(ours, theirs, 3 * tolerance) for ours, theirs in zip(derivatives, wanted, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("biased", [False, True])
def test_leaky_norm_differentiated_twice(shape, biased):
    derivatives = []
    for exact in (False, True):
        x, bias, _ = inputs(shape, biased, False)
        if exact:
            x, bias = (None if t is None else t.detach().double().requires_grad_() for t in (x, bias))
            out = plain_leaky_norm(x, 0.3, None, bias)
        else:
            out = _LeakyNorm.apply(x, bias, None, 0.3, EPSILON, True)
        given = [t for t in (x, bias) if t is not None]
        gradients = torch.autograd.grad(out.sin().sum(), given, create_graph=True)
        derivatives.append(torch.autograd.grad(sum(g.norm() for g in gradients), given))
    assert all(close(ours, theirs, 1e-4) for ours, theirs in zip(*derivatives, strict=True))


@pytest.mark.parametrize("styled", [False, True])
@pytest.mark.parametrize("epsilon", [1e-5, 1e-6])
def test_epsilon_of_the_norm(epsilon, styled):
    """Maps whose variance is no larger than ε, so that ε decides the output."""
    x, _, style = inputs((2, 16, 8, 8), False, styled)
    x = (x * 1e-3).detach().contiguous(memory_format=torch.channels_last).requires_grad_()
    given = [t for t in (x, style) if t is not None]
    found = _LeakyNorm.apply(x, None, style, 0.3, epsilon, True)
    exact = exactly(x, style)
    expected = plain_leaky_norm(exact[0], 0.3, exact[1], epsilon=epsilon)
    assert close(found, expected, 1e-4)
    wanted = torch.autograd.grad(expected.sin().sum(), [t for t in exact if t is not None])
    for ours, theirs in zip(torch.autograd.grad(found.sin().sum(), given), wanted, strict=True):
        assert close(ours, theirs, 1e-3)


def test_convolution_without_a_bias_and_norm_together():
    """The style convolutions of the official form, with its ε."""
    x, weight = random(2, 16, 8, 8).requires_grad_(), (1e-4 * random(16, 16, 3, 3, seed=1)).requires_grad_()
    style = random(2, 32, seed=3).requires_grad_()
    found = _ConvNorm.apply(x, weight, None, style, Geometry((1, 1), (1, 1), True), 0.2, 1e-6, one_stream())
    exact = exactly(x, weight, style)
    maps = F.conv_transpose2d(exact[0], exact[1], padding=1)
    assert maps.var() < 1e-5
    expected = plain_leaky_norm(maps, 0.2, exact[2], epsilon=1e-6)
    assert close(found, expected, 2e-3)
    gradient = random(*expected.shape, seed=4)
    wanted = torch.autograd.grad(expected, exact, gradient.double())
    for ours, theirs in zip(torch.autograd.grad(found, (x, weight, style), gradient), wanted, strict=True):
        assert close(ours, theirs, 5e-3)


def test_large_means_do_not_spoil_the_deviation():
    x = (1000 + torch.randn(1, 16, 64, 64, generator=torch.Generator().manual_seed(0))).to(DEVICE)
    _, _, inverse = leaky_norm.forward(x, None, None, 0.3, EPSILON)
    assert torch.allclose(inverse, (x.double().var((2, 3), unbiased=False) + EPSILON).rsqrt().float(), rtol=1e-3)


def test_a_style_whose_entries_lie_apart_is_refused():
    x, _, style = inputs((2, 16, 4, 4), False, True)
    with pytest.raises(ValueError, match="each row of style must be contiguous"):
        leaky_norm.forward(x, None, style.repeat(1, 2)[:, ::2], 0.3, EPSILON)


@pytest.mark.parametrize("dtype", FACTORS)
@pytest.mark.parametrize("shape", [(2, 3, 16, 16), (3, 3, 8, 8), (1, 3, 5, 7)])
def test_convolution_of_images(shape, dtype):
    x, weight = random(*shape, dtype=dtype), random(16, 3, 3, 3, seed=1, dtype=dtype)
    assert image_conv.takes(weight, (1, 1), (1, 1), False)
    tolerance = 2e-3 if dtype == torch.float32 else 1e-2
    exact_x, exact_weight = x.double().requires_grad_(), weight.double().requires_grad_()
    expected = F.conv2d(exact_x, exact_weight, padding=1)
    found = image_conv.forward(x, weight)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert close(found, expected, tolerance)
    gradient = random(*expected.shape, seed=2, dtype=dtype)
    of_x, of_weight = torch.autograd.grad(expected, (exact_x, exact_weight), gradient.double())
    assert close(image_conv.weight_gradient(gradient, x, weight), of_weight, tolerance)
    assert close(image_conv.input_gradient(gradient, weight), of_x, tolerance)


def test_which_convolutions_are_of_images():
    weight = random(16, 3, 3, 3)
    assert not image_conv.takes(weight, (2, 2), (1, 1), False)
    assert not image_conv.takes(random(24, 3, 3, 3), (1, 1), (1, 1), False)
    assert not image_conv.takes(random(3, 16, 3, 3), (1, 1), (1, 1), True)


@pytest.mark.parametrize("dtype", FACTORS)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("side", [3, 16])
def test_convolution_over_pixels(side, biased, dtype):
    x = random(2, 32, side, side, dtype=dtype).requires_grad_()
    weight = random(3, 32, 1, 1, seed=1, dtype=dtype).requires_grad_()
    bias = random(3, seed=2, dtype=dtype).requires_grad_() if biased else None
    assert pixel_conv.takes(weight)
    found = _PixelConv.apply(x, weight, bias)
    exact = exactly(x, weight, bias)
    expected = F.conv2d(*exact)
    tolerance = 2e-3 if dtype == torch.float32 else 1e-2
    assert found.dtype == torch.float32
    assert close(found, expected, tolerance)
    gradient = random(*expected.shape, seed=3)
    given = [t for t in (x, weight, bias) if t is not None]
    wanted = torch.autograd.grad(expected, [t for t in exact if t is not None], gradient.double())
    for ours, theirs in zip(torch.autograd.grad(found, given, gradient), wanted, strict=True):
        assert close(ours, theirs, tolerance)


def test_one_map_for_all_images():
    x, weight = random(1, 16, 4, 4).requires_grad_(), random(16, 16, 3, 3, seed=1).requires_grad_()
    bias, style = random(16, seed=2).requires_grad_(), random(5, 32, seed=3).requires_grad_()
    found = _ConvNorm.apply(x, weight, bias, style, Geometry((1, 1), (1, 1), True), 0.3, EPSILON, one_stream())
    exact = exactly(x, weight, bias, style)
    maps = F.conv_transpose2d(exact[0], exact[1], exact[2], padding=1).expand(5, -1, -1, -1)
    expected = plain_leaky_norm(maps, 0.3, exact[3])
    assert close(found, expected, 2e-3)
    gradient = random(*expected.shape, seed=4)
    wanted = torch.autograd.grad(expected, exact, gradient.double())
    for ours, theirs in zip(torch.autograd.grad(found, (x, weight, bias, style), gradient), wanted, strict=True):
        assert close(ours, theirs, 5e-3)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("styled", [False, True])
@pytest.mark.parametrize("num_inputs", [3, 16])
def test_convolution_and_norm_together(num_inputs, styled, transposed):
    x = random(2, num_inputs, 8, 8).requires_grad_(num_inputs != 3)
    shape = (num_inputs, 16, 3, 3) if transposed else (16, num_inputs, 3, 3)
    weight, bias = random(*shape, seed=1).requires_grad_(), random(16, seed=2).requires_grad_()
    style = random(2, 32, seed=3).requires_grad_() if styled else None
    found = _ConvNorm.apply(x, weight, bias, style, Geometry((1, 1), (1, 1), transposed), 0.3, EPSILON, one_stream())
    exact = exactly(x, weight, bias, style)
    convolve = F.conv_transpose2d if transposed else F.conv2d
    expected = plain_leaky_norm(convolve(exact[0], exact[1], exact[2], padding=1), 0.3, exact[3])
    assert close(found, expected, 2e-3)
    gradient = random(*expected.shape, seed=4)
    given = [t for t in (x, weight, bias, style) if t is not None and t.requires_grad]
    wanted = torch.autograd.grad(expected, [t for t in exact if t is not None and t.requires_grad], gradient.double())
    for ours, theirs in zip(torch.autograd.grad(found, given, gradient), wanted, strict=True):
        assert close(ours, theirs, 5e-3)


@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("reduced", [False, True])
def test_adamw(monkeypatch, reduced, clip):
    """The same gradients by the kernel and by torch's own fused step."""
    config = OptimizerConfig(learning_rate=0.01, beta1=0.8, beta2=0.95, weight_decay=0.5, clip=clip)
    found = []
    for by_kernel in (False, True):
        monkeypatch.setattr(dispatch, "uses_kernels", lambda x, by_kernel=by_kernel: by_kernel)
        parameters = [nn.Parameter(random(*shape, seed=i)) for i, shape in enumerate([(4, 3, 2, 2), (1500,), (5, 6)])]
        flat = FlatParameters([parameters[:2], parameters[2:]], reduced=parameters[:2] if reduced else ())
        optimizer = AdamW(flat, config)
        for number in range(5):
            optimizer.step([random(*p.shape, seed=10 * number + i).to(p.dtype) for i, p in enumerate(parameters)])
        found.append((flat, optimizer))
    (plain, by_torch), (fused, by_kernel) = found
    for ours, theirs in (
        (fused.values, plain.values),
        (by_kernel.first, by_torch.first),
        (by_kernel.second, by_torch.second),
    ):
        assert torch.allclose(ours, theirs, atol=1e-6)
    if reduced:
        used = torch.cat([parameter.detach().flatten() for parameter in fused.parameters[:2]])
        kept = torch.cat([view.flatten() for view in fused.views(fused.values)[:2]])
        assert torch.allclose(used.float(), kept, rtol=2**-7)  # the interpreter cuts off where a GPU rounds


@pytest.mark.parametrize("side", [4, 40])
def test_cross_entropy(side):
    logits, images = (3 * random(2, 3, side, side)).requires_grad_(), random(2, 3, side, side, seed=1).sigmoid()
    found = cross_entropy(logits, images)
    (exact,) = exactly(logits)
    expected = F.binary_cross_entropy_with_logits(exact, images.double())
    assert torch.allclose(found.double(), expected, rtol=1e-5)
    (ours,), (theirs,) = torch.autograd.grad(2 * found, logits), torch.autograd.grad(2 * expected, exact)
    assert close(ours, theirs, 1e-5)


@pytest.mark.parametrize("dtype", FACTORS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("side", "stride", "height", "width", "channels"),
    [
        (3, 1, 24, 16, (16, 32)),
        (3, 1, 32, 32, (64, 32)),
        (4, 2, 24, 16, (16, 32)),
        (4, 2, 32, 32, (32, 16)),
    ],
)
def test_narrow_conv(side, stride, height, width, channels, transposed, dtype):
    """Images that fill tiles and rows that fill bands, and such that do not."""
    x = random(3, channels[0], height, width, dtype=dtype).requires_grad_()
    weight = random(*(channels if transposed else channels[::-1]), side, side, seed=1, dtype=dtype).requires_grad_()
    found = narrow_conv.forward(x.detach(), weight.detach(), transposed)
    exact = exactly(x, weight)
    expected = (F.conv_transpose2d if transposed else F.conv2d)(*exact, stride=stride, padding=1)
    gradient = random(*expected.shape, seed=2, dtype=dtype)
    of_x, of_weight = torch.autograd.grad(expected, exact, gradient.double())
    tolerance = 2e-3 if dtype == torch.float32 else 1e-2
    assert close(found, expected, tolerance)
    assert close(narrow_conv.forward(gradient, weight.detach(), not transposed), of_x, tolerance)
    assert close(narrow_conv.weight_gradient(gradient, x.detach(), weight.detach(), transposed), of_weight, tolerance)


@pytest.mark.parametrize(
    ("shape", "weight", "stride", "transposed", "which"),
    [
        ((9, 32, 64, 64), (32, 32, 3, 3), 1, False, "forward, inputs, weights"),
        ((9, 32, 64, 64), (32, 32, 4, 4), 2, False, "forward, inputs, weights"),
        ((9, 32, 32, 32), (32, 32, 4, 4), 2, True, "forward, inputs, weights"),
        ((9, 32, 32, 32), (64, 32, 3, 3), 1, False, "forward, inputs, weights"),
        ((9, 64, 32, 32), (64, 32, 3, 3), 1, True, "forward, inputs, weights"),
        ((9, 64, 32, 32), (64, 64, 3, 3), 1, True, "forward, inputs"),
        ((9, 64, 64, 64), (64, 64, 3, 3), 1, True, ""),
        ((9, 32, 64, 64), (64, 32, 4, 4), 2, False, ""),
        ((9, 32, 16, 16), (32, 32, 3, 3), 1, False, ""),
        ((9, 32, 64, 64), (32, 32, 5, 5), 1, False, ""),
        ((9, 32, 65, 65), (32, 32, 4, 4), 2, False, ""),
    ],
)
def test_which_convolutions_are_narrow(monkeypatch, shape, weight, stride, transposed, which):
    """What torch's shapes say, against which of the kernels' functions a convolution and its gradients come to."""
    x, weight = torch.zeros(shape, dtype=torch.bfloat16), torch.zeros(weight, dtype=torch.bfloat16)
    geometry = Geometry((stride, stride), (1, 1), transposed)
    gradient = torch.zeros_like((F.conv_transpose2d if transposed else F.conv2d)(x, weight, None, stride, 1))
    called = []
    monkeypatch.setattr(narrow_conv, "_is_measured", lambda device: True)
    monkeypatch.setattr(narrow_conv, "forward", lambda *_: called.append("forward"))
    monkeypatch.setattr(narrow_conv, "weight_gradient", lambda *_: called.append("weights"))
    operations._convolution(x, weight, geometry, True)
    operations._weight_gradient(gradient, x, weight, geometry, True)
    before = len(called)
    operations._input_gradient(gradient, x, weight, geometry, True)
    told = called[:before] + ["inputs"] * (len(called) - before)
    assert sorted(told) == sorted(filter(None, which.split(", ")))


def test_linear():
    x, weight, bias = random(5, 7).requires_grad_(), random(3, 7, seed=1).requires_grad_(), random(3).requires_grad_()
    found, expected = _Linear.apply(x, weight, bias, one_stream()), F.linear(x, weight, bias)
    gradient = random(5, 3, seed=2)
    for ours, theirs in zip(
        torch.autograd.grad(found, (x, weight, bias), gradient),
        torch.autograd.grad(expected, (x, weight, bias), gradient),
        strict=True,
    ):
        assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("num_inputs", [3, 4])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_penalty_on_the_gradient_of_a_convolution(num_inputs, stride):
    """Differentiated twice by our own rules, and by torch's in double precision."""
    geometry = Geometry((stride, stride), (1, 1), False)
    derivatives = []
    for ours in (True, False):
        x, weight = random(2, num_inputs, 8, 8).requires_grad_(), random(16, num_inputs, 3, 3, seed=1).requires_grad_()
        if not ours:
            x, weight = exactly(x, weight)
        with penalized():
            out = _Conv.apply(x, weight, geometry, True, True) if ours else F.conv2d(x, weight, None, stride, 1)
            (gradient,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        derivatives.append(torch.autograd.grad((gradient.norm() - 1).square(), (x, weight)))
    assert all(close(found, wanted, 5e-3) for found, wanted in zip(*derivatives, strict=True))


class Noted:
    """A kernel that notes what becomes of it."""

    def __init__(self):
        self.launched, self.compiled = [], []

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.launched.append((grid, arguments, options))

    def warmup(self, *arguments, grid, **options):
        self.compiled.append((grid, arguments, options))


def test_a_rehearsal_compiles_every_kind_of_launch_once_and_runs_none():
    first, second, x = Noted(), Noted(), torch.zeros(3)
    with rehearsal():
        for entries in (16, 32, 16):
            launch(first, (4,), x, entries, ENTRIES=entries)
        launch(second, (1,), x.bfloat16())
        assert not first.compiled
    assert [options for _, _, options in first.compiled] == [{"ENTRIES": 16}, {"ENTRIES": 32}]
    assert len(second.compiled) == 1
    assert not first.launched + second.launched
    launch(first, (4,), x, 16, ENTRIES=16)
    assert first.launched == [((4,), (x, 16), {"ENTRIES": 16})]


def test_after_a_failed_rehearsal_kernels_run_as_ever():
    kernel = Noted()

    def fail():
        with rehearsal():
            launch(kernel, (1,))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    launch(kernel, (2,))
    assert (kernel.compiled, kernel.launched) == ([], [((2,), (), {})])


@pytest.mark.parametrize("capability", [pytest.param(80, marks=pytest.mark.slow), 90])
def test_every_kernel_compiles_for_gpus(capability):
    """In another process, since Triton interprets in this one, and accepts code there that its compiler rejects."""
    script = Path(__file__).with_name("compile_kernels.py")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, script, str(capability)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    compiled = [json.loads(line) for line in done.stdout.splitlines()]
    modules = {path.stem for path in Path(kernels.__file__).parent.glob("[a-z]*.py")} - {"launching"}
    assert {kernel["module"].rsplit(".", 1)[-1] for kernel in compiled} == modules
    assert max(kernel["shared"] for kernel in compiled) <= 99 * 1024  # bytes that a block has on any GPU since Ampere
    if capability == 90:
        assert all(kernel["wide_products"] for kernel in compiled if kernel["module"].endswith("narrow_conv"))


def test_without_a_compiler_the_plain_forms_take_over(monkeypatch):
    def broken(parts, dtype):
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC")

    monkeypatch.setattr("qlae.ops.kernels.sums.sum_rows", broken)
    dispatch.compiles_kernels.cache_clear()
    with pytest.warns(
        UserWarning, match=r"Triton cannot compile kernels for .*: RuntimeError: Failed to find C compiler"
    ):
        assert not dispatch.compiles_kernels(torch.device(DEVICE))
    dispatch.compiles_kernels.cache_clear()
    monkeypatch.undo()
    assert dispatch.compiles_kernels(torch.device(DEVICE))


@pytest.mark.parametrize(("batch_size", "num_latents"), [(7, 3), (70, 20)])
def test_decomposed_kl(monkeypatch, batch_size, num_latents):
    z, mean = random(batch_size, num_latents), random(batch_size, num_latents, seed=1)
    deviation = random(batch_size, num_latents, seed=2).exp()
    given = [t.requires_grad_() for t in (z, mean, deviation)]
    found = decomposed_kl(*given, 1000)
    exact = exactly(*given)
    monkeypatch.setattr(dispatch, "uses_kernels", lambda x: False)
    expected = decomposed_kl(*exact, 1000)
    assert all(torch.allclose(found[name].double(), expected[name], rtol=1e-4, atol=1e-4) for name in expected)
    for name in expected:  # each part by itself, so that none is hidden behind another
        ours = torch.autograd.grad(found[name], given, retain_graph=True)
        theirs = torch.autograd.grad(expected[name], exact, retain_graph=True, allow_unused=True)
        for one, other in zip(ours, theirs, strict=True):
            assert torch.allclose(one.double(), torch.zeros_like(one) if other is None else other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("num_values", [10, [3, 5, 4, 1, 2]])
def test_quantized_latent(monkeypatch, num_values, shared, reduction):
    if shared and not isinstance(num_values, int):
        pytest.skip("a shared codebook has one size")
    x = (random(37, 5) / 2).requires_grad_()
    found, derivatives = [], []
    for by_kernel in (True, False):
        monkeypatch.setattr(dispatch, "uses_kernels", lambda x, by_kernel=by_kernel: by_kernel)
        latent = QuantizedLatent(5, num_values, shared=shared, reduction=reduction).to(DEVICE)
        z, codes, losses = latent(x)
        found.append((z, codes, losses))
        loss = (z * random(37, 5, seed=1)).sum() + 2 * losses["quantize"] + 3 * losses["commit"]
        derivatives.append(torch.autograd.grad(loss, (x, latent.values)))
    (z, codes, losses), (plain_z, plain_codes, plain_losses) = found
    assert torch.equal(z, plain_z)
    assert torch.equal(codes, plain_codes)
    assert all(torch.allclose(losses[name], plain_losses[name]) for name in ("quantize", "commit"))
    assert all(torch.allclose(ours, theirs, atol=1e-6) for ours, theirs in zip(*derivatives, strict=True))
