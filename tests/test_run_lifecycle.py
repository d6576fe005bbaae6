"""The life of a run through the public API alone: train, resume, load, evaluate. Small enough for `make test-quick`."""

import warnings

import numpy as np
import pytest

import qlae

OPTIONS = {"size": "small", "batch_size": 8, "device": "cpu", "show": False}


@pytest.fixture(autouse=True)
def ignore_warnings():
    """So short a training may leave inactive latents, which is worth a warning, but not here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_train_resume_load_evaluate(tmp_path, tiny_data):
    whole = qlae.train("qlae", tiny_data, out=tmp_path / "whole", steps=24, evaluate=False, **OPTIONS)
    qlae.train("qlae", tiny_data, out=tmp_path / "parts", steps=10, evaluate=False, **OPTIONS)
    parts = qlae.train("qlae", tiny_data, out=tmp_path / "parts", steps=24, **OPTIONS)

    expected, resumed = (qlae.load(run.path, device="cpu") for run in (whole, parts))
    for name, tensor in expected.state_dict().items():
        assert (tensor == resumed.state_dict()[name]).all(), name

    results = qlae.evaluate(parts.path, device="cpu", show=False)
    assert results == parts.results
    assert results["steps"] == 24
    assert 0 <= results["averaged"]["infom"] <= 1
    codes = resumed.encode(tiny_data.images)
    np.testing.assert_array_equal(parts.arrays(parts.sample_path)["codes"], codes)
    np.testing.assert_array_equal(resumed.decode(codes), resumed.reconstruct(tiny_data.images))
