"""Continuous and correlated sources, and noisy pixels."""

import numpy as np
import pytest

from qlae.data import load_data
from qlae.data.sources import SOURCES, draw_levels


def test_continuous_sources_fill_their_range_and_categories_stay():
    data = load_data("shapes3d", resolution=16, num_images=4000, continuous=True)
    assert data.sources.shape == (4000, 6)
    assert data.sources.dtype == np.float64
    for name, size, values in zip(data.source_names, data.source_sizes, data.sources.T, strict=True):
        if name == "shape":
            assert set(values) == {0, 1, 2, 3}
            continue
        top = size if name.endswith("hue") else size - 1  # hues go round: the last tenth is between 9 and 0
        assert len(np.unique(values)) == 4000
        assert 0 <= values.min() < 0.01 * top
        assert 0.99 * top < values.max() <= top
        assert values.mean() == pytest.approx(top / 2, rel=0.05)
    assert len({image.tobytes() for image in data.images[:200]}) == 200


def test_only_the_named_sources_are_continuous():
    data = load_data("isaac3d", num_images=500, continuous=["robot x"], sources=["robot x", "wall color"])
    assert len(np.unique(data.sources[:, 0])) == 500
    assert set(data.sources[:, 1]) == {0, 1, 2, 3}
    assert data.describe()["drawn"] == {"continuous": ["robot x"], "correlated": [], "seed": 0}


def test_a_random_sample_of_the_grid_has_integer_levels():
    full = load_data("shapes3d", resolution=16)
    data = load_data("shapes3d", resolution=16, num_images=50, seed=3)
    assert data.sources.dtype == np.int64
    rows = np.ravel_multi_index(tuple(data.sources.T), full.source_sizes)
    assert np.array_equal(np.asarray(data.images), full.images[rows])


@pytest.mark.parametrize("wanted", [-0.9, -0.3, 0.0, 0.5, 1.0])
def test_sources_have_the_given_correlation_and_stay_uniform(wanted):
    names = list(SOURCES["shapes3d"])
    levels = draw_levels(
        SOURCES["shapes3d"], 40_000, smooth=names, correlated={("scale", "orientation"): wanted}, seed=1
    )
    correlation = np.corrcoef(levels.T)
    expected = np.eye(6)
    expected[3, 5] = expected[5, 3] = wanted
    assert np.abs(correlation - expected).max() < 0.02
    for column, name in enumerate(names):
        share = np.histogram(levels[:, column], bins=4)[0] / 40_000
        assert np.abs(share - 0.25).max() < 0.02, name


def test_correlated_grid_levels():
    data = load_data("mpi3d", num_images=20_000, correlated={("horizontal", "vertical"): 0.8})
    assert data.sources.dtype == np.int64
    assert np.corrcoef(data.sources[:, 5], data.sources[:, 6])[0, 1] == pytest.approx(0.8, abs=0.02)
    assert data.describe()["drawn"]["correlated"] == [["horizontal", "vertical", 0.8]]


@pytest.mark.parametrize(
    ("pair", "wanted"),
    [
        (("size", "camera height"), 0.5),
        (("size", "background color"), -0.3),
        (("size", "horizontal"), 0.85),
        (("object color", "shape"), 0.7),
        (("camera height", "background color"), -1.0),
    ],
)
@pytest.mark.parametrize("continuous", [False, True])
def test_sources_with_few_levels_have_the_given_correlation(pair, wanted, continuous):
    if continuous and abs(wanted) > 0.8:
        continuous = False
    sizes = {name: SOURCES["mpi3d"][name] for name in pair}
    smooth = [name for name in pair if continuous and name != "shape"]
    levels = draw_levels(sizes, 100_000, smooth=smooth, correlated={pair: wanted}, seed=1)
    assert np.corrcoef(levels.T)[0, 1] == pytest.approx(wanted, abs=0.01)


def test_impossible_correlations_are_errors():
    with pytest.raises(
        ValueError, match=r"'size' and 'camera height' can be correlated from -0.82 to 0.82, given their num"
    ):
        load_data("mpi3d", num_images=10, correlated={("size", "camera height"): 0.99})


def test_the_seed_determines_the_draw():
    draw = lambda seed: load_data("falcor3d", num_images=30, continuous=True, seed=seed).sources  # noqa: E731
    assert np.array_equal(draw(1), draw(1))
    assert not np.array_equal(draw(1), draw(2))


def test_noise_is_repeatable_and_of_the_right_size():
    clean = load_data("shapes3d", resolution=32, sources=["shape", "scale"])
    noisy = load_data("shapes3d", resolution=32, sources=["shape", "scale"], noise=0.05, seed=4)
    images, base = np.asarray(noisy.images).astype(float), np.asarray(clean.images)
    assert np.array_equal(noisy.images[[5, 3]], images[[5, 3]])
    assert np.array_equal(noisy.images[7], images[7])
    middle = (base > 60) & (base < 195)  # where nothing is clipped
    assert (images - base)[middle].std() == pytest.approx(0.05 * 255, rel=0.05)
    assert not np.array_equal(images[0] - base[0], images[1] - base[1])
    assert noisy.describe()["noise"] == 0.05
    assert noisy.in_memory().images.shape == (32, 32, 32, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_images": 0}, "num_images must be a whole number of at least 1, got 0"),
        ({"num_images": 2.5}, "num_images must be int"),
        ({"continuous": ["shape"]}, "'shape' is a category"),
        ({"continuous": ["scales"]}, "unknown source that varies 'scales': did you mean \"scale\""),
        ({"correlated": {("scale", "scale"): 0.5}}, "pairs of two different sources|must be a list"),
        ({"correlated": {"scale": 0.5}}, "pairs of two different sources|must be a list"),
        ({"correlated": {("scale", "shape"): 1.5}}, "must be from -1 to 1, got 1.5"),
        ({"correlated": {("scale", "shape"): float("nan")}}, "must be a finite number, got nan"),
        ({"correlated": {("scale", "shape"): 0.5}, "sources": ["scale"]}, "unknown source that varies 'shape'"),
        (
            {"correlated": {("scale", "shape"): 0.9, ("shape", "wall hue"): 0.9, ("scale", "wall hue"): -0.9}},
            "these correlations exclude each other",
        ),
        ({"noise": -0.1}, "noise must be a standard deviation of 0 or more, got -0.1"),
        ({"noise": float("nan")}, "got nan"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_data("shapes3d", **arguments)
