"""The local engine with real worker processes that are killed or lose their driver."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from study_fixtures import TINY, tiny_plan

from qlae.study import StudyFolder, run_study
from qlae.study.folder import read_state
from qlae.study.local import LocalEngine

pytestmark = pytest.mark.filterwarnings("ignore")
STEPS = 600


def one_run(**changes):
    return tiny_plan(steps=STEPS, rerun_seeds=1, models={"qlae": {"grid": []}}, **changes)


def wait_for(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition did not become true in time"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in listing.stdout.split()]


def test_a_killed_worker_is_replaced_and_its_run_resumed(tmp_path):
    killed = []

    def kill_once(index):
        log = StudyFolder(tmp_path / "x").run("shapes3d/qlae/s1").log()
        if log and not killed:
            worker = next(pid for pid in children(os.getpid()) if "qlae.study.worker" in command_of(pid))
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    index = run_study(one_run(), tmp_path / "x", LocalEngine(1, device="cpu"), show=kill_once)
    assert killed
    assert [entry.state for entry in index.runs.values()] == ["done"]
    assert StudyFolder(tmp_path / "x").run("shapes3d/qlae/s1").results["steps"] == STEPS


def command_of(pid: int) -> str:
    return subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_driver_leaves_no_worker_and_the_same_command_resumes(tmp_path, how):
    models = {"qlae": {"grid": []}, "ae": {"grid": []}}
    (tmp_path / "plan.json").write_text(json.dumps(TINY | {"steps": STEPS, "rerun_seeds": 1, "models": models}))
    out = tmp_path / "x"
    command = [sys.executable, "-m", "qlae", "study", str(tmp_path / "plan.json"), "--out", str(out)]
    command += ["--workers", "2", "--device", "cpu", "--no-report"]
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    folder = StudyFolder(out)
    wait_for(lambda: all(folder.run(f"shapes3d/{model}/s1").log() for model in models))
    workers = children(driver.pid)
    assert len(workers) == 2
    driver.send_signal(how)
    assert driver.wait(timeout=60) != 0
    wait_for(lambda: not any("qlae.study.worker" in command_of(pid) for pid in workers))
    for model in models:  # workers save their runs on SIGTERM and when their parent is gone
        assert (folder.run(f"shapes3d/{model}/s1").path / "checkpoint.json").is_file()
    assert subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
    assert {run.state for run in read_state(folder.plan, folder).runs.values()} == {"done"}
    status = [sys.executable, "-m", "qlae", "study", "status", str(out)]
    assert "2 done, 0 running, 0 failed, 0 waiting" in subprocess.run(status, capture_output=True, text=True).stdout


def test_bad_numbers_are_rejected():
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        LocalEngine(0)
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        LocalEngine(1, threads=0)
