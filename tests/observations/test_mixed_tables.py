"""Tables with categories, dates and missing values: features, loss, scores, and the way back to a data frame."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

import qlae
from qlae.config import DataConfig
from qlae.data import data_config
from qlae.data.table_encoding import decode_rows, encode_rows, with_gaps
from qlae.explorer.exploration import open_run
from qlae.models.table_form import TableForm
from qlae.scoring.table_fidelity import TableFidelity

NUM_ROWS = 60
rng = np.random.default_rng(0)
GROUP = rng.integers(0, 3, NUM_ROWS)
FRAME = pd.DataFrame(
    {
        "city": pd.Series(np.array(["Bonn", "Kiel", "Ulm"])[GROUP]).mask(rng.random(NUM_ROWS) < 0.1),
        "age": 20 + 10 * GROUP + rng.integers(0, 5, NUM_ROWS),
        "weight": pd.Series(rng.normal(60 + GROUP, 1)).mask(rng.random(NUM_ROWS) < 0.2),
        "smokes": GROUP > 0,
        "visit": pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, NUM_ROWS), unit="D")),
        "grade": pd.Categorical(np.array(["low", "mid", "high"])[GROUP], ["low", "mid", "high", "never"]),
        "patient": [f"p{i}" for i in rng.permutation(NUM_ROWS)],
    }
)
OBSERVED = list(FRAME.columns[:-1])


@pytest.fixture(scope="module")
def data():
    return qlae.load_data(FRAME, column_kinds={"patient": "identifier"}, date_parts=["weekday", "hour"])


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    run = qlae.train(
        "qlae",
        data,
        out=tmp_path_factory.mktemp("runs") / "run",
        size="small",
        steps=20,
        batch_size=16,
        num_latents=3,
        show=False,
    )
    assert set(run.results["averaged"]) >= {"r2", "r2_numbers", "accuracy", "majority", "columns"}
    return run


@pytest.fixture(scope="module")
def model(run):
    return qlae.load(run.path)


def test_each_column_has_its_features(data):
    names = data.observations.feature_names
    assert names[:3] == ("city=Bonn", "city=Kiel", "city=Ulm")
    assert names[3:6] == ("age", "weight", "weight is missing")
    assert names[6:8] == ("smokes=False", "smokes=True")
    assert names[8:11] == ("visit", "visit weekday (sin)", "visit weekday (cos)")  # dates without times have no hour
    assert names[11:] == ("grade=low", "grade=mid", "grade=high")  # in the order of the categories
    np.testing.assert_array_equal(data.images[:, 3], FRAME["age"])
    gaps = FRAME["weight"].isna()
    np.testing.assert_array_equal(data.images[:, 5], gaps)
    np.testing.assert_allclose(data.images[gaps, 4], FRAME["weight"].mean())
    np.testing.assert_array_equal(data.images[:, :3].sum(1), FRAME["city"].notna())
    assert data.ids["patient"].tolist() == FRAME["patient"].tolist()


def test_numbers_without_gaps_stay_vectors():
    frame = pd.DataFrame({"a": rng.normal(size=20), "b": rng.permutation(20) * 2})
    data = qlae.load_data(frame)
    assert (
        data.observations
        == qlae.load_data(np.ascontiguousarray(frame.to_numpy(float)), feature_names=["a", "b"]).observations
    )
    assert "columns" not in data.observations.to_dict()


def test_files_and_frames_give_the_same_features(data, tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    options = {"column_kinds": {"patient": "identifier"}, "date_parts": ["weekday", "hour"]}
    read = qlae.load_data(tmp_path / "t.csv", **options)
    same = [i for i, name in enumerate(data.observations.feature_names) if not name.startswith("grade=")]
    np.testing.assert_array_equal(read.images[:, same], data.images[:, same])
    assert read.checksum == qlae.load_data(tmp_path / "t.csv", **options).checksum


def test_rows_come_back_with_their_types(data):
    frame = decode_rows(data.images, data.observations)
    assert list(frame) == OBSERVED
    for name in OBSERVED:
        expected = (
            FRAME[name].astype(str).where(FRAME[name].notna(), None) if name in ("city", "grade") else FRAME[name]
        )
        assert frame[name].isna().equals(FRAME[name].isna())
        known = FRAME[name].notna()
        if name == "weight":
            np.testing.assert_allclose(frame[name][known], expected[known])
        else:
            assert frame[name][known].tolist() == expected[known].tolist()
    assert frame["age"].dtype == np.int64
    assert frame["smokes"].dtype == bool
    assert frame["visit"].dtype.kind == "M"


def test_gaps_can_be_shown(data):
    shown = with_gaps(data.images, data.observations)
    np.testing.assert_array_equal(np.isnan(shown[:, 4]), FRAME["weight"].isna())
    np.testing.assert_array_equal(np.isnan(shown[:, :3]).all(1), FRAME["city"].isna())
    known = ~np.isnan(shown)
    np.testing.assert_array_equal(shown[known], data.images[known])
    assert known[:, 5].all()


def test_the_config_holds_the_columns(data):
    content = data_config(data).to_dict()
    assert DataConfig.from_dict(content, "config.data").observations == data.observations


def test_every_column_counts_the_same_in_the_loss(data):
    observations, form = data.observations, TableForm(data.observations)
    inputs = form.to_input(torch.from_numpy(data.images))
    outputs = torch.from_numpy(rng.normal(size=inputs.shape).astype(np.float32))
    x, y = inputs.double().numpy(), outputs.double().numpy()

    def category(places, row):
        level = x[row, places].argmax()
        counts = x[:, places].sum(0) / x[:, places].sum()
        entropy = -sum(share * math.log(share) for share in counts)
        logits = y[row, places]
        return (np.log(np.exp(logits).sum()) - logits[level]) / (2 * entropy) if x[row, places].any() else 0.0

    expected = np.zeros(NUM_ROWS)
    for row in range(NUM_ROWS):
        squares = (x[row] - y[row]) ** 2 / 2
        expected[row] = (
            category([0, 1, 2], row)
            + squares[3]
            + squares[4] * (1 - x[row, 5])
            + category([6, 7], row)
            + (squares[8] + (squares[9] + squares[10]) / 2) / 2
            + category([11, 12, 13], row)
        )
    np.testing.assert_allclose(form.nats(outputs, inputs).numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(form.error(outputs, inputs), expected.mean() / len(observations.columns), rtol=1e-5)


def test_a_guess_of_means_and_shares_costs_one_half_per_column(data):
    form = TableForm(data.observations)
    inputs = form.to_input(torch.from_numpy(data.images))
    outputs = torch.zeros_like(inputs)
    for column, start in zip(data.observations.columns, (0, 3, 4, 6, 8, 11), strict=True):
        if column.kind == "category":
            outputs[:, start : start + len(column.levels)] = torch.tensor(column.shares).log()
    observed = FRAME[OBSERVED].notna().mean().to_numpy()
    assert form.error(outputs, inputs).item() == pytest.approx(0.5 * observed.mean(), rel=1e-5)


def test_missing_values_have_no_gradient(data):
    form = TableForm(data.observations)
    inputs = form.to_input(torch.from_numpy(data.images))
    outputs = torch.randn(inputs.shape, generator=torch.Generator().manual_seed(0), requires_grad=True)
    form.error(outputs, inputs).backward()
    gradient = outputs.grad.numpy()
    assert (gradient[FRAME["weight"].isna(), 4] == 0).all()
    assert (gradient[FRAME["city"].isna(), :3] == 0).all()
    assert (gradient[:, 5] == 0).all()
    assert (gradient[FRAME["weight"].notna(), 4] != 0).all()


def test_means_are_shares(data):
    mean = TableForm(data.observations).to_mean(torch.randn(7, data.observations.num_features))
    for places in ([0, 1, 2], [6, 7], [11, 12, 13]):
        torch.testing.assert_close(mean[:, places].sum(1), torch.ones(7))
    assert (mean[:, 5] == 0).all()


def test_a_model_encodes_frames_and_decodes_to_frames(model, tmp_path):
    codes = model.encode(FRAME)
    shuffled = FRAME[OBSERVED[::-1]].assign(extra=1)
    np.testing.assert_array_equal(model.encode(shuffled), codes)
    FRAME.to_csv(tmp_path / "t.csv")
    np.testing.assert_array_equal(model.encode(tmp_path / "t.csv"), codes)
    decoded = model.decode(codes)
    assert list(decoded) == OBSERVED
    assert decoded.notna().all(axis=None)
    assert decoded["age"].dtype == np.int64
    assert set(decoded["city"]) <= {"Bonn", "Kiel", "Ulm"}
    pd.testing.assert_frame_equal(model.reconstruct(FRAME), decoded)
    assert list(model.sample(2)) == OBSERVED
    array = model.decode(codes, as_array=True)
    pd.testing.assert_frame_equal(decode_rows(array, model.observations), decoded)
    assert len(model.decode(codes[:0])) == 0


def test_one_error_names_all_that_a_model_does_not_take(model):
    wrong = FRAME.drop(columns="age").assign(smokes=None)
    wrong.loc[3, "city"] = "Trier"
    with pytest.raises(ValueError, match="the data frame has 3 problems") as error:
        model.encode(wrong)
    assert "'Trier' in 'city'" in str(error.value)
    assert "or make them missing" in str(error.value)
    assert "lacks the column 'age'" in str(error.value)
    assert "missing values in 'smokes'" in str(error.value)
    with pytest.raises(ValueError, match="missing values in 'age'"):
        model.encode(FRAME.assign(age=FRAME["age"].where(FRAME["age"] > 25)))
    with pytest.raises(ValueError, match="'inf' in 'weight'"):
        model.encode(FRAME.assign(weight=np.inf))
    with pytest.raises(ValueError, match="shape"):
        model.encode(np.zeros((2, 3)))


def test_codes_and_rows_are_a_pair(run, model, tmp_path):
    FRAME.to_csv(tmp_path / "t.csv")
    table = qlae.encode(run.path, data=tmp_path / "t.csv", out=tmp_path / "codes.csv", show=False)
    assert list(table) == ["index", "patient", "z0", "z1", "z2"]
    assert table["patient"].tolist() == FRAME["patient"].tolist()
    decoded = qlae.decode(run.path, tmp_path / "codes.csv", out=tmp_path / "rows.csv", show=False)
    pd.testing.assert_frame_equal(decoded, model.reconstruct(FRAME))
    assert list(pd.read_csv(tmp_path / "rows.csv")) == ["index", "patient", *OBSERVED]
    saved = qlae.load(model.save_pretrained(tmp_path / "export"))
    np.testing.assert_array_equal(saved.encode(FRAME), model.encode(FRAME))


def test_the_explorer_shows_columns(run, data):
    exploration = open_run(run.path, data=data, show=False)
    described = exploration.view.describe(lambda: data.images)
    assert described["kind"] == "tables"
    assert described["names"] == list(data.observations.feature_names)
    assert [column["name"] for column in described["columns"]] == OBSERVED
    assert exploration.decode(exploration.codes[:2]).shape == (2, 14)


def test_scores_of_tables_by_hand(data):
    form = TableForm(data.observations)
    inputs = form.to_input(torch.from_numpy(data.images))
    fidelity = TableFidelity(form, data.images)
    outputs = inputs.clone()
    outputs[:, :3] *= 20
    outputs[:, 3] = 0  # the mean age
    outputs[:, 6], outputs[:, 7] = 5.0, 0.0  # nobody smokes
    outputs[:, 11:] *= 20
    fidelity.add(outputs[:40], inputs[:40])
    fidelity.add(outputs[40:], inputs[40:])
    scores = TableFidelity.score(fidelity.arrays())
    columns = dict(zip(OBSERVED, scores["columns"], strict=True))
    assert columns["city"]["accuracy"] == 1
    assert columns["city"]["majority"] == pytest.approx(FRAME["city"].value_counts(normalize=True).max(), abs=1e-6)
    assert columns["city"]["observed"] == FRAME["city"].notna().sum()
    assert columns["age"]["r2"] == pytest.approx(0, abs=1e-6)
    assert columns["weight"]["r2"] == 1
    assert columns["smokes"]["accuracy"] == pytest.approx(1 - FRAME["smokes"].mean(), abs=1e-6)
    assert scores["r2_numbers"] == pytest.approx(2 / 3, abs=1e-6)
    majority = [FRAME[name].value_counts(normalize=True).max() for name in ("city", "smokes", "grade")]
    assert scores["majority"] == pytest.approx(np.mean(majority), abs=1e-6)
    assert scores["accuracy"] == pytest.approx((2 + 1 - FRAME["smokes"].mean()) / 3, abs=1e-6)


def test_statistics_are_those_of_training_rows(data):
    held = data.with_hold_out(0.4)
    rows, gaps = held.training_rows, FRAME["weight"].isna()
    assert len(rows) < NUM_ROWS
    assert held.observations.offset[4] == pytest.approx(FRAME["weight"].iloc[rows].mean())
    np.testing.assert_allclose(held.images[gaps, 4], held.observations.offset[4])
    shares = FRAME["city"].iloc[rows].value_counts(normalize=True)
    assert held.observations.columns[0].shares == pytest.approx(shares.sort_index().tolist())
    assert held.observations.difference(data.observations) is None
    back = held.with_hold_out(0)
    assert back.observations == data.observations
    np.testing.assert_array_equal(back.images, data.images)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["x", "y"] * 10 + [f"v{i}" for i in range(30)]}, r"too many different values in 'a' \(32 in 50 rows\)"),
        ({"a": ["1", "2", "3", "n.d."] * 12 + ["4", "5"]}, r"text among the numbers in 'a' \('n.d.' in line 5\)"),
        ({"a": ["31.12.2020", "01/02/2021"] * 25}, r"has dates in 'a' \('31.12.2020' in line 2\): write them as year"),
        ({"a": ["", "?"] * 25}, "no value at all in 'a'"),
        ({"a": ["x", "y" * 300] * 25}, r"long text in 'a' \(300 characters\)"),
        ({"a": [f"{i % 7},5" for i in range(50)]}, "decimal comma in 'a'"),
    ],
)
def test_columns_that_cannot_be_used_say_what_to_do(tmp_path, columns, message):
    frame = pd.DataFrame(columns).assign(b=np.linspace(0, 1, 50))
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    with pytest.raises(ValueError, match=message):
        qlae.load_data(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "values",
    [np.arange(20) * 1j, pd.to_timedelta(np.arange(20), unit="h"), [[1, 2]] * 20, [{"a": 1}] * 20, [b"a"] * 20],
    ids=["complex", "timedelta", "lists", "dictionaries", "bytes"],
)
def test_cells_of_other_types_are_refused(values):
    with pytest.raises(ValueError, match="cells that are no numbers, text or dates in 'a'"):
        qlae.load_data(pd.DataFrame({"a": values, "b": np.linspace(0, 1, 20)}))


def test_kinds_can_be_chosen(tmp_path):
    frame = pd.DataFrame({"zip": np.repeat([53111, 24103, 89073], 10), "note": ["1", "2", "x"] * 10, "a": 0.5})
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = qlae.load_data(tmp_path / "t.csv", column_kinds={"zip": "category", "note": "category"})
    assert [column.kind for column in data.observations.columns] == ["category", "category", "number"]
    assert decode_rows(data.images, data.observations)["zip"].tolist() == frame["zip"].tolist()
    np.testing.assert_array_equal(encode_rows(frame, data.observations, "it"), data.images)


def test_time_zones_are_kept():
    times = pd.date_range("2024-03-30 22:00", periods=30, freq="h", tz="Europe/Berlin").to_series()
    frame = pd.DataFrame({"when": times.sample(frac=1, random_state=0).reset_index(drop=True), "a": range(0, 60, 2)})
    data = qlae.load_data(frame)
    back = decode_rows(data.images, data.observations)["when"]
    assert back.tolist() == frame["when"].tolist()
    text = frame.assign(when=frame["when"].dt.tz_convert("UTC").astype(str))
    np.testing.assert_array_equal(qlae.load_data(text).images, data.images)
