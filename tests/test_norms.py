"""Leaky ReLU, instance norm and style in one operation, against torch's own one after the other."""

import pytest
import torch
import torch.nn.functional as F

from qlae.ops.norms import leaky_norm, plain_leaky_norm


def by_torch(x, slope, style=None, bias=None, *, epsilon=1e-5):
    y = F.group_norm(F.leaky_relu(x if bias is None else x + bias[:, None, None], slope), x.shape[1], eps=epsilon)
    if style is None:
        return y
    scale, shift = style[:, :, None, None].chunk(2, 1)
    return y * scale + shift


def inputs(shape, styled, memory_format=torch.channels_last, dtype=torch.float64, num_images=None):
    generator = torch.Generator().manual_seed(0)
    x = 3 + 2 * torch.randn(shape, generator=generator, dtype=dtype)
    tensors = [x.contiguous(memory_format=memory_format)]
    if styled:
        tensors.append(torch.randn(num_images or shape[0], 2 * shape[1], generator=generator, dtype=dtype))
    return [tensor.requires_grad_() for tensor in tensors]


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (5, 32, 8, 8), (1, 7, 2, 2), (3, 4, 5, 6)])
@pytest.mark.parametrize("styled", [False, True])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("form", [leaky_norm, plain_leaky_norm])
def test_forward_and_backward(shape, styled, memory_format, form):
    given = inputs(shape, styled, memory_format, torch.float32)
    expected = by_torch(given[0], 0.3, *given[1:])
    found = form(given[0], 0.3, *given[1:])
    assert torch.allclose(found, expected, atol=1e-5)
    gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    for ours, theirs in zip(
        torch.autograd.grad(found, given, gradient), torch.autograd.grad(expected, given, gradient), strict=True
    ):
        assert torch.allclose(ours, theirs, atol=2e-5)


def test_one_map_for_all_images():
    given = inputs((1, 6, 4, 4), True, dtype=torch.float32, num_images=5)
    found, expected = (form(given[0], 0.3, *given[1:]) for form in (leaky_norm, by_torch))
    assert found.shape == (5, 6, 4, 4)
    assert torch.allclose(found, expected, atol=1e-5)
    gradient = torch.randn_like(expected)
    for ours, theirs in zip(
        torch.autograd.grad(found, given, gradient), torch.autograd.grad(expected, given, gradient), strict=True
    ):
        assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("styled", [False, True])
def test_differentiated_twice(styled):
    """The gradient of a norm of the gradient, as a gradient penalty takes it."""
    derivatives = []
    for form in (leaky_norm, by_torch):
        given = inputs((3, 4, 4, 4), styled, dtype=torch.float32)
        (gradient,) = torch.autograd.grad(form(given[0], 0.3, *given[1:]).sin().sum(), given[0], create_graph=True)
        derivatives.append(torch.autograd.grad(gradient.norm(), given, allow_unused=True))
    for ours, theirs in zip(*derivatives, strict=True):
        assert (ours is None) == (theirs is None)
        assert ours is None or torch.allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("styled", [False, True])
@pytest.mark.parametrize("form", [leaky_norm, plain_leaky_norm])
def test_epsilon_is_added_to_the_variance(styled, form):
    """Maps whose variance is no larger than ε, differentiated once and twice."""
    results = []
    for norm in (form, by_torch):
        given = inputs((3, 4, 4, 4), styled)
        out = norm(1e-3 * given[0], 0.3, *given[1:], epsilon=1e-6)
        (gradient,) = torch.autograd.grad(out.sin().sum(), given[0], create_graph=True)
        results.append([out, gradient, *torch.autograd.grad(gradient.norm(), given, allow_unused=True)])
    assert all(torch.allclose(ours, theirs, rtol=1e-6) for ours, theirs in zip(*results, strict=True))
    assert not torch.allclose(results[0][0], form(1e-3 * given[0], 0.3, *given[1:]), rtol=0.1)


def test_one_map_has_the_epsilon_too():
    x, style = inputs((1, 6, 4, 4), True, num_images=5)
    found, expected = (norm(1e-3 * x, 0.3, style, epsilon=1e-6) for norm in (leaky_norm, by_torch))
    assert torch.allclose(found, expected)


def test_reduced_precision_has_the_statistics_of_float32():
    x = (100 + torch.randn(2, 4, 16, 16, generator=torch.Generator().manual_seed(0))).bfloat16()
    found = leaky_norm(x, 0.3)
    assert found.dtype == torch.bfloat16
    assert torch.allclose(found.float(), by_torch(x.float(), 0.3), atol=0.02)


def test_no_leaky_relu_is_the_norm_alone():
    (x,) = inputs((2, 3, 4, 4), False, dtype=torch.float32)
    assert torch.allclose(leaky_norm(x, 1.0), F.instance_norm(x), atol=1e-5)


def test_memory_is_channels_last():
    (x,) = inputs((2, 8, 4, 4), False, dtype=torch.float32)
    out = leaky_norm(x, 0.3)
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert torch.autograd.grad(out.sum(), x)[0].is_contiguous(memory_format=torch.channels_last)
