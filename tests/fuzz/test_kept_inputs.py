"""Inputs that once led to a traceback, each with the message that it gives now."""

import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

import qlae
from qlae._io import read_npz, seal, write_npz
from qlae.data import data_spec
from qlae.explorer.exploration import read_sample
from qlae.report import draw_pictures, intervals_table, results_table
from qlae.runs.export import model_card, read_pretrained
from qlae.runs.load_model import load


def change(path, *keys, value=None):
    """Set a part of a JSON file, or remove it, and remove its checksum."""
    content = json.loads(path.read_text())
    content.pop("sha256", None)
    holder = content
    for key in keys[:-1]:
        holder = holder[key]
    if value is None:
        del holder[keys[-1]]
    else:
        holder[keys[-1]] = value
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("averaged", "infoe"), None, r"results.json cannot be read \(results.averaged: it has nmi and no infoe"),
        (("averaged", "nmi"), 5, "averaged.nmi must be a list or null, got 5"),
        (("averaged", "informative_latents"), [True], "averaged: .*must be equally long"),
        (("averaged", "infom"), [0.5, 0.5], "averaged.infom must be"),
        (("averaged", "d"), {}, "averaged.d must be a number, got {}"),
        (("averaged", "bootstrap"), None, "averaged: intervals need bootstrap"),
        (("averaged", "intervals", "mig"), [0, 1], "averaged.mig must be a number, got nothing"),
        (("averaged", "by_sample_size", "sizes"), [0, -1], "averaged.by_sample_size.sizes\\[0\\] "),
        (("averaged", "psnr"), 10**301, "averaged.psnr must be a finite number"),
        (("raw",), None, "results is incomplete: it has no 'raw'"),
        (("data", "drawn"), 5, "data.drawn must be an object"),
        (("prune",), "x", "prune must be bool"),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_results(damaged, keys, value, message):
    change(damaged.results_path, *keys, value=value)
    for read in (lambda: results_table([damaged]), lambda: intervals_table(damaged), lambda: draw_pictures(damaged)):
        with pytest.raises(ValueError, match=message):
            read()


def test_a_huge_whole_number_is_drawn(damaged):
    sizes = json.loads(damaged.results_path.read_text())["averaged"]["by_sample_size"]["sizes"]
    change(damaged.results_path, "averaged", "by_sample_size", "scores", value={"infom": [[10**30]] * len(sizes)})
    assert damaged.path / "sample-size.png" in draw_pictures(damaged)


def test_results_of_another_number_of_latents(damaged):
    for weights in ("averaged", "raw"):
        for key in ("active_latents", "informative_latents"):
            change(damaged.results_path, weights, key, value=[True] * 3)
        change(damaged.results_path, weights, "nmi", value=[[0.5] * 3] * 2)
    with pytest.raises(ValueError, match=r"and the run has 4 latents"):
        draw_pictures(damaged)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": np.zeros(1, int)}, r"sample.npz cannot be read \('step' must have the shape \(\), got \(1,\)\)"),
        ({"codes": np.zeros((40, 4), "S2")}, "'codes' must hold whole numbers, got .S2"),
        ({"codes": np.zeros((40, 3), int)}, r"'codes' must have the shape \(40, 4\), got \(40, 3\)"),
        ({"latents": np.full((40, 4), np.nan, np.float32)}, "'latents' holds numbers that are not finite"),
        ({"latents": np.full((40, 4), 1e30, np.float32)}, "'latents' holds numbers larger than 1e"),
        ({"indices": None}, "it has no array 'indices'"),
        ({"indices": np.full(40, 2**62)}, "'indices' holds numbers larger than 1e"),
        ({"codes": np.full((40, 4), 2**50)}, "sample.npz does not belong to the model of the run"),
        ({"codes": np.full((40, 4), -1)}, "sample.npz does not belong to the model of the run"),
    ],
)
def test_samples(damaged, changes, message):
    arrays = read_npz(damaged.sample_path) | changes
    write_npz(damaged.sample_path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ValueError, match=message):
        read_sample(damaged, load(damaged.path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interventions": None}, r"pictures.npz cannot be read \(it has no array 'interventions'\)"),
        (
            {"originals": np.zeros((10, 16, 8, 3), np.uint8)},
            r"'originals' must have the shape \(examples, side, side, 3\)",
        ),
        ({"strip_codes": np.zeros((4, 1), int)}, r"'strip_codes' must have the shape \(4, 2\), got \(4, 1\)"),
        ({"reconstructions": np.zeros((10, 16, 16, 3))}, "'reconstructions' must hold bytes, got float64"),
        ({"strip_codes": None}, "it has no array 'strip_codes'"),
        ({"strips": np.zeros((4, 1, 16, 16, 3), np.uint8)}, "'strips' must have the shape"),
    ],
)
def test_pictures(damaged, changes, message):
    arrays = read_npz(damaged.pictures_path) | changes
    write_npz(damaged.pictures_path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ValueError, match=message):
        draw_pictures(damaged)


@pytest.mark.parametrize(
    "row", ['{"step": 2, "loss": "x"}', '{"step": true}', '{"step": 2, "loss": NaN}', '{"step": -1}']
)
def test_rows_of_a_log(damaged, row):
    damaged.log_path.write_text(f'{{"step": 1, "loss": 0.5}}\n{row}\n{{"step": 3, "loss": 0.5}}\n')
    assert damaged.log() == [{"step": 1, "loss": 0.5}]


def test_results_of_an_export(export):
    change(export / "results.json", "protocol")
    with pytest.raises(ValueError, match=r"results.json cannot be read \(.* it has no 'protocol'\); copy"):
        model_card(read_pretrained(export)[0])


@pytest.mark.parametrize("keys", [("window_filled",), ("window_filled", "autoencoder"), ("seconds",), ("threads",)])
def test_resuming_from_a_checkpoint_that_lacks_an_entry(damaged, tiny_data, keys):
    path = damaged.path / "checkpoint.json"
    change(path, "state", *keys)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(seal(content)))
    options = {"size": "small", "num_values": 4, "batch_size": 8, "evaluate": False, "steps": 101, "show": False}
    with pytest.raises(ValueError, match=f"the checkpoint has no '{keys[-1]}'"):
        qlae.train("qlae", tiny_data, out=damaged.path, **options)


def test_half_a_character(damaged):
    change(damaged.results_path, "model", value="\ud800")
    with pytest.raises(ValueError, match=r"results.json cannot be read \(it is not JSON"):
        results_table([damaged])
    change(damaged.results_path, "model", value="\U0001f600")  # written as two halves
    assert "\\ud83d\\ude00" in damaged.results_path.read_text()
    assert damaged.results["model"] == "\U0001f600"


def test_config_of_an_export(export):
    change(export / "config.json", "latent", "kind", value="unknown")
    with pytest.raises(ValueError, match=r"config.json"):
        read_pretrained(export)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_names": np.array(["a", "b", "a"])}, r"2 sources need 2 distinct names, got \['a', 'b', 'a'\]"),
        ({"source_names": np.array([["a"], ["b"]])}, "source_names in .* must be a list of texts, got <U1"),
        ({"source_names": np.array([1, 2])}, "source_names in .* must be a list of texts, got int64"),
        ({"origin": np.zeros(1)}, "origin in .* must be a list of texts, got float64"),
    ],
)
def test_arrays_beside_images(tmp_path, changes, message):
    arrays = {"images": np.zeros((4, 8, 8, 3), np.uint8), "sources": np.arange(8).reshape(4, 2)}
    np.savez(tmp_path / "x.npz", **arrays | changes)
    with pytest.raises(ValueError, match=message):
        data_spec(tmp_path / "x.npz").image_set()


def test_images_without_an_origin(tmp_path):
    np.savez(tmp_path / "x.npz", images=np.zeros((4, 8, 8, 3), np.uint8), origin=np.array([], "U8"))
    assert data_spec(tmp_path / "x.npz").image_set().origin == "real"


def test_bzip2_in_a_zip(tmp_path):
    """A decompressor's error has no number, unlike the system's."""
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    path = tmp_path / "images.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.png", picture.getvalue())
    content = bytearray(path.read_bytes())
    content[content.index(b"BZh") + 4] ^= 255
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"images.zip cannot be read \(it is damaged or incomplete: Invalid data stream\); "
    ):
        data_spec(path).load()
