"""Data sets of a plan that are named by a path: labels, absolute paths, and studies that accept their own runs."""

import numpy as np
import pytest
from PIL import Image
from study_fixtures import InlineEngine, tiny_plan

from qlae.data.sources import BUILT_IN_SETS
from qlae.study import StudyFolder, run_study
from qlae.study.report import report_study


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A working directory with images, an array and a folder that is named like a data set."""
    rng = np.random.default_rng(0)
    for folder in ("photos", "sub/photos", "digits", "my photos", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    for number in range(12):
        Image.fromarray((255 * rng.random((16, 16, 3))).astype(np.uint8)).save(tmp_path / "photos" / f"{number}.png")
    np.save(tmp_path / "arr.npy", np.tanh(rng.normal(size=(40, 5))))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data_of(data):
    """Return the entries of the data sets except for their names, as the study's folder stores them."""
    tables = tiny_plan(data=data).content["data"]
    return {label: {key: entry for key, entry in table.items() if key != "name"} for label, table in tables.items()}


def test_a_study_over_paths_accepts_its_own_runs_from_any_directory(files, monkeypatch):
    plan = tiny_plan(data=["photos", "arr.npy"], models={"qlae": {"grid": []}}, num_latents=3, rerun_seeds=2)
    index = run_study(plan, files / "study", InlineEngine())
    assert {entry.state for entry in index.runs.values()} == {"done"}
    folder = StudyFolder(files / "study")
    tables = report_study(folder, show=False).with_name("tables.md").read_text()
    assert "Data: photos (real, 64×64" in tables
    assert "arr.npy (real, 5 features" in tables
    monkeypatch.chdir(files / "elsewhere")
    again = InlineEngine()
    run_study(folder.plan, folder.path, again)
    assert again.names == []


def test_names_that_are_paths_have_an_absolute_path_and_others_do_not(files):
    names = ["shapes3d", "photos", "arr.npy"]
    expected = {"shapes3d": {}, "photos": {"path": f"{files}/photos"}, "arr.npy": {"path": f"{files}/arr.npy"}}
    assert data_of(names) == expected
    assert data_of(["./photos/"]) == data_of([f"{files}/photos"]) == {"photos": {"path": f"{files}/photos"}}
    assert data_of({"photos": {"resolution": 16}}) == {"photos": {"resolution": 16, "path": f"{files}/photos"}}
    assert data_of({"mine": {"name": "photos"}}) == {"mine": {"path": f"{files}/photos"}}
    assert "digits" in BUILT_IN_SETS
    assert data_of(["digits"]) == {"digits": {}}  # a data set comes before a folder of its name
    assert data_of({"mine": {"name": "digits"}}) == {"mine": {}}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["photos", "sub/photos"], r"data has more than one photos; use .* \[data.other\]"),
        (["my photos"], r"labels name folders, .* got 'my photos'; choose a label, as in \[data.mine\]"),
        (["sub/none"], "there is no folder or file sub/none"),
        (["photos", "photos"], "data has more than one photos"),
    ],
)
def test_paths_that_cannot_be_labels_are_refused(files, names, message):
    with pytest.raises(ValueError, match=message):
        tiny_plan(data=names)
