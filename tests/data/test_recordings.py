"""Recordings: tables and arrays with one row per time step, which become windows."""

import warnings

import numpy as np
import pandas as pd
import pytest

import qlae
from qlae.cli import main
from qlae.data import data_config, load_from_config
from qlae.data.recordings import to_seconds
from qlae.data.windows import Windows, sources_of_windows

HOW = {"window": 10, "stride": 5, "unit_column": "machine", "time_column": "when"}


def machine(name, num_rows, start=0.0):
    """Return the rows of one unit, one per second, whose channel x counts them."""
    when = start + np.arange(num_rows, dtype=float)
    return pd.DataFrame({"machine": name, "when": when, "x": np.arange(num_rows) + 0.5, "y": np.sin(when)})


def load_quietly(source, **options):
    """Return the data and the text of the one warning that loading them gives, if there is one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = qlae.load_data(source, **options)
    assert len(caught) <= 1
    return data, str(caught[0].message) if caught else ""


def test_windows_of_units_in_order():
    frame = pd.concat([machine("b", 20), machine("a", 17)])
    data, message = load_quietly(frame, **HOW)
    assert message == ""
    assert data.observations.kind == "series"
    assert data.observations.feature_names == ("x", "y")
    assert data.images.shape == (5, 10, 2)
    assert data.ids["machine"].tolist() == ["b", "b", "b", "a", "a"]
    assert data.ids["when"].tolist() == [0, 5, 10, 0, 5]
    assert data.images[:][:, :, 0].tolist() == [[s + k + 0.5 for k in range(10)] for s in (0, 5, 10, 0, 5)]
    assert np.array_equal(data.images[1], data.images[[0, 1]][1])
    assert np.array_equal(np.asarray(data.images), data.images[:])


def test_windows_are_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1000, 2), np.float32))
    data = qlae.load_data(tmp_path / "x.npy", window=64, stride=1)
    assert isinstance(data.images, Windows)
    assert not data.images.rows.flags.owndata
    assert not data.images.rows.flags.writeable
    assert data.images.shape == (937, 64, 2)
    assert data.ids["row"].tolist() == list(range(937))


@pytest.mark.parametrize("dates", [False, True])
def test_everything_that_is_wrong_is_in_one_message(dates, tmp_path):
    frame = pd.concat([machine("b", 60), machine("a", 40), machine("short", 9)], ignore_index=True)
    frame = frame.drop(index=range(20, 25))  # a gap
    frame.loc[70, "x"] = np.nan
    frame.loc[95:, "when"] += 0.3  # one long step
    frame = pd.concat([frame, frame.iloc[[3, 4]]])  # duplicates, out of order
    if dates:
        frame["when"] = pd.Timestamp("2024-02-28 23:59:50") + pd.to_timedelta(frame["when"], unit="s")
    frame.to_csv(tmp_path / "t.csv", index=False)
    data, message = load_quietly(tmp_path / "t.csv", **HOW)
    assert "t.csv: 14 windows of 10 rows, 5 apart. " in message
    for part in (
        "time runs backwards at 1 row: sorted by 'when'",
        "2 duplicate times, of which the first row is used",
        "1 gap in 1 unit, which no window spans",
        "irregular sampling: 1 step from 1.3 to 1.3, the usual is 1;",
        "1 row with missing or infinite values",
        "1 unit shorter than a window, left out: short",
    ):
        assert part in message
    first = data.images[:][:, 0, 0] - 0.5
    units = data.ids["machine"].to_numpy()
    assert first[units == "b"].tolist() == [0, 5, 10, *range(25, 51, 5)]
    assert first[units == "a"].tolist() == [0, *range(11, 31, 5)]
    assert (np.diff(data.images[:][:, :, 0], axis=1) == 1).all()
    assert len(data.details["windows"]["remarks"]) == 6


def test_a_source_is_the_most_frequent_value_or_the_mean():
    frame = machine("a", 20).assign(mode=["idle"] * 8 + ["run"] * 12, level=[1] * 12 + [2] * 8, load=np.arange(20) / 4)
    data, message = load_quietly(frame, **HOW, source_columns=["mode", "level", "load"])
    assert data.source_names == ("mode", "level", "load")
    assert data.sources[:, 0].tolist() == [0, 1, 1]
    assert data.sources[:, 1].tolist() == [0, 0, 1]
    np.testing.assert_allclose(data.sources[:, 2], [9 / 8, 19 / 8, 29 / 8])
    assert "'mode' varies in 2 windows: its most frequent value or mean is used" in message
    assert sources_of_windows(["b", "a", "b", "a"], np.array([0]), 4) == (["b"], 1)  # of equal counts the first


def test_arrays_with_and_without_units(tmp_path):
    array = np.random.default_rng(0).normal(size=(3, 30, 2))
    data = qlae.load_data(array, window=12, feature_names=["u", "v"])  # a stride of 3
    assert data.images.shape == (21, 12, 2)
    assert np.array_equal(data.images[8], array[1, 3:15])
    assert data.ids.iloc[8].tolist() == [1, 3]
    assert qlae.load_data(array[0, :, 0], window=12).images.shape == (7, 12, 1)
    np.save(tmp_path / "x.npy", array[0])
    again = load_from_config(data_config(qlae.load_data(tmp_path / "x.npy", window=12, stride=2)))
    assert np.array_equal(again.images[3], array[0, 6:18])
    assert qlae.data.data_spec(tmp_path / "x.npy", window=12).preview().shape == (12, 2)


def test_rows_stay_in_order_without_times(tmp_path):
    frame = pd.concat([machine("b", 12), machine("a", 11)]).drop(columns="when")
    frame.to_parquet(tmp_path / "t.parquet") if pytest.importorskip("pyarrow") else None
    data, message = load_quietly(tmp_path / "t.parquet", window=10, stride=1, unit_column="machine")
    assert message == ""
    assert data.ids.to_numpy().tolist() == [["b", 0], ["b", 1], ["b", 2], ["a", 0], ["a", 1]]


def test_windows_that_are_held_out_share_no_row_with_others():
    few = qlae.load_data(pd.concat([machine(name, 600) for name in "ab"]), **HOW)
    many = qlae.load_data(pd.concat([machine(f"m{i}", 80 + i) for i in range(20)]), **HOW)
    for data in (few, many, qlae.load_data(np.random.default_rng(0).normal(size=(2500, 2)), window=10)):
        assert len(data.held_out_rows) >= 0.09 * len(data)
        rows = [{*np.concatenate([np.arange(s, s + 10) for s in data.images.starts[side]])} for side in data.split]
        assert not rows[0] & rows[1]
    assert set(few.ids["machine"].iloc[few.held_out_rows]) == {"a", "b"}  # the end of each
    units = many.ids["machine"]
    assert not {*units.iloc[many.held_out_rows]} & {*units.iloc[many.training_rows]}  # whole units


def test_times_in_many_forms():
    expected = [0.0, 60.0, 3600.0]
    texts = pd.Series(["2024-03-01 10:00", "2024-03-01 10:01", "2024-03-01 11:00"])
    dates = pd.to_datetime(texts)
    for times in (texts, texts + "+02:00", dates, dates.dt.tz_localize("UTC"), dates - dates[0], dates.astype(object)):
        assert to_seconds(times).tolist() == expected
    assert to_seconds(pd.Series(["1.5", "2"])).tolist() == [1.5, 2]
    assert np.isnan(to_seconds(pd.Series(["2024-03-01", "soon"]))).tolist() == [False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"window": 100, "drop_columns": ["note", "gaps"]},
            r"no window of 100 rows: .* has 40 rows\. .*smaller window",
        ),
        ({"stride": 5, "window": None}, "recordings are cut into windows: choose their number of rows, such as window"),
        ({"window": 4}, "window must be"),
        ({"stride": 0}, "stride must be"),
        ({"time_column": None}, r"has text in 'note', such as 'n0': name the column in unit_column, time_column or"),
        ({"time_column": "note"}, "has no times in 'note': they must be numbers or dates, got 'n0'"),
        ({"unit_column": "machin"}, 'did you mean "machine"'),
        ({"unit_column": "when"}, "'when' is named twice"),
        (
            {"unit_column": None, "drop_columns": ["note", "machine"]},
            "repeat a time in 'when', as rows of",
        ),
        ({"drop_columns": ["note", "gaps", "x", "y"]}, "no column left to observe"),
        ({"source_columns": ["gaps"], "drop_columns": ["note"]}, "missing values in the source 'gaps'"),
    ],
)
def test_what_cannot_be_cut_says_what_to_do(options, message, tmp_path):
    frame = pd.concat([machine("b", 40), machine("a", 40)], ignore_index=True)
    frame = frame.assign(note=[f"n{i}" for i in range(80)], gaps=["1", None] * 40)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source in (frame, tmp_path / "t.csv"):
        with pytest.raises(ValueError, match=message):
            qlae.load_data(source, **HOW | options)


def test_one_long_recording_gets_the_advice_to_cut_windows(tmp_path, capsys):
    array = np.random.default_rng(0).normal(size=(5000, 3))
    with pytest.raises(ValueError, match=r"looks like one long recording of 5,000 time steps.*such as window=64"):
        qlae.load_data(array, layout="series")
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(SystemExit):
        main(["data", "inspect", str(tmp_path / "x.npy"), "--layout", "series"])
    assert "cut it into windows, such as --window 64" in capsys.readouterr().err
    machine("a", 30).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match="to take its rows as time steps, choose a window, such as window=64"):
        qlae.load_data(tmp_path / "t.csv", layout="series")
    with pytest.raises(ValueError, match="to take the rows of a data frame as time steps, choose a window"):
        qlae.load_data(machine("a", 30).drop(columns="machine"), layout="series")
    with pytest.raises(ValueError, match=r"got shape \(5000,\); one long recording can be cut into windows"):
        qlae.load_data(array[:, 0])
    with pytest.raises(ValueError, match=r"if time runs along the last axis, pass array\.T"):
        qlae.load_data(array.T, window=64)
    with pytest.raises(ValueError, match="is an array, which has no columns: leave when out"):
        qlae.load_data(tmp_path / "x.npy", window=64, time_column="when")
    with pytest.raises(ValueError, match="window does not apply to the image files"):
        qlae.load_data(tmp_path, window=64)


def test_a_model_of_windows_encodes_recordings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.concat([machine("b", 60), machine("a", 40)], ignore_index=True)
    frame.to_csv("t.csv", index=False)
    flags = "--window 10 --stride 5 --unit-column machine --time-column when --size small --steps 3 --num-latents 2"
    with pytest.raises(SystemExit) as stop:
        main(["train", "qlae", "--data", "t.csv", *flags.split(), "--out", "run", "--no-evaluate", "--quiet"])
    assert stop.value.code == 0
    model, data = qlae.load("run"), qlae.load_data("t.csv", **HOW)
    codes = model.encode(data)
    assert codes.shape == (18, 2)
    frame.assign(note="extra").to_csv("other.csv", index=False)
    for source in ("t.csv", "other.csv", frame, data.images[:]):
        assert np.array_equal(model.encode(source), codes)
    with pytest.raises(ValueError, match="lacks columns that the model takes: 'when'"):
        model.encode(frame.drop(columns="when"))
    with pytest.raises(ValueError, match=r"looks like one long recording: qlae.load_data\(array, window=10\).images"):
        model.encode(frame[["x", "y"]].to_numpy())


@pytest.mark.parametrize("name", ["when", None])
def test_an_index_of_dates_has_the_times(name, tmp_path):
    index = pd.date_range("2024-05-01", periods=60, freq="1min", name=name)
    frame = machine("a", 60)[["x", "y"]].set_index(index).drop(index[20:25])
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    named = {"time_column": name} if name else {}  # in a CSV, an index with a name is a column like others
    for source, options in ((frame, {}), (tmp_path / "t.csv", named), (tmp_path / "t.parquet", {})):
        data, message = load_quietly(source, window=10, stride=10, **options)
        assert "1 gap, which no window spans" in message
        assert data.observations.feature_names == ("x", "y")
        assert pd.to_datetime(data.ids.iloc[:, 0]).tolist() == [index[at] for at in (0, 10, 25, 35, 45)]
    frame = machine("a", 60)[["x", "y"]]
    frame.to_csv(tmp_path / "n.csv")  # row numbers, which are no times
    assert qlae.load_data(tmp_path / "n.csv", window=10).ids.columns.tolist() == ["row"]
