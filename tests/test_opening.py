"""Only regular files are read, and only files of our own are written to."""

import os
import socket
import subprocess
import sys

import pytest

from qlae._directory_lock import locked_directory
from qlae._files import read_json, read_npy, read_npz
from qlae._opening import create_new, open_own, open_regular, read_regular
from qlae.data.files import read_files
from qlae.data.user_images import read_user_images
from qlae.runs.checkpoint import load
from qlae.runs.directory import Run

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("read", [read_json, read_npy, read_npz, read_regular, read_user_images])
def test_a_pipe_is_an_error_and_does_not_block(pipe, read):
    with pytest.raises(ValueError, match=r"pipe is a named pipe, not a regular file"):
        read(pipe)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".zip", ".tar.gz"])
def test_a_pipe_called_like_data_does_not_block(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    os.mkfifo(path)
    with pytest.raises(ValueError, match="is a named pipe, not a regular file"):
        read_user_images(path)
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
        command = [sys.executable, "-m", "qlae.cli", *words]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 2
        assert "not a regular file" in ended.stderr
        assert "Traceback" not in ended.stderr
