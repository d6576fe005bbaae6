"""`qlae.QLAE`: kinds of observations, persistence, errors, and what a fit leaves behind."""

import copy
import os
import signal
import tempfile
import threading
import time

import numpy as np
import pandas as pd
import pytest
import torch

import qlae


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    return np.tanh(rng.normal(size=(300, 3)) @ rng.normal(size=(3, 8))) * 7 + 100


@pytest.fixture(scope="module")
def fitted(vectors):
    return qlae.QLAE(num_latents=4, num_values=5, steps=400, random_state=0).fit(vectors)


def test_the_estimator_trains_what_qlae_train_trains(vectors, tmp_path):
    estimator = qlae.QLAE(num_latents=4, num_values=5, steps=30, random_state=7).fit(vectors)
    options = {"num_latents": 4, "num_values": 5, "steps": 30, "batch_size": 64, "learning_rate": 2e-3}
    run = qlae.train(
        "qlae", vectors, out=tmp_path / "run", size="small", weight_decay=0.1, seed=7, threads=1, evaluate=False,
        show=False, **options,
    )  # fmt: skip
    assert np.array_equal(estimator.transform(vectors), qlae.load(run.path).latents(vectors))


def test_latents_and_codes_are_inverted(fitted, vectors):
    latents = fitted.transform(vectors)
    assert latents.dtype == np.float64
    reconstructed = fitted.inverse_transform(latents)
    codes = fitted.set_params(output="codes").transform(vectors)
    try:
        assert codes.dtype == np.int64
        assert codes.min() >= 0
        assert codes.max() < 5
        assert np.array_equal(fitted.inverse_transform(codes), reconstructed)
        assert np.array_equal(fitted.inverse_transform(codes.astype(float)), reconstructed)
        with pytest.raises(ValueError, match="codes must be whole numbers"):
            fitted.inverse_transform(codes + 0.5)
    finally:
        fitted.set_params(output="latents")
    scale = vectors.std(0)
    share = 1 - (((reconstructed - vectors) / scale) ** 2).mean()
    assert fitted.score(vectors) == pytest.approx(share, abs=1e-4)
    assert share > 0.5


def test_a_feature_that_is_constant_in_a_sample_does_not_spoil_the_score(fitted, vectors):
    sample = vectors[:40].copy()
    sample[:, 0] = vectors[0, 0]
    assert -1 < fitted.score(sample) < 1


@pytest.mark.parametrize(
    ("array", "kind", "shape"),
    [
        (np.zeros((30, 12, 12), np.uint8), None, (12, 12, 1)),
        (np.zeros((30, 9, 12, 3), np.uint8), None, (9, 12, 3)),
        (np.zeros((30, 12, 12), np.float32), "images", (12, 12, 1)),
        (np.zeros((30, 16, 2), np.float32), None, (16, 2)),
        (np.zeros((30, 16), np.float32), "series", (16, 1)),
    ],
)
def test_images_and_series(array, kind, shape):
    rng = np.random.default_rng(0)
    array = (array + rng.random(array.shape) * 200).astype(array.dtype)
    estimator = qlae.QLAE(3, 4, steps=5, random_state=0, layout=kind).fit(array)
    assert estimator.transform(array).shape == (30, 3)
    assert estimator.inverse_transform(estimator.transform(array)).shape == (30, *shape)
    assert np.isfinite(estimator.score(array))
    with pytest.raises(ValueError, match="expected"):
        estimator.transform(array[:, :4])
    assert np.array_equal(copy.deepcopy(estimator).transform(array), estimator.transform(array))


def test_booleans_are_numbers(vectors):
    above = vectors > 100
    estimator = qlae.QLAE(3, 4, steps=5, random_state=0).fit(above)
    assert np.array_equal(estimator.transform(above), estimator.transform(above.astype(np.float32)))


def test_read_only_arrays_give_no_warnings(fitted, vectors, recwarn):
    """Data frames of pandas give such arrays."""
    latents, singles = fitted.transform(vectors), fitted.transform(vectors.astype(np.float32))
    arrays = [vectors.copy(), latents, singles]
    for array in arrays:
        array.flags.writeable = False
    fitted.transform(arrays[0])
    fitted.score(arrays[0])
    fitted.inverse_transform(latents)
    fitted.inverse_transform(singles)
    fitted.model_.decode(fitted.model_.encode(arrays[0]))
    assert [str(warning.message) for warning in recwarn] == []


def test_number_of_latents_without_sources(vectors, recwarn):
    assert qlae.QLAE(steps=2).fit(vectors).model_.latent.num_latents == 8
    assert qlae.QLAE(steps=2).fit(np.hstack([vectors, vectors])).get_feature_names_out()[-1] == "qlae9"
    assert not recwarn


def modules_of(value):
    """Return the packages of the types in nested containers."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return {type(value).__module__.split(".")[0]}.union(*map(modules_of, inner))


def test_the_state_of_a_copy_holds_no_torch_objects(fitted, vectors):
    """What `copy`, `joblib` and others store of an estimator is plain: a config and the bytes of a safetensors file."""
    assert not modules_of(fitted.__getstate__()) & {"torch", "numpy", "sklearn"}
    again = copy.deepcopy(fitted)
    assert again.model_ is not fitted.model_
    assert np.array_equal(again.transform(vectors), fitted.transform(vectors))


def test_pretrained_folders(fitted, vectors, tmp_path):
    folder = fitted.save_pretrained(tmp_path / "model")
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    again = qlae.QLAE.from_pretrained(folder, output="codes")
    assert np.array_equal(again.inverse_transform(again.transform(vectors)), qlae.load(folder).reconstruct(vectors))
    expected = fitted.get_params() | {"output": "codes", "layout": "vectors"}
    assert again.get_params() == expected
    assert again.n_features_in_ == 8
    fitted.save_pretrained(folder)  # replaces an earlier one


def test_from_run_directories(vectors, tmp_path):
    run = qlae.train(
        "qlae", qlae.load_data(vectors, feature_names=list("abcdefgh")), out=tmp_path / "run", size="small", steps=5,
        num_latents=3, evaluate=False, show=False,
    )  # fmt: skip
    estimator = qlae.QLAE.from_pretrained(run.path)
    assert estimator.feature_names_in_.tolist() == list("abcdefgh")
    assert estimator.get_params()["steps"] == 5
    other = qlae.train("ae", vectors, out=tmp_path / "ae", size="small", steps=5, evaluate=False, show=False)
    with pytest.raises(ValueError, match="without quantized latents"):
        qlae.QLAE.from_pretrained(other.path)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"output": "values"}, "unknown output 'values': known: latents, codes"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0, got -1"),
        ({"num_latents": 0}, "num_latents must be a whole number of at least 1, got 0"),
        ({"steps": 0.5}, "steps must be a whole number"),
        ({"size": "tiny"}, "unknown size 'tiny'"),
        ({"layout": "sounds"}, "unknown layout 'sounds'"),
    ],
)
def test_wrong_parameters_are_named_by_fit(parameters, message, vectors):
    with pytest.raises(ValueError, match=message):
        qlae.QLAE(**({"steps": 3} | parameters)).fit(vectors)


def test_errors_of_training_do_not_mention_the_temporary_folder(vectors):
    with pytest.raises(RuntimeError, match="not finite at update") as error:
        qlae.QLAE(learning_rate=1e30, steps=30).fit(vectors)
    assert tempfile.gettempdir() not in str(error.value)


def test_a_fit_leaves_the_process_as_it_was(vectors, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def state():
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        return torch.get_num_threads(), torch.get_rng_state().tolist(), handlers, os.listdir(tmp_path)

    before = state()
    np.random.seed(3)  # noqa: NPY002
    qlae.QLAE(steps=30, random_state=0, n_jobs=2).fit(vectors).transform(vectors)
    assert np.random.random() == np.random.RandomState(3).random()  # noqa: NPY002
    assert state() == before
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_ends_a_fit_and_leaves_nothing(vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    threading.Thread(target=_interrupt_soon, daemon=True).start()
    with pytest.raises(KeyboardInterrupt) as stop:
        qlae.QLAE(steps=10**6).fit(vectors)
    assert str(stop.value) == ""
    assert os.listdir(tmp_path) == []


def _interrupt_soon():
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)


def test_a_collapse_is_told_in_the_terms_of_the_estimator(vectors, monkeypatch):
    monkeypatch.setattr("qlae.training.trainer.num_varying", lambda *_: 0)
    estimator = qlae.QLAE(num_latents=2, steps=300, batch_size=8, random_state=0)
    with pytest.warns(UserWarning, match="after update 200 of 300 no latent varies") as caught:
        estimator.fit(vectors)
    (message,) = (str(warning.message) for warning in caught)
    assert all(name in message for name in ("weight_decay", "learning_rate", "num_values"))
    assert not any(words in message for words in ("--", "saves", "command"))


def test_a_table_with_categories_is_referred_to_train():
    frame = pd.DataFrame({"size": [1.0, np.nan] * 20, "colour": ["red", "blue"] * 20, "weight": range(40)})
    with pytest.raises(ValueError, match=r"other values in colour and NaN in size: train with qlae\.train"):
        qlae.QLAE(steps=2).fit(frame)
    with pytest.raises(ValueError, match=r"has NaN in size: train"):
        qlae.QLAE(steps=2).fit(frame[["size", "weight"]])
    numbers = frame[["weight"]].assign(other=frame["weight"].astype(object) ** 2)
    assert qlae.QLAE(steps=2, num_latents=2).fit(numbers).n_features_in_ == 2
