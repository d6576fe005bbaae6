"""Only regular files are read, and only files of our own are written to."""

import os
import socket
import subprocess
import sys

import pytest

import qlae
from qlae._io import create_new, locked_directory, open_own, open_regular, read_json, read_npy, read_npz, read_regular
from qlae.data import cache, data_spec, load_data
from qlae.data.image_files import read_source_table
from qlae.data.published import read_files
from qlae.runs.checkpoint import load
from qlae.runs.directory import Run
from qlae.study import StudyFolder
from qlae.study.local import LocalEngine
from qlae.study.plan import read_plan

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("read", [read_json, read_npy, read_npz, read_regular, load_data])
def test_a_pipe_is_an_error_and_does_not_block(pipe, read):
    with pytest.raises(ValueError, match=r"pipe is a named pipe, not a regular file"):
        read(pipe)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".zip", ".tar.gz"])
def test_a_pipe_called_like_data_does_not_block(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    os.mkfifo(path)
    with pytest.raises(ValueError, match="is a named pipe, not a regular file"):
        data_spec(path).image_set()
    if suffix == ".npz":
        with pytest.raises(ValueError, match="is a named pipe, not a regular file"):
            read_files("mpi3d", path)


def test_devices_sockets_and_folders_are_errors(tmp_path):
    with pytest.raises(ValueError, match="/dev/zero is a device, not a regular file"):
        read_regular("/dev/zero")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener, pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)  # the path of a socket must be short
        listener.bind("s")
        with pytest.raises(ValueError, match="s is a socket or a device, not a regular file"):
            open_regular("s")


def test_links_are_followed_for_reading_only(tmp_path):
    outside, link = tmp_path / "outside", tmp_path / "link"
    outside.write_bytes(b"precious")
    link.symlink_to(outside)
    assert read_regular(link) == b"precious"
    with pytest.raises(ValueError, match="link is a symbolic link, which would lead outside its folder; remove it"):
        open_own(link)
    hard = tmp_path / "hard"
    os.link(outside, hard)
    with pytest.raises(ValueError, match="hard is a hard link to another file"):
        open_own(hard)
    with pytest.raises(FileExistsError):
        create_new(link)
    assert outside.read_bytes() == b"precious"


def test_a_lock_does_not_follow_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(outside)
    with pytest.raises(ValueError, match=r"\.lock is a symbolic link"), locked_directory(tmp_path / "run", "busy"):
        pass
    assert outside.read_bytes() == b"precious"


def test_a_log_does_not_follow_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    (tmp_path / "log.jsonl").symlink_to(outside)
    with pytest.raises(ValueError, match=r"log.jsonl is a symbolic link"):
        Run(tmp_path).append_log({"step": 1})
    assert outside.read_bytes() == b"precious"


def test_a_checkpoint_that_is_a_pipe_or_a_device_is_damaged(tmp_path):
    os.mkfifo(tmp_path / "checkpoint.json")
    with pytest.raises(ValueError, match="no checkpoint is intact"):
        load(tmp_path)


def test_commands_end_at_once(tmp_path, pipe):
    """In processes of their own, which a blocked read would keep for ever."""
    for words in (["data", "prepare", "own", "--from", str(pipe)], ["data", "prepare", "own", "--from", "/dev/zero"]):
        command = [sys.executable, "-m", "qlae", *words]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 2
        assert "not a regular file" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_the_log_of_a_worker_follows_no_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    (tmp_path / "worker-0.log").symlink_to(outside)
    with pytest.raises(ValueError, match=r"worker-0\.log is a symbolic link"):
        LocalEngine(1, device="cpu").start_worker(0, StudyFolder(tmp_path))
    assert outside.read_bytes() == b"precious"


def test_an_unfinished_cache_entry_follows_no_link(tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "images.u8").write_bytes(b"precious")
    monkeypatch.setenv("QLAE_CACHE", str(tmp_path / "cache"))
    facts = {"name": "x", "origin": "rendered", "resolution": 2, "num_images": 1}
    facts |= {"source_names": [], "source_sizes": []}
    partial = tmp_path / "cache" / (cache.entry_key(facts) + cache.PARTIAL)
    partial.parent.mkdir()
    partial.symlink_to(outside)
    with pytest.raises(ValueError, match="is a symbolic link, which would lead outside the cache"):
        cache.build(facts, lambda images: cache.Content(facts))
    assert (outside / "images.u8").read_bytes() == b"precious"


def test_a_pipe_called_like_a_plan_or_a_table_does_not_block(tmp_path):
    for name in ("plan.toml", "sources.csv"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match="is not a file"):
        read_plan(tmp_path / "plan.toml")
    with pytest.raises(ValueError, match="is not a file"):
        read_source_table(tmp_path / "sources.csv", ["a.png"])


def test_a_pipe_called_like_a_model_card_does_not_block(tmp_path, tiny_data):
    run = qlae.train("qlae", tiny_data, out=tmp_path / "run", size="small", steps=1, show=False, evaluate=False)
    model = qlae.load(run.path)
    folder = model.save_pretrained(tmp_path / "export")
    (folder / "README.md").unlink()
    os.mkfifo(folder / "README.md")
    with pytest.raises(ValueError, match=r"README\.md is a named pipe"):
        model.save_pretrained(folder)
