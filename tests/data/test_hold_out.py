"""Which rows are held out, and that nothing of a training depends on them."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import qlae
from qlae.data import DATA, data_config, data_spec, load_from_config
from qlae.data.hold_out import split_rows
from qlae.runs import checkpoint

QUICK = {"size": "small", "steps": 20, "num_latents": 2, "show": False, "evaluate": False}


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(3.0, 2.0, size=(200, 4))


def weights_of(run):
    return checkpoint.load(run.path).tensors


@pytest.mark.parametrize(("num_rows", "expected"), [(79, 0), (80, 20), (120, 20), (300, 30), (200_000, 10_000)])
def test_how_many_rows_are_held_out(num_rows, expected):
    training, held_out = split_rows(num_rows, 0.1)
    assert len(held_out) == expected
    assert np.array_equal(np.sort(np.concatenate([training, held_out])), np.arange(num_rows))


def test_the_split_never_changes():
    assert split_rows(100, 0.2).held_out.tolist()[:5] == [2, 4, 6, 18, 32]
    assert not len(split_rows(100, 0).held_out)


def test_groups_stay_together():
    groups = np.random.default_rng(1).choice([f"patient {i}" for i in range(40)], size=1000)
    training, held_out = split_rows(1000, 0.1, groups=groups)
    assert not set(groups[training]) & set(groups[held_out])
    assert 70 <= len(held_out) <= 130
    assert len(training) + len(held_out) == 1000


def test_large_groups_and_a_single_one():
    groups = np.repeat([0, 1, 2], [100, 60, 140])
    assert split_rows(300, 0.1, groups=groups).held_out.tolist() == list(range(100, 160))
    assert not len(split_rows(300, 0.1, groups=np.zeros(300)).held_out)


@pytest.mark.parametrize("num_recordings", [1, 3])
def test_windows_that_overlap_are_on_one_side(num_recordings):
    starts = np.tile(np.arange(0, 1600, 16), num_recordings)
    spans = np.stack([starts, starts + 64], axis=1)
    units = np.repeat(np.arange(num_recordings), 100)
    training, held_out = split_rows(len(starts), 0.1, groups=units, spans=spans)
    assert len(held_out) == max(20, 10 * num_recordings)
    for unit in range(num_recordings):
        own = [rows[units[rows] == unit] for rows in (training, held_out)]
        assert spans[own[0], 1].max() <= spans[own[1], 0].min()
    assert len(training) + len(held_out) == len(starts) - 3 * num_recordings  # which cross the cut


def test_whole_recordings_are_held_out_if_there_are_many():
    starts = np.tile(np.arange(0, 160, 16), 20)
    units = np.repeat(np.arange(20), 10)
    training, held_out = split_rows(200, 0.1, groups=units, spans=np.stack([starts, starts + 64], axis=1))
    assert not set(units[training]) & set(units[held_out])
    assert len(training) + len(held_out) == 200


@pytest.mark.parametrize("share", [1, 1.5, -0.1, "much", True, float("nan")])
def test_impossible_shares(share, table):
    with pytest.raises(ValueError, match="hold_out"):
        qlae.load_data(table, hold_out=share)


def test_data_of_the_user_are_split_and_the_papers_are_not(table, tmp_path):
    np.save(tmp_path / "x.npy", table)
    pd.DataFrame(table, columns=list("abcd")).to_csv(tmp_path / "x.csv", index=False)
    for word in (table, str(tmp_path / "x.npy"), str(tmp_path / "x.csv"), pd.DataFrame(table), torch.tensor(table)):
        data = qlae.load_data(word)
        assert len(data.held_out_rows) == 20
        assert np.array_equal(data.held_out_rows, split_rows(200, 0.1).held_out)
        assert np.allclose(data.observations.offset, np.asarray(data.images)[data.training_rows].mean(0), rtol=1e-12)
        assert len(qlae.load_data(word, hold_out=0).training_rows) == 200
    for name in ("shapes3d", "pendulum", "digits"):
        assert not len(qlae.load_data(name, hold_out=0).held_out_rows)
        assert not len(qlae.load_data(name).held_out_rows)
        with pytest.raises(ValueError, match="hold_out does not apply"):
            qlae.load_data(name, hold_out=0.1)


def test_the_split_is_part_of_the_description(table, tmp_path):
    np.save(tmp_path / "x.npy", table)
    config = data_config(qlae.load_data(str(tmp_path / "x.npy"), hold_out=0.25))
    again = type(config).from_dict(json.loads(json.dumps(config.to_dict())), "data")
    assert again == config
    assert (config.held_out.num_rows, config.num_training) == (50, 150)
    assert np.array_equal(load_from_config(again).held_out_rows, split_rows(200, 0.25).held_out)
    assert "held-out" in config.difference(data_config(qlae.load_data(str(tmp_path / "x.npy"))))
    # A description from before rows were held out is of data that were trained on as a whole.
    old = DATA.to_dict(data_spec(str(tmp_path / "x.npy")))
    del old["hold_out"]
    assert len(DATA.from_dict(old, "spec").load().training_rows) == 200


def test_nothing_of_a_training_depends_on_rows_that_are_held_out(table, tmp_path):
    rows = split_rows(200, 0.1).held_out
    other = table.copy()
    other[rows] = 1e3
    one = qlae.train("qlae", table, out=tmp_path / "one", **QUICK)
    two = qlae.train("qlae", other, out=tmp_path / "two", **QUICK)
    assert all(torch.equal(tensor, weights_of(two)[name]) for name, tensor in weights_of(one).items())
    other[split_rows(200, 0.1).training[0]] += 1.0
    three = qlae.train("qlae", other, out=tmp_path / "three", **QUICK)
    assert not all(torch.equal(tensor, weights_of(three)[name]) for name, tensor in weights_of(one).items())


def test_a_run_without_hold_out_says_nothing_of_it(table, tmp_path):
    plain = qlae.train("qlae", qlae.load_data(table, hold_out=0), out=tmp_path / "plain", **QUICK)
    assert "held_out" not in json.loads(plain.config_path.read_text())["data"]


def test_a_resumed_run_keeps_its_split(table, tmp_path):
    groups = np.arange(200) // 4
    run = qlae.train("qlae", qlae.load_data(table, hold_out=0.3, groups=groups), out=tmp_path / "run", **QUICK)
    before = run.config.data
    with pytest.raises(ValueError, match="groups"):
        qlae.resume(run.path, data=table, steps=30, show=False, evaluate=False)
    qlae.resume(run.path, data=qlae.load_data(table, groups=groups), steps=30, show=False, evaluate=False)
    assert run.config.data == before
    with pytest.raises(ValueError, match="held_out"):
        qlae.train("qlae", table, out=run.path, **QUICK)


def test_too_few_rows_are_a_warning(table, tmp_path):
    with pytest.warns(UserWarning, match="no rows of array are held out: 50 vectors are too few"):
        qlae.train("qlae", table[:50], out=tmp_path / "run", **QUICK)


def test_a_column_of_groups_is_no_feature(table, tmp_path):
    frame = pd.DataFrame(table, columns=list("abcd")).assign(patient=[f"p{i % 25}" for i in range(200)])
    frame.to_csv(tmp_path / "x.csv", index=False)
    for word in (frame, str(tmp_path / "x.csv")):
        data = qlae.load_data(word, group_column="patient")
        assert data.observations.feature_names == tuple("abcd")
        training, held_out = (set(frame.patient[rows]) for rows in data.split)
        assert held_out
        assert not training & held_out
    for options, expected in (
        ({"group_column": "doctor"}, "doctor"),
        ({"group_column": "patient", "source_columns": ["patient"]}, "group_column"),
    ):
        with pytest.raises(ValueError, match=expected):
            qlae.load_data(str(tmp_path / "x.csv"), **options)
    with pytest.raises(ValueError, match="missing values in 'patient'"):
        qlae.load_data(frame.assign(patient=["p", None] * 100), group_column="patient")
    with pytest.raises(ValueError, match="groups=labels"):
        qlae.load_data(table, group_column="patient")
    with pytest.raises(ValueError, match="one label for each of 200 rows"):
        qlae.load_data(table, groups=[1, 2])


def test_images_are_grouped_by_a_column_of_their_csv(tmp_path):
    for number in range(100):
        Image.new("RGB", (16, 16), (number, 0, 0)).save(tmp_path / f"{number:03}.png")
    lines = ["file,cat,owner", *(f"{number:03}.png,{number % 2},{number // 10}" for number in range(100))]
    (tmp_path / "sources.csv").write_text("\n".join(lines))
    options = {"resolution": 16, "source_file": tmp_path / "sources.csv"}
    data = qlae.load_data(tmp_path, group_column="owner", **options)
    owners = np.array([int(name[:3]) // 10 for name in data.file_names])
    assert data.source_names == ("cat",)
    assert not set(owners[data.training_rows]) & set(owners[data.held_out_rows])
    assert len(data.held_out_rows) == 20
    with pytest.raises(ValueError, match="owners"):
        qlae.load_data(tmp_path, group_column="owners", **options)
    with pytest.raises(ValueError, match="source_file"):
        qlae.load_data(tmp_path, resolution=16, group_column="owner")


def test_windows_of_one_recording_are_held_out_in_time(tmp_path):
    signal = np.random.default_rng(0).normal(size=(3000, 2))
    np.save(tmp_path / "x.npy", signal)
    for word in (signal, str(tmp_path / "x.npy")):
        data = qlae.load_data(word, window=64, stride=16)
        training, held_out = data.split
        assert len(held_out) == 20
        assert len(training) == len(data) - 20 - 3
        last = 16 * training[-1] + 64
        assert last <= 16 * held_out[0]
        assert np.allclose(data.observations.offset, np.asarray(data.images[training]).mean((0, 1)))
    with pytest.raises(ValueError, match="unit_column"):
        qlae.load_data(signal, window=64, groups=np.zeros(3000))
