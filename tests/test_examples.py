"""The examples run."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_digits(tmp_path):
    command = [sys.executable, str(EXAMPLES / "digits.py"), "--steps", "30", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (line.rpartition(": ") for line in done.stdout.splitlines())
    shares = {label.strip(): value for label, _, value in lines}
    assert float(shares["on all 64 pixels"]) > 0.9
    assert 0 <= float(shares["linear classifier on the codes"]) <= 1
    assert (tmp_path / "run" / "digits.png").stat().st_size > 500
