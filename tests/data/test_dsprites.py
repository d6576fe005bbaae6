"""The rendered dSprites: pictures of the real set, and geometry in closed form."""

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

import qlae
from qlae.data import RenderedImages, cache, data_config, load_data, load_from_config
from qlae.data.scenes import make_scene
from qlae.data.scenes.dsprites import ELLIPSE_RADII, SQUARE_SIDE, heart_curve

# 273 frames of the animation in the repository of the real set (google-deepmind/dsprites-dataset, Apache 2.0), packed.
REAL = Path(__file__).parent / "dsprites_real_frames.npz"
SQUARE, ELLIPSE, HEART = range(3)


@pytest.fixture(scope="module")
def scene():
    return make_scene("dsprites", 64)


def render(scene, **sources):
    """Return brightness (n, h, w) from 0 to 1 for levels by name, of which each is a number or (n,); 0 by default."""
    columns = np.broadcast_arrays(*(np.asarray(sources.get(name, 0), float) for name in scene.source_names))
    return scene.render(np.stack([np.atleast_1d(column) for column in columns], axis=1)).numpy()[..., 0] / 255


def centres(images):
    """Return the centres of mass (n, 2) in pixels, x first."""
    places = np.arange(images.shape[1]) + 0.5
    mass = images.sum((1, 2))
    return np.stack([images.sum(1) @ places / mass, images.sum(2) @ places / mass], axis=1)


def areas():
    """Return the areas of the shapes at scale 1, as fractions of the canvas."""
    x, y = heart_curve(np.linspace(0, np.pi, 10_001))
    a, b = ELLIPSE_RADII
    return [SQUARE_SIDE**2, np.pi * a * b, 2 * abs(trapezoid(y, x))]


def test_pictures_of_the_real_set_are_reproduced(scene):
    with np.load(REAL, allow_pickle=False) as file:
        levels = file["levels"]
        real = np.unpackbits(file["images"], axis=1).reshape(-1, 64, 64).astype(bool)
    images = scene.render(levels).numpy()[..., 0]
    wrong = (images >= 128) != real
    assert wrong.mean() < 1 / 15_000
    assert wrong.sum((1, 2)).max() <= 4  # in any picture
    assert np.abs(images - 255.0 * real).mean() < 1.5
    # Exchanged levels are told from the right ones.
    assert (images[::-1] >= 128)[real].mean() < 0.9


def test_the_first_and_the_last_orientation_are_one_angle_as_in_the_real_set(scene):
    first, last, second = render(scene, shape=HEART, scale=5, orientation=[0, 39, 1])
    assert np.array_equal(first, last)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("shape", [SQUARE, ELLIPSE, HEART])
@pytest.mark.parametrize("resolution", [32, 64, 128])
def test_areas_are_those_of_the_closed_form(shape, resolution):
    scales = np.arange(6)
    turned = np.repeat(np.linspace(0, 39, 7), 6)
    images = render(make_scene("dsprites", resolution), shape=shape, scale=np.tile(scales, 7), orientation=turned, x=9)
    expected = areas()[shape] * (0.5 + 0.1 * np.tile(scales, 7)) ** 2
    measured = images.sum((1, 2)) / resolution**2
    np.testing.assert_allclose(measured, expected, rtol=0.02 * 64 / resolution)


@pytest.mark.parametrize("shape", [SQUARE, ELLIPSE, HEART])
def test_every_pixel_brightens_as_the_scale_grows(scene, shape):
    images = render(scene, shape=shape, scale=np.linspace(0, 5, 11), orientation=7, x=14, y=11)
    # A growing shape covers what it covered. The edge of a small ellipse is known to first order only.
    assert (np.diff(images, axis=0) >= -0.03).all()
    assert (np.diff(images.sum((1, 2))) > 0).all()


def test_symmetries(scene):
    # 39 steps are a full turn, so 9.75 are a quarter; at x = y = 15.5 the sprite is in the middle of the canvas.
    middle = {"x": 15.5, "y": 15.5}
    turns = np.array([3.0, 3 + 9.75, 3 + 19.5, 3 + 29.25])
    square = render(scene, shape=SQUARE, scale=3, orientation=turns, **middle)
    for turned in square[1:]:
        np.testing.assert_allclose(turned, square[0], atol=1.5 / 255)
    np.testing.assert_allclose(np.rot90(square[0]), square[0], atol=1.5 / 255)
    ellipse = render(scene, shape=ELLIPSE, scale=3, orientation=turns, **middle)
    np.testing.assert_allclose(ellipse[2], ellipse[0], atol=1.5 / 255)
    np.testing.assert_allclose(ellipse[1], np.rot90(ellipse[0]), atol=1.5 / 255)
    assert np.abs(ellipse[1] - ellipse[0]).max() > 0.9
    heart = render(scene, shape=HEART, scale=3, orientation=turns, **middle)
    np.testing.assert_allclose(heart[1], np.rot90(heart[0]), atol=2.5 / 255)  # counterclockwise
    assert np.abs(heart[2] - heart[0]).max() > 0.9
    upright = render(scene, shape=HEART, scale=3, **middle)[0]
    np.testing.assert_allclose(upright[:, ::-1], upright, atol=1.5 / 255)


@pytest.mark.parametrize("shape", [SQUARE, ELLIPSE, HEART])
def test_the_centre_moves_evenly_with_x_and_y(scene, shape):
    levels = np.linspace(0, 31, 63)
    for axis, name in enumerate(("x", "y")):
        moved = centres(render(scene, shape=shape, scale=2, orientation=5, **{name: levels}))
        np.testing.assert_allclose(moved[:, axis] - moved[0, axis], 32 * levels / 31, atol=0.08)
        np.testing.assert_allclose(moved[:, 1 - axis], moved[0, 1 - axis], atol=0.08)
    if shape != HEART:
        np.testing.assert_allclose(centres(render(scene, shape=shape, scale=4))[0], 16, atol=0.01)


def test_no_sprite_touches_the_border(scene):
    corners = np.array([0, 31])
    for shape in (SQUARE, ELLIPSE, HEART):
        for resolution in (8, 15, 64):
            levels = {"shape": shape, "scale": 5, "orientation": np.arange(40)}
            for x in corners:
                for y in corners:
                    images = render(make_scene("dsprites", resolution), **levels, x=x, y=y)
                    # A pixel of a coarse picture spans a large part of the margin.
                    border = np.concatenate([images[:, [0, -1]].ravel(), images[:, :, [0, -1]].ravel()])
                    assert border.max() <= (0 if resolution == 64 else 0.75)


def test_edges_are_antialiased_and_the_rest_is_black_or_white(scene):
    images = render(scene, shape=[0, 1, 2], scale=5, orientation=4)
    between = (images > 0) & (images < 1)
    perimeter = between.sum((1, 2))
    assert (perimeter > 30).all()
    assert (perimeter < 150).all()
    far = np.abs(np.arange(64) + 0.5 - 16)[None, :] + np.abs(np.arange(64) + 0.5 - 16)[:, None] > 40
    assert not images[:, far].any()


def test_the_data_set_has_the_published_grid_and_one_channel():
    data = load_data("dsprites")
    assert data.images.shape == (737_280, 64, 64, 1)
    assert dict(zip(data.source_names, data.source_sizes, strict=True)) == {
        "shape": 3,
        "scale": 6,
        "orientation": 40,
        "x": 32,
        "y": 32,
    }
    assert data.sources[1 + 32 * (2 + 32 * 3)].tolist() == [0, 0, 3, 2, 1]  # y changes fastest
    assert np.array_equal(
        np.asarray(data.images[[5, 70_000]]), data.images.scene.render(data.sources[[5, 70_000]]).numpy()
    )


def test_a_run_finds_its_images_again(tmp_path):
    options = {"sources": ["shape", "x", "y"], "fixed": {"scale": 5}, "noise": 0.05, "seed": 3}
    data = load_data("dsprites", resolution=16, num_images=40, **options)
    again = load_from_config(data_config(data))
    assert np.asarray(again.images).shape == (40, 16, 16, 1)
    assert np.array_equal(again.images[:40], data.images[:40])
    training = {"size": "small", "steps": 3, "batch_size": 4, "device": "cpu", "show": False}
    run = qlae.train("qlae", load_data("dsprites", resolution=16, num_images=40), out=tmp_path / "run", **training)
    assert run.results["data"]["observations"]["shape"] == [16, 16, 1]
    assert qlae.resume(run.path, steps=4, show=False).results["steps"] == 4


def test_images_of_one_channel_are_rendered_once_and_kept_on_disk(cache_folder, tmp_path, monkeypatch):
    options = {"resolution": 16, "sources": ["shape", "x"]}
    images = np.asarray(load_data("dsprites", **options).images)
    training = {"size": "small", "steps": 3, "batch_size": 4, "device": "cpu", "show": False}
    qlae.train("ae", load_data("dsprites", **options), out=tmp_path / "first", **training)
    (entry,) = cache.entries()
    assert (entry.is_complete, entry.size.shape) == (True, (16, 16, 1))
    monkeypatch.setattr(RenderedImages, "fill", None)  # nothing is rendered again
    data = load_data("dsprites", **options)
    assert isinstance(data.images, np.memmap)
    assert np.array_equal(data.images, images)
    assert load_from_config(data_config(data)).images.shape == images.shape
    run = qlae.train("ae", data, out=tmp_path / "second", **training)
    assert run.results["data"]["observations"]["shape"] == [16, 16, 1]
    assert cache.clear("dsprites") == entry.num_bytes
