"""Photographs are read once: unchanged files are neither read nor reported again."""

import json
import os
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

import qlae
from qlae.data.image_files import FolderFiles, ZipFiles


@pytest.fixture
def photos(tmp_path):
    """Eight images, and two files that are none."""
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(8):
        Image.fromarray(rng.integers(0, 255, (20, 30, 3)).astype(np.uint8)).save(folder / f"{i}.png")
    (folder / "broken.png").write_bytes(b"no image")
    (folder / "cut.jpg").write_bytes(b"")
    (folder / "phone.heic").write_bytes(b"x")
    return folder


@pytest.fixture
def read_names(monkeypatch):
    """The names of all files that are read."""
    names = []
    for files in (FolderFiles, ZipFiles):

        def read(self, wanted, original=files.read):
            names.extend(wanted)
            return original(self, wanted)

        monkeypatch.setattr(files, "read", read)
    return names


def load(name, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = qlae.load_data(name, resolution=8, **options)
    return data, [str(warning.message) for warning in caught]


def test_unchanged_photographs_are_not_read_again(photos, read_names):
    first, messages = load(photos)
    assert len(read_names) == 10
    assert len(messages) == 2
    assert "1 file in formats that are not read (HEIC): phone.heic" in messages[0]
    assert messages[1].startswith(f"2 of 10 images in {photos} are left out: broken.png (not an image), cut.jpg (")
    read_names.clear()
    second, messages = load(photos)
    assert (read_names, messages) == ([], [])
    assert second.checksum == first.checksum
    assert second.describe() == first.describe()
    assert second.left_out == first.left_out
    assert sorted(second.left_out) == ["broken.png", "cut.jpg", "phone.heic"]


@pytest.mark.parametrize("change", ["content", "same size", "new", "repaired"])
def test_changed_photographs_are_read_again(photos, read_names, change):
    first, _ = load(photos)
    read_names.clear()
    name = {"content": "3.png", "new": "9.png", "repaired": "broken.png"}.get(change)
    state = (photos / "3.png").stat()
    if change == "same size":
        content = bytearray((photos / "3.png").read_bytes())
        content[-20] ^= 255
        (photos / "3.png").write_bytes(content)
        os.utime(photos / "3.png", ns=(state.st_atime_ns, state.st_mtime_ns))
        assert (photos / "3.png").stat().st_mtime_ns == state.st_mtime_ns
    else:
        Image.new("RGB", (20, 20), "red").save(photos / name)
    second, messages = load(photos)
    assert len(read_names) == (11 if change == "new" else 10)
    assert second.describe()["files"] != first.describe()["files"]
    assert len(second) == {"content": 8, "same size": 7, "new": 9, "repaired": 9}[change]
    assert len(messages) == 2


def test_archives_are_read_once(photos, tmp_path, read_names):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in photos.iterdir():
            archive.write(path, path.name)
    first, messages = load(tmp_path / "photos.zip")
    assert len(messages) == 2
    read_names.clear()
    second, messages = load(tmp_path / "photos.zip")
    assert (read_names, messages) == ([], [])
    assert second.checksum == first.checksum


def test_the_run_lists_what_is_left_out(photos, tmp_path):
    data, _ = load(photos)
    run = qlae.train("qlae", data, out=tmp_path / "run", size="small", steps=2, num_latents=2, evaluate=False)
    left_out = json.loads((run.path / "left_out.json").read_text())
    assert left_out["broken.png"] == "not an image"
    assert left_out["phone.heic"] == "its format is not read"
    assert len(left_out) == 3


def test_data_prepared_under_a_name_know_what_was_left_out(photos):
    load("holiday", path=photos)
    again, messages = load("holiday")
    assert (sorted(again.left_out), messages) == (["broken.png", "cut.jpg", "phone.heic"], [])
