"""The examples run."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


REAL_DATA = {  # script: the package that brings its data
    "cells": "scanpy",
    "glucose": "bokeh_sampledata",
    "penguins": "palmerpenguins",
    "shuttle": "river",
    "spectra": "tensorly",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL_DATA)
def test_real_data(name, tmp_path):
    if importlib.util.find_spec(REAL_DATA[name]) is None:
        pytest.skip(f"pip install {REAL_DATA[name]}")
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--fast", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("R²")] == ["QLAE"]
    assert (tmp_path / "consensus" / "index.html").is_file()
    assert (tmp_path / "description" / "index.html").is_file()


def test_the_comparison_scores_held_out_rows_with_a_label(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    comparison = pytest.importorskip("comparison")
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=300)
    latents = np.stack([rng.normal(size=300), label.astype(float)], axis=1)
    rows = latents @ rng.normal(size=(2, 6))
    known, unseen = np.arange(200), np.arange(200, 300)
    methods = comparison.other_methods(rows, known, 2, 4, seed=0)
    assert methods["k-means"][1](unseen).shape == (100, 6)
    assert comparison.r2_score(rows[unseen], methods["PCA in steps"][1](unseen)) < 0.97
    label[250:] = -1  # never asked about
    for name in ("PCA", "ICA"):
        decoded = methods[name][1](unseen)
        scores = comparison.score(
            rows[unseen], decoded, latents, latents.astype(int), {"kind": label}, known, unseen, 0
        )
        assert scores["R²"] == pytest.approx(1)
        assert scores["kind: accuracy"] == 1
        assert scores["kind: best latent"] == pytest.approx(1)
    label[200:250] = rng.integers(3, size=50)
    decoded = np.zeros((100, 6))
    scores = comparison.score(rows[unseen], decoded, latents, latents.astype(int), {"kind": label}, known, unseen, 0)
    assert scores["R²"] < 0.01
    assert scores["kind: accuracy"] < 0.7
    assert scores["kind: best latent"] < 0.3
