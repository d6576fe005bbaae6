"""`SourceDataset`, `load_data` and images rendered on demand."""

import copy
import json

import numpy as np
import pytest

from qlae.data import DATA, SourceDataset, data_names, load_data
from qlae.data.rendered import RENDERER_VERSION
from qlae.data.sources import SOURCES, grid_levels


def small(**overrides):
    images = np.zeros((6, 8, 8, 3), np.uint8)
    facts = {"name": "toy", "origin": "real", "source_names": ["a", "b"], "source_sizes": [2, 3]} | overrides
    return SourceDataset(images, **facts)


def test_sources_are_the_row_major_grid():
    data = load_data("shapes3d")
    assert data.sources.shape == (480_000, 6)
    assert data.sources.dtype == np.int64
    expected = np.stack(np.unravel_index(np.arange(480_000), data.source_sizes), axis=1)
    assert np.array_equal(data.sources, expected)


@pytest.mark.parametrize(
    ("name", "count"), [("shapes3d", 480_000), ("mpi3d", 460_800), ("falcor3d", 233_280), ("isaac3d", 737_280)]
)
def test_every_data_set_has_the_published_number_of_images(name, count):
    assert int(np.prod(list(SOURCES[name].values()))) == count


def test_some_rows_of_the_grid():
    rows = np.array([0, 7, 59])
    assert np.array_equal(grid_levels([3, 4, 5], rows), grid_levels([3, 4, 5])[rows])


def test_repr_and_description():
    data = load_data("shapes3d", resolution=32, sources=["shape", "floor hue"], fixed={"scale": 7})
    assert repr(data).startswith(
        "SourceDataset(shapes3d, rendered: 40 images of 32×32; sources: floor hue 10, shape 4;"
    )
    facts = json.loads(json.dumps(data.describe()))
    assert facts == {
        "name": "shapes3d",
        "origin": "rendered",
        "resolution": 32,
        "num_images": 40,
        "source_names": ["floor hue", "shape"],
        "source_sizes": [10, 4],
        "fixed": {"wall hue": 5, "object hue": 5, "scale": 7, "orientation": 7},
        "renderer": RENDERER_VERSION,
    }
    assert "fixed" not in load_data("shapes3d").describe()


def test_a_subset_shows_the_images_of_the_full_set():
    full = load_data("shapes3d", resolution=16)
    part = load_data("shapes3d", resolution=16, sources=["scale", "orientation"], fixed={"wall hue": 2})
    levels = np.tile([5, 2, 5, 0, 2, 0], (len(part), 1))
    levels[:, [3, 5]] = part.sources
    rows = np.ravel_multi_index(tuple(levels.T), full.source_sizes)
    assert np.array_equal(np.asarray(part.images), full.images[rows])


def test_rendered_images_index_like_an_array():
    lazy = load_data("shapes3d", resolution=8, sources=["object hue", "shape"]).images
    everything = np.asarray(lazy)
    assert everything.shape == lazy.shape == (40, 8, 8, 3)
    assert everything.dtype == lazy.dtype == np.uint8
    assert len(lazy) == 40
    mask = np.zeros(40, bool)
    mask[[3, 30]] = True
    for rows in (
        0,
        -1,
        np.int64(5),
        slice(3, 33, 7),
        slice(None, None, -9),
        [4, 4, -2],
        np.array([9], np.uint8),
        mask,
        [],
    ):
        index = np.array(rows, dtype=np.int64) if isinstance(rows, list) else rows
        got = lazy[rows]
        assert got.dtype == np.uint8
        assert np.array_equal(got, everything[index])
    assert np.asarray(lazy, dtype=np.float32).dtype == np.float32
    assert np.array_equal(np.stack(list(lazy)), everything)  # iteration ends


@pytest.mark.parametrize("rows", [40, -41, [0, 40], 1.5, np.zeros((2, 2), int), (0, 1), np.ones(39, bool), "a", None])
def test_wrong_rows_are_index_errors(rows):
    lazy = load_data("shapes3d", resolution=8, sources=["object hue", "shape"]).images
    with pytest.raises(IndexError):
        lazy[rows]


def test_in_memory_renders_everything_and_reports_progress():
    data = load_data("shapes3d", resolution=8, sources=["shape", "scale", "wall hue"])
    seen = []
    full = data.in_memory(progress=lambda done, total: seen.append((done, total)))
    assert isinstance(full.images, np.ndarray)
    assert np.array_equal(full.images[17], data.images[17])
    assert full.describe() == data.describe()
    assert full.in_memory() is full
    assert seen[-1] == (320, 320)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


@pytest.mark.parametrize(
    "arguments", [{"sources": ["shape", "scale", "wall hue"]}, {"num_images": 30, "continuous": True}]
)
def test_images_rendered_on_a_device_are_the_same(arguments):
    data = load_data("shapes3d", resolution=8, **arguments)
    seen = []
    there = data.images.render_on("cpu", progress=lambda done, total: seen.append((done, total)))
    assert there.device.type == "cpu"
    assert np.array_equal(there.numpy(), np.asarray(data.images))
    assert seen[-1] == (len(data), len(data))


def test_data_without_sources():
    data = SourceDataset(np.zeros((5, 8, 8, 3), np.uint8), np.zeros((5, 0)), name="mine", origin="real")
    assert data.sources.shape == (5, 0)
    assert "sources: none" in repr(data)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"origin": "made"}, "unknown origin 'made'"),
        ({"source_sizes": [2, 3, 4]}, "2 source names and 3 source sizes"),
        ({"source_sizes": [2, 4]}, r"sources of shape \(8, 2\) do not fit 6 images"),
        ({"sources": np.zeros((6, 3), int)}, r"sources of shape \(6, 3\) do not fit 6 images, 2 source names"),
    ],
)
def test_sources_that_do_not_fit(overrides, message):
    with pytest.raises(ValueError, match=message):
        small(**overrides)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((6, 8, 8, 3), str), "toy must hold numbers, got <U1"),
        (np.zeros((6, 8, 7, 3), np.uint8), "8 to 256 pixels per side, .* got 8×7"),
        (np.zeros((6, 32, 32, 20), np.uint8), "1 to 16 channels, got 20"),
    ],
)
def test_images_of_a_wrong_shape_or_dtype(images, message):
    with pytest.raises(ValueError, match=message):
        SourceDataset(images, name="toy", origin="real", source_names=["a"], source_sizes=[6])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "shapes3"}, "unknown data set 'shapes3': did you mean \"shapes3d\"\\? Known: "),
        ({"name": "Shapes3D"}, 'did you mean "shapes3d"'),
        ({"name": 3}, "load_data takes the name of a data set, a path, an array, .* got int"),
        ({"resolution": 7}, "resolution must be an integer from 8 to 1024, got 7"),
        ({"resolution": 64.0}, "got 64.0"),
        ({"resolution": True}, "got True"),
        ({"resolution": -64}, "got -64"),
        ({"sources": "shape"}, "sources must be a list, got 'shape'"),
        ({"fixed": ["shape"]}, "fixed must be an object, got"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"noise": "a"}, "noise must be float, got 'a'"),
        ({"noise": -1.0}, "noise must be a standard deviation of 0 or more, got -1"),
        ({"continuous": "scale"}, "continuous must be .* got 'scale'"),
        ({"correlated": {("scale", "shape"): "0.5"}}, "must be float, got '0.5'"),
        ({"correlated": {("scale", "shape"): 1.5}}, "must be from -1 to 1, got 1.5"),
        ({"correlated": {"scale": 0.5}}, "correlated.* must be a list"),
        ({"correlated": {("scale", "shape"): 0.5, ("shape", "scale"): -0.5}}, "give each pair once"),
        ({"sources": ["shapes"]}, "unknown source 'shapes': did you mean \"shape\""),
        ({"fixed": dict.fromkeys(SOURCES["shapes3d"], 0)}, "no source is left to vary"),
        ({"sources": ["shape", "shape"]}, "'shape' is in sources twice"),
        ({"sources": ["shape"], "fixed": {"shape": 1}}, "'shape' is in both sources and fixed"),
        ({"fixed": {"shape": 4}}, "fixed level of 'shape' must be an integer from 0 to 3, got 4"),
        ({"fixed": {"shape": 1.0}}, "fixed.shape must be int, got 1.0"),
        ({"fixed": {"shap": 1}}, "unknown source 'shap': did you mean \"shape\""),
    ],
)
def test_errors_say_what_is_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_data(**({"name": "shapes3d"} | arguments))


def test_every_name_loads():
    for name in data_names():
        assert load_data(name).name == name


def test_names_and_sizes_have_defaults():
    images = np.zeros((6, 8, 8, 3), dtype=np.uint8)
    data = SourceDataset(images, [[0, 1], [0, 2], [1, 3]] * 2, name="mine", origin="real")
    assert (data.source_names, data.source_sizes) == (("source 1", "source 2"), (2, 3))
    assert SourceDataset(images, np.arange(6), name="mine", origin="real").sources.shape == (6, 1)
    assert SourceDataset(images, name="mine", origin="real").sources.shape == (6, 0)
    assert SourceDataset(list(images), name="mine", origin="real").images.shape == (6, 8, 8, 3)
    assert min(SourceDataset(images[::-1], name="mine", origin="real").images.strides) > 0
    with pytest.raises(ValueError, match=r"mine is empty: it has shape \(0, 8, 8, 3\)"):
        SourceDataset(images[:0], name="mine", origin="real")
    with pytest.raises(ValueError, match=r"sources of shape \(3, 1\) do not fit 6 images"):
        SourceDataset(images, np.arange(3), name="mine", origin="real")


def test_numpy_integers_and_copies():
    data = load_data("shapes3d", resolution=np.int64(16), num_images=np.int32(5), seed=np.int64(3))
    assert (data.spec.num_images, data.spec.seed) == (5, 3)
    assert DATA.from_dict(json.loads(json.dumps(DATA.to_dict(data.spec))), "data") == data.spec
    other = copy.deepcopy(data)
    assert np.array_equal(other.images[:], data.images[:])
    assert np.array_equal(other.sources, data.sources)


def test_source_names_must_be_distinct():
    with pytest.raises(ValueError, match="source_names must be distinct, got a, a"):
        SourceDataset(np.zeros((2, 8, 8, 3), np.uint8), np.eye(2), name="x", origin="real", source_names=["a", "a"])
