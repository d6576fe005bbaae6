"""``qlae demo`` trains two models and shows how to go on; ``make demo`` calls it."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_demo(tmp_path):
    command = [sys.executable, "-m", "qlae", "demo", "--resolution", "8", "--steps", "20"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "seconds in total" in done.stdout
    assert f"explore {tmp_path / 'qlae'}" in done.stdout
    for model in ("qlae", "ae"):
        assert model in done.stdout
        assert json.loads((tmp_path / model / "results.json").read_text())["steps"] == 20
        assert (tmp_path / model / "interventions.png").exists()


def test_a_training_that_fails_ends_the_demo(tmp_path):
    command = [sys.executable, "-m", "qlae", "demo", "--resolution", "7", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "resolution must be an integer from 8" in done.stderr
    assert "seconds in total" not in done.stdout


def test_without_torch_the_demo_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import qlae.cli; qlae.cli.main(['demo'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "qlae: qlae demo needs torch, and only the metrics of qlae are installed: pip install 'qlae[train]'\n"
    )


def test_make_demo_calls_it():
    assert "$(BIN)/qlae demo --seed $(SEED)" in (ROOT / "Makefile").read_text()
