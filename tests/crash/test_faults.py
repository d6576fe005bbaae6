"""A checkpoint survives a failure of any single system call of its writing, and the end of the process there."""

import contextlib
import os

import pytest
import torch
from faults import KILLED, injected

from qlae._io import write_json
from qlae.runs import checkpoint
from qlae.runs.checkpoint import Checkpoint

MAX_CALLS = 60
NUM_SERIOUS = 5  # calls of one file without which it is not written: create, write, flush, fsync, rename


def made(step: int) -> Checkpoint:
    return Checkpoint({"weights.x": torch.full((50,), float(step))}, {"step": step})


def saved_twice(folder):
    """Save checkpoints 1 and 2, so that there is a previous one."""
    for step in (1, 2):
        checkpoint.save(folder, made(step))


def num_calls(folder) -> int:
    saved_twice(folder)
    with injected(-1, "EIO") as faults:
        checkpoint.save(folder, made(3))
    assert {"create", "write", "flush", "fsync", "rename"} == set(faults.calls)
    assert faults.count < MAX_CALLS
    return faults.count


def require_intact(folder, *steps) -> int:
    loaded = checkpoint.load(folder)
    step = loaded.state["step"]
    assert step in steps
    assert torch.equal(loaded.tensors["weights.x"], made(step).tensors["weights.x"])
    return step


@pytest.mark.filterwarnings("ignore:.*is damaged or incomplete:UserWarning")
@pytest.mark.parametrize("how", ["ENOSPC", "EIO"])
def test_a_failed_call_leaves_a_checkpoint(tmp_path, how):
    (tmp_path / "count").mkdir()
    count = num_calls(tmp_path / "count")
    for place in range(count):
        folder = tmp_path / str(place)
        folder.mkdir()
        saved_twice(folder)
        with injected(place, how), contextlib.suppress(OSError):
            checkpoint.save(folder, made(3))
        require_intact(folder, 2, 3)
        assert not list(folder.glob(".*.tmp"))  # nothing is left behind
        checkpoint.save(folder, made(4))
        assert require_intact(folder, 4) == 4


@pytest.mark.filterwarnings("ignore")  # of forking a process that has threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_the_end_of_the_process_at_any_call_leaves_a_checkpoint(tmp_path):
    (tmp_path / "count").mkdir()
    count = num_calls(tmp_path / "count")
    steps = []
    for place in range(count):
        folder = tmp_path / str(place)
        folder.mkdir()
        saved_twice(folder)
        if (child := os.fork()) == 0:
            with injected(place, "kill"):
                checkpoint.save(folder, made(3))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
        steps.append(require_intact(folder, 2, 3))
        checkpoint.save(folder, made(4))
        assert require_intact(folder, 4) == 4
    assert steps[0] == 2
    assert steps[-1] == 3


@pytest.mark.parametrize("how", ["ENOSPC", "EIO"])
def test_json_is_old_or_new(tmp_path, how):
    path = tmp_path / "results.json"
    for place in range(NUM_SERIOUS + 1):  # the last call only makes the new name survive a power failure
        write_json(path, {"old": 1})
        named = pytest.raises(OSError, match=r"results\.json")
        with injected(place, how), named if place < NUM_SERIOUS else contextlib.nullcontext():
            write_json(path, {"new": 2})
        assert path.read_text() in ('{\n  "old": 1\n}\n', '{\n  "new": 2\n}\n')
        assert [p.name for p in tmp_path.iterdir()] == ["results.json"]
