"""Short updates of small networks use one thread, and idle threads sleep."""

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import qlae
from qlae._process import WAITING, idle_threads_sleep
from qlae.runs import checkpoint

QUICK = {"steps": 4, "batch_size": 4, "num_latents": 2, "device": "cpu", "evaluate": False}


class Threads(qlae.Callback):
    """Notes the number of threads during a training."""

    def on_log(self, step, row):
        self.number = torch.get_num_threads()


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ((20, 5), {"size": "small"}, 1),
        ((20, 5), {"size": "small", "threads": 2}, 2),
        ((20, 5), {"size": "full"}, 2),
        ((20, 40, 40, 1), {"size": "small"}, 2),  # more than 1,024 numbers
        ((20, 16, 16, 3), {"size": "small"}, 2),  # the paper's images
    ],
)
def test_short_updates_use_one_thread(shape, options, expected, tmp_path, rng):
    array = (255 * rng.random(shape)).astype(np.uint8 if len(shape) == 4 else np.float64)
    note, before = Threads(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        qlae.train("ae", array, out=tmp_path / "run", callbacks=[note], show=False, **QUICK | options)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert note.number == expected


def num_threads_of_process():
    return len(list(Path("/proc/self/task").iterdir()))


def second_pools():
    return [thread for thread in threading.enumerate() if thread.name == "qlae-second-pool"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have another OpenMP")
def test_idle_threads_sleep_while_the_process_has_more_threads_than_cores(monkeypatch):
    for name in WAITING:
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    with idle_threads_sleep():
        pools = second_pools()
        assert len(pools) == 1
        with idle_threads_sleep():
            assert second_pools() == pools
        assert second_pools() == pools
        assert num_threads_of_process() > os.cpu_count()
        assert torch.get_num_threads() == before
    assert (second_pools(), torch.get_num_threads()) == ([], before)
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # as the command line does: they sleep already
    with idle_threads_sleep():
        assert second_pools() == []


def test_a_resumed_run_keeps_its_number_of_threads(tmp_path, rng):
    array, note = rng.random((20, 5)), Threads()
    qlae.train("ae", array, out=tmp_path / "run", show=False, threads=2, **QUICK)
    assert checkpoint.load(tmp_path / "run").state["threads"] == 2
    qlae.train("ae", array, out=tmp_path / "run", show=False, callbacks=[note], **QUICK | {"steps": 8})
    assert note.number == 2
