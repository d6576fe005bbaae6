"""The written-out cross entropy against torch's."""

import pytest
import torch
import torch.nn.functional as F

from qlae.ops.cross_entropy import cross_entropy


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_value_and_gradient(memory_format, spread):
    generator = torch.Generator().manual_seed(0)
    logits = (spread * torch.randn(3, 3, 8, 8, generator=generator)).contiguous(memory_format=memory_format)
    images = torch.rand(3, 3, 8, 8, generator=generator)
    logits.requires_grad_()
    ours, theirs = cross_entropy(logits, images), F.binary_cross_entropy_with_logits(logits, images)
    assert torch.allclose(ours, theirs, rtol=1e-5)
    first, second = (torch.autograd.grad(2.5 * loss, logits)[0] for loss in (ours, theirs))
    assert torch.allclose(first, second, atol=1e-7)


def test_certain_pixels_cost_nothing():
    images = torch.tensor([0.0, 1.0]).view(1, 1, 1, 2).expand(1, 3, 1, 2)
    logits = torch.tensor([-200.0, 200.0]).view(1, 1, 1, 2).expand(1, 3, 1, 2)
    assert cross_entropy(logits, images) == 0
