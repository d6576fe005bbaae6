"""PSNR by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from qlae.metrics import psnr


def test_mean_over_images_of_each_images_psnr() -> None:
    images = np.zeros((2, 4, 4, 3))
    reconstructions = np.stack([np.full((4, 4, 3), 0.1), np.full((4, 4, 3), 0.01)])
    assert psnr(images, reconstructions) == pytest.approx((20 + 40) / 2)


def test_uint8_and_floats_mix() -> None:
    images = np.full((3, 2, 2), 255, dtype=np.uint8)
    assert psnr(images, np.full((3, 2, 2), 0.9, dtype=np.float32)) == pytest.approx(20, abs=1e-4)
    assert psnr(images, images) == 100.0


@pytest.mark.parametrize(
    ("images", "reconstructions", "message"),
    [
        (np.zeros((1, 2, 2)), np.zeros((1, 2, 3)), "equal shapes"),
        (np.zeros((1, 2, 2)), np.full((1, 2, 2), 1.5), r"lie in \[0, 1\]"),
        (np.zeros((1, 2, 2)), np.full((1, 2, 2), np.nan), r"lie in \[0, 1\]"),
        (np.zeros((1, 2, 2), dtype=np.int32), np.zeros((1, 2, 2)), "give uint8"),
        (np.zeros((0, 2, 2)), np.zeros((0, 2, 2)), "at least one image"),
    ],
)
def test_what_cannot_be_compared(images: np.ndarray, reconstructions: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        psnr(images, reconstructions)


def test_tensors_of_any_float_type() -> None:
    images = torch.zeros(2, 3, 4, 4)
    assert psnr(images, (images + 0.25).bfloat16().requires_grad_()) == pytest.approx(-20 * np.log10(0.25))
