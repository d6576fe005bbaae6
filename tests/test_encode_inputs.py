"""Everything that ``load_data`` reads, ``Model.encode`` takes; what it cannot take, it refuses."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import qlae
from qlae.data.pictures import PictureSize, resize
from qlae.estimator import QLAE

OPTIONS = {"size": "small", "steps": 4, "batch_size": 4, "num_latents": 3, "device": "cpu"}


def train(data, out, **options):
    run = qlae.train("qlae", qlae.load_data(data, hold_out=0), out=out, show=False, evaluate=False, **OPTIONS | options)
    return qlae.load(run.path)


@pytest.fixture(scope="module")
def photos():
    return np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def colours(photos, tmp_path_factory):
    """A model of images of bytes in colour."""
    return train(photos, tmp_path_factory.mktemp("colours") / "run")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A model of a table, and the table."""
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 3)), columns=["a", "b", "c"])
    return train(frame, tmp_path_factory.mktemp("table") / "run"), frame


def test_images_in_every_form_have_the_same_codes(colours, photos, tmp_path):
    codes = colours.encode(photos)
    for i, photo in enumerate(photos):
        Image.fromarray(photo).save(tmp_path / f"{i:02}.png")
    paths = sorted(tmp_path.iterdir())
    forms = {
        "floats": photos / 255,
        "bytes as floats": photos.astype(np.float32),
        "bytes as integers": photos.astype(np.int64),
        "tensor, channels first": torch.from_numpy(photos).permute(0, 3, 1, 2),
        "tensor of floats": torch.from_numpy(photos / 255).permute(0, 3, 1, 2),
        "half precision": torch.from_numpy(photos / 255).half(),
        "data set": qlae.load_data(photos),
        "pictures": [Image.fromarray(photo) for photo in photos],
        "paths": paths,
        "texts": [str(path) for path in paths],
        "folder": tmp_path,
        "without mask": np.ma.masked_array(photos),
    }
    for name, form in forms.items():
        assert np.array_equal(colours.encode(form), codes), name
    assert np.array_equal(colours.encode(paths[2]), codes[2:3])
    assert np.array_equal(colours.encode(Image.fromarray(photos[3])), codes[3:4])


def test_images_of_other_sizes_are_scaled_as_in_training(colours, photos, tmp_path):
    large = np.random.default_rng(2).integers(0, 256, (3, 40, 30, 3), dtype=np.uint8)
    expected = colours.reconstruct(resize(large, PictureSize(16, 16)))
    assert np.array_equal(colours.reconstruct(large), expected)
    assert np.array_equal(colours.reconstruct(large / 255), expected)
    assert np.array_equal(colours.reconstruct([Image.fromarray(image) for image in large]), expected)
    Image.fromarray(large[0]).save(tmp_path / "0.png")
    assert np.array_equal(colours.reconstruct(qlae.load_data(tmp_path, resolution=16)), expected[:1])
    grey = np.repeat(photos[..., :1], 3, axis=-1)
    assert np.array_equal(colours.encode(photos[..., 0]), colours.encode(grey))
    assert np.array_equal(colours.encode(Image.fromarray(photos[0, ..., 0])), colours.encode(grey[:1]))


def test_a_model_of_grey_images_takes_colours(photos, tmp_path):
    model = train(photos[..., :1], tmp_path / "run")
    grey = np.stack([np.asarray(Image.fromarray(photo).convert("L")) for photo in photos])
    assert np.array_equal(model.encode(photos), model.encode(grey))
    assert np.array_equal(model.encode([Image.fromarray(photo) for photo in photos]), model.encode(grey))


def test_a_model_of_floats_takes_bytes_where_their_scale_is_known(photos, tmp_path):
    model = train(photos / 255, tmp_path / "unit")
    assert np.array_equal(model.latents(photos), model.latents(photos / 255))
    assert np.array_equal(model.encode(Image.fromarray(photos[0])), model.encode(photos[:1] / 255))
    model = train(photos / 127.5 - 1, tmp_path / "signed")
    with pytest.raises(ValueError, match=r"floats from -1 to 1, and these are bytes: scale them as the training data"):
        model.encode(photos)


def test_images_that_cannot_be_bytes_are_refused(colours, photos):
    with pytest.raises(ValueError, match="these are float64 from -1 to 1: bring them to the range from 0 to 1"):
        colours.encode(np.linspace(-1, 1, photos.size).reshape(photos.shape))
    with pytest.raises(ValueError, match="missing or infinite"):
        colours.encode(np.full(photos.shape, np.nan))
    with pytest.raises(ValueError, match=r"must hold bytes without masked entries, and 9,216 are masked"):
        colours.encode(np.ma.masked_array(photos, mask=True))
    with pytest.raises(ValueError, match=r"expected uint8 images of shape .*, got complex128"):
        colours.encode(photos.astype(complex))
    with pytest.raises(ValueError, match="got object"):
        colours.encode(object())


def test_data_frames_are_matched_by_name(table, tmp_path):
    model, frame = table
    codes = model.encode(frame)
    assert np.array_equal(model.encode(frame.to_numpy()), codes)
    mixed = frame.assign(note="text", d=1.0)[["note", "a", "d", "b", "c"]]
    assert np.array_equal(model.encode(mixed), codes)
    mixed.to_csv(tmp_path / "t.csv", index=False)
    assert np.array_equal(model.encode(tmp_path / "t.csv"), codes)
    with pytest.raises(ValueError, match="the data frame lacks columns that the model takes: 'b'"):
        model.encode(frame.drop(columns="b"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, np.ma.masked])
def test_missing_values_are_refused(table, bad):
    model, frame = table
    rows = np.ma.masked_array(frame.to_numpy(copy=True))
    rows[7, 1] = bad
    for take in (model.encode, model.latents, model.reconstruct):
        with pytest.raises(ValueError, match=r"missing or infinite values \(NaN, inf\) in row 7, feature b"):
            take(rows)
    with pytest.raises(ValueError, match=r"missing or infinite values \(NaN, inf\): in row 7 of 40"):
        qlae.load_data(rows)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        QLAE(steps=1).fit(rows)


def test_the_rows_of_later_chunks_are_named(table):
    rows = np.zeros((600, 3))
    rows[599, 2] = np.inf
    with pytest.raises(ValueError, match="in row 599, feature c"):
        table[0].encode(rows)
    with pytest.raises(ValueError, match=r"numbers as large as 1e\+30, and at most 1e\+17 fit"):
        table[0].encode(np.full((2, 3), 1e30))


def test_a_fitted_estimator_refuses_masked_entries():
    rows = np.random.default_rng(0).normal(size=(30, 3))
    estimator = QLAE(steps=2, hold_out=0, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="NaN"):
        estimator.transform(np.ma.masked_array(rows, mask=rows > 2))
    assert estimator.transform(np.ma.masked_array(rows)).shape == (30, 3)


def test_autocast_around_a_model_changes_nothing(colours, photos):
    latents, codes = colours.latents(photos), colours.encode(photos)
    decoded, reconstructed = colours.decode(codes), colours.reconstruct(photos)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert np.array_equal(colours.latents(photos), latents)
        assert np.array_equal(colours.encode(photos), codes)
        assert np.array_equal(colours.decode(codes), decoded)
        assert np.array_equal(colours.reconstruct(photos), reconstructed)
