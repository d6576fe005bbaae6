"""Ways in for the user's own data: arrays, tensors, data sets of torch, array files and tables."""

import sys

import numpy as np
import pytest
import torch

import qlae
from qlae.data import data_config, load_from_config
from qlae.runs.encode import encode_to_file

CSV = "id,site,temp,hum\n1,north,2.5,30\n2,south,1.5,40\n3,north,-1,5e1\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    return write


def test_arrays_take_sources_in_every_form():
    vectors = np.random.default_rng(0).normal(size=(4, 3))
    data = qlae.load_data(vectors, sources={"colour": ["red", "blue", "red", "red"], "size": [0.5, 1, 2, 2.5]})
    assert data.source_names == ("colour", "size")
    np.testing.assert_array_equal(data.sources, [[1, 0.5], [0, 1], [1, 2], [1, 2.5]])
    assert qlae.load_data(vectors, sources=torch.tensor([3, 5, 3, 9])).sources[:, 0].tolist() == [0, 1, 0, 2]
    with pytest.raises(ValueError, match="one row for each of 4"):
        qlae.load_data(vectors, sources=np.zeros((3, 1), int))
    with pytest.raises(ValueError, match="resolution does not apply to data in memory"):
        qlae.load_data(vectors, resolution=32)


def test_a_list_is_an_array():
    assert len(qlae.load_data([[1.0, 2.0], [3.0, 5.0]])) == 2
    with pytest.raises(ValueError, match="rows of equal shape"):
        qlae.load_data([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match="must hold"):
        qlae.load_data(["a.png", "b.png"])


class Pairs(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.full((1, 10, 12), float(i)), i % 2


def test_a_torch_data_set_gives_images_and_on_request_labels():
    data = qlae.load_data(Pairs(), sources="labels")
    assert data.observations.shape == (10, 12, 1)
    assert data.images[3].max() == 3
    assert data.sources[:, 0].tolist() == [0, 1, 0, 1, 0, 1]
    assert qlae.load_data(Pairs()).source_names == ()
    with pytest.raises(ValueError, match="items that are pairs"):
        qlae.load_data(torch.utils.data.TensorDataset(torch.rand(4, 3)), sources="labels")


def test_a_torch_data_set_of_other_items_is_refused():
    class Words(Pairs):
        def __getitem__(self, i):
            return "word"

    class Growing(Pairs):
        def __getitem__(self, i):
            return torch.zeros(i + 1)

    with pytest.raises(ValueError, match=r"must hold .*numbers|vectors"):
        qlae.load_data(Words())
    with pytest.raises(RuntimeError, match="equal size"):
        qlae.load_data(Growing())


def test_a_csv_has_features_and_sources(write):
    path = write("sensors.csv", CSV)
    data = qlae.load_data(path, source_columns=["site"], drop_columns=["id"])
    assert data.name == "sensors"
    assert data.observations.feature_names == ("temp", "hum")
    np.testing.assert_array_equal(data.images, [[2.5, 30], [1.5, 40], [-1, 50]])
    assert data.sources[:, 0].tolist() == [0, 1, 0]
    again = load_from_config(data_config(data))
    np.testing.assert_array_equal(again.images, data.images)
    write("sensors.csv", CSV.replace("2.5", "2.6"))
    with pytest.raises(ValueError, match="other vectors than when the model was trained"):
        load_from_config(data_config(data))


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_delimiters_quotes_and_a_byte_order_mark(write, delimiter):
    text = "\ufeff" + CSV.replace("site", '"the site"').replace(",", delimiter) + "\n\n"
    data = qlae.load_data(write("t.csv", text), source_columns=["the site"])
    assert data.observations.feature_names == ("temp", "hum")
    assert data.source_names == ("the site",)
    assert data.sources[:, 0].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\ny,2\n1,3\n5,3\n", r"text among the numbers in 'a' \('y' in line 3\), 'b' \('x' in line 2\)"),
        ("a,b\n1,\nnan,2\n3,inf\n", r"infinite values in 'b' \('inf' in line 4\): make them missing"),
        ("a,b\n1,2\n3\n", r"another number of cells than the 2 of its first line \(line 3: 1\)"),
        ("a,b\n1,\n\n,\nnan,nan\n", "no value at all in 'b'"),
        ("1,2\n3,4\n", "the first line of .* must name the columns"),
        ("a,b\n", "has no line below its first one"),
        ("", "is empty"),
        ("a,b,a\n1,2,3\n", "has 2 columns named 'a'"),
        ("1,2,3\n4,5,6\n", "must name the columns, and it has numbers: add a line; got '1,2,3'"),
        ("a,,c\n1,2,3\n", "must name all columns, and column 2 has no name"),
        (
            "a;b\n1,5;2\n",
            r"decimal comma in 'a' \('1,5' in line 2\): set decimal=',' or write them with a decimal point",
        ),
        ("\0\0\0", "is empty or no text"),
    ],
)
def test_unusable_tables_say_what_to_do(write, text, message):
    with pytest.raises(ValueError, match=message):
        qlae.load_data(write("t.csv", text))


def test_unknown_columns_are_refused(write):
    path = write("t.csv", CSV)
    with pytest.raises(ValueError, match='did you mean "site"'):
        qlae.load_data(path, source_columns=["sit"])
    with pytest.raises(ValueError, match="'site' in source_columns and in drop_columns"):
        qlae.load_data(path, source_columns=["site"], drop_columns=["site"])
    with pytest.raises(ValueError, match="no column left to observe"):
        qlae.load_data(path, drop_columns=["id", "site", "temp", "hum"])
    with pytest.raises(ValueError, match=r"missing values in 'site' \(line 3\)"):
        qlae.load_data(write("gap.csv", "site,temp\nnorth,1\n,2\n"), source_columns=["site"])
    with pytest.raises(ValueError, match=r"source_columns does not apply to .* shapes3d"):
        qlae.load_data("shapes3d", source_columns=["site"])


def test_parquet_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"needs pyarrow: pip install 'qlae\[parquet\]'"):
        qlae.load_data(write("t.parquet", "x"))


def test_parquet_is_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")

    path = tmp_path / "t.parquet"
    table = pyarrow.table({"site": ["a", "b", "a"], "temp": [1.5, 2.5, 3.5], "count": [1, 2, 3]})
    pyarrow.parquet.write_table(table, path)
    data = qlae.load_data(path, source_columns=["site"])
    np.testing.assert_array_equal(data.images, [[1.5, 1], [2.5, 2], [3.5, 3]])
    assert data.sources[:, 0].tolist() == [0, 1, 0]
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0, None], "b": ["x", None]}), path)
    assert qlae.load_data(path).observations.feature_names == ("a", "a is missing", "b=x")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="cannot be read as a Parquet file"):
        qlae.load_data(tmp_path / "broken.parquet")


def test_a_data_frame_has_names():
    class Column(list):
        def to_numpy(self):
            return np.array(self, dtype=object if isinstance(self[0], str) else None)

    columns = {"site": Column(["a", "b"]), "temp": Column([1.0, 2.0])}
    frame = type("Frame", (), {"columns": ["site", "temp"], "to_numpy": None, "__getitem__": lambda _, n: columns[n]})()
    data = qlae.load_data(frame, source_columns=["site"])
    assert data.observations.feature_names == ("temp",)
    assert data.source_names == ("site",)
    assert qlae.load_data(frame).observations.feature_names == ("site=a", "site=b", "temp")


def test_array_files_keep_size_channels_and_names(tmp_path, rng):
    grey = rng.integers(0, 256, (6, 28, 30), dtype=np.uint8)
    np.save(tmp_path / "grey.npy", grey)
    data = qlae.load_data(tmp_path / "grey.npy")
    assert data.observations.shape == (28, 30, 1)
    np.testing.assert_array_equal(data.images[..., 0], grey)
    again = load_from_config(data_config(data))
    assert again.observations == data.observations
    assert qlae.load_data(tmp_path / "grey.npy", resolution=16).images.shape == (6, 16, 16, 3)

    series = rng.normal(size=(5, 20, 2)).astype(np.float32)
    np.savez(
        tmp_path / "waves.npz",
        x=series,
        sources=np.arange(5) % 2,
        source_names=["phase"],
        feature_names=["left", "right"],
    )
    data = qlae.load_data(tmp_path / "waves.npz")
    assert data.observations.names == ("left", "right")
    assert data.source_names == ("phase",)
    np.testing.assert_array_equal(data.images, series)
    with pytest.raises(ValueError, match="resolution is for images of bytes"):
        qlae.load_data(tmp_path / "waves.npz", resolution=32)
    np.savez(tmp_path / "two.npz", a=series, b=series)
    with pytest.raises(ValueError, match=r"one of the arrays images, .* name it with array=…; it has a, b"):
        qlae.load_data(tmp_path / "two.npz")


def test_square_colour_images_are_prepared_at_their_own_size(tmp_path, rng):
    np.save(tmp_path / "photos.npy", rng.integers(0, 256, (4, 24, 24, 3), dtype=np.uint8))
    data = qlae.load_data(tmp_path / "photos.npy")
    assert data.observations.is_standard
    assert data.resolution == 24
    assert load_from_config(data_config(data)).checksum == data.checksum


def test_heic_files_are_named_when_they_are_left_out(tmp_path, rng):
    from PIL import Image

    (tmp_path / "IMG_1.HEIC").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"no images.*it has 1 file in formats that are not read \(HEIC\): IMG_1.HEIC"):
        qlae.load_data(tmp_path, resolution=16)
    Image.fromarray(rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    with pytest.warns(UserWarning, match=r"IMG_1.HEIC. Convert them to PNG or JPEG; the others are used"):
        assert len(qlae.load_data(tmp_path, resolution=16)) == 1


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_in_fortran_order_are_read(tmp_path, rng, suffix):
    """`DataFrame.to_numpy()` often has this order."""
    path, array = tmp_path / f"x{suffix}", rng.normal(size=(6, 9, 2))
    save = np.save if suffix == ".npy" else np.savez
    save(path, np.asfortranarray(array))
    data = qlae.load_data(path)
    np.testing.assert_array_equal(data.images, array)
    assert load_from_config(data_config(data)).checksum == data.checksum
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="download or copy it again"):
        qlae.load_data(path)


def test_images_in_fortran_order_are_prepared(tmp_path, rng):
    images = (255 * rng.random((5, 16, 16, 3))).astype(np.uint8)
    np.save(tmp_path / "x.npy", np.asfortranarray(images))
    np.testing.assert_array_equal(qlae.load_data(tmp_path / "x.npy").images, images)


def test_an_array_without_rows_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.float64(3))
    with pytest.raises(ValueError, match=r"x.npy must hold one row per observation, got an array of shape \(\)"):
        qlae.load_data(tmp_path / "x.npy")


def test_channels_first_are_recognised_in_files(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 3, 32, 32), np.uint8))
    with pytest.raises(ValueError, match=r"looks as if the channels came first; save np.moveaxis\(images, 1, -1\)"):
        qlae.load_data(tmp_path / "x.npy")


@pytest.mark.parametrize(("shape", "size"), [((3, 300, 260, 1), "64×64"), ((3, 5, 5, 3), "8×8")])
def test_arrays_of_images_that_the_networks_cannot_take_are_resized_with_a_warning(tmp_path, shape, size):
    np.save(tmp_path / "x.npy", np.zeros(shape, np.uint8))
    with pytest.warns(UserWarning, match=rf"has images of {shape[1]}×{shape[2]} pixels, .* resized to {size} pixels"):
        data = qlae.load_data(tmp_path / "x.npy")
    assert data.observations.size == size


def test_parquet_with_two_columns_of_a_name_is_refused_and_dates_are_read(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [arrow.array([1.0, 2.0]), arrow.array(np.array([1, 2], "datetime64[ns]"))]
    parquet.write_table(arrow.Table.from_arrays(columns, names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t.parquet has 2 columns named 'a'"):
        qlae.load_data(tmp_path / "t.parquet")
    parquet.write_table(arrow.Table.from_arrays(columns, names=["a", "when"]), tmp_path / "t.parquet")
    assert [column.kind for column in qlae.load_data(tmp_path / "t.parquet").observations.columns] == ["number", "date"]


def test_numbers_that_do_not_fit_into_files_are_refused(rng):
    with pytest.raises(ValueError, match=r"as large as 1e.30, in feature .* of 2, and at most 1e.17 fit; use another"):
        qlae.load_data(np.array([[1.0, 2.0], [3.0, -1e30]]))


@pytest.mark.parametrize("array", [np.ones((300, 4)), np.arange(3.0)[None], np.zeros((5, 8, 8, 3), np.uint8)])
def test_observations_that_are_all_the_same_are_named(tmp_path, array):
    options = {"size": "small", "steps": 2, "num_latents": 2, "evaluate": False, "show": False}
    with pytest.warns(UserWarning, match=r"of array \([\d,]+\) are the same: there is nothing to learn"):
        qlae.train("ae", array, out=tmp_path / "run", **options)


def test_a_table_to_encode_may_have_other_columns_but_must_have_all_features(write, tmp_path):
    rows = [f"{i / 2},{i % 7},x\n" for i in range(30)]
    data = qlae.load_data(write("t.csv", "a,b,note\n" + "".join(rows)), drop_columns=["note"])
    options = {"size": "small", "steps": 3, "num_latents": 2, "evaluate": False, "show": False}
    run = qlae.train("qlae", data, out=tmp_path / "run", **options)
    other = write(
        "other.csv", "id,a,b,remark\n" + "".join(f"n{row}" for row in [f"{i},{r}" for i, r in enumerate(rows)])
    )
    expected = encode_to_file(run.path, tmp_path / "codes.csv", show=False).read_text()
    same = encode_to_file(run.path, tmp_path / "same.csv", data=other, show=False).read_text()
    assert same == "id" + "n".join(expected.removeprefix("vector").splitlines(keepends=True))
    with pytest.raises(ValueError, match=r"less.csv lacks columns that the model takes: 'b'"):
        encode_to_file(run.path, tmp_path / "x.csv", data=write("less.csv", "a,c\n1,2\n"), show=False)
