"""Models that come with the package: found by name, checked, loaded, explored; a damaged one is refused."""

import hashlib
import json
import shutil

import numpy as np
import pytest

import qlae
from qlae.cli import main
from qlae.explorer import open_run
from qlae.pipeline import train
from qlae.runs import directory
from qlae.runs.directory import find_folder, is_shipped, shipped_folder, shipped_models
from qlae.runs.encode import encode_to_file
from qlae.runs.export import export_run
from qlae.runs.latent_names import names_file
from qlae.scoring.sample import rescore_run

MAX_BYTES = 3 * 2**20


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = qlae.load_data("shapes3d", resolution=16, sources=["floor hue", "shape"])
    folder = tmp_path_factory.mktemp("shipped") / "run"
    return train("qlae", data, out=folder, steps=120, size="small", batch_size=8, device="cpu", show=False)


@pytest.fixture
def folder_of_models(tmp_path, run, monkeypatch):
    """A folder of shipped models with one in it, in place of the package's."""
    folder = tmp_path / "models"
    export_run(run.path, folder / "tiny-qlae", half=True, num_samples=30)
    (folder / "tiny-qlae" / "names.json").write_text('{"latents": {"0": "floor"}, "values": {}}')
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "tiny-qlae").iterdir()}
    (folder / "models.json").write_text(json.dumps({"tiny-qlae": {"about": "for tests", "files": files}}))
    monkeypatch.setattr(directory, "shipped_folder", lambda: folder)
    monkeypatch.chdir(tmp_path)
    shipped_models.cache_clear()
    yield folder
    shipped_models.cache_clear()


def test_a_name_is_loaded_and_explored(folder_of_models, run, tmp_path):
    model, original = qlae.load("tiny-qlae"), qlae.load(run.path)
    images = qlae.load_data("shapes3d", resolution=16, sources=["floor hue", "shape"]).images[:]
    assert (model.encode(images) == original.encode(images)).mean() > 0.98
    assert np.abs(model.reconstruct(images).astype(int) - original.reconstruct(images)).max() <= 3
    exploration = open_run("tiny-qlae", show=False)
    assert len(exploration) == 30
    assert exploration.pictures([0]).shape == (1, 16, 16, 3)
    assert exploration.names.read()["latents"] == {"0": "floor"}


def test_names_are_kept_outside_of_the_package(folder_of_models, tmp_path):
    before = sorted(path.name for path in (folder_of_models / "tiny-qlae").iterdir())
    open_run("tiny-qlae", show=False).names.rename(1, None, "shape")
    assert sorted(path.name for path in (folder_of_models / "tiny-qlae").iterdir()) == before
    assert "shape" in names_file("tiny-qlae").read_text()
    assert "shape" not in (folder_of_models / "tiny-qlae" / "names.json").read_text()
    table = encode_to_file("tiny-qlae", tmp_path / "codes.csv", show=False).read_text()
    assert "floor,shape" in table.splitlines()[0]


def test_a_folder_of_the_same_name_comes_first(folder_of_models, run, tmp_path):
    assert is_shipped("tiny-qlae")
    shutil.copytree(run.path, tmp_path / "tiny-qlae")
    assert not is_shipped("tiny-qlae")
    assert find_folder("tiny-qlae") == (tmp_path / "tiny-qlae").relative_to(tmp_path)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "sample.npz"])
def test_a_damaged_file_is_refused(folder_of_models, file):
    path = folder_of_models / "tiny-qlae" / file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match=rf"{file} is missing or not the file that qlae was published with"):
        qlae.load("tiny-qlae")


@pytest.mark.parametrize("name", ["tiny-qale", "Tiny-QLAE"])
def test_a_misspelt_name_is_answered_with_the_nearest(folder_of_models, name):
    message = f'no run directory {name}, and no shipped model of this name: did you mean "tiny-qlae"[?] Known'
    with pytest.raises(ValueError, match=message):
        qlae.load(name)


def test_an_unknown_name_is_answered_with_all(folder_of_models):
    with pytest.raises(ValueError, match=r"no run directory dsprites-ae, and no .* name: known: tiny-qlae$"):
        qlae.load("dsprites-ae")
    with pytest.raises(ValueError, match="the path is empty; give a run directory or a shipped model: tiny-qlae"):
        qlae.load("")
    with pytest.raises(ValueError, match="runs/x is not a run directory: it does not exist"):
        qlae.load("runs/x")


def test_what_needs_a_run_directory_says_what_a_shipped_model_is_for(folder_of_models, capsys):
    message = "tiny-qlae is an exported model that comes with qlae, and this needs a run directory"
    for score in (qlae.evaluate, rescore_run):
        with pytest.raises(ValueError, match=f"{message}.*qlae encode tiny-qlae.* take the model"):
            score("tiny-qlae")
    for command in ("evaluate", "report"):
        with pytest.raises(SystemExit) as stop:
            main([command, "tiny-qlae"])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err


def test_an_export_without_a_sample_says_how_to_get_one(run, tmp_path):
    export_run(run.path, tmp_path / "plain")
    with pytest.raises(ValueError, match="export it again with --samples 1000"):
        open_run(tmp_path / "plain", show=False)
    with pytest.raises(ValueError, match="averaged weights"):
        export_run(run.path, tmp_path / "raw", num_samples=5, weights="raw")


def test_an_export_replaces_an_explorable_one(run, tmp_path):
    export_run(run.path, tmp_path / "model", num_samples=5)
    with np.load(tmp_path / "model" / "sample.npz") as sample, np.load(run.sample_path) as whole:
        assert (
            sample["indices"].tolist() == whole["indices"][[0, 10, 20, 29, 39]].tolist()
        )  # spread, since it is sorted
        assert sample["codes"].tolist() == whole["codes"][[0, 10, 20, 29, 39]].tolist()
    export_run(run.path, tmp_path / "model")
    assert not (tmp_path / "model" / "sample.npz").exists()


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_are_complete_and_small(name):
    folder = find_folder(name)
    files = {path.name for path in folder.iterdir()}
    assert files == set(shipped_models()[name]["files"])
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MAX_BYTES
    exploration = open_run(name, show=False)
    reconstructed = exploration.model.decode(exploration.codes[:16])
    error = (exploration.pictures(list(range(16))).astype(float) - reconstructed) / 255
    assert -10 * np.log10((error**2).mean()) > 18


@pytest.mark.parametrize("name", shipped_models())
def test_model_cards_say_how_a_model_was_chosen(name):
    assert f"\n{shipped_models()[name]['about']}.\n" in (find_folder(name) / "README.md").read_text()


def test_exploring_a_shipped_model_says_what_it_is(folder_of_models, capsys, monkeypatch):
    monkeypatch.setattr("qlae.explorer.explore", lambda *_, **__: None)
    with pytest.raises(SystemExit):
        main(["explore", "tiny-qlae", "--no-browser"])
    assert capsys.readouterr().out == "tiny-qlae: for tests\n"


def test_nothing_unlisted_is_shipped():
    there = {path.name for path in shipped_folder().iterdir() if path.is_dir()}
    assert there == set(shipped_models())
