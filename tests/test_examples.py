"""The examples run."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_demo(tmp_path):
    command = [sys.executable, str(EXAMPLES / "demo.py"), "--resolution", "8", "--steps", "20"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "seconds in total" in done.stdout
    for model in ("qlae", "ae"):
        assert model in done.stdout
        assert json.loads((tmp_path / model / "results.json").read_text())["steps"] == 20
        assert (tmp_path / model / "interventions.png").exists()


def test_digits(tmp_path):
    command = [sys.executable, str(EXAMPLES / "digits.py"), "--steps", "30", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (line.rpartition(": ") for line in done.stdout.splitlines())
    shares = {label.strip(): value for label, _, value in lines}
    assert float(shares["on all 64 pixels"]) > 0.9
    assert 0 <= float(shares["linear classifier on the codes"]) <= 1
    assert (tmp_path / "run" / "digits.png").stat().st_size > 500
