"""Rendered Shapes3D against frames of the real data set."""

from pathlib import Path

import numpy as np
import pytest
import torch

from qlae.data.scenes import make_scene
from qlae.data.scenes.tracing import hue

FRAMES = Path(__file__).parent / "shapes3d_real_frames.npz"


@pytest.fixture(scope="module")
def scene():
    return make_scene("shapes3d", 64)


def errors(images, frames):
    """Return absolute differences in grey levels, without the two outermost pixels."""
    return np.abs(images.astype(np.float64) - frames)[:, 2:-2, 2:-2]


def test_real_frames(scene):
    with np.load(FRAMES, allow_pickle=False) as file:
        frames, sources = file["images"], file["sources"]
    error = errors(scene.render(sources).numpy(), frames)
    assert error.mean() <= 3
    assert error.mean(axis=(1, 2, 3)).max() <= 4
    assert 10 * np.log10(255**2 / (error**2).mean()) >= 30
    # Another frame's picture is far away, so the test can fail.
    assert errors(scene.render(np.roll(sources, 1, axis=0)).numpy(), frames).mean() > 40


def test_ten_different_hues():
    colours = hue(torch.arange(10) / 10)
    assert len({tuple(c.tolist()) for c in colours}) == 10
    assert colours[0].tolist() == [1, 0, 0]
    assert colours[9].tolist() == pytest.approx([1, 0, 0.6])


def test_parts_have_their_colours(scene):
    image = scene.render(np.array([[0, 3, 6, 7, 0, 7]])).numpy()[0].astype(int)
    assert image[0, 32].tolist() == [153, 226, 249]  # sky
    assert image[60, 3].argmax() == 0  # red floor
    assert image[20, 3].argmax() == 1  # green wall
    assert image[40, 32].argmax() == 2  # blue cube
