"""The verb `study`, and `evaluate --bootstrap`: whole commands, and one clear line for bad input."""

import json

import numpy as np
import pytest
from study_fixtures import TINY

from qlae.cli import main
from qlae.scoring.resampling import by_sample_size, mean_interval

pytestmark = pytest.mark.filterwarnings("ignore")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return stop.value.code


def test_a_dry_run_lists_all_runs_and_executes_nothing(tmp_path, capsys):
    assert (
        run("study", "paper-quick", "--out", str(tmp_path / "x"), "--dry-run", "--workers", "2", "--device", "cpu") == 0
    )
    out = capsys.readouterr().out
    assert "1. tune: 24 runs" in out
    assert "   shapes3d/qlae/weight-decay-0.1-s0  2,500 updates" in out
    assert "   isaac3d/qlae/(selected value)-s4  2,500 updates" in out
    assert "66 runs" in out
    assert "with 2 workers, 1 CPU thread each" in out
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["papper"], "unknown plan 'papper': did you mean \"paper\""),
        (["status"], "name the study: qlae study status FOLDER"),
        (["status", "/nowhere"], "is not a study: it does not exist"),
        (["paper", "somewhere"], "give the folder with --out"),
        (["paper-quick", "--workers", "0"], "--workers must be at least 1, got 0"),
    ],
)
def test_bad_input_ends_in_one_line(arguments, message, capsys):
    assert run("study", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_bootstrap_gives_intervals_and_a_curve(tmp_path, capsys):
    small = ["--resolution", "16", "--sources", "floor hue", "wall hue", "shape", "--size", "small", "--quiet"]
    out = tmp_path / "run"
    assert run("train", "qlae", *small, "--steps", "60", "--device", "cpu", "--out", str(out), "--no-evaluate") == 0
    assert run("evaluate", str(out), "--bootstrap", "8", "--quiet", "--device", "cpu") == 0
    scores = json.loads((out / "results.json").read_text())["averaged"]
    for name in ("infom", "infoe", "infoc", "psnr"):
        low, high = scores["intervals"][name]
        assert low <= scores[name] <= high
    curve = scores["by_sample_size"]
    assert curve["sizes"] == [50, 100, 200, 400]
    assert curve["scores"]["infom"][-1] == [pytest.approx(scores["infom"])]
    assert (out / "sample-size.png").is_file()
    assert "95% intervals, 8 half samples" in capsys.readouterr().out
    assert run("evaluate", str(out), "--bootstrap", "-1", "--quiet") == 2
    assert "bootstrap is -1; give a whole number of at least 0" in capsys.readouterr().err


def test_a_curve_ends_at_the_whole_sample_and_is_seeded(rng):
    sources = rng.integers(0, 4, (1600, 2))
    whole = {"infom": 1.0}
    curve = by_sample_size(sources, sources, whole, metrics=["infomec"], protocol="paper")
    assert curve["sizes"] == [50, 100, 200, 400, 800, 1600]
    assert [len(values) for values in curve["scores"]["infom"]] == [5, 5, 5, 5, 5, 1]
    means = [np.mean(values) for values in curve["scores"]["infom"]]
    assert means[0] < means[4] <= 1.0  # independent sources seem to share information in small samples
    assert by_sample_size(sources, sources, whole, metrics=["infomec"], protocol="paper") == curve


def test_a_curve_takes_source_kinds_from_the_whole_sample_and_omits_missing_scores(rng):
    sources = np.column_stack([rng.integers(0, 40, 2000) / 10, rng.uniform(size=2000)])  # levels as floats
    latents = sources + 0.1 * rng.normal(size=(2000, 2))
    explicit = by_sample_size(
        sources, latents, {"infoe": 1.0}, metrics=["infomec"], protocol="paper", source_kinds=["discrete", "continuous"]
    )
    assert by_sample_size(sources, latents, {"infoe": 1.0}, metrics=["infomec"], protocol="paper") == explicit
    rare = np.zeros((2000, 1), np.int64)
    rare[:12] = 1
    curve = by_sample_size(rare, latents, {"infom": 1.0}, metrics=["infomec"], protocol="paper")
    counts = [len(values) for values in curve["scores"]["infom"]]
    assert counts[0] < 5
    assert counts[-2:] == [5, 1]


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution(rng):
    values = rng.normal(30.0, 2.0, 4000)
    low, high = mean_interval(values, 2000)
    assert (high - low) / 2 == pytest.approx(1.96 * 2.0 / np.sqrt(4000), rel=0.1)
    assert low < values.mean() < high


def test_a_small_study_from_the_command_line(tmp_path, capsys):
    plan = TINY | {"rerun_seeds": 1, "models": {"qlae": {"grid": []}, "ae": {"grid": []}}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    out = str(tmp_path / "x")
    assert run("study", str(tmp_path / "plan.json"), "--out", out, "--workers", "1", "--device", "cpu", "--quiet") == 0
    assert (tmp_path / "x" / "report" / "index.html").is_file()
    assert run("study", "status", out) == 0
    assert "2 done, 0 running, 0 failed, 0 waiting" in capsys.readouterr().out
    assert run("study", out, "--workers", "1", "--device", "cpu", "--quiet", "--no-report") == 0  # by its folder
    assert run("report", out) == 0
