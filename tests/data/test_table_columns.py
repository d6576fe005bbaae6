"""How columns of tables are used: identifiers, an index, and files of which everything wrong is named at once."""

import numpy as np
import pandas as pd
import pytest

import qlae
from qlae.data.tables import TableFile

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "patient": [f"p{i:03}" for i in rng.permutation(30)],
        "visit_id": rng.permutation(10**6)[:30],
        "year": rng.permutation(1900 + np.arange(30)),
        "age": rng.integers(20, 80, 30),
        "weight": rng.normal(70, 10, 30),
        "count": rng.permutation(30) * 3 + 1,
    }
)
FEATURES = ("year", "age", "weight", "count")


def load(data, **options):
    with pytest.warns(UserWarning, match="these columns identify rows and are not used as features") as warned:
        loaded = qlae.load_data(data, **options)
    assert len(warned) == 1
    return loaded


def ids_of(data):
    return {} if data.ids is None else {name: data.ids[name].tolist() for name in data.ids}


def test_identifiers_are_left_out_and_kept_with_the_rows(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    data = load(tmp_path / "t.csv")
    assert data.observations.feature_names == FEATURES
    np.testing.assert_array_equal(data.images, FRAME[list(FEATURES)].to_numpy(float))
    assert ids_of(data) == {name: FRAME[name].tolist() for name in ("patient", "visit_id")}
    frame = load(FRAME)
    assert frame.observations == data.observations
    assert ids_of(frame) == ids_of(data)


def test_an_identifier_can_be_used_and_another_column_named(tmp_path):
    kinds = {"visit_id": "number", "year": "identifier", "patient": "identifier"}
    data = qlae.load_data(FRAME, column_kinds=kinds)
    assert data.observations.feature_names == ("visit_id", "age", "weight", "count")
    assert list(data.ids) == ["patient", "year"]
    data = qlae.load_data(FRAME, feature_columns=["weight", "visit_id"])
    assert data.observations.feature_names == ("visit_id", "weight")
    assert list(data.ids) == ["patient"]  # age, year and count are left out
    FRAME.to_csv(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="unknown kind of a column 'text'"):
        qlae.load_data(tmp_path / "t.csv", column_kinds={"age": "text"})


@pytest.mark.parametrize(
    ("name", "values", "is_identifier"),
    [
        ("x", np.arange(40) + 7, True),  # rows counted one by one
        ("x", np.arange(40.0), False),  # floats are measurements
        ("x", rng.permutation(40), False),  # ranks
        ("sample id", rng.permutation(40), True),
        ("sample id", np.arange(40) // 2, False),
        ("valid", rng.permutation(40), False),
        ("x", np.arange(40) * 2, False),
    ],
)
def test_integers_are_identifiers_only_if_they_look_like_keys(name, values, is_identifier):
    frame = pd.DataFrame({name: values, "y": np.linspace(0, 1, 40)})
    data = load(frame) if is_identifier else qlae.load_data(frame)
    assert data.observations.feature_names == (("y",) if is_identifier else (name, "y"))


INDEXES = {
    "counted": None,
    "shuffled": pd.Index(rng.permutation(30)),
    "named": pd.Index([f"s{i // 2}" for i in range(30)], name="sample"),
    "two levels": pd.MultiIndex.from_product([["north", "south"], range(15)], names=["site", None]),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=list(INDEXES))
def test_what_pandas_writes_by_default_is_read_right(tmp_path, index):
    frame = FRAME[["weight", "age"]] if index is None else FRAME[["weight", "age"]].set_axis(index)
    levels = ["index"] if frame.index.names == [None] else [name or "level_1" for name in frame.index.names]
    ids = {name: frame.index.get_level_values(i).tolist() for i, name in enumerate(levels)}
    frame.to_csv(tmp_path / "t.csv")
    if levels == ["index"]:  # a CSV says nothing about an index with names
        data = load(tmp_path / "t.csv")
        assert ids_of(data) == ids
        assert data.observations.feature_names == ("weight", "age")
    data = qlae.load_data(frame)  # the index of a frame is not among its columns, and needs no warning
    assert ids_of(data) == ({} if index is None else ids)
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "t.parquet")
    data = qlae.load_data(tmp_path / "t.parquet") if index is None else load(tmp_path / "t.parquet")
    assert ids_of(data) == ({} if index is None else ids)
    np.testing.assert_array_equal(data.images, frame.to_numpy(float))


def test_everything_that_is_wrong_is_named_at_once(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,b,c\n1,2,x,4\n1,inf,y,4\n1,2,x,4,5\n1,2,x\n")
    with pytest.raises(ValueError, match="problems") as error:
        qlae.load_data(tmp_path / "t.csv", source_columns=["d"], drop_columns=["a"], feature_columns=["a", "b"])
    message = str(error.value)
    for part in (
        "2 columns named 'b'",
        "another number of cells than the 4 of its first line (line 4: 5, line 5: 3)",
        "no column 'd' for source_columns",
        "'a' in drop_columns and in feature_columns",
        "infinite values in 'b' ('inf' in line 3)",
    ):
        assert part in message
    assert "\n" not in message


def test_rows_of_decimal_commas_are_refused_or_read_as_such(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,5,2,25\n1,5,2,25\n")
    with pytest.raises(ValueError, match=r"\(line 2: 4, line 3: 4\).*decimal commas"):
        qlae.load_data(path)
    path.write_text("a;b;c\n1,5;2,25;3\n-,5;1e3;4\n")
    with pytest.raises(ValueError, match=r"decimal comma in 'a' \('1,5' in line 2\).*decimal=','"):
        qlae.load_data(path)
    np.testing.assert_array_equal(qlae.load_data(path, decimal=",").images, [[1.5, 2.25, 3], [-0.5, 1000, 4]])
    with pytest.raises(ValueError, match="decimal comma in 'a'"):
        qlae.load_data(path, source_columns=["a"], drop_columns=["b"])


def test_row_names_without_a_name_in_the_header_are_explained(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nx,1,2\ny,3,4\n")
    with pytest.raises(ValueError, match="if each row begins with a name or number, give that column a name"):
        qlae.load_data(tmp_path / "t.csv")


def test_lines_are_counted_with_blank_lines_and_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n1,2\n\n3,"4\n5"\n6,inf\n')
    with pytest.raises(ValueError, match=r"text among the numbers in 'b' \('4\\n5' in line 4\)"):
        qlae.load_data(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text('a,b\n1,2\n\n"3\n",4\n6,inf\n')
    with pytest.raises(ValueError, match=r"infinite values in 'b' \('inf' in line 6\)"):
        qlae.load_data(tmp_path / "t.csv")


@pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("as_frame", [True, False])
def test_missing_sources_are_no_level(value, as_frame):
    columns = {"site": ["a", value, "b"]}
    with pytest.raises(ValueError, match="source 'site' has 1 missing values, the first in row 1"):
        qlae.load_data(np.eye(3), sources=pd.DataFrame(columns) if as_frame else columns)


def test_columns_that_differ_only_in_type_are_refused():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=[1, "1"])
    for options in ({}, {"source_columns": ["1"]}):
        with pytest.raises(ValueError, match="2 columns named '1'"):
            qlae.load_data(frame, **options)
    for sources in (frame, {1: [0, 1], "1": [1, 0]}):
        with pytest.raises(ValueError, match="sources has 2 columns named '1'"):
            qlae.load_data(np.eye(2), sources=sources)


def test_masked_entries_are_refused():
    array = np.ma.masked_equal(np.array([[1.0, -9999.0], [3.0, 4.0]]), -9999.0)
    with pytest.raises(ValueError, match="array has 1 missing or infinite values"):
        qlae.load_data(array)
    with pytest.raises(ValueError, match="masked entries"):
        qlae.load_data(np.eye(2), sources=array)
    with pytest.raises(ValueError, match="source 'a' has 1 missing values"):
        qlae.load_data(np.eye(2), sources={"a": array[:, 1]})
    np.testing.assert_array_equal(qlae.load_data(np.ma.masked_equal(np.eye(2), 7)).images, np.eye(2))


def test_options_survive_the_config(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv")
    spec = qlae.data.data_spec(tmp_path / "t.csv", column_kinds={"age": "identifier"}, feature_columns=["weight"])
    table = qlae.data.DATA
    assert isinstance(spec, TableFile)
    assert table.from_dict(table.to_dict(spec), "spec") == spec
