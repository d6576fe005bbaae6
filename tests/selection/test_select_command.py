"""``qlae select`` from the command line."""

import json

import pytest
from selection_runs import write_mixed

from qlae.cli import main


def run_command(*arguments):
    with pytest.raises(SystemExit) as end:
        main(["select", *map(str, arguments)])
    return end.value.code


def test_prints_the_table_and_names_the_run(tmp_path, capsys):
    write_mixed(tmp_path)
    (tmp_path / "bad2" / "results.json").unlink()
    assert run_command(tmp_path, "--quiet") == 0
    out = capsys.readouterr().out
    assert "shapes3d, 5 runs" in out
    assert f"Take {tmp_path / 'good'}" in out
    assert f"Skipped: {tmp_path / 'bad2'} has neither results nor a checkpoint; resume it with" in out
    assert "Agreement of unrelated runs: 0.0" in out


def test_suggests_only_what_the_run_has(tmp_path, capsys):
    good, _ = write_mixed(tmp_path, num_good=3, num_bad=0)
    assert run_command(tmp_path, "--quiet") == 0
    out = capsys.readouterr().out
    taken = next(run for run in good if f"Take {run.path}:" in out)
    assert f"{taken.path} has no checkpoint, so `qlae explore` cannot open it." in out
    assert "Next:" not in out
    taken.pictures_path.touch()
    assert run_command(tmp_path, "--quiet") == 0
    assert f"cannot open it. Next: qlae report {taken.path}" in capsys.readouterr().out
    (taken.path / "checkpoint.json").write_text('{"state": {"step": 100}}')
    assert run_command(tmp_path, "--quiet") == 0
    assert f"Next: qlae explore {taken.path}" in capsys.readouterr().out


def test_names_the_files_that_it_wrote(tmp_path, capsys):
    write_mixed(tmp_path / "runs")
    table, picture = tmp_path / "table.txt", tmp_path / "agreement.svg"
    assert run_command(tmp_path / "runs", "--quiet", "--csv", table, "--plot", picture) == 0
    out = capsys.readouterr().out
    assert f"Table as CSV: {table}" in out
    assert f"Picture: {picture}" in out


def test_json_csv_and_picture(tmp_path, capsys):
    runs = tmp_path / "runs"
    write_mixed(runs)
    table, picture = tmp_path / "table.csv", tmp_path / "agreement.png"
    assert run_command(runs, "--json", "--csv", table, "--plot", picture) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["take"].startswith(str(runs / "good"))
    assert len(table.read_text().splitlines()) == 7
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_errors_are_one_line(tmp_path, capsys):
    write_mixed(tmp_path, num_good=1, num_bad=0)
    assert run_command() == 2
    assert "name the runs to compare" in capsys.readouterr().err
    assert run_command(tmp_path) == 2
    assert "at least two finished runs" in capsys.readouterr().err
    assert run_command(tmp_path, "--near-db", "-1") == 2
    assert "--near-db -1 must not be negative" in capsys.readouterr().err
    assert run_command(tmp_path, "--plot", tmp_path / "picture.txt") == 2
    assert "a picture is a .png, .svg or .pdf" in capsys.readouterr().err
    assert run_command(tmp_path, "--csv", tmp_path / "nowhere" / "table.csv") == 2
    assert "--csv takes a file in a folder that exists" in capsys.readouterr().err
