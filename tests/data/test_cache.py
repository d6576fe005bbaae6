"""The disk cache: complete or absent, resumable, visible, clearable."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from qlae._io import waiting_lock
from qlae.data import RenderedImages, cache, images_of, keep_on_disk, load_data

SMALL = {"resolution": 16, "sources": ["wall hue", "shape", "orientation"]}


def test_cached_images_are_found_again(cache_folder):
    data = load_data("shapes3d", **SMALL)
    assert not isinstance(data.images, np.memmap)
    seen = []
    kept = keep_on_disk(data, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (600, 600)
    again = load_data("shapes3d", **SMALL)
    assert isinstance(again.images, np.memmap)
    for found in (kept, again):
        assert np.array_equal(found.images, np.asarray(data.images))
        assert np.array_equal(found.sources, data.sources)
        assert found.describe() == data.describe()
    assert not isinstance(load_data("shapes3d", resolution=16).images, np.memmap)  # another selection of sources
    with pytest.raises((ValueError, OSError)):
        again.images[0] = 0


def test_images_of_uses_the_fastest_way(cache_folder, monkeypatch):
    data = load_data("shapes3d", **SMALL)
    rows = np.array([3, 599, 200])
    rendered = data.images[rows]
    assert np.array_equal(images_of(data, rows), rendered)
    asked = []
    monkeypatch.setattr(RenderedImages, "rows_on", lambda self, device, rows: asked.append(device) or rendered)
    assert np.array_equal(images_of(data, rows, "cuda:1"), rendered)
    assert asked == ["cuda:1"]
    keep_on_disk(data)
    monkeypatch.setattr(RenderedImages, "compute", lambda self, rows: pytest.fail("rendered a second time"))
    assert np.array_equal(images_of(data, rows), rendered)


def test_images_rendered_on_a_device_stay_there_on_request(monkeypatch):
    images = load_data("shapes3d", **SMALL).images
    first = images.render_on("cpu")
    assert images.render_on("cpu") is not first
    assert not images.is_kept_on("cpu")
    images.keeps = True
    kept = images.render_on("cpu")
    assert images.is_kept_on("cpu")
    rows = np.array([3, 599, 200])
    expected = images[rows]
    assert np.array_equal(images.rows_on("cpu", rows), expected)
    monkeypatch.setattr(RenderedImages, "compute", lambda *_, **__: pytest.fail("rendered a second time"))
    monkeypatch.setattr(RenderedImages, "on", lambda *_: pytest.fail("rendered a second time"))
    assert images.render_on("cpu") is kept
    assert np.array_equal(images.rows_on("cpu", rows), expected)


def test_a_random_sample_is_cached_with_its_sources():
    data = load_data("shapes3d", resolution=8, num_images=1500, continuous=True, correlated={("scale", "shape"): 0.5})
    kept = keep_on_disk(data)
    assert np.array_equal(kept.images, np.asarray(data.images))
    assert np.array_equal(
        load_data(
            "shapes3d", resolution=8, num_images=1500, continuous=True, correlated={("scale", "shape"): 0.5}
        ).sources,
        data.sources,
    )
    with pytest.raises(ValueError, match="only rendered images without noise can be cached on disk, got NoisyImages"):
        keep_on_disk(load_data("shapes3d", noise=0.1))


def test_an_interrupted_build_leaves_nothing_behind():
    data = load_data("shapes3d", **SMALL)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_on_disk(data, progress=stop)
    assert cache.entries() == []
    assert np.array_equal(keep_on_disk(data).images, np.asarray(data.images))


def test_a_killed_build_leaves_no_complete_entry(cache_folder):
    code = (
        "from qlae.data import load_data, keep_on_disk\n"
        "data = load_data('mpi3d', resolution=32, fixed={'camera height': 0, 'background color': 0})\n"
        "keep_on_disk(data, progress=lambda done, total: print(done, flush=True))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    (entry,) = cache.entries()
    assert not entry.is_complete
    data = load_data("mpi3d", resolution=32, fixed={"camera height": 0, "background color": 0})
    assert not isinstance(data.images, np.memmap)
    assert cache.clear("mpi3d") > 0  # the lock died with the process
    assert cache.entries() == []


def test_a_second_process_waits_for_the_first_and_uses_what_it_built(cache_folder, tmp_path):
    rendering = f"""
import os, time
from qlae.data import keep_on_disk, load_data
def until_told(done, total):
    open({str(tmp_path / "begun")!r}, "w").close()
    while not os.path.exists({str(tmp_path / "go on")!r}):
        time.sleep(0.02)
keep_on_disk(load_data("shapes3d", **{SMALL!r}), progress=until_told)
"""
    waiting = f"""
from qlae.data import keep_on_disk, load_data
print(len(keep_on_disk(load_data("shapes3d", **{SMALL!r}), progress=lambda done, total: print("rendered again"))))
"""
    first = subprocess.Popen([sys.executable, "-c", rendering])
    try:
        _wait_until((tmp_path / "begun").exists)
        with pytest.raises(ValueError, match=rf"process {first.pid} is writing shapes3d-.*: wait until it ends"):
            cache.clear("shapes3d")
        second = subprocess.Popen(
            [sys.executable, "-c", waiting], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = second.stderr.readline()
    finally:
        (tmp_path / "go on").touch()
        first.wait(60)
    output, errors = second.communicate(timeout=60)
    assert line == f"qlae: process {first.pid} is rendering shapes3d; waiting until it ends\n"
    assert (first.returncode, second.returncode, output, errors) == (0, 0, "600\n", "")


def test_ctrl_c_ends_the_waiting(cache_folder, tmp_path):
    key = cache.entry_key(load_data("shapes3d", **SMALL).describe())
    command = ["data", "render", "shapes3d", "--resolution", "16", "--sources", *SMALL["sources"]]
    code = f"from qlae.cli import main; main({command!r})"
    cache.cache_folder().mkdir(parents=True, exist_ok=True)
    with waiting_lock(cache.cache_folder() / f".{key}.lock", "testing"):
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        try:
            line = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=120)[1]
        finally:
            process.kill()  # if it is still waiting
    expected = f"qlae: process {os.getpid()} is rendering shapes3d; waiting until it ends\n"
    assert (process.returncode, line, rest) == (130, expected, "")


def _wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("damage", ["shorter", "longer", "no images", "other json", "no json fields", "no sources"])
def test_damaged_entries_are_errors(damage):
    keep_on_disk(load_data("shapes3d", resolution=8, num_images=5))
    (entry,) = cache.entries()
    images, info = entry.path / "images.u8", entry.path / "info.json"
    if damage == "shorter":
        os.truncate(images, 100)
    elif damage == "longer":
        images.write_bytes(images.read_bytes() + b"x")
    elif damage == "no images":
        images.unlink()
    elif damage == "other json":
        info.write_text("{")
    elif damage == "no json fields":
        info.write_text("{}")
    else:
        (entry.path / "sources.npy").unlink()
    with pytest.raises(ValueError, match=r"is damaged .*: remove it with `qlae data clear`"):
        load_data("shapes3d", resolution=8, num_images=5)


def test_a_full_disk_is_an_error_at_the_start(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"bytes do not fit on the disk of .*: make room, or set QLAE_CACHE"):
        keep_on_disk(load_data("shapes3d", **SMALL))
    assert cache.entries() == []


def test_an_unwritable_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QLAE_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises((ValueError, OSError), match=r"file"):
        keep_on_disk(load_data("shapes3d", **SMALL))


def test_sizes_and_clearing(cache_folder):
    assert cache.entries() == []
    assert cache.clear() == 0
    keep_on_disk(load_data("shapes3d", **SMALL))
    keep_on_disk(load_data("mpi3d", resolution=8, sources=["shape", "object color"]))
    names = {entry.key.split("-")[0]: entry for entry in cache.entries()}
    assert set(names) == {"shapes3d", "mpi3d"}
    assert names["shapes3d"].num_bytes >= 600 * 16 * 16 * 3
    (cache_folder / "mine.txt").write_text("not an entry")
    assert cache.clear("shapes3d") == names["shapes3d"].num_bytes
    assert [entry.key.split("-")[0] for entry in cache.entries()] == ["mpi3d"]
    cache.clear()
    assert (cache_folder / "mine.txt").exists()


def test_info_json_describes_the_images():
    keep_on_disk(load_data("shapes3d", **SMALL))
    (entry,) = cache.entries()
    info = json.loads((entry.path / "info.json").read_text())
    assert info["data"]["name"] == "shapes3d"
    assert info["data"]["renderer"] >= 1
    assert len(info["sha256"]) == 64
    assert sorted(p.name for p in entry.path.iterdir()) == ["images.u8", "info.json"]


def test_other_folders_are_not_cleared(cache_folder):
    keep_on_disk(load_data("shapes3d", **SMALL))
    others = ["thesis", "shapes3d-qlae-small-s0", "a-real-16", "b-real-16-0123456789ab.tar"]
    for name in others:
        (cache_folder / name).mkdir()
        (cache_folder / name / "info.json").write_text("{}")
    assert [entry.name for entry in cache.entries()] == ["shapes3d"]
    assert cache.clear() > 0
    assert sorted(path.name for path in cache_folder.iterdir() if path.is_dir()) == sorted(others)
