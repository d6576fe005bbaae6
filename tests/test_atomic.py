"""Files appear complete or not at all, also with two writers and on a full disk."""

import errno
import multiprocessing
import os

import numpy as np
import pytest

from qlae._io import write_bytes, write_npz, write_whole


def write_often(path, number, times):
    for _ in range(times):
        write_npz(path, numbers=np.full(2_000, number))


def test_two_writers_leave_one_complete_file(tmp_path):
    path = tmp_path / "sample.npz"
    write_often(path, 0, 1)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_often, args=(path, number, 100)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    read = 0
    while any(writer.is_alive() for writer in writers):
        with np.load(path, allow_pickle=False) as arrays:
            assert len(set(arrays["numbers"].tolist())) == 1
        read += 1
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert read > 10
    assert [p.name for p in tmp_path.iterdir()] == ["sample.npz"]


def test_a_failed_write_leaves_the_old_file_and_names_it(tmp_path):
    path = tmp_path / "old.txt"
    write_bytes(path, b"old")

    def fail(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: '.*old.txt'"):
        write_whole(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_remains_of_a_killed_writer_are_removed(tmp_path):
    old, others = tmp_path / ".x.txt.0123.tmp", tmp_path / ".y.txt.0123.tmp"
    new = tmp_path / ".x.txt.4567.tmp"  # perhaps of a process that is writing it
    for path in (old, new, others):
        path.write_bytes(b"a beginning")
    for path in (old, others):
        os.utime(path, (0, 0))
    write_bytes(tmp_path / "x.txt", b"new")
    assert (tmp_path / "x.txt").read_bytes() == b"new"
    assert sorted(p.name for p in tmp_path.iterdir()) == [new.name, others.name, "x.txt"]


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    path = tmp_path / "folder" / "results.json"
    path.parent.mkdir()
    path.symlink_to(outside)
    (path.parent / "results.json.tmp").symlink_to(outside)
    write_bytes(path, b"new")
    assert outside.read_bytes() == b"precious"
    assert not path.is_symlink()
    assert path.read_bytes() == b"new"
