"""The description of observations: what is possible, and what arrays become."""

import json

import numpy as np
import pytest
import torch

import qlae
from qlae.config import RunConfig
from qlae.data import SourceDataset, data_config
from qlae.data.dataset import as_array, observe
from qlae.observations import KINDS, Observations, described_observations, square_images
from qlae.resolving import resolve


def test_every_kind_names_parts_that_exist():
    from qlae.registry import NETWORKS

    for kind in KINDS.values():
        assert kind.networks in NETWORKS
        assert callable(kind.load("form"))
        assert kind.load("fidelity").parts
        assert callable(kind.load("drawing").draw)


@pytest.mark.parametrize(
    ("shape", "dtype", "kind", "expected"),
    [
        ((5, 28, 28), "uint8", "images", (28, 28, 1)),
        ((5, 60, 90, 3), "uint8", "images", (60, 90, 3)),
        ((5, 9, 8, 16), "float32", "images", (9, 8, 16)),
        ((5, 12), "float64", "vectors", (12,)),
        ((5, 12), "uint8", "vectors", (12,)),
        ((5, 12), "int32", "vectors", (12,)),
        ((5, 30, 2), "float32", "series", (30, 2)),
    ],
)
def test_the_shape_tells_the_kind(shape, dtype, kind, expected):
    data = SourceDataset(np.ones(shape, dtype), name="ones", origin="real")
    assert (data.observations.kind, data.observations.shape) == (kind, expected)


def test_the_caller_can_say_the_kind():
    floats = np.random.default_rng(0).random((4, 20, 24))
    assert qlae.load_data(floats).observations.kind == "series"
    assert qlae.load_data(floats, layout="images").observations.shape == (20, 24, 1)
    with pytest.raises(ValueError, match=r'unknown layout .imagse.: did you mean "images"'):
        qlae.load_data(floats, layout="imagse")


def test_tensors_may_have_channels_first():
    tensor = torch.arange(2 * 3 * 16 * 8).reshape(2, 3, 16, 8).to(torch.uint8)
    data = qlae.load_data(tensor)
    assert data.observations.shape == (16, 8, 3)
    np.testing.assert_array_equal(data.images[1, :, :, 2], tensor[1, 2].numpy())


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3, 32, 32), np.uint8), r"channels came first.*np.moveaxis\(array, 1, -1\)"),
        (np.zeros((2, 32, 32, 17), np.uint8), "1 to 16 channels, got 17"),
        (np.zeros((2, 7, 32, 3), np.uint8), "8 to 256 pixels per side.*got 7×32"),
        (np.zeros((2, 300, 301, 3), np.uint8), "8 to 256 pixels per side.*got 300×301"),
        (np.zeros((2, 5, 3)), "at least 8 time steps"),
        (np.zeros(4), r"vectors \(n, features\).*got shape \(4,\)"),
        (np.zeros((0, 4)), "is empty"),
        (np.array([["a", "b"]]), "must hold numbers, got <U1"),
    ],
)
def test_impossible_arrays_are_refused(array, message):
    with pytest.raises(ValueError, match=message):
        qlae.load_data(array)


def test_missing_values_are_named_by_row_and_feature():
    vectors = np.ones((100, 3))
    vectors[[3, 70], 1] = np.nan
    vectors[4, 2] = -np.inf
    with pytest.raises(
        ValueError, match=r"3 missing or infinite values.*in rows 3, 4, 70 of 100, features height, depth of 3\. Leave"
    ):
        qlae.load_data(vectors, feature_names=["width", "height", "depth"])
    series = np.ones((9, 10, 1), np.float32)
    series[8, 5] = np.nan
    with pytest.raises(ValueError, match="in row 8 of 9, feature x0 of 1"):
        qlae.load_data(series)


@pytest.mark.parametrize("kind", ["vectors", "images"])
def test_values_too_large_to_be_scaled_are_named(kind):
    array = np.ones((20, 8, 8, 3) if kind == "images" else (20, 3))
    array[::2, ..., 2], array[1::2, ..., 2] = 1.5e308, -1.5e308
    with pytest.raises(ValueError, match=r"numbers as large as 1\.5e\+308, in feature c of 3, and at most 1e\+17"):
        qlae.load_data(array, layout=kind, feature_names=["a", "b", "c"])


def test_vectors_are_standardised_even_far_from_zero():
    rng = np.random.default_rng(0)
    vectors = rng.normal([1e9, -3, 0], [1, 20, 0], (1000, 3))
    observations = qlae.load_data(vectors, hold_out=0).observations
    form = observations.traits.load("form")(observations)
    inputs = form.to_input(torch.from_numpy(vectors))
    assert inputs.dtype == torch.float32
    np.testing.assert_allclose(inputs.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(inputs.std(0, correction=0), [1, 1, 0], atol=1e-5)
    np.testing.assert_allclose(form.to_array(inputs), vectors, rtol=1e-12, atol=1e-5)


def test_statistics_do_not_depend_on_the_size_of_chunks(monkeypatch):
    vectors = np.random.default_rng(0).normal(5, 2, (999, 7))
    whole = observe(*as_array(vectors))
    monkeypatch.setattr("qlae.data.dataset.CHUNK_BYTES", 1000)
    parts = observe(*as_array(vectors))
    np.testing.assert_allclose(parts.offset, whole.offset, rtol=1e-12)
    np.testing.assert_allclose(parts.scale, vectors.std(0), rtol=1e-12)


def test_float_images_are_scaled_to_the_unit_range_only_if_they_leave_it():
    rng = np.random.default_rng(0)
    inside = qlae.load_data(rng.random((5, 8, 8, 2))).observations
    assert (inside.offset, inside.scale) == ((0.0, 0.0), (1.0, 1.0))
    images = rng.random((5, 8, 8, 2)) * [100, 5] - [50, 0]
    outside = qlae.load_data(images).observations
    np.testing.assert_allclose(outside.offset, images.min((0, 1, 2)))
    form = outside.traits.load("form")(outside)
    inputs = form.to_input(torch.from_numpy(images))
    assert inputs.shape == (5, 2, 8, 8)
    assert (inputs.amin((0, 2, 3)).tolist(), inputs.amax((0, 2, 3)).tolist()) == ([0, 0], [1, 1])


def test_the_config_of_data_has_their_spec(tiny_data):
    config = resolve("qlae", data_config(tiny_data), 2, size="small", precision="float32")
    assert list(config.to_dict()["data"]) == [
        *("name", "observations", "origin", "num_images", "source_names", "spec", "checksum")
    ]
    assert config.data.observations == square_images(16)
    assert "observations" not in tiny_data.describe()


@pytest.mark.parametrize("shape", [(40, 3), (40, 20, 2), (40, 28, 28, 1)])
def test_configs_survive_json(shape):
    array = np.random.default_rng(0).normal(size=shape)
    data = qlae.load_data(array, feature_names=[f"f{i}" for i in range(shape[-1])])
    config = resolve("qlae", data_config(data), 0, num_latents=3, precision="float32")
    config.require_restorable()
    again = RunConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again.data.observations == data.observations
    assert "resolution" not in config.to_dict()["data"]
    assert described_observations(data.describe()).shape == data.observations.shape


def test_a_damaged_description_is_refused():
    config = {"kind": "vectors", "shape": [3], "dtype": "float32", "offset": [0.0], "scale": [1.0]}
    with pytest.raises(ValueError, match="3 features need as many entries of offset, got 1"):
        described_observations({"observations": config})
    with pytest.raises(ValueError, match="scale must be above 0"):
        Observations("vectors", (1,), "float32", (), (0.0,), (0.0,))
    with pytest.raises(ValueError, match=r"series have the shape \(t, c\), got \(3,\)"):
        Observations("series", (3,), "float32")
    with pytest.raises(ValueError, match="feature_names must be distinct, got 'a' twice"):
        Observations("vectors", (2,), "float32", ("a", "a"))


def test_a_model_says_what_it_does_not_take():
    trained = Observations("vectors", (2,), "float32", ("a", "b"))
    assert trained.difference(Observations("vectors", (2,), "float64", ("a", "b"))) is None
    assert trained.difference(Observations("vectors", (2,), "float32")) is None
    assert "data has 'c' in the place of 'b'" in trained.difference(
        Observations("vectors", (2,), "float32", ("a", "c"))
    )
    assert "2 features, data has images of 16×16" in trained.difference(square_images(16))
