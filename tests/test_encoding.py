"""The codes of images as a table."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image

import qlae
from qlae.cli import main
from qlae.data import load_from_config
from qlae.runs.encode import encode_to_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("images") / "holiday"
    place.mkdir()
    random = np.random.default_rng(0)
    for i in range(12):
        Image.fromarray(random.integers(0, 255, (20, 20, 3), dtype=np.uint8)).save(place / f"{i:02d}.png")
    return place


@pytest.fixture(scope="module", params=["qlae", "ae"])
def run(request, tmp_path_factory, folder):
    data = qlae.load_data(folder, resolution=16)
    out = tmp_path_factory.mktemp("runs") / request.param
    return qlae.train(request.param, data, out=out, steps=4, size="small", num_latents=3, evaluate=False, show=False)


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_every_file_has_its_code(run, folder, tmp_path):
    rows = rows_of(encode_to_file(run.path, tmp_path / "codes.csv", device="cpu", show=False))
    assert rows[0] == ["file", "z0", "z1", "z2"]
    assert [row[0] for row in rows[1:]] == [f"{i:02d}.png" for i in range(12)]
    model, images = qlae.load(run.path), qlae.load_data(folder, resolution=16).images
    found = np.array([row[1:] for row in rows[1:]], float)
    if run.config.model == "qlae":
        assert np.array_equal(found, model.encode(images))
        numbers = rows_of(encode_to_file(run.path, tmp_path / "n.csv", numbers=True, device="cpu", show=False))
        found = np.array([row[1:] for row in numbers[1:]], float)
    assert np.allclose(found, model.latents(images), rtol=1e-5, atol=1e-6)


def test_given_names_are_used(run, tmp_path):
    names = {"latents": {"1": "wall"}, "values": {"1": {str(code): f"colour {code}" for code in range(4)}}}
    (run.path / "names.json").write_text(json.dumps(names))
    rows = rows_of(encode_to_file(run.path, tmp_path / "codes.csv", device="cpu", show=False))
    (run.path / "names.json").unlink()
    assert rows[0] == ["file", "z0", "wall", "z2"]
    assert all(row[2].startswith("colour ") == (run.config.model == "qlae") for row in rows[1:])


def test_other_images_and_errors(run, folder, tmp_path, capsys):
    rendered = qlae.load_data("shapes3d", resolution=16, sources=["shape"])
    rows = rows_of(encode_to_file(run.path, tmp_path / "codes.csv", data=rendered, device="cpu", show=False))
    assert [row[0] for row in rows] == ["image", "0", "1", "2", "3"]
    with pytest.raises(ValueError, match=r"codes\.csv exists already"):
        encode_to_file(run.path, tmp_path / "codes.csv")
    with pytest.raises(SystemExit) as stop:
        main(["encode", str(run.path), "--data", str(folder), "--out", str(tmp_path / "y.csv"), "--quiet"])
    assert stop.value.code == 0
    assert len(rows_of(tmp_path / "y.csv")) == 13
    assert str(tmp_path / "y.csv") in capsys.readouterr().out


def test_a_folder_called_like_a_data_set(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, tmp_path / "shapes3d")
    expected = rows_of(encode_to_file(run.path, "all.csv", device="cpu", show=False))
    for out, data in (("a.csv", "./shapes3d"), ("b.csv", tmp_path / "shapes3d")):
        assert rows_of(encode_to_file(run.path, out, data=data, device="cpu", show=False)) == expected


def test_the_table_can_be_read_back_as_sources(run, tmp_path):
    names = ("  a,b.png", "line\nbreak.png", 'quoted "c".png', "return.png")
    (tmp_path / "odd").mkdir()
    for i, name in enumerate(names):
        Image.new("RGB", (16, 16), (60 * i, 0, 0)).save(tmp_path / "odd" / name)
    out = encode_to_file(run.path, tmp_path / "codes.csv", data=tmp_path / "odd", device="cpu", show=False)
    data = qlae.load_data(tmp_path / "odd", resolution=16, source_file=out)
    assert data.file_names == names
    assert data.source_names == ("z0", "z1", "z2")


def test_model_that_was_handed_on_encodes_too(run, folder, tmp_path):
    exported = qlae.load(run.path).save_pretrained(tmp_path / "model")
    rows = rows_of(encode_to_file(exported, tmp_path / "codes.csv", data=folder, device="cpu", show=False))
    assert rows == rows_of(encode_to_file(run.path, tmp_path / "same.csv", device="cpu", show=False))
    with pytest.raises(ValueError, match=r"the images that .* was trained on are not known; pass others"):
        encode_to_file(exported, tmp_path / "x.csv", device="cpu", show=False)


def test_changed_files_are_noticed(run, folder, tmp_path):
    config = run.config
    (folder / "00.png").rename(folder / "99.png")
    try:
        with pytest.raises(ValueError, match="holiday has other images than when the model was trained"):
            load_from_config(config.data)
        changed = qlae.load_data(folder, resolution=16)
        with pytest.raises(ValueError, match=r"holds another run: data\.checksum is"):
            qlae.train(config.model, changed, out=run.path, steps=8, size="small", num_latents=3, show=False)
    finally:
        (folder / "99.png").rename(folder / "00.png")
    assert load_from_config(config.data).checksum == config.data.checksum
