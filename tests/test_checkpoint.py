"""Checkpoints: whole, matched by checksum, and honest about damage."""

import json
import os
import shutil
import warnings

import pytest
import torch

from qlae.runs import checkpoint
from qlae.runs.checkpoint import Checkpoint


def saved(directory, *steps: int) -> None:
    for step in steps:
        checkpoint.save(directory, Checkpoint({"w": torch.full((1000,), float(step))}, {"step": step}))


def loaded_step(directory) -> int:
    found = checkpoint.load(directory)
    assert torch.equal(found.tensors["w"], torch.full((1000,), float(found.state["step"])))
    return found.state["step"]


def test_nothing_saved_is_none(tmp_path):
    assert checkpoint.load(tmp_path) is None


def test_last_two_are_kept(tmp_path):
    saved(tmp_path, 1, 2, 3)
    assert loaded_step(tmp_path) == 3
    names = {"checkpoint.safetensors", "checkpoint.json", "previous.safetensors", "previous.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert json.loads((tmp_path / "previous.json").read_text())["state"]["step"] == 2


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def change_the_step(path):
    if path.suffix == ".json":
        path.write_text(path.read_text().replace('"step": 2', '"step": 9'))
    else:
        flip_a_byte(path)


@pytest.mark.parametrize("damage", [truncate, flip_a_byte, empty, change_the_step])
@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_damage_is_noticed_and_the_one_before_used(tmp_path, damage, suffix):
    saved(tmp_path, 1, 2)
    damage(tmp_path / f"checkpoint{suffix}")
    with pytest.warns(UserWarning, match=rf"checkpoint\{suffix}.* is damaged .* from the checkpoint of update 1"):
        assert loaded_step(tmp_path) == 1


def test_nothing_whole_is_an_error(tmp_path):
    saved(tmp_path, 1, 2)
    truncate(tmp_path / "checkpoint.safetensors")
    truncate(tmp_path / "previous.safetensors")
    with pytest.raises(ValueError, match=r"no checkpoint is intact .* start again in another folder"):
        checkpoint.load(tmp_path)


def test_a_kill_between_any_two_file_operations_loses_nothing(tmp_path, monkeypatch):
    """Stop ``save`` before each of its renames in turn: what is left loads, without a warning, as old or new."""
    replace, operations = os.replace, []
    base = tmp_path / "base"
    base.mkdir()
    saved(base, 1, 2)

    class Killed(BaseException):
        pass

    seen = set()
    for stop_at in range(20):
        directory = tmp_path / str(stop_at)
        shutil.copytree(base, directory)
        operations.clear()

        def replace_or_die(source, target, stop_at=stop_at):
            if len(operations) == stop_at:
                raise Killed
            operations.append((source, target))
            replace(source, target)

        monkeypatch.setattr(os, "replace", replace_or_die)
        finished = True
        try:
            saved(directory, 3)
        except Killed:
            finished = False
        monkeypatch.setattr(os, "replace", replace)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step = loaded_step(directory)
        seen.add(step)
        saved(directory, 4)  # and the next save works
        assert loaded_step(directory) == 4
        if finished:
            assert step == 3
            break
    assert len(operations) == 6  # two files written whole, four renamed
    assert seen == {2, 3}


def test_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    saved(tmp_path, 1)

    def no_space(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        saved(tmp_path, 2)
    assert loaded_step(tmp_path) == 1
    assert not list(tmp_path.glob("*.tmp"))
    assert not list(tmp_path.glob("next.*"))
