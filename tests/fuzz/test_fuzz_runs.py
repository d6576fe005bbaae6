"""Readers of run directories and exported models survive damaged files: a result or one clear error, nothing else.

`make test` tries a few inputs per reader, `make test-fuzz` ten thousand. A failure names the input by
its number and seed.
"""

import functools
import json

import numpy as np
from fuzzing import NUM_INPUTS, fuzz, fuzz_bytes, fuzz_json, fuzz_npz
from mutations import damage_object

import qlae
from qlae._io import read_json, read_npy, read_npz, seal
from qlae.config import RunConfig
from qlae.explorer import open_run
from qlae.explorer.exploration import Condition, Exploration, find_matching, find_nearest
from qlae.metrics import score_file
from qlae.report import draw_pictures, intervals_table, results_table
from qlae.report.html_page import ReportFiles
from qlae.report.run_pictures import plot_curves
from qlae.runs import checkpoint
from qlae.runs.export import model_card, read_pretrained
from qlae.runs.latent_names import Names
from qlae.scoring.sample import rescore_run

BOTH = ("averaged", "raw")


def content_of(path):
    """The content without its checksum, so that the damage gets past it to the readers behind."""
    content = json.loads(path.read_text())
    content.pop("sha256", None)
    return content


def test_config(damaged):
    content = content_of(damaged.config_path)
    fuzz_json(damaged.config_path, content, lambda: damaged.config)
    fuzz("from_dict", functools.partial(damage_object, content), RunConfig.from_dict)


def test_a_model_from_a_damaged_config(damaged):
    fuzz_json(damaged.config_path, content_of(damaged.config_path), lambda: qlae.load(damaged.path))


def test_results(damaged):
    content = content_of(damaged.results_path)

    def read():
        results_table([damaged], weights=BOTH)
        if "intervals" in damaged.results["averaged"]:
            intervals_table(damaged)

    fuzz_json(damaged.results_path, content, read)


def test_results_in_pictures(damaged, monkeypatch):
    """The figures are built; drawing their pixels would be all of the time, and does not read anything."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, file, **_: None)
    content = content_of(damaged.results_path)
    fuzz_json(damaged.results_path, content, lambda: draw_pictures(damaged), num_inputs=max(10, NUM_INPUTS // 10))


def test_results_in_pixels(damaged):
    content = content_of(damaged.results_path)
    fuzz_json(damaged.results_path, content, lambda: draw_pictures(damaged), num_inputs=max(3, NUM_INPUTS // 100))


def test_results_in_the_explorer(damaged):
    opened = open_run(damaged.path, show=False)

    def read():
        json.dumps(Exploration(damaged, opened.model, None, damaged.path / "names.json").describe())

    fuzz_json(damaged.results_path, content_of(damaged.results_path), read)


def test_results_that_are_scored_again(damaged):
    original = damaged.results_path.read_bytes()
    rescore = functools.partial(rescore_run, damaged, show=False)
    fuzz_json(damaged.results_path, json.loads(original), rescore, num_inputs=max(10, NUM_INPUTS // 10))


def test_sample(damaged):
    opened = open_run(damaged.path, show=False)

    def read():
        exploration = Exploration(damaged, opened.model, None, damaged.path / "names.json")
        json.dumps(exploration.describe())
        json.dumps([exploration.sample(row) for row in range(len(exploration))])
        find_matching(exploration.codes, [Condition(0, [1])], 5)
        find_nearest(exploration.codes, exploration.codes[0], exploration.controls, 5)

    fuzz_npz(damaged.sample_path, read_npz(damaged.sample_path), read)


def test_sample_that_is_scored(damaged):
    arrays = read_npz(damaged.sample_path)
    results = damaged.results_path.read_bytes()

    def read():
        damaged.results_path.write_bytes(results)
        rescore_run(damaged, show=False)

    fuzz_npz(damaged.sample_path, arrays, read, num_inputs=max(10, NUM_INPUTS // 10))
    fuzz_npz(damaged.sample_path, arrays, lambda: score_file(damaged.sample_path), num_inputs=max(10, NUM_INPUTS // 10))


def test_sample_of_a_run_to_select(damaged, run):
    """A damaged run is left out with a reason, so that one run is left, or it can be compared."""

    def read():
        qlae.select([run.path, damaged.path], show=False)

    fuzz_npz(damaged.sample_path, read_npz(damaged.sample_path), read, num_inputs=max(10, NUM_INPUTS // 10))


def test_results_of_a_run_to_select(damaged, run):
    def read():
        qlae.select([run.path, damaged.path], show=False)

    fuzz_json(damaged.results_path, content_of(damaged.results_path), read, num_inputs=max(10, NUM_INPUTS // 10))


def test_pictures(damaged, monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, file, **_: None)
    arrays = read_npz(damaged.pictures_path)
    fuzz_npz(damaged.pictures_path, arrays, lambda: draw_pictures(damaged), num_inputs=max(10, NUM_INPUTS // 10))


def test_log(damaged, run):
    def read():
        damaged.log()
        damaged.trim_log(100)

    damaged.log_path.write_bytes(damaged.log_path.read_bytes() * 3)
    fuzz_bytes(damaged.log_path, read)
    fuzz_json(damaged.log_path, json.loads(run.log_path.read_text().splitlines()[0]), read)


def test_log_in_pictures(damaged, run):
    row = json.loads(run.log_path.read_text().splitlines()[0])

    def read():
        if log := damaged.log():
            plot_curves(log, "title")

    fuzz_json(damaged.log_path, row, read, num_inputs=max(10, NUM_INPUTS // 10))


def test_checkpoint(damaged):
    path = damaged.path / "checkpoint.json"
    fuzz_json(path, content_of(path), lambda: checkpoint.load(damaged.path))


def test_signed_manifest(damaged):
    """A manifest whose checksum is right, but whose content is not."""
    path = damaged.path / "checkpoint.json"
    manifest = content_of(path)

    def read(content):
        if isinstance(content, dict):
            content = seal(content)
        path.write_text(json.dumps(content))
        return qlae.load(damaged.path)

    fuzz("signed", functools.partial(damage_object, manifest), read)


def test_resumed_manifest(damaged, tiny_data):
    """Training goes on from a manifest whose checksum is right."""
    path = damaged.path / "checkpoint.json"
    manifest = content_of(path)

    def read(content):
        if isinstance(content, dict):
            content = seal(content)
        path.write_text(json.dumps(content))
        options = {"size": "small", "num_values": 4, "batch_size": 8, "evaluate": False, "steps": 101, "show": False}
        qlae.train("qlae", tiny_data, out=damaged.path, **options)

    fuzz("resumed", functools.partial(damage_object, manifest), read, num_inputs=max(5, NUM_INPUTS // 20))


def test_tensors(damaged):
    fuzz_bytes(damaged.path / "checkpoint.safetensors", lambda: checkpoint.load(damaged.path))


def test_names(damaged):
    path = damaged.path / "names.json"
    fuzz_json(path, content_of(path), lambda: json.dumps(Names(path, [4] * 4).read()))


def test_export_weights(export):
    fuzz_bytes(export / "model.safetensors", lambda: read_pretrained(export))


def test_export_config(export):
    fuzz_json(export / "config.json", content_of(export / "config.json"), lambda: read_pretrained(export))


def test_export_results_and_card(export):
    path = export / "results.json"
    fuzz_json(path, content_of(path), lambda: model_card(read_pretrained(export)[0]).encode())


def test_manifest_of_a_report(tmp_path):
    (tmp_path / "precious").write_text("x")
    folder = tmp_path / "report"
    folder.mkdir()

    def read():
        files = ReportFiles(folder)
        files.write("a.txt", b"")
        files.remove_outdated()
        assert (tmp_path / "precious").exists()

    fuzz_json(folder / "files.json", ["a.txt", "b.txt"], read)


def test_arrays(tmp_path):
    arrays = {"sources": np.arange(60).reshape(30, 2) % 3, "latents": np.arange(90.0).reshape(30, 3)}
    path = tmp_path / "x.npz"
    fuzz_npz(path, arrays, lambda: read_npz(path))
    np.savez_compressed(path, **arrays)
    fuzz_bytes(path, lambda: read_npz(path))
    fuzz_bytes(path, lambda: score_file(path))
    np.save(tmp_path / "x.npy", np.arange(12).reshape(3, 4))
    fuzz_bytes(tmp_path / "x.npy", lambda: read_npy(tmp_path / "x.npy"))


def test_scored_file(tmp_path):
    codes = np.arange(90).reshape(30, 3) % 4
    arrays = {"sources": np.arange(60).reshape(30, 2) % 3, "latents": codes * 0.5, "codes": codes}
    path = tmp_path / "x.npz"
    fuzz_npz(path, arrays, lambda: score_file(path), num_inputs=max(10, NUM_INPUTS // 5))


def test_json(tmp_path):
    fuzz_json(tmp_path / "x.json", {"a": [1, {"b": 2}]}, lambda: read_json(tmp_path / "x.json"))
