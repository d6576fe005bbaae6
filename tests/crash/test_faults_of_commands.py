"""Commands that fail to write a file leave no part of it under its name, name it, and succeed the next time."""

import numpy as np
import pandas as pd
import pytest
from faults import injected

import qlae

PLACES = (0, 1, 3, 4)  # create, write, fsync or another write, rename of the first file


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    frame.to_csv(folder / "t.csv", index=False)
    options = {"size": "small", "steps": 4, "batch_size": 8, "num_latents": 2, "device": "cpu", "evaluate": False}
    qlae.train("qlae", folder / "t.csv", out=folder / "run", show=False, **options)
    return folder / "run"


def encoded(run, folder):
    qlae.encode(run, out=folder / "codes.csv", show=False)


def exported(run, folder):
    qlae.load(run).save_pretrained(folder / "model")


@pytest.mark.parametrize("how", ["ENOSPC", "EIO"])
@pytest.mark.parametrize("command", [encoded, exported])
def test_a_failed_write_leaves_no_part_of_a_file(run, tmp_path, command, how):
    (whole := tmp_path / "whole").mkdir()
    command(run, whole)
    expected = {p.relative_to(whole): p.read_bytes() for p in whole.rglob("*") if p.is_file()}
    failed = 0
    for place in PLACES:
        (folder := tmp_path / str(place)).mkdir()
        try:
            with injected(place, how):
                command(run, folder)
        except OSError as error:
            failed += str(folder) in str(error)
        for path in folder.rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                assert path.read_bytes() == expected[path.relative_to(folder)]
        assert not list(folder.rglob("*.tmp"))
        if not (folder / "codes.csv").exists():
            command(run, folder)
        assert {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == expected
    assert failed == len(PLACES)
