"""The verb `study`, and `evaluate --bootstrap`: whole commands, and one clear line for bad input."""

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from study_fixtures import TINY, InlineEngine

from qlae.cli import main
from qlae.scoring.fidelity import Psnr
from qlae.scoring.sample import by_sample_size
from qlae.study import StudyFolder, run_study, worker

pytestmark = pytest.mark.filterwarnings("ignore")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return stop.value.code


def test_a_dry_run_lists_all_runs_and_executes_nothing(tmp_path, capsys):
    assert run("study", "paper-quick", "--out", str(tmp_path / "x"), "--dry-run") == 0
    out = capsys.readouterr().out
    assert "1. tune: 24 runs" in out
    assert "   shapes3d/qlae/weight-decay-0.1-s0  2,500 updates" in out
    assert "   isaac3d/qlae/(selected value)-s4  2,500 updates" in out
    assert "66 runs" in out
    assert "To estimate the time of one of them on this machine: qlae train MODEL … --dry-run" in out
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["papper"], "unknown plan 'papper': did you mean \"paper\""),
        (["status"], "name the study: qlae study status FOLDER"),
        (["status", "/nowhere"], "is not a study: it does not exist"),
        (["paper", "somewhere"], "give the folder with --out"),
        (["paper-quick", "--workers", "0"], "workers must be at least 1, got 0"),
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
    low, high = Psnr.intervals({"psnr": values}, 2000)["psnr"]
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


def lines_of(capsys, *arguments: str) -> list[list[str]]:
    """Return the commands that ``qlae study … --list`` prints, without the program."""
    capsys.readouterr()
    assert run("study", *arguments, "--list", "--device", "cpu") == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert all(command[:4] == [sys.executable, "-m", "qlae", "study"] for command in commands)
    return [command[3:] for command in commands]


def test_a_list_of_commands_ends_with_the_same_tables_as_the_study(tmp_path, capsys, monkeypatch):
    """The commands run in any order, from any directory and more than once; tuning and reruns are two lists."""
    (tmp_path / "plan.json").write_text(json.dumps(TINY))
    plan, listed, driven = (str(tmp_path / name) for name in ("plan.json", "listed", "driven"))
    tuning = lines_of(capsys, plan, "--out", listed)
    names = [command[command.index("--run") + 1] for command in tuning]
    assert names == [
        f"shapes3d/{rest}" for rest in ("qlae/weight-decay-0.1-s0", "qlae/weight-decay-0.3-s0", "ae/s1", "ae/s2")
    ]
    monkeypatch.chdir("/")
    for command in [*reversed(tuning), tuning[0]]:
        assert run(*command) == 0
    reruns = lines_of(capsys, listed)
    assert [command[command.index("--run") + 1].rpartition("-")[2] for command in reruns] == ["s1", "s2"]
    for command in reruns:
        assert run(*command) == 0
    assert lines_of(capsys, listed) == []
    assert run("study", listed, "--workers", "1", "--device", "cpu", "--quiet") == 0  # nothing is left but the report
    assert run("study", plan, "--out", driven, "--workers", "1", "--device", "cpu", "--quiet") == 0
    tables = [Path(folder, "report", "tables.md").read_text() for folder in (listed, driven)]
    assert tables[0] == tables[1]


def test_one_run_says_how_it_ended(tmp_path, capsys):
    plan = TINY | {"rerun_seeds": 1, "models": {"ae": {"grid": [], "learning_rate": 1e30}}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    ((*command,),) = lines_of(capsys, str(tmp_path / "plan.json"), "--out", str(tmp_path / "x"))
    assert run(*command) == 1
    assert "failed shapes3d/ae/s1: TrainingDiverged" in capsys.readouterr().out
    assert lines_of(capsys, str(tmp_path / "x")) == []
    assert len(lines_of(capsys, str(tmp_path / "x"), "--retry-failed")) == 1
    assert run("study", str(tmp_path / "x"), "--run", "shapes3d/ae/s9") == 2
    assert "has no run shapes3d/ae/s9" in capsys.readouterr().err


def test_a_run_that_another_process_holds_is_left_to_it(tmp_path, capsys, monkeypatch):
    (tmp_path / "plan.json").write_text(json.dumps(TINY | {"rerun_seeds": 1, "models": {"ae": {"grid": []}}}))
    ((*command,),) = lines_of(capsys, str(tmp_path / "plan.json"), "--out", str(tmp_path / "x"))
    monkeypatch.setattr(worker, "LOCK_SECONDS", 0.0)
    with StudyFolder(tmp_path / "x").run("shapes3d/ae/s1").locked():
        assert run(*command) == 1
        assert "busy shapes3d/ae/s1: another process is running it" in capsys.readouterr().out
        state = run_study(StudyFolder(tmp_path / "x").plan, tmp_path / "x", InlineEngine())
        assert state.runs["shapes3d/ae/s1"].state == "running"
    assert not (tmp_path / "x/runs/shapes3d/ae/s1/failure.json").exists()
    assert run(*command) == 0
