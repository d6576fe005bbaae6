"""Properties of every rendered scene: visible sources, distinct images, reproducible bytes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scene_checks import num_distinct, random_levels, step_changes

from qlae.data.rendered import RENDERER_VERSION
from qlae.data.scenes import make_scene
from qlae.data.sources import CATEGORIES

KNOWN = Path(__file__).parent / "known_images.npz"
SCENES = ["shapes3d", "mpi3d", "falcor3d", "isaac3d", "dsprites"]
#: Configurations in which a source is hardest to see: level by source name, the rest random.
ADVERSARIAL = {
    "shapes3d": [
        {"floor hue": 4, "wall hue": 4, "object hue": 4},  # one colour everywhere
        {"floor hue": 5, "wall hue": 5, "object hue": 5},  # cyan, nearest the sky
        {"floor hue": 1, "wall hue": 1, "object hue": 1, "scale": 0},
        {"shape": 2, "scale": 0},  # a small sphere looks alike from everywhere
        {"shape": 2, "scale": 7, "orientation": 7},
        {"orientation": 7},
    ],
    "mpi3d": [
        {"shape": 0, "horizontal": 19, "vertical": 12},  # the cup shows its white inside to the camera
        {"shape": 3, "horizontal": 20, "vertical": 8, "size": 0},
        {"vertical": 39, "camera height": 2},  # steep: the object leaves the picture, and turning becomes rolling
        {"vertical": 39, "camera height": 0, "size": 0},
        {"vertical": 38, "shape": 1, "size": 0},  # a small ball
        {"vertical": 38, "shape": 2, "size": 0, "object color": 2},  # a small dull croissant
        {"horizontal": 19, "vertical": 0, "camera height": 0},
        {"horizontal": 0, "vertical": 0, "object color": 2, "background color": 0},
    ],
    "falcor3d": [
        {"lighting intensity": 0},  # dark
        {"lighting intensity": 4, "lighting z": 5},  # nearly saturated
        {"lighting intensity": 0, "lighting y": 0, "lighting z": 5},
        {"lighting intensity": 4, "lighting y": 5},
        {"camera x": 0, "lighting x": 5, "lighting intensity": 0},
    ],
    "isaac3d": [
        {"robot x": 3, "robot y": 0, "camera height": 3},  # the object at the lower edge
        {"robot x": 4, "robot y": 0, "camera height": 3, "object scale": 3},
        {"robot x": 3, "robot y": 4, "object scale": 0},  # pointing at the camera, small
        {"lighting intensity": 0, "object scale": 0},
        {"lighting intensity": 0, "lighting direction": 0, "object color": 0, "object scale": 0},
        {"lighting intensity": 3, "lighting direction": 5, "object color": 2, "wall color": 2},
        {"robot x": 0, "robot y": 0, "object scale": 0, "camera height": 0},
    ],
    "dsprites": [
        {"shape": 0, "scale": 0, "orientation": 0},  # small and upright: edges fall on rows and columns of pixels
        {"shape": 1, "scale": 0},  # the smallest and roundest
        {"shape": 2, "scale": 0},
        {"shape": 0, "scale": 5, "orientation": 39, "x": 0, "y": 31},
    ],
}


@pytest.fixture(scope="module", params=SCENES)
def scene(request):
    return make_scene(request.param, 64)


def adversarial_levels(scene, num, seed=1):
    levels = random_levels(scene, num, seed)
    cases = ADVERSARIAL[scene.name]
    for row, level in enumerate(levels):
        for source, value in cases[row % len(cases)].items():
            level[scene.source_names.index(source)] = value
    return levels


def assert_visible(scene, levels, at_least=10):
    changes = step_changes(scene, levels, seed=2)
    for source, name in enumerate(scene.source_names):
        worst = changes[:, source].argmin()
        assert changes[worst, source] >= at_least, (
            f"{name}: a step from {levels[worst]} changes {changes[worst, source]}"
        )


@pytest.mark.parametrize("kind", ["random", "adversarial"])
def test_every_step_of_every_source_is_visible(scene, kind):
    num = 500 // len(scene.source_sizes) + 1  # 500 steps of each kind
    assert_visible(scene, random_levels(scene, num, seed=7) if kind == "random" else adversarial_levels(scene, num))


@pytest.mark.slow
def test_every_step_is_visible_in_many_configurations(scene):
    assert_visible(scene, random_levels(scene, 2000, seed=8))
    assert_visible(scene, adversarial_levels(scene, 2000, seed=9))


def test_a_sample_of_images_is_distinct(scene):
    levels = np.unique(random_levels(scene, 500, seed=3), axis=0)
    scene = make_scene(scene.name, 32)  # harder than at 64
    assert num_distinct(scene.render(levels).numpy()) == len(levels)


def test_bytes_do_not_depend_on_batch_order_or_threads(scene):
    levels = random_levels(scene, 24, seed=4)
    together = scene.render(levels)
    fresh = make_scene(scene.name, 64)
    assert torch.equal(torch.cat([fresh.render(levels[i : i + 1]) for i in range(24)]), together)
    assert torch.equal(fresh.render(levels[::-1].copy()), together.flip(0))
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            assert torch.equal(make_scene(scene.name, 64).render(torch.as_tensor(levels)), together)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("num_workers", [1, 2, 5])
def test_a_grid_has_the_bytes_of_single_images(scene, num_workers, monkeypatch):
    rng = np.random.default_rng(5)
    grid = [np.sort(rng.choice(size, min(size, 2), replace=False)) for size in scene.source_sizes]
    monkeypatch.setattr(scene, "_num_workers", lambda: num_workers)
    images = scene.render_grid(grid)
    levels = np.stack([axis.reshape(-1) for axis in np.meshgrid(*grid, indexing="ij")], axis=1)
    assert np.array_equal(images, scene.render(levels).numpy())


@pytest.mark.parametrize("resolution", [8, 15, 32, 50])
def test_any_resolution(scene, resolution):
    levels = random_levels(scene, 4, seed=6)
    images = make_scene(scene.name, resolution).render(levels)
    assert images.shape == (4, resolution, resolution, scene.channels)
    assert images.dtype == torch.uint8
    # The same picture, only coarser or finer: compare at 8×8, also with the pictures in another order.
    coarse, fine = (
        torch.nn.functional.interpolate(i.permute(0, 3, 1, 2).float(), (8, 8), mode="bilinear", antialias=True)
        for i in (images, scene.render(levels))
    )
    difference = (coarse - fine).abs().mean()
    assert difference < 10
    assert difference < 0.5 * (coarse - fine.roll(1, 0)).abs().mean()


def test_levels_between_grid_levels_lie_between_their_pictures(scene):
    smooth = [s for s in scene.source_names if s not in CATEGORIES.get(scene.name, ())]
    levels = np.stack([[(size - 1) // 2 for size in scene.source_sizes]] * 3).astype(float)
    for source in smooth:
        column = scene.source_names.index(source)
        probe = levels.copy()
        probe[1, column] += 0.5
        probe[2, column] += 1
        a, b, c = scene.render(probe).numpy().astype(int)
        assert (a != b).any(), source
        assert (b != c).any(), source


def test_pixels_change_only_with_the_version_of_the_renderer(scene):
    """A change of pixels needs a new version, which invalidates cached images, and new known images."""
    with np.load(KNOWN, allow_pickle=False) as file:
        assert int(file["version"]) == RENDERER_VERSION
        levels, images = file[f"{scene.name}_levels"], file[f"{scene.name}_images"]
    now = make_scene(scene.name, 24).render(levels).numpy()
    assert np.abs(now.astype(int) - images).max() <= 1  # a cosine may differ in its last bit between machines


def test_no_images_at_all(scene):
    assert scene.render(np.zeros((0, len(scene.source_sizes)), int)).shape == (0, *scene.image_shape)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_all_images_are_distinct(name):
    # At 64×64 where that fits into memory, else at 32×32, where it is harder.
    scene = make_scene(name, 64 if name == "shapes3d" else 32)
    images = scene.render_grid([range(size) for size in scene.source_sizes])
    # The first and the last orientation of dSprites are the same angle.
    assert num_distinct(images) == len(images) * (39 / 40 if name == "dsprites" else 1)


def agree(images, others) -> bool:
    """Return whether images differ by at most one level, except where rounding moves an edge (1 in 50,000 pixels)."""
    difference = np.abs(images.astype(int) - others).max(-1)
    return bool((difference > 1).mean() <= 1 / 50_000)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_agrees_within_one_level(scene):
    levels = random_levels(scene, 300, seed=12)
    there = make_scene(scene.name, 64, "cuda")
    assert agree(there.render(levels).cpu().numpy(), scene.render(levels).numpy())
    grid = [[0, size - 1] for size in scene.source_sizes]
    on_host, on_device = (
        there.render_grid(grid),
        torch.empty(2 ** len(grid), *there.image_shape, dtype=torch.uint8, device="cuda"),
    )
    there.render_grid(grid, out=on_device)
    assert np.array_equal(on_device.cpu().numpy(), on_host)
    assert agree(on_host, scene.render_grid(grid))
