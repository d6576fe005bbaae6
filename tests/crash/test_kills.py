"""A run that is killed at a hundred random instants ends with the same bits as one that was never killed."""

import os
import random
import signal
import time

import pytest
import torch

import qlae
from qlae.runs import checkpoint
from qlae.runs.directory import Run

NUM_KILLS = 100
OPTIONS = {"size": "small", "batch_size": 8, "steps": 3000, "checkpoint_seconds": 0.02, "evaluate": False}


def train(out, data):
    qlae.train("qlae", data, out=out, show=False, threads=1, device="cpu", **OPTIONS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_hundred_kills(tmp_path, tiny_data):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    begun = time.monotonic()
    train(whole, tiny_data)
    seconds = time.monotonic() - begun
    source, num_kills = random.Random(0), 0
    while True:
        if (child := os.fork()) == 0:
            train(parts, tiny_data)
            os._exit(0)
        time.sleep(source.uniform(0.01, 3 * seconds / NUM_KILLS))
        if num_kills < NUM_KILLS:
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            break
        assert status == -signal.SIGKILL
        num_kills += 1
    assert num_kills > NUM_KILLS // 3  # the others would have come after the end
    first, second = checkpoint.load(whole), checkpoint.load(parts)
    assert first.tensors.keys() == second.tensors.keys()
    for name, tensor in first.tensors.items():
        assert torch.equal(tensor, second.tensors[name]), name
    rows = [[{k: v for k, v in row.items() if k != "seconds"} for row in Run(path).log()] for path in (whole, parts)]
    assert rows[0] == rows[1]
