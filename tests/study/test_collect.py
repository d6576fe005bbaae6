"""The table of all runs of a study: a row per run, a column per setting and score."""

import pandas as pd
import pytest
from study_fixtures import INFOM, SEEDS

import qlae


def test_one_row_per_planned_run_with_settings_and_scores_of_both_weights(folder):
    runs = qlae.study.collect(folder.path)
    assert len(runs) == 2 * 3 * 4  # data sets × models × seeds
    assert runs.run.is_unique
    done = runs[runs.state == "done"].set_index(["data", "model", "seed"]).sort_index()
    for (data, model), values in INFOM.items():
        assert done.loc[(data, model)].infom.tolist() == list(values)
        assert done.loc[(data, model)].index.tolist() == list(SEEDS)
    assert (done.infom - done.raw_infom).to_numpy() == pytest.approx(0.1)
    assert set(done.weights) == {"averaged"}
    assert set(done["training.steps"]) == {30_000}
    assert done.loc[("shapes3d", "qlae", 2), "latent.kind"] == "quantized"
    failed = runs[runs.state == "failed"]
    assert failed.run.tolist() == ["shapes3d/ae/s5"]
    assert failed.error.tolist() == ["ValueError: <no> luck"]
    assert not runs[runs.state != "done"].counts.any()


def test_the_weights_of_plain_names_can_be_chosen(folder):
    averaged, raw = qlae.study.collect(folder.path), qlae.study.collect(folder.path, scored_weights="raw")
    pd.testing.assert_series_equal(raw.infom, averaged.raw_infom, check_names=False)
    pd.testing.assert_series_equal(raw.averaged_infom, averaged.infom, check_names=False)
    assert "raw_infom" not in raw
    with pytest.raises(ValueError, match="scored_weights 'ema'"):
        qlae.study.collect(folder.path, scored_weights="ema")


def test_the_tables_of_a_report_are_expressions_over_the_table(folder):
    runs = qlae.study.collect(folder.path)
    means = runs[runs.counts].groupby(["data", "model"]).infom.mean()
    assert means["shapes3d", "qlae"] == pytest.approx(0.95)
