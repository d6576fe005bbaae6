"""Scores of held-out rows, next to those of training rows, and scores of other data."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import qlae
from qlae.cli import main
from qlae.report.score_table import print_results
from qlae.runs.directory import Run
from qlae.scoring.evaluation import evaluation_folder, read_scored
from qlae.scoring.held_out import describe_gap
from qlae.scoring.sample import rescore_run

QUICK = {"size": "small", "steps": 300, "num_latents": 3, "show": False}


@pytest.fixture(scope="module")
def vectors():
    """200 rows of five features, which depend on two sources."""
    rng = np.random.default_rng(0)
    sources = rng.integers(3, size=(200, 2))
    return np.hstack([sources, sources @ rng.normal(size=(2, 3))]) + 0.3 * rng.normal(size=(200, 5)), sources


@pytest.fixture(scope="module")
def run(vectors, tmp_path_factory):
    """A run of 180 of the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qlae.train("qlae", vectors[0], out=tmp_path_factory.mktemp("held-out") / "run", **QUICK)


def r2_by_hand(model, rows):
    """R² of rows, standardised as in the training, from the public interface alone."""
    offset, scale = map(np.array, (model.observations.offset, model.observations.scale))
    inputs, outputs = ((array - offset) / scale for array in (rows, np.asarray(model.decode(model.encode(rows)))))
    return 1 - np.square(inputs - outputs).sum() / np.square(inputs - inputs.mean(0)).sum()


def test_both_scores_are_those_computed_by_hand(run, vectors):
    results, data, model = run.results, qlae.load_data(vectors[0]), qlae.load(run.path)
    assert (results["num_samples"], results["held_out"]["num_samples"]) == (180, 20)
    assert results["averaged"]["r2"] == pytest.approx(r2_by_hand(model, vectors[0][data.training_rows]), abs=1e-6)
    expected = r2_by_hand(model, vectors[0][data.held_out_rows])
    assert (
        results["averaged"]["held_out_r2"] == results["held_out"]["averaged"]["r2"] == pytest.approx(expected, abs=1e-6)
    )
    assert results["raw"]["held_out_r2"] != results["averaged"]["held_out_r2"]


def test_the_table_shows_both(run, capsys):
    print_results([run])
    shown = capsys.readouterr().out
    assert "held-out R²" in shown
    assert f"{run.results['averaged']['held_out_r2']:.3f}" in shown


def test_the_table_shows_both_accuracies_of_categories(vectors, tmp_path, capsys):
    frame = pd.DataFrame(vectors[0], columns=list("abcde")).assign(group=np.array(["x", "y", "z"])[vectors[1][:, 0]])
    run = qlae.train("qlae", frame, out=tmp_path / "run", **QUICK | {"steps": 20})
    scores, held_out = run.results["averaged"], run.results["held_out"]["averaged"]
    assert scores["held_out_accuracy"] == held_out["accuracy"] != scores["accuracy"]
    capsys.readouterr()
    print_results([run])
    shown = capsys.readouterr().out
    assert shown.index("accuracy") < shown.index("held-out accuracy") < shown.index("most frequent")
    assert f"{held_out['accuracy']:.3f}" in shown


@pytest.mark.parametrize(
    ("scores", "warns"),
    [
        ({"r2": 0.9, "held_out_r2": 0.86}, False),
        ({"r2": 0.9, "held_out_r2": 0.84}, True),
        ({"psnr": 30.0, "held_out_psnr": 29.1}, False),
        ({"psnr": 30.0, "held_out_psnr": 28.9}, True),
        ({"accuracy": 0.9, "held_out_accuracy": 0.84}, True),
        ({"r2": 0.5, "held_out_r2": 0.9}, False),
        ({"r2": 0.5}, False),
    ],
)
def test_a_gap_is_a_warning(scores, warns):
    assert (describe_gap(scores) is not None) == warns


def test_a_model_that_learns_by_heart_is_noticed(tmp_path):
    noise = np.random.default_rng(0).normal(size=(120, 8))
    with pytest.warns(UserWarning, match="on held-out rows"):
        run = qlae.train("qlae", noise, out=tmp_path / "run", **QUICK | {"num_latents": 8, "steps": 800})
    assert any("held-out rows" in warning for warning in run.results["warnings"])


def test_other_data_are_scored_next_to_the_run(run, vectors, tmp_path):
    before = run.results_path.read_bytes()
    other = vectors[0] + 0.1
    results = qlae.evaluate(run, data=other, show=False)
    assert run.results_path.read_bytes() == before
    assert results["num_samples"] == 200
    assert results["averaged"]["r2"] == pytest.approx(r2_by_hand(qlae.load(run.path), other), abs=1e-6)
    folder = run.path / "evaluations" / "array"
    assert Run(folder).results["averaged"] == results["averaged"]
    qlae.evaluate(run, data=other, show=False)
    assert [path.name for path in folder.parent.iterdir()] == ["array"]
    qlae.evaluate(run, data=other + 1, show=False)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["array", "array-2"]
    with pytest.raises(ValueError, match="features"):
        qlae.evaluate(run, data=other[:, :3], show=False)


def test_the_same_data_are_an_ordinary_evaluation(run, vectors):
    before = run.results
    for data in (vectors[0], qlae.load_data(vectors[0], hold_out=0.5)):
        results = qlae.evaluate(run, data=data, show=False)
        assert results["held_out"] == before["held_out"]
        assert results["averaged"] == before["averaged"]


def evaluate(run, path):
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", str(run.path), "--data", str(path), "--quiet"])
    assert ended.value.code == 0


def test_files_of_other_data_are_read_as_those_of_the_training(vectors, tmp_path, capsys):
    frame = pd.DataFrame(vectors[0], columns=list("abcde")).assign(label=vectors[1][:, 0], patient=np.arange(200) // 5)
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.iloc[:100].drop(columns=["patient", "label"]).to_csv(tmp_path / "other.csv", index=False)
    data = qlae.load_data(tmp_path / "x.csv", group_column="patient", source_columns=["label"])
    run = qlae.train("qlae", data, out=tmp_path / "run", **QUICK | {"steps": 20})
    before = run.results
    evaluate(run, tmp_path / "other.csv")
    assert "evaluations/other" in capsys.readouterr().out
    assert "infom" not in Run(run.path / "evaluations" / "other").results["averaged"]
    assert run.results == before
    evaluate(run, tmp_path / "x.csv")
    assert run.results["held_out"] == before["held_out"]


def test_many_held_out_rows_are_scored_by_their_sources_too(vectors, tmp_path):
    rows, sources = (np.tile(array, (6, 1)) for array in vectors)
    data = qlae.load_data(rows + 0.01 * np.random.default_rng(1).normal(size=rows.shape), sources=sources, hold_out=0.5)
    run = qlae.train("qlae", data, out=tmp_path / "run", **QUICK | {"steps": 50})
    assert 0 <= run.results["held_out"]["averaged"]["infom"] <= 1
    fresh = run.results
    results = rescore_run(run, metrics="mig", show=False)
    assert "mig" in results["held_out"]["averaged"]
    assert results["averaged"]["held_out_r2"] == fresh["averaged"]["held_out_r2"]


def test_damaged_scores_of_held_out_rows_are_noticed(run, tmp_path):
    content = json.loads(run.results_path.read_text())
    content.pop("sha256", None)
    content["held_out"]["averaged"]["r2"] = "much"
    (tmp_path / "results.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="held_out"):
        _ = Run(tmp_path).results


def test_the_estimator_has_both_scores(vectors):
    estimator = qlae.QLAE(num_latents=3, steps=200, random_state=0).fit(vectors[0])
    rows = estimator.held_out_rows_
    assert len(rows) == 20
    assert estimator.held_out_score_ == pytest.approx(estimator.score(vectors[0][rows]), abs=1e-9)
    assert estimator.training_score_ == pytest.approx(estimator.score(np.delete(vectors[0], rows, axis=0)), abs=1e-9)
    whole = qlae.QLAE(num_latents=3, steps=20, random_state=0, hold_out=0).fit(vectors[0])
    assert whole.held_out_rows_ == []
    assert np.isnan(whole.held_out_score_)


def test_other_tables_with_categories_and_gaps_are_scored(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": random.choice(["red", "blue"], 100), "size": random.normal(size=100)})
    frame.loc[::9, "size"] = np.nan
    frame.to_csv(tmp_path / "first.csv", index=False)
    frame[:40].assign(note="new").to_csv(tmp_path / "other.csv", index=False)
    options = {"size": "small", "steps": 4, "batch_size": 8, "num_latents": 2, "show": False, "evaluate": False}
    run = qlae.train("qlae", str(tmp_path / "first.csv"), out=tmp_path / "run", **options)
    assert read_scored(tmp_path / "first.csv", run).hold_out == 0.1
    other = read_scored(tmp_path / "other.csv", run)
    assert (len(other), other.observations) == (40, run.config.data.observations)
    assert evaluation_folder(run, other).name == "other"
