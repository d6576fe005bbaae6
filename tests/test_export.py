"""A model handed on: a folder that loads again, its card, and ONNX that agrees with torch."""

import dataclasses
import json

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import qlae
from qlae.cli import main
from qlae.pipeline import train
from qlae.presets import MODELS
from qlae.runs.directory import Run
from qlae.runs.export import Origin, export_run, model_card, tensors_to_bytes

OPTIONS = {"size": "small", "batch_size": 8, "device": "cpu", "show": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_data):
    return train("qlae", tiny_data, out=tmp_path_factory.mktemp("export") / "run", steps=40, **OPTIONS).path


def test_a_folder_is_the_model_again(run, tmp_path, tiny_data):
    model = qlae.load(run)
    assert model.save_pretrained(tmp_path / "model") == tmp_path / "model"
    again = qlae.load(tmp_path / "model")
    codes = model.encode(tiny_data.images)
    np.testing.assert_array_equal(again.encode(tiny_data.images), codes)
    np.testing.assert_array_equal(again.decode(codes), model.decode(codes))
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {"config.json", "model.safetensors", "README.md", "results.json"}


def test_a_folder_saved_twice_is_the_same(run, tmp_path):
    qlae.load(run).save_pretrained(tmp_path / "first")
    qlae.load(tmp_path / "first").save_pretrained(tmp_path / "second")
    for name in ("config.json", "results.json", "README.md"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()


def test_two_exports_are_equal_byte_for_byte(run, tmp_path):
    first, second = (export_run(run, tmp_path / name, half=True, num_samples=8) for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    metadata = {str(number): "" for number in range(20)}  # which the library writes in random order
    tensors = {"b": torch.ones(2), "a": torch.zeros(3)}
    assert len({tensors_to_bytes(tensors, metadata) for _ in range(10)}) == 1


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "results.json"])
def test_a_flipped_bit_never_passes(run, tmp_path, name):
    folder = qlae.load(run).save_pretrained(tmp_path / "model")
    content = (folder / name).read_bytes()
    header = 0 if name.endswith(".json") else 8 + int.from_bytes(content[:8], "little")
    places = [*range(0, header or len(content), max(1, (header or len(content)) // 60)), header, len(content) - 1]
    codes = qlae.load(folder).state_dict()
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 7)
        (folder / name).write_bytes(damaged)
        try:
            again = qlae.load(folder)
        except ValueError:
            continue
        # What still loads is the same model: the bit was in white space or in the name of the checksum.
        assert again.origin.config == qlae.load(run).origin.config, place
        assert all(torch.equal(tensor, codes[key]) for key, tensor in again.state_dict().items()), place


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_folder(tmp_path, tiny_data, model):
    train(model, tiny_data, out=tmp_path / "run", steps=1, evaluate=False, **OPTIONS)
    first = qlae.load(tmp_path / "run")
    again = qlae.load(first.save_pretrained(tmp_path / "model"))
    for name, tensor in first.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert "It was not scored" in (tmp_path / "model" / "README.md").read_text()


def test_raw_weights_are_told_apart(run, tmp_path):
    qlae.load(run, weights="raw").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds the raw weights; load it with weights='raw'"):
        qlae.load(tmp_path)
    raw = qlae.load(run, weights="raw").state_dict()
    assert all(
        torch.equal(tensor, raw[name]) for name, tensor in qlae.load(tmp_path, weights="raw").state_dict().items()
    )
    with pytest.raises(ValueError, match="weights must be 'averaged' or 'raw', got 'best'"):
        qlae.load(tmp_path, weights="best")
    assert 'weights="raw"' in (tmp_path / "README.md").read_text()


def test_a_name_means_nothing_in_the_card(run):
    origin = qlae.load(run).origin
    name = "a `b`\n# c <script>alert(1)</script> [d](e) $x$"
    card = model_card(dataclasses.replace(origin, config=dataclasses.replace(origin.config, model=name)))
    assert r"# a \`b\` \# c &lt;script&gt;alert(1)&lt;/script&gt; \[d\](e) \$x\$ on shapes3d" in card
    assert "\n# c" not in card.split("---\n")[2]


def test_the_card_has_the_scores(run, tmp_path):
    qlae.load(run).save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text()
    scores = json.loads((run / "results.json").read_text())["averaged"]
    front = card.split("---\n")[1]
    assert "library_name: qlae" in front
    metrics = json.loads(front.split("results: ")[1])[0]["metrics"]
    assert {"type": "infom", "name": "InfoM", "value": round(scores["infom"], 4)} in metrics
    assert (
        f"| {scores['infom']:.3f} | {scores['informative']} | {scores['infoe']:.3f} | {scores['infoc']:.3f} |" in card
    )
    assert "rendered, 16×16, 40 images" in card
    assert "4 latents (each one of 4 values)" in card


def test_scores_of_an_earlier_step_are_not_told(run, tmp_path, tiny_data):
    model = qlae.load(run)
    assert model.origin.results == Run(run).results
    card = model_card(Origin(model.origin.config, "averaged", {}))
    assert "It was not scored" in card


def test_paths_of_this_machine_stay_here(tmp_path, tiny_data):
    np.savez(tmp_path / "mine.npz", images=np.asarray(tiny_data.images))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QLAE_CACHE", str(tmp_path / "cache"))
        data = qlae.load_data(tmp_path / "mine.npz", resolution=16)
        train("ae", data, out=tmp_path / "run", steps=1, num_latents=3, **OPTIONS)
    qlae.load(tmp_path / "run").save_pretrained(tmp_path / "model")
    for path in (tmp_path / "model").glob("*.[jm]*"):
        assert str(tmp_path).encode() not in path.read_bytes()


def test_networks_of_ones_own(tmp_path, tiny_data):
    networks = (
        nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4)),
        nn.Sequential(nn.Linear(4, 3 * 16 * 16), nn.Unflatten(1, (3, 16, 16))),
    )
    options = {key: value for key, value in OPTIONS.items() if key != "size"}
    train("qlae", tiny_data, out=tmp_path / "run", networks=networks, steps=2, evaluate=False, **options)
    model = qlae.load(tmp_path / "run", networks=networks)
    model.save_pretrained(tmp_path / "model")
    again = qlae.load(tmp_path / "model", networks=networks)
    np.testing.assert_array_equal(again.encode(tiny_data.images), model.encode(tiny_data.images))
    with pytest.raises(ValueError, match=r"in Python: networks=\(encoder, decoder\)"):
        qlae.load(tmp_path / "model")
    assert "networks=(encoder, decoder)" in (tmp_path / "model" / "README.md").read_text()


def test_only_trained_models_are_saved(run, tmp_path):
    model = qlae.load(run)
    model.origin = None
    with pytest.raises(ValueError, match=r"only a model that qlae.load returned can be saved"):
        model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a run directory; choose another folder"):
        qlae.load(run).save_pretrained(run)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file, not a folder"):
        qlae.load(run).save_pretrained(tmp_path / "file")


@pytest.mark.parametrize("name", ["README.md", "config.json", "model.safetensors", "photo.jpg"])
def test_files_of_others_stay(run, tmp_path, name):
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(ValueError, match=rf"holds other files \({name}, …\); choose a new or empty folder"):
        qlae.load(run).save_pretrained(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"mine"}


def test_given_names_go_along(run, tmp_path):
    names = {"latents": {"1": "wall"}, "values": {"1": {"0": "red"}}}
    given = run / "names.json"
    given.write_text(json.dumps(names))
    try:
        files = export_run(run, tmp_path / "model")
    finally:
        given.unlink()
    assert tmp_path / "model" / "names.json" in files
    assert json.loads((tmp_path / "model" / "names.json").read_text()) == names


def test_an_earlier_export_is_replaced(run, tmp_path):
    qlae.load(run).save_pretrained(tmp_path)
    (tmp_path / "names.json").write_text("{}")  # not of the export, and stays
    (tmp_path / "encoder.onnx").write_bytes(b"of the old weights")
    (tmp_path / "decoder.onnx").write_bytes(b"of the old weights")
    files = export_run(run, tmp_path, weights="raw")
    assert [path.name for path in files] == ["README.md", "config.json", "model.safetensors", "results.json"]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in files} | {"names.json"}
    model = qlae.load(tmp_path, weights="raw")
    model.origin = Origin(model.origin.config, "raw", {})
    model.save_pretrained(tmp_path)
    assert not (tmp_path / "results.json").exists()
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ValueError, match=r"README.md was edited after the export; move it away"):
        export_run(run, tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("damage", [b"", b"x" * 100, b"\x80\x04K\x01.", None])
def test_damaged_weights_are_told_of(run, tmp_path, damage):
    qlae.load(run).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10] if damage is None else damage)
    with pytest.raises(ValueError, match=r"model.safetensors cannot be read .* copy it again"):
        qlae.load(tmp_path)


def test_a_folder_that_does_not_fit_together_is_told_of(run, tmp_path):
    qlae.load(run).save_pretrained(tmp_path)
    tensors = safetensors.torch.load_file(tmp_path / "model.safetensors")
    tensors.pop("encoder.head.bias")
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"do not fit its config.json.*encoder.head.bias"):
        qlae.load(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=r"config.json is missing"):
        qlae.load(tmp_path)


def test_onnx_gives_what_torch_gives(run, tmp_path, tiny_data):
    """One test for it all, since an export takes seconds."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX tests left out: pip install 'qlae[onnx]'")
    from qlae.runs.export import check_onnx, export_onnx

    model = qlae.load(run)
    export_onnx(model, tmp_path)
    files = [tmp_path / "encoder.onnx", tmp_path / "decoder.onnx"]
    encoder, decoder = (onnxruntime.InferenceSession(path) for path in files)
    for images in (tiny_data.images[:1], tiny_data.images):  # any number of them
        codes, latents = encoder.run(None, {"images": images})
        np.testing.assert_array_equal(codes, model.encode(images))
        np.testing.assert_allclose(latents, model.latents(images), atol=1e-6)
        (decoded,) = decoder.run(None, {"codes": codes})
        assert decoded.dtype == np.uint8
        assert np.abs(decoded.astype(int) - model.decode(codes)).max() <= 1

    contents = [path.read_bytes() for path in files]
    for content in contents:  # nothing of this machine
        assert b"/qlae/" not in content
        assert b'.py"' not in content  # as in traces; shorter, weights hold it by chance

    for parameter in model.decoder.parameters():
        parameter.mul_(0.5)
    with pytest.raises(RuntimeError, match="onnxruntime and torch disagree"):
        check_onnx(model, *contents, tiny_data.images)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_model_as_onnx(tmp_path, tiny_data, model):
    from qlae.runs.export import export_onnx

    train(model, tiny_data, out=tmp_path / "run", steps=5, evaluate=False, **OPTIONS)
    export_onnx(qlae.load(tmp_path / "run"), tmp_path)
    assert (tmp_path / "decoder.onnx").is_file()


def test_the_command(run, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["export", str(run), "--out", str(tmp_path / "model")])
    assert stop.value.code == 0
    assert str(tmp_path / "model" / "model.safetensors") in capsys.readouterr().out
    assert qlae.load(tmp_path / "model").origin.weights == "averaged"


def test_missing_parts_are_named(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxscript", None)
    with pytest.raises(SystemExit) as stop:
        main(["export", str(run), "--onnx", "--out", str(tmp_path / "model")])
    assert stop.value.code == 2
    assert "--onnx needs onnxscript: pip install 'qlae[onnx]'" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
