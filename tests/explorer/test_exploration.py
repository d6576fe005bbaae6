"""What the page receives about a run: controls, names, search results, and the saved page."""

import json

import numpy as np
import pytest

from qlae._io import read_sealed
from qlae.explorer import open_run, save_page
from qlae.explorer.controls import build_controls
from qlae.explorer.exploration import find_nearest
from qlae.explorer.observation_views import encode_sheet
from qlae.models.latents import ContinuousLatent, FiniteScalarLatent, QuantizedLatent, VectorQuantizedLatent
from qlae.pipeline import train
from qlae.presets import MODELS
from qlae.runs.latent_names import Names, clean_name


def test_ticks_stand_at_the_values_of_the_codebook():
    latent = QuantizedLatent(2, 3)
    latent.values.data[0] = latent.values.data.new_tensor([0.4, -0.1, 0.2])
    codes = np.array([[0, 1], [0, 1], [2, 1]])
    first, second = build_controls(latent, codes, {})
    assert first.kind == "values"
    assert first.values == pytest.approx([0.4, -0.1, 0.2])
    assert first.order == [1, 2, 0]  # by position, since values may cross as they are learned
    assert first.counts == [0, 1, 2]
    assert (first.num_used, first.num_values) == (2, 3)
    assert (first.low, first.high) == pytest.approx((-0.1, 0.4))
    assert first.active
    assert not second.active


def test_grids_and_vectors_have_controls_too():
    (grid,) = build_controls(FiniteScalarLatent(1, 5), np.array([[0], [4]]), {})
    assert grid.values == [-0.5, -0.25, 0.0, 0.25, 0.5]
    (vectors,) = build_controls(VectorQuantizedLatent(1, 50, 4), np.array([[7], [7], [3]]), {})
    assert (vectors.kind, vectors.order, vectors.counts, vectors.steps) == ("vectors", [7, 3], [2, 1], [7, 3])
    assert vectors.num_values == 50


def test_a_slider_covers_the_range_of_a_continuous_latent():
    codes = np.array([[-2.0, 0.0], [0.0, 0.01], [4.0, 0.0]], np.float32)
    first, second = build_controls(ContinuousLatent(2), codes, {})
    assert (first.kind, first.low, first.high) == ("range", -2.0, 4.0)
    assert sum(first.counts) == 3
    assert first.steps[0] == -2.0
    assert first.steps[-1] == 4.0
    assert first.active
    assert not second.active


def test_a_constant_continuous_latent_still_has_a_slider():
    (only,) = build_controls(ContinuousLatent(1), np.full((3, 1), 2.0, np.float32), {})
    assert (only.low, only.high, only.active) == (1.5, 2.5, False)


def test_controls_name_the_source_that_a_latent_is_most_informative_about():
    scores = {"nmi": [[0.1, 0.0], [0.7, 0.0]], "informative_latents": [True, False]}
    first, second = build_controls(ContinuousLatent(2), np.eye(3, 2), scores)
    assert (first.source, first.nmi) == (1, 0.7)
    assert (second.source, second.nmi) == (None, None)


def test_nearest_ranks_by_differing_latents_and_then_by_distance():
    latent = QuantizedLatent(2, 3)
    codes = np.array([[0, 0], [0, 2], [0, 1], [2, 2]])
    controls = build_controls(latent, codes, {})
    matches = find_nearest(codes, np.array([0, 0]), controls, 4)
    assert matches.rows == [0, 2, 1, 3]
    assert matches.distances == [0, 1, 1, 2]


def test_nearest_scales_continuous_latents_by_their_deviations():
    codes = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 0.1], [-10.0, -0.1]], np.float32)
    matches = find_nearest(
        codes, codes[0], build_controls(ContinuousLatent(2), codes, {"active_latents": [True, True]}), 3
    )
    assert matches.rows[0] == 0
    assert matches.distances[1] == pytest.approx(matches.distances[2], abs=0.01)


def test_names_are_stored_and_can_be_removed(tmp_path):
    names = Names(tmp_path / "names.json", [4, 0])
    assert names.read() == {"latents": {}, "values": {}}
    names.rename(0, None, "  wall\n hue ")
    names.rename(0, 3, "réd 🟥")
    assert json.loads((tmp_path / "names.json").read_text()) == {
        "latents": {"0": "wall hue"},
        "values": {"0": {"3": "réd 🟥"}},
    }
    names.rename(0, 3, "")
    assert Names(tmp_path / "names.json", [4, 0]).read() == {"latents": {"0": "wall hue"}, "values": {}}
    assert [path.name for path in tmp_path.iterdir()] == ["names.json"]


@pytest.mark.parametrize(
    ("latent", "value", "message"),
    [(2, None, "latents run from 0 to 1"), (0, 4, "run from 0 to 3"), (1, 0, "continuous")],
)
def test_names_of_unknown_latents_and_values_are_refused(tmp_path, latent, value, message):
    with pytest.raises(ValueError, match=message):
        Names(tmp_path / "names.json", [4, 0]).rename(latent, value, "x")
    assert not (tmp_path / "names.json").exists()


def test_long_names_are_refused():
    with pytest.raises(ValueError, match="at most 60 characters, got 61"):
        clean_name("x" * 61)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"latents": [], "values": {}}', '{"latents": {"x": "y"}, "values": {}}']
)
def test_a_damaged_file_of_names_is_an_error(run_copy, content):
    (run_copy / "names.json").write_text(content)
    with pytest.raises(ValueError, match=r"names.json is not a valid file of names .* repair or remove it"):
        open_run(run_copy, show=False)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_explored(tmp_path, tiny_data, model):
    path = tmp_path / "run"
    train(model, tiny_data, out=path, size="small", steps=2, batch_size=8, device="cpu", show=False, evaluate=False)
    explored = open_run(path, show=False)  # never scored: it is scored now
    described = explored.describe()
    json.dumps(described, allow_nan=False)
    assert len(described["latents"]) == explored.model.latent.num_latents
    code = explored.to_code(explored.sample(3)["code"])
    assert explored.decode(code[None]).shape == (1, 16, 16, 3)
    np.testing.assert_array_equal(explored.pictures([5, 2]), tiny_data.images[explored.indices[[5, 2]]])
    nearest = find_nearest(explored.codes, code, explored.controls, 3)
    assert nearest.rows[0] == 3 or nearest.distances[0] == 0
    for control in explored.controls:
        for step in control.steps:
            explored.require_value(control.index, step)


def test_a_run_that_was_trained_further_is_scored_again(run_copy, tiny_data):
    results = read_sealed(run_copy / "results.json")
    (run_copy / "results.json").write_text(json.dumps(results | {"steps": 1}))
    assert open_run(run_copy, show=False).results["steps"] == 300


def test_without_images_reconstructions_are_shown(run_copy):
    config = read_sealed(run_copy / "config.json")
    config["data"]["spec"] = None
    (run_copy / "config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match="not available, so reconstructions are shown instead"):
        explored = open_run(run_copy, show=False)
    assert not explored.describe()["has_images"]
    np.testing.assert_array_equal(explored.pictures([1]), explored.decode(explored.codes[[1]]))


def test_a_folder_without_sources(folder_path):
    explored = open_run(folder_path, show=False)
    described = explored.describe()
    assert described["nmi"] is None
    assert described["source_names"] == []
    assert explored.sample(0)["sources"] == []


def test_an_untrained_folder_is_no_run(tmp_path):
    with pytest.raises(ValueError, match="is not a run directory"):
        open_run(tmp_path)


def test_tiles_of_a_sheet_are_in_order(rng):
    import io

    from PIL import Image

    tiles = rng.integers(0, 256, (19, 5, 4, 3)).astype(np.uint8)
    pixels = np.asarray(Image.open(io.BytesIO(encode_sheet(tiles))))
    assert pixels.shape == (10, 64, 3)
    np.testing.assert_array_equal(pixels[:5, 8:12], tiles[2])
    np.testing.assert_array_equal(pixels[5:, :4], tiles[16])


def test_a_saved_page_never_lands_among_other_files(exploration, tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"contains other files \(thesis.tex, …\)"):
        save_page(exploration, tmp_path, show=False)
    with pytest.raises(FileExistsError):
        save_page(exploration, tmp_path / "thesis.tex", show=False)
    with pytest.raises(ValueError, match="num_samples must lie between 1 and 500, got 0"):
        save_page(exploration, tmp_path / "page", num_samples=0, show=False)


def test_a_saved_page_is_whole_and_can_be_written_again(exploration, tmp_path):
    first = save_page(exploration, tmp_path / "page", num_samples=2, show=False)
    text = (tmp_path / "page" / "saved.js").read_text()
    assert save_page(exploration, tmp_path / "page", num_samples=2, show=False) == first
    assert (tmp_path / "page" / "saved.js").read_text() == text
    content = json.loads(text.removeprefix("window.qlaeSaved = ").removesuffix(";\n"))
    assert len(content["samples"]) == 2
    assert str(tmp_path) not in text  # nothing of this machine
    assert 'src="saved.js"' in first.read_text()
