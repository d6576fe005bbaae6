"""A scored run with names, an export and intervals, and copies of it to damage."""

import json
import shutil
import warnings

import pytest

import qlae
from qlae.runs.directory import Run


@pytest.fixture(autouse=True)
def quiet():
    """Damaged files are warned about, thousands of times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """Waiting for the disk would take most of the time, and reading does not depend on it."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(scope="session")
def run(tmp_path_factory, tiny_data):
    """A scored run with names, and an export beside it."""
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"size": "small", "num_values": 4, "batch_size": 8, "evaluate": False}
        qlae.train("qlae", tiny_data, out=folder, steps=100, show=False, **options)
        qlae.evaluate(folder, data=tiny_data, metrics=["infomec", "dci"], bootstrap=2, show=False)
    (folder / "names.json").write_text(json.dumps({"latents": {"0": "hue"}, "values": {"0": {"1": "red"}}}))
    qlae.load(folder).save_pretrained(folder.parent / "export")
    return Run(folder)


@pytest.fixture
def damaged(run, tmp_path):
    """A copy of the run, to damage."""
    return Run(shutil.copytree(run.path, tmp_path / "run"))


@pytest.fixture
def export(run, tmp_path):
    """A copy of the exported model, to damage."""
    return shutil.copytree(run.path.parent / "export", tmp_path / "export")
