"""A run killed with SIGKILL, again and again at random moments, ends as one never killed: bit for bit."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torch

from qlae.runs import checkpoint
from qlae.runs.directory import Run

STEPS = 800
COMMAND = [
    *(sys.executable, "-m", "qlae", "train", "qlae", "--resolution", "16", "--sources", "floor hue", "shape"),
    *("--size", "small", "--batch-size", "8", "--steps", str(STEPS), "--device", "cpu"),
    *("--checkpoint-seconds", "0.05", "--no-evaluate", "--quiet"),
]


def start(out) -> subprocess.Popen:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*COMMAND, "--out", str(out)], env=environment, stdout=subprocess.DEVNULL)


def finish(out) -> None:
    assert start(out).wait(timeout=300) == 0


def final(out) -> tuple[dict, list[dict]]:
    rows = [json.loads(line) for line in Run(out).log_path.read_text().splitlines()]
    for row in rows:
        del row["seconds"]
    return checkpoint.load(Run(out).path).tensors, rows


def wait_for_checkpoint(out, process: subprocess.Popen) -> None:
    while not (out / "checkpoint.json").exists():
        assert process.poll() is None
        time.sleep(0.01)


def saved_step(out) -> int:
    """The step of the newest checkpoint; 0 while there is none, or while it is being renamed."""
    try:
        return json.loads((out / "checkpoint.json").read_text())["state"]["step"]
    except FileNotFoundError:
        return 0


def kill_after(step: int, out, moments: random.Random) -> int:
    """Start the run and kill it a moment after a checkpoint of that step or later; the step of the one that stays."""
    process = start(out)
    while saved_step(out) < step:
        assert process.poll() is None, "the run ended before it was killed"
        time.sleep(0.002)
    time.sleep(0.1 * moments.random())
    process.send_signal(signal.SIGKILL)
    process.wait()
    return checkpoint.load(out).state["step"]


@pytest.mark.filterwarnings("error")
def test_killed_at_random_moments(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    finish(whole)
    moments = random.Random(0)
    stayed = [kill_after(moments.randrange(low, low + 80), parts, moments) for low in (1, 180, 360, 540)]
    assert all(0 < step < STEPS for step in stayed), stayed
    assert stayed == sorted(set(stayed)), "each start went on from where the last one was killed"
    finish(parts)
    tensors, rows = final(whole)
    resumed_tensors, resumed_rows = final(parts)
    assert tensors.keys() == resumed_tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, resumed_tensors[name]), name
    assert rows == resumed_rows
    assert [row["step"] for row in rows] == list(range(100, STEPS + 1, 100))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_save_and_say_how_to_go_on(tmp_path, how):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [*COMMAND, "--out", str(out)], env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True
    )
    wait_for_checkpoint(out, process)
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + how
    assert f"saved in {out}. To continue, run the same command again" in errors
    assert "Traceback" not in errors
    finish(out)
    assert checkpoint.load(out).state["step"] == STEPS
