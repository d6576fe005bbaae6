"""``qlae consensus`` from the command line."""

import json

import numpy as np
import pytest
from selection_runs import disentangled, entangled, write_mixed, write_run

from qlae.cli import main
from qlae.selection.consensus import consensus
from qlae.selection.consensus_picture import consensus_figure


def run_command(*arguments):
    with pytest.raises(SystemExit) as end:
        main(["consensus", *map(str, arguments)])
    return end.value.code


def test_prints_factors_scores_and_verdict(tmp_path, capsys):
    write_mixed(tmp_path)
    (tmp_path / "bad2" / "results.json").unlink()
    assert run_command(tmp_path, "--quiet") == 0
    out = capsys.readouterr().out
    assert "shapes3d, 5 runs, 320 images, averaged weights" in out
    assert out.count(" of 5 ") == 3
    assert "Scores by the sources, which the consensus never uses" in out
    assert f"Skipped: {tmp_path / 'bad2'} has neither results nor a checkpoint" in out
    assert "Consensus: 3 factors" in out
    assert "add --out DIR" in out


def test_writes_the_files_and_names_them(tmp_path, capsys):
    write_mixed(tmp_path / "runs", num_bad=0)
    assert run_command(tmp_path / "runs", "--out", tmp_path / "new" / "out", "--quiet") == 0
    assert "out: consensus.json, codes.npz, factors.png, index.html" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == [
        *("codes.npz", "consensus.json", "factors.png", "index.html")
    ]
    codes = np.load(tmp_path / "new" / "out" / "codes.npz")
    assert codes["codes"].shape == (320, 3)
    assert "has no checkpoint" in (tmp_path / "new" / "out" / "index.html").read_text()  # runs written by hand
    assert run_command(tmp_path / "runs", "--out", tmp_path / "new" / "out", "--quiet") == 0  # replaces its own files


def test_json_is_all_that_is_printed(tmp_path, capsys):
    write_mixed(tmp_path, num_bad=0)
    assert run_command(tmp_path, "--json", "--quiet") == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in content["factors"]] == ["confirmed"] * 3
    assert content["verdict"].startswith("Consensus: 3 factors")
    assert content["factors"][0]["counterparts"]["good1"]["found"] is True


def test_runs_that_differ_have_no_consensus(tmp_path, capsys):
    for seed in range(4):
        write_run(tmp_path / f"s{seed}", lambda sources, s: np.random.default_rng(s).integers(4, size=(320, 3)), seed)
    assert run_command(tmp_path, "--quiet") == 0
    assert "No consensus" in capsys.readouterr().out


def test_bad_input_is_one_line(tmp_path, capsys):
    write_mixed(tmp_path / "runs", num_bad=0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    for arguments, message in (
        ([], "name the runs to compare"),
        ([tmp_path / "runs" / "good0"], "at least two finished runs"),
        ([tmp_path / "none"], "does not exist"),
        ([tmp_path / "runs", "--out", tmp_path / "full"], "full is not empty and holds no consensus"),
        ([tmp_path / "runs", "--out", tmp_path / "full" / "mine.txt"], "is a file"),
        ([tmp_path / "runs", "--out", tmp_path / "runs"], "is not empty and holds no consensus"),
    ):
        assert run_command(*arguments, "--quiet") == 2
        lines = capsys.readouterr().err.splitlines()
        assert message in lines[0]
        assert lines[0].startswith("qlae: ")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def texts_of(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_picture_names_every_counterpart_and_count(tmp_path):
    for seed in range(3):
        write_run(tmp_path / f"s{seed}", disentangled, seed)
    write_run(tmp_path / "s3", entangled, 3)
    found = consensus(tmp_path, show=False)
    texts = texts_of(consensus_figure(found))
    assert {"s0", "s1", "s2", "s3"} <= set(texts)
    for k, factor in enumerate(found.factors):
        assert f"f{k}" in texts
        assert texts.count(f"z{factor.latent}") >= 1
        assert f"{factor.num_found} of 4" in texts
    assert any(text.startswith("Consensus") for text in texts)
    assert not any(text.startswith("Consensus") for text in texts_of(consensus_figure(found, has_title=False)))


def test_the_picture_of_long_names_and_many_runs_is_drawn(tmp_path):
    for seed in range(12):
        write_run(tmp_path / f"a_run_with_a_long_name_and_a_$_{seed}", disentangled, seed)
    figure = consensus_figure(consensus(tmp_path, show=False))
    figure.savefig(tmp_path / "picture.png")
    assert figure.get_size_inches()[0] > 8
