"""The stress suite: its data have the structure that they claim, and its table marks scores that mislead."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from qlae.cli import main
from qlae.metrics import register_metric, stress, unregister_metric

PATH = Path(__file__).parents[2] / "benchmarks" / "stress.py"
SPEC = importlib.util.spec_from_file_location("stress_benchmark", PATH)
benchmark = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(benchmark)


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
    monkeypatch.setattr(benchmark, "ENCODERS", {name: stress.ENCODERS[name] for name in kept})
    results = benchmark.run(n=120, num_seeds=1)
    assert list(results) == list(stress.PROCESSES)
    scores = results["independent"]["noise"]
    assert scores["infom"] > 0.2 > scores["infom_corrected"] == 0.0
    assert stress.is_fooled("noise", "infom", scores["infom"])
    assert not stress.is_fooled("noise", "i", 0.2)  # chance is 1/8
    assert not stress.is_fooled("rotated", "infom", 0.5)
    table = benchmark.markdown(results)
    assert f"| noise | **{scores['infom']:.2f}** | 0.00 |" in table
    benchmark.plot(results, tmp_path / "stress.png")
    assert (tmp_path / "stress.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_shows_conditional_infom_over_correlations() -> None:
    results = json.loads((PATH.parents[1] / "docs/metrics/correlations.json").read_text())["scores"]
    assert min(results["exact copy"]["infom_conditional"]) > 0.98 > 0.3 > results["exact copy"]["infom"][-1]
    assert max(results["rotated"]["infom_conditional"]) < 0.6
    assert max(results["noise"]["infom_conditional"]) == 0.0


def correlation(sources: np.ndarray, latents: np.ndarray) -> float:
    centred, other = sources - sources.mean(axis=0), latents - latents.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)[:, None] * np.maximum(np.linalg.norm(other, axis=0), 1e-9)
    return float(np.abs(centred.T @ other / lengths).max(axis=1).mean())


def test_a_good_metric_is_right_and_a_bad_one_wrong() -> None:
    register_metric("good")(correlation)
    register_metric("bad")(lambda sources, latents: 1.0)
    register_metric("broken", needs_discrete=True)(lambda sources, latents: np.linalg.inv(np.zeros((2, 2))))
    try:
        cases = stress.stress(["good", "bad", "broken"], num_samples=300, num_seeds=1)
    finally:
        for name in ("good", "bad", "broken"):
            unregister_metric(name)
    assert len(cases) == len(stress.ENCODERS) * (4 + 4 + 3)
    assert not [case for case in cases if case.key == "good" and case.is_wrong]
    bad = [case for case in cases if case.key == "bad" and case.is_wrong]
    assert {case.encoder for case in bad} == stress.NULL
    assert {case.wanted for case in bad} == {0.0}
    assert all(case.is_wrong and "LinAlgError" in case.problem for case in cases if case.key == "broken")
    tables = list(stress.stress_tables(cases))
    assert (
        tables[0].title == "good: wrong in 0 of 25 cases that have a right answer"
    )  # unregistered: the key is the title
    assert tables[1].title == "bad: wrong in 16 of 25 cases that have a right answer"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "a_metric_of_mine.py"
    path.write_text(
        "from qlae.metrics import register_metric\n\n"
        "@register_metric('always_1', title='Always')\ndef always(sources, latents):\n    return 1.0\n"
    )
    try:
        with pytest.raises(SystemExit) as ended:
            main(["metrics", "stress", str(path), "--num-samples", "50", "--seeds", "1"])
    finally:
        unregister_metric("always_1")
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert "Always: wrong in 16 of 25 cases" in shown
    assert "1.00 (should be 0)" in shown
    empty = tmp_path / "no_metric_here.py"
    empty.write_text("")
    with pytest.raises(SystemExit):
        main(["metrics", "stress", str(empty)])
    assert "registers no metric" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["metrics", "list"])
    assert "conditional_infomec" in capsys.readouterr().out
