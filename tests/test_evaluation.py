"""From a run to its sample, results and pictures."""

import io
import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import qlae
from qlae._io import write_npz
from qlae.data import SourceDataset
from qlae.metrics import infomec
from qlae.metrics.heatmap import UNINFORMATIVE
from qlae.models.latents import ContinuousLatent, QuantizedLatent, VectorQuantizedLatent
from qlae.models.model import Model
from qlae.observations import square_images
from qlae.report import draw_pictures, print_results, results_table
from qlae.report.image_pictures import GAP, plot_interventions, tile
from qlae.report.score_table import results_tables
from qlae.runs.directory import Run
from qlae.runs.export import Origin, model_card
from qlae.scoring.evaluation import decode_pictures, evaluate_run
from qlae.scoring.interventions import intervention_steps, make_pictures
from qlae.scoring.latent_labels import LatentLabels
from qlae.scoring.sample import draw_sample

NAMES = ("reconstructions", "interventions", "nmi", "curves")


@pytest.fixture(scope="module", params=["qlae", "ae"])
def run(request, tmp_path_factory, tiny_data):
    out = tmp_path_factory.mktemp("runs") / request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny models may have too few active latents
        return qlae.train(request.param, tiny_data, out=out, steps=100, size="small", batch_size=8, show=False)


def test_pictures_of_both_sets_of_weights_are_decoded_from_the_checkpoint(run, tiny_data, tmp_path):
    with pytest.raises(ValueError, match="no checkpoint"):
        decode_pictures(Run(tmp_path), "raw")
    stored = run.arrays(run.pictures_path)
    averaged = decode_pictures(run, "averaged")
    assert stored.keys() == averaged.keys()
    assert all(np.array_equal(stored[name], averaged[name]) for name in stored)
    raw = decode_pictures(run, "raw")
    assert np.array_equal(raw["originals"], stored["originals"])
    assert not np.array_equal(raw["reconstructions"], stored["reconstructions"])


def test_results_hold_what_the_contract_says(run, tiny_data):
    results = json.loads(run.results_path.read_text())
    assert results["model"] == run.config.model
    assert (results["data"]["name"], results["data"]["origin"], results["data"]["resolution"]) == (
        "shapes3d",
        "rendered",
        16,
    )
    assert (results["protocol"], results["seed"], results["steps"]) == ("paper", 0, 100)
    assert results["seconds"] > 0
    assert results["versions"]["qlae"] == qlae.__version__
    for weights in ("averaged", "raw"):
        scores = results[weights]
        expected = {"infom", "infoe", "infoc", "active", "psnr", "nmi", "active_latents"}
        assert expected <= scores.keys()
        assert ("infoe_scalar" in scores) == (run.config.model == "qlae")
        assert 5 < scores["psnr"] < 60


def test_sample_gives_the_scores_again_without_the_model(run):
    sample = run.arrays(run.sample_path)
    assert sample["sources"].shape == (40, 2)
    prefixes = {"averaged": "", "raw": "raw_"}
    for weights, prefix in prefixes.items():
        latents = sample.get(f"{prefix}codes", sample[f"{prefix}latents"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert infomec(sample["sources"], latents).infom == run.results[weights]["infom"]


def test_sample_is_what_the_model_says(run, tiny_data):
    sample = run.arrays(run.sample_path)
    model = qlae.load(run.path)
    images = tiny_data.images[sample["indices"]]
    assert np.allclose(model.latents(images), sample["latents"], atol=1e-6)
    assert np.array_equal(tiny_data.sources[sample["indices"]], sample["sources"])
    if run.config.model == "qlae":
        assert np.array_equal(model.encode(images), sample["codes"])


def test_averaged_and_raw_weights_differ(run, tiny_data):
    averaged, raw = qlae.load(run.path), qlae.load(run.path, weights="raw")
    assert not np.array_equal(averaged.latents(tiny_data.images), raw.latents(tiny_data.images))
    with pytest.raises(ValueError, match="'averaged' or 'raw', got 'best'"):
        qlae.load(run.path, weights="best")


def test_evaluating_from_the_directory_alone_gives_the_same(run):
    before = run.results
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = evaluate_run(run.path, device="cpu", show=False)
    assert again == before


def test_pictures_are_drawn(run):
    paths = draw_pictures(run)
    of_codes = ("generated", "interpolations", "between-codes")  # an autoencoder has no prior, and no codes
    assert sorted(path.stem for path in paths) == sorted((*NAMES, *(() if run.config.model == "ae" else of_codes)))
    for path in paths:
        with Image.open(path) as image:
            assert image.width > 200
            assert np.asarray(image.convert("L")).std() > 5


def test_table_names_model_and_data(run):
    from rich.console import Console

    console = Console(width=250, file=io.StringIO())
    console.print(results_table([run], weights=("averaged", "raw")))
    text = console.file.getvalue()
    assert "shapes3d (rendered, 16×16)" in text
    assert f"{run.results['averaged']['infom']:.3f}" in text
    assert "raw" in text


def test_a_narrow_terminal_gets_every_score_in_several_tables(run):
    from rich.console import Console

    tables = results_tables([run], width=80)
    assert len(tables) > 1
    assert max(Console(width=1000).measure(table).maximum for table in tables) <= 80
    headers = [str(column.header) for table in tables for column in table.columns]
    assert {str(column.header) for column in results_table([run]).columns} == set(headers)
    assert headers.count("model") == len(tables)


def with_noise(run, folder):
    """Return a copy of a run in whose scores one of the active latents is informative."""
    shutil.copytree(run.path, folder)
    num_latents = len(run.results["averaged"]["active_latents"])
    noise = {"active_latents": [True] * num_latents, "informative_latents": [True] + [False] * (num_latents - 1)}
    results = run.results | {weights: run.results[weights] | noise for weights in ("averaged", "raw")}
    (folder / "results.json").write_text(json.dumps(results))
    return Run(folder)


def test_informative_latents_stand_beside_infom(run, tmp_path, capsys):
    noisy = with_noise(run, tmp_path / "noisy")
    table = results_table([noisy])
    headers = [str(column.header) for column in table.columns]
    assert headers[1:3] == ["InfoM", "informative"]
    assert list(table.columns[2].cells) == ["1 of 4"]
    print_results([noisy], weights=("averaged", "raw"))
    warning = "Warning: InfoM says little here: only 1 of the 4 latents that it counts is informative about a source"
    assert capsys.readouterr().out.count(warning) == 1
    assert warning.removeprefix("Warning: ") in model_card(Origin(noisy.config, "averaged", noisy.results))
    assert "| InfoM | informative | InfoE |" in model_card(Origin(noisy.config, "averaged", noisy.results))


def test_uninformative_latents_are_faded(run, tmp_path):
    noisy = with_noise(run, tmp_path / "noisy")
    blocks = noisy.arrays(noisy.pictures_path)["interventions"]
    labels = LatentLabels(np.ones(4, bool), np.array([True] + [False] * 3), ["shape", "", "", ""])
    figure = plot_interventions(blocks, labels, "")
    sheet = np.asarray(figure.axes[0].images[0].get_array())
    side = blocks.shape[3]
    np.testing.assert_array_equal(sheet[:side, :side], blocks[0, 0, 0])
    assert sheet[:side, side + GAP : 2 * side + GAP].min() >= 0.6 * 255 - 1
    colours = [label.get_color() for label in figure.axes[0].get_xticklabels()]
    assert colours[0] != UNINFORMATIVE
    assert colours[1:] == [UNINFORMATIVE] * 3


def test_table_says_where_runs_differ(run, tmp_path):
    def other(name, *, data=None, **changed):
        shutil.copytree(run.path, tmp_path / name)
        results = run.results | changed | {"data": run.results["data"] | (data or {})}
        (tmp_path / name / "results.json").write_text(json.dumps(results))
        return Run(tmp_path / name)

    def shown(*runs):
        table = results_table(runs)
        cells = {column.header: list(column.cells) for column in table.columns}
        return str(table.title), {name: cells[name] for name in ("run", "data", "images", "seed") if name in cells}

    whole = "shapes3d (rendered, 16×16), 40 samples, protocol paper, seed 0"
    assert shown(run) == (whole, {})
    assert shown(run, other("s1", seed=1)) == (whole.removesuffix(", seed 0"), {"seed": ["0", "1"]})
    title, differing = shown(run, other("mpi", data={"name": "mpi3d", "num_images": 99}))
    assert title == "40 samples, protocol paper, seed 0"
    data = ["shapes3d (rendered, 16×16)", "mpi3d (rendered, 16×16)"]
    assert differing == {"data": data, "images": ["40", "99"]}
    again = other("again")
    assert shown(run, again) == (whole, {"run": [str(run.path), str(again.path)]})


def test_interventions_move_one_latent_at_a_time(run, tiny_data):
    model = qlae.load(run.path)
    found = {"latents": model.latents(tiny_data.images)}
    if run.config.model != "ae":
        found["codes"] = model.encode(tiny_data.images)
    pictures = make_pictures(model, tiny_data.images, found)
    steps, held = pictures["intervention_steps"], found.get("codes", found["latents"])
    assert pictures["interventions"].shape == (3, len(steps), 4, 16, 16, 3)
    assert np.array_equal(steps, intervention_steps(model, held))
    chosen = np.random.default_rng(0).choice(40, 10, replace=False)
    changed = held[chosen[1]].copy()
    changed[2] = steps[1, 2]
    assert np.array_equal(pictures["interventions"][1, 1, 2], model.decode(changed[None])[0])


def test_steps_go_through_the_range_in_the_order_of_the_values():
    latent = QuantizedLatent(2, [4, 3])
    with torch.no_grad():
        latent.values[0] = torch.tensor([0.3, -0.1, 0.2, 0.9])
    codes = np.array([[1, 0], [0, 0], [2, 0]])  # 0.9 lies beyond the sample's range; the second latent is constant
    steps = intervention_steps(Model(nn.Identity(), latent, nn.Identity(), observations=square_images(8)), codes)
    assert steps[:, 0].tolist() == [1, 2, 0]
    assert steps[:, 1].tolist() == [0, 0, 0]


def test_steps_of_vectors_are_those_used_most():
    latent = VectorQuantizedLatent(1, num_values=50, vector_size=2)
    codes = np.repeat(np.arange(20), np.arange(20) + 1)[:, None]
    steps = intervention_steps(Model(nn.Identity(), latent, nn.Identity(), observations=square_images(8)), codes)
    assert steps[:, 0].tolist() == list(range(10, 20))


def test_steps_of_a_continuous_latent_are_even():
    latents = np.array([[0.0, -1.0], [9.0, 1.0], [3.0, 0.0]], np.float32)
    steps = intervention_steps(
        Model(nn.Identity(), ContinuousLatent(2), nn.Identity(), observations=square_images(8)), latents
    )
    assert np.allclose(steps[:, 0], np.arange(10))
    assert np.allclose(steps[[0, -1], 1], [-1, 1])


def test_an_evaluation_of_an_earlier_version_is_drawn_without_interpolations(run, tmp_path):
    old = Run(shutil.copytree(run.path, tmp_path / "old"))
    arrays = old.arrays(old.pictures_path)
    names = ("originals", "reconstructions", "interventions", "intervention_steps")
    write_npz(old.pictures_path, **{name: arrays[name] for name in names})
    (old.path / "interpolations.png").touch()
    assert sorted(path.stem for path in draw_pictures(old)) == sorted(NAMES)
    assert not (old.path / "interpolations.png").exists()


@pytest.mark.filterwarnings("ignore:all observations have the same code")
def test_data_without_sources_is_pictured_but_not_scored(tmp_path, tiny_data):
    data = SourceDataset(np.asarray(tiny_data.images), np.empty((40, 0)), name="mine", origin="real")
    run = qlae.train("qlae", data, out=tmp_path / "run", steps=5, size="small", num_latents=4, show=False)
    assert "infom" not in run.results["averaged"]
    assert run.results["averaged"]["psnr"] > 0
    drawn = [path.stem for path in draw_pictures(run) if path.stem != "between-codes"]  # which needs two codes
    assert drawn == [*("reconstructions", "interventions", "interpolations", "generated", "curves")]
    with pytest.raises(ValueError, match="mine was passed as arrays, which a run does not store"):
        evaluate_run(run.path, show=False)
    with pytest.warns(UserWarning, match="the data have no sources, so there is no dci; without them, only reconstr"):
        evaluate_run(run.path, data=data, metrics=["dci"], show=False)


def test_sample_is_drawn_without_replacement_and_always_the_same(tiny_data):
    assert draw_sample(tiny_data, 10_000).tolist() == list(range(40))
    first = draw_sample(tiny_data, 10)
    assert len(set(first.tolist())) == 10
    assert np.array_equal(first, draw_sample(tiny_data, 10))
    with pytest.raises(ValueError, match="at least 2, got 1"):
        draw_sample(tiny_data, 1)


def test_tiles_are_where_they_belong(rng):
    images = rng.integers(0, 255, (2, 3, 4, 4, 3), dtype=np.uint8)
    sheet = tile(images)
    assert sheet.shape == (10, 16, 3)
    assert np.array_equal(sheet[6:10, 12:16], images[1, 2])
    assert (sheet[4:6] == 255).all()


def test_model_says_what_it_wants(run, tiny_data):
    model = qlae.load(run.path)
    image = tiny_data.images[0]
    with pytest.raises(ValueError, match=r"got uint8 of shape \(16, 16, 3\); one image is images\[None\]"):
        model.latents(image)
    with pytest.raises(ValueError, match="got float64 of shape"):
        model.latents(np.zeros((1, 16, 16, 2)))
    with pytest.raises(ValueError, match="integers \\(codes\\) or floats"):
        model.decode(np.array([["a"] * 4]))
    with pytest.raises(ValueError, match="must be \\(n, 4\\) and finite"):
        model.decode(np.full((1, 4), np.nan))
    if run.config.model == "qlae":
        with pytest.raises(ValueError, match=r"codes of latent . range from 0 to 3, got 4"):
            model.decode(np.array([[0, 0, 0, 4]]))
    else:
        with pytest.raises(ValueError, match=r"continuous latents and no codes; use \.latents"):
            model.encode(image[None])
        with pytest.raises(ValueError, match="decode floats, not integers"):
            model.decode(np.zeros((1, 4), int))
    assert model.decode(np.zeros((0, 4))).shape == (0, 16, 16, 3)


def test_data_that_are_not_the_run_s(tmp_path, tiny_data):
    run = qlae.train("ae", tiny_data, out=tmp_path / "run", steps=2, size="small", show=False)
    before = run.results_path.read_bytes()
    larger, others = (
        qlae.load_data("shapes3d", resolution=size, sources=[name, "shape"])
        for size, name in ((32, "floor hue"), (16, "scale"))
    )
    with pytest.raises(ValueError, match="the model takes images of 16×16, data has images of 32×32"):
        evaluate_run(run.path, data=larger, show=False)
    results = evaluate_run(run.path, data=others, show=False)
    assert results["data"]["source_names"] == ["scale", "shape"]
    assert (run.path / "evaluations" / "shapes3d" / "results.json").is_file()
    assert run.results_path.read_bytes() == before


def test_infom_of_a_single_source_is_explained(tmp_path, capsys):
    data = qlae.load_data(np.random.default_rng(0).normal(size=(30, 4)), sources=np.arange(30) % 3)
    run = qlae.train("ae", data, out=tmp_path / "run", size="small", steps=2, num_latents=2, device="cpu", show=False)
    capsys.readouterr()
    print_results([run])
    assert "array: one source is known, so InfoM is 1 for every model; read InfoE." in capsys.readouterr().out
