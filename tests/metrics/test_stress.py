"""The stress suite: its data have the structure that they claim, and its table marks scores that mislead."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "stress.py"
SPEC = importlib.util.spec_from_file_location("stress", PATH)
stress = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stress)


def test_data_have_the_structure_they_claim() -> None:
    rng = np.random.default_rng(0)
    off_diagonal = ~np.eye(4, dtype=bool)
    for draw, correlation in ((stress.independent, 0.0), (stress.correlated, 0.5), (stress.continuous, 0.0)):
        found = np.corrcoef(draw(4000, rng).T)[off_diagonal]
        np.testing.assert_allclose(found, correlation, atol=0.06)
    assert np.bincount(stress.correlated(4000, rng)[:, 0]).min() > 400  # eight classes of equal size
    unit = rng.normal(size=(500, 4))
    mixed = stress.mixture(unit, rng)
    assert np.abs(np.corrcoef(unit.T, mixed.T)[:4, 4:]).max() < 0.99
    assert set(stress.WANTED) <= set(stress.ENCODERS)


@pytest.mark.filterwarnings("ignore")
def test_scores_that_mislead_are_marked(monkeypatch, tmp_path: Path) -> None:
    kept = ("exact copy", "noise")
    monkeypatch.setattr(stress, "ENCODERS", {name: stress.ENCODERS[name] for name in kept})
    results = stress.run(n=120, num_seeds=1)
    assert list(results) == list(stress.PROCESSES)
    scores = results["independent"]["noise"]
    assert scores["infom"] > 0.2 > scores["infom_corrected"] == 0.0
    assert stress.is_fooled("noise", "infom", scores["infom"])
    assert not stress.is_fooled("noise", "i", 0.2)  # chance is 1/8
    assert not stress.is_fooled("rotated", "infom", 0.5)
    table = stress.markdown(results)
    assert f"| noise | **{scores['infom']:.2f}** | 0.00 |" in table
    stress.plot(results, tmp_path / "stress.png")
    assert (tmp_path / "stress.png").read_bytes().startswith(b"\x89PNG")
