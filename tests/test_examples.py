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
