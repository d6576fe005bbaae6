"""Photographs are read once: unchanged files are neither read nor reported again."""

import json
import os
import subprocess
import sys
import time
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

import qlae
from qlae.cli import main
from qlae.data import image_files
from qlae.data.archives import FolderFiles, ZipFiles


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Eight images, two files that are none, and a clock to which they are old."""
    monkeypatch.setattr(image_files, "FRESH_NS", -(10**12))
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
    assert len(read_names) == 10 + 8  # checked, then decoded
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
    name = {"content": "3.png", "same size": "3.png", "new": "9.png", "repaired": "broken.png"}[change]
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
    assert read_names[0] == name
    assert read_names.count("4.png") == 1  # decoded, not checked
    assert second.describe()["files"] != first.describe()["files"]
    assert len(second) == {"content": 8, "same size": 7, "new": 9, "repaired": 9}[change]
    assert len(messages) == (change == "same size")


def test_files_that_changed_just_now_are_not_trusted(photos, read_names, monkeypatch):
    monkeypatch.setattr(image_files, "FRESH_NS", 2 * 10**9)
    load(photos)
    read_names.clear()
    _, messages = load(photos)
    assert len(read_names) == 10
    assert messages == []  # but what was reported once is not reported again


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


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"made_with": {"format": 1}, "images": {"0.png": 3}}'])
def test_damaged_memory_is_ignored(photos, cache_folder, read_names, content):
    first, _ = load(photos)
    (store,) = (cache_folder / "checked").glob("*.json")
    kept = json.loads(store.read_text())
    store.write_text(content)
    read_names.clear()
    second, _ = load(photos)
    assert len(read_names) == 10
    assert second.describe() == first.describe()
    assert json.loads(store.read_text()) == kept


def test_clearing_everything_forgets_the_checks(photos, cache_folder, capsys):
    load(photos)
    with pytest.raises(SystemExit, match="0"):
        main(["data", "clear", "all"])
    assert not (cache_folder / "checked").exists()
    assert "freed" in capsys.readouterr().out


def test_a_cache_that_is_not_writable(photos, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QLAE_CACHE", str(tmp_path / "file"))
    from qlae.data import data_spec

    with pytest.warns(UserWarning, match="2 of 10 images"):
        assert data_spec(photos).image_set().num_images == 8


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


def test_a_second_process_waits_until_the_files_are_checked(photos, tmp_path):
    code = f"""
import os, sys, time, warnings
import qlae
from qlae.data import image_files
warnings.simplefilter("ignore")
def until_told(content):
    open({str(tmp_path / "begun")!r}, "w").close()
    while not os.path.exists({str(tmp_path / "go on")!r}):
        time.sleep(0.02)
image_files.FRESH_NS = -(10**12)
if sys.argv[1:]:
    image_files.require_readable = until_told
print(qlae.load_data({str(photos)!r}, resolution=8, progress=lambda done, total: None))
"""
    first = subprocess.Popen([sys.executable, "-c", code, "wait"], stderr=subprocess.DEVNULL)
    second = None
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        second = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        line = second.stderr.readline()
    finally:
        (tmp_path / "go on").touch()
        first.wait(60)
        if second is not None:
            second.communicate(timeout=60)
    assert line == f"qlae: process {first.pid} is reading the images in {photos}; waiting until it ends\n"
