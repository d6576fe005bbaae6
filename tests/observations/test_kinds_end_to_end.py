"""Every kind of observations from an array to scores, pictures, an export and codes."""

import csv
import dataclasses

import numpy as np
import pytest
import torch

import qlae
from qlae.data import data_config
from qlae.explorer import open_run
from qlae.metrics import r2, r2_per_feature
from qlae.models.building import build_model
from qlae.presets import MODELS
from qlae.resolving import resolve
from qlae.runs.encode import encode_to_file
from qlae.runs.export import export_run

SHAPES = {
    "vectors": (64, 6),
    "series": (64, 21, 2),
    "grey": (64, 28, 28, 1),
    "wide": (64, 12, 20, 3),
    "floats": (64, 9, 8, 5),
}


def observations(name: str) -> np.ndarray:
    """Observations that follow from two sources, with enough structure to be learned."""
    rng = np.random.default_rng(0)
    count, *shape = SHAPES[name]
    sources = rng.uniform(-1, 1, (count, 2))
    waves = np.tanh(sources @ rng.normal(size=(2, int(np.prod(shape)))))
    array = waves.reshape(count, *shape)
    return ((array + 1) * 127).astype(np.uint8) if name in ("grey", "wide") else 3 + 5 * array


@pytest.fixture(scope="module", params=list(SHAPES))
def trained(request, tmp_path_factory):
    array = observations(request.param)
    data = qlae.load_data(array, sources=np.arange(len(array)) % 4)
    out = tmp_path_factory.mktemp(request.param) / "run"
    options = {"size": "small", "steps": 20, "batch_size": 8, "num_latents": 3, "device": "cpu", "show": False}
    return array, data, qlae.train("qlae", data, out=out, **options)


def test_a_run_has_scores_and_pictures(trained):
    _, data, run = trained
    scores = run.results["averaged"]
    is_image = len(data.observations.shape) == 3
    assert ("psnr" in scores, "r2" in scores) == (is_image, not is_image)
    assert len(scores.get("r2_features", [])) == (0 if is_image else data.observations.num_features)
    for name in ("reconstructions", "interventions", "interpolations", "generated", "nmi", "curves"):
        assert (run.path / f"{name}.png").stat().st_size > 1000
    assert (run.path / "between-codes.png").exists() <= is_image


def test_the_loaded_model_takes_and_gives_the_arrays_of_the_data(trained):
    array, data, run = trained
    model = qlae.load(run.path)
    decoded = model.reconstruct(array[:5])
    assert (decoded.shape, decoded.dtype) == ((5, *data.observations.shape), data.images.dtype)
    codes = model.encode(array[:5])
    np.testing.assert_allclose(model.decode(codes), decoded, rtol=1e-4, atol=1e-4 if decoded.dtype != np.uint8 else 1)
    np.testing.assert_array_equal(model.encode(torch.from_numpy(array[:5])), codes)
    assert model.sample(2).shape == (2, *data.observations.shape)
    with pytest.raises(ValueError, match=rf"expected .* of shape \(n, {', '.join(map(str, array.shape[1:]))}\)"):
        model.encode(array[0])


def test_the_score_is_that_of_the_reconstructions(trained):
    array, data, run = trained
    if len(data.observations.shape) == 3:
        pytest.skip("images have the PSNR")
    decoded = qlae.load(run.path).reconstruct(array)
    scores = run.results["averaged"]
    assert scores["r2"] == pytest.approx(r2(array, decoded), abs=1e-5)
    np.testing.assert_allclose(scores["r2_features"], r2_per_feature(array, decoded), atol=1e-5)


def test_a_run_resumes_and_is_scored_again(trained):
    run = trained[2]
    with pytest.raises(ValueError, match="was passed as arrays, which a run does not store"):
        qlae.resume(run.path, steps=21, show=False)
    before = run.results
    qlae.rescore(run, bootstrap=3, show=False)
    assert {"psnr", "r2"} & run.results["averaged"]["intervals"].keys()
    assert before["averaged"].keys() <= run.results["averaged"].keys()
    other = qlae.load_data(np.zeros((20, 5)))
    with pytest.raises(ValueError, match=r"the model takes .*, data has vectors of 5 features"):
        qlae.evaluate(run, data=other, show=False)


def test_codes_are_written_as_a_table(trained, tmp_path):
    _, data, run = trained
    rows = list(csv.reader(encode_to_file(run.path, tmp_path / "codes.csv", data=data, show=False).open()))
    assert rows[0] == [data.observations.traits.one, "z0", "z1", "z2"]
    assert len(rows) == 1 + len(data)


def test_an_export_has_a_card_and_loads(trained, tmp_path):
    array, data, run = trained
    export_run(run.path, tmp_path / "export")
    card = (tmp_path / "export" / "README.md").read_text()
    assert f"{data.observations.traits.many} {data.observations.with_sample_axis()}" in card
    again = qlae.load(tmp_path / "export")
    np.testing.assert_array_equal(again.encode(array[:9]), qlae.load(run.path).encode(array[:9]))


def test_onnx_agrees_with_torch(trained, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    assert len(export_run(trained[2].path, tmp_path / "export", onnx=True)) >= 5


def test_the_explorer_shows_every_kind(trained):
    array, data, run = trained
    exploration = open_run(run.path, data=data)
    described = exploration.describe()["observations"]
    assert (described["kind"], described["size"]) == (data.observations.kind, data.observations.size)
    shape = data.observations.shape
    drawn = exploration.pictures([3, 1])
    assert drawn.shape == (2, *((*shape[:2], 3) if described["kind"] == "images" else shape))
    if described["kind"] != "images":
        np.testing.assert_array_equal(drawn, array[exploration.indices[[3, 1]]])
    assert exploration.decode(exploration.codes[:4]).shape == (4, *drawn.shape[1:])


@pytest.mark.parametrize(
    "model",
    [
        "ae",
        "beta-tcvae",
        "bioae",
        "vq-vae",
        "fsq-ae",
        "qlinfowgan-gp",
        "infowgan-gp",
        "factor-vae",
        "factor-qvae",
        "ae-ica",
    ],
)
@pytest.mark.parametrize("name", ["vectors", "series", "wide"])
def test_every_model_trains_on_every_kind(model, name, tmp_path):
    data = qlae.load_data(observations(name))
    options = {"size": "small", "steps": 6, "batch_size": 4, "num_latents": 2, "device": "cpu", "show": False}
    run = qlae.train(model, data, out=tmp_path / "run", evaluate=False, **options)
    assert np.isfinite(qlae.load(run.path).reconstruct(data.images[:2]).astype(float)).all()


@pytest.mark.parametrize("size", ["full", "small"])
@pytest.mark.parametrize("shape", [(28, 28, 1), (60, 90, 3), (96, 96, 4), (8, 8, 16), (15, 33, 2), (200, 200, 3)])
def test_networks_take_images_of_any_size(size, shape):
    data = qlae.load_data(np.zeros((2, *shape), np.uint8))
    config = resolve("qlae", data_config(data), 0, size=size, num_latents=3, precision="float32")
    with torch.random.fork_rng():
        model = build_model(config)
    inputs = torch.rand(2, *model.form.input_shape)
    with torch.no_grad():
        output = model(inputs)
    assert output.logits.shape == inputs.shape
    grid = model.encoder.grid
    assert 4 <= min(grid.start) <= 7
    assert model.decoder.start.shape[2:] == grid.start


@pytest.mark.parametrize("shape", [(60, 90, 3), (13, 8, 1)])
def test_padding_is_undone_by_cropping(shape):
    from qlae.models.networks.paper import FULL

    grid, _ = FULL.grid_and_widths(shape[:2])
    images = torch.rand(2, shape[2], *shape[:2])
    padded = grid.pad(images)
    assert padded.shape[2:] == tuple(n * (grid.patch << grid.blocks) for n in grid.start)
    assert torch.equal(grid.crop(padded), images)


@pytest.mark.parametrize("length", [8, 9, 31, 64, 100])
def test_series_of_any_length(length):
    data = qlae.load_data(np.random.default_rng(0).normal(size=(3, length, 2)))
    model = build_model(resolve("ae", data_config(data), 0, num_latents=2, precision="float32"))
    inputs = torch.randn(3, *model.form.input_shape)
    assert model(inputs).logits.shape == (3, 2, length)
    assert 4 <= model.encoder.grid.start[0] <= 7


def test_the_level_and_amplitude_of_a_series_reach_the_latents():
    wave = np.sin(np.linspace(0, 6, 64))
    series = np.stack([level + size * wave for level in (0, 1) for size in (1, 2)])[..., None]
    data = qlae.load_data(series)
    model = build_model(resolve("ae", data_config(data), 0, num_latents=4, precision="float32"))
    latents = model.latents(data.images)
    distances = np.abs(latents[:, None] - latents[None]).max(-1)
    assert distances[~np.eye(4, dtype=bool)].min() > 0.01 * np.abs(latents).max()


def test_the_gaussian_error_is_half_the_squared_error():
    data = qlae.load_data(np.random.default_rng(0).normal(size=(30, 4)))
    form = data.observations.traits.load("form")(data.observations)
    outputs, inputs = torch.randn(5, 4), torch.randn(5, 4)
    normal = torch.distributions.Normal(outputs, 1.0)
    expected = -normal.log_prob(inputs).mean() - 0.5 * np.log(2 * np.pi)
    assert form.error(outputs, inputs).item() == pytest.approx(expected.item(), rel=1e-5)


def test_training_on_vectors_learns_and_repeats_bit_for_bit(tmp_path):
    array = observations("vectors")
    options = {"size": "small", "steps": 150, "batch_size": 16, "num_latents": 3, "device": "cpu", "show": False}
    runs = [qlae.train("ae", array, out=tmp_path / str(i), threads=1, **options) for i in range(2)]
    assert runs[0].results["raw"]["r2"] > 0.9
    assert runs[0].results["raw"] == runs[1].results["raw"]


def test_data_without_sources_get_ten_latents_and_a_warning(tmp_path):
    wide, narrow = np.random.default_rng(0).normal(size=(20, 30)), np.random.default_rng(0).normal(size=(20, 3))
    for array, expected in ((wide, 10), (narrow, 3)):
        with pytest.warns(UserWarning, match=f"no known sources, so the model gets {expected} latents"):
            config = resolve("qlae", data_config(qlae.load_data(array)), 0)
        assert config.latent.num_latents == expected


def test_networks_of_another_kind_are_refused(tmp_path):
    data = qlae.load_data(observations("vectors"))
    with pytest.raises(ValueError, match="the networks 'series' take series, the data have vectors of 6 features"):
        qlae.train("ae", data, out=tmp_path / "run", networks="series", num_latents=2, show=False)


def test_own_networks_on_vectors(tmp_path):
    data = qlae.load_data(observations("vectors"))
    encoder = torch.nn.Linear(6, 3)
    options = {"num_latents": 3, "steps": 5, "batch_size": 4, "size": "small", "device": "cpu", "show": False}
    run = qlae.train("ae", data, out=tmp_path / "run", networks=(encoder, None), evaluate=False, **options)
    assert qlae.load(run.path, networks=(encoder, None)).latents(data.images[:2]).shape == (2, 3)
    with pytest.raises(ValueError, match=r"the encoder must map vectors \(b, 6\) to \(b, 2\)"):
        qlae.train("ae", data, out=tmp_path / "other", networks=(encoder, None), **options | {"num_latents": 2})


def test_every_model_has_a_config_for_every_kind():
    for name in SHAPES:
        described = data_config(qlae.load_data(observations(name)))
        for model in MODELS:
            config = resolve(model, described, 0, num_latents=2, precision="float32")
            assert dataclasses.asdict(config.networks)["size"] == "full"


def test_one_channel_may_be_left_out_as_in_training(tmp_path, rng):
    images = rng.integers(0, 256, (20, 12, 10), dtype=np.uint8)
    options = {"size": "small", "steps": 2, "batch_size": 4, "num_latents": 3, "device": "cpu"}
    model = qlae.load(qlae.train("qlae", images, out=tmp_path / "run", show=False, evaluate=False, **options).path)
    assert np.array_equal(model.encode(images), model.encode(images[..., None]))
    with pytest.raises(ValueError, match=r"expected uint8 images of shape \(n, 12, 10, 1\)"):
        model.encode(images[0])
