"""`qlae data inspect` on vectors and series: the table of columns, the picture, and files that need work first."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from qlae.cli import main
from qlae.data import SourceDataset, load_data
from qlae.data.inspection import describe_column
from qlae.report.vectors_and_series import series_sheet, vector_sheet

TABLE = """id,site,temp,load,fixed
1,north,3.5,10,7
2,south,,11,7
3,north,4.5,inf,7
4,west,5.5,13,7
"""


@pytest.fixture
def inspect(tmp_path, capsys, monkeypatch):
    """Run the command in an empty folder; return its exit status, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["data", "inspect", *map(str, arguments)])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


def line_of(output: str, name: str) -> list[str]:
    (line,) = (line for line in output.splitlines() if line.startswith("│") and line.split("│")[1].strip() == name)
    return [cell.strip() for cell in line.split("│")[1:-1]]


def is_picture(path) -> bool:
    with Image.open(path) as image:
        return image.format == "PNG" and len(image.convert("RGB").getcolors(10**7)) > 10


@pytest.mark.parametrize("name", ["mixtures", "pendulum", "sensors"])
def test_generated_sets_are_described_and_drawn(inspect, tmp_path, name):
    status, output, errors = inspect(name)
    assert (status, errors) == (0, "")
    assert f"Picture written to {name}.png" in output
    assert is_picture(tmp_path / f"{name}.png")
    data = load_data(name)
    for column in (*data.observations.names, *data.source_names):
        assert f"│ {column} " in output


def test_the_columns_of_a_table_have_their_ranges(inspect, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,kind\n1,5,x\n2,5,y\n4,5,x\n")
    status, output, _ = inspect("t.csv", "--source-columns", "kind", "--out", "t.png")
    assert status == 0
    assert line_of(output, "a") == ["a", "number", "1", "2.333", "4", "1.247", "3", "–", ""]
    assert line_of(output, "b")[-1] == "constant"
    assert line_of(output, "kind")[:2] == ["kind", "source"]
    assert "Constant: b." in output
    assert "cannot be trained on" not in output


@pytest.mark.parametrize("kind", ["number", "date"])
def test_recordings_are_recognised_by_a_column_that_rises(inspect, tmp_path, kind):
    times = 0.02 * np.arange(120) if kind == "number" else pd.date_range("2024-01-31", periods=120, freq="7min")
    frame = pd.DataFrame({"time [s]": times, "level": np.sin(np.arange(120.0))})
    for rows, is_recording in ((frame, True), (frame.iloc[::-1], False), (frame[:50], False)):
        rows.to_csv(tmp_path / "x.csv", index=False)
        assert ("--time-column 'time [s]' --window 64" in inspect("x.csv")[1]) == is_recording


def test_categories_of_one_level_are_constant(inspect, tmp_path):
    (tmp_path / "t.csv").write_text("a,region\n1,Anvers\n2,Anvers\n4,Anvers\n3,Anvers\n")
    _, output, _ = inspect("t.csv", "--out", "t.png")
    assert "Constant: region." in output


def test_gaps_and_text_are_counted_and_what_to_do_about_them_is_told(inspect, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    status, output, errors = inspect("t.csv")
    assert (status, errors) == (0, "")
    assert line_of(output, "temp") == ["temp", "number", "3.5", "4.5", "5.5", "0.8165", "3", "1", ""]
    assert line_of(output, "load")[-2] == "1"  # infinite
    assert line_of(output, "site")[-1] == "3 levels: north, south, west"
    assert "t.csv has infinite values in 'load' ('inf' in line 4)" in output
    assert line_of(output, "id")[:2] == ["id", "identifier"]
    assert "4 vectors of 3 features" in output  # those that are numbers
    assert is_picture(tmp_path / "t.png")


def test_a_table_that_cannot_be_used_has_no_picture(inspect, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n,y\n,w\n")
    status, output, _ = inspect("t.csv")
    assert status == 0
    assert "written" not in output
    assert "cannot be trained on yet" in output
    assert not (tmp_path / "t.png").exists()


@pytest.mark.parametrize("shape", [(30, 4), (30, 12, 2)])
def test_arrays_with_gaps_are_described_and_drawn(inspect, tmp_path, rng, shape):
    array = rng.normal(size=shape)
    array[3, 1] = np.nan
    array[5, 0] = np.inf
    np.save(tmp_path / "x.npy", array)
    status, output, _ = inspect("x.npy")
    assert status == 0
    assert "missing or infinite values (NaN, inf): in rows 3, 5 of 30" in output
    assert line_of(output, "x0")[7] != "–"
    assert is_picture(tmp_path / "x.png")


@pytest.mark.parametrize("content", [b"", b"not an array", b"a,b\n1\n2,3,4\n"])
@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet"])
def test_files_that_cannot_be_read_are_errors(inspect, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    status, output, errors = inspect(name)
    assert (status, output) == (2, "")
    assert name in errors
    assert len(errors.splitlines()) == 1


def test_an_existing_picture_is_not_overwritten(inspect, tmp_path):
    (tmp_path / "pendulum.png").write_bytes(b"mine")
    status, output, _ = inspect("pendulum")
    assert (status, (tmp_path / "pendulum.png").read_bytes()) == (0, b"mine")
    assert "│ angle (rad) " in output
    assert "Picture not written: pendulum.png exists already; --out PATH writes another." in output
    status, _, errors = inspect("pendulum", "--out", "pendulum.png")
    assert (status, (tmp_path / "pendulum.png").read_bytes()) == (2, b"mine")
    assert "pendulum.png exists already" in errors


def test_many_features_are_cut_short(inspect, tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 100)))
    status, output, _ = inspect("x.npy")
    assert status == 0
    assert "… and 40 more columns" in output


def test_sheets_take_constant_and_empty_columns(tmp_path):
    array = np.stack([np.zeros(9), np.arange(9.0)], axis=1)
    data = SourceDataset(array, np.arange(9) % 3, name="mine", origin="real")
    assert is_picture(vector_sheet(data, tmp_path / "new" / "sheet.png"))
    series = SourceDataset(np.tile(array, (1, 5)).reshape(9, 10, 1), np.arange(9), name="mine", origin="real")
    assert is_picture(series_sheet(series, tmp_path / "series.png"))


def test_dates_are_text():
    column = describe_column("when", "feature", np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]"))
    assert (column.num_texts, column.num_missing, column.num_distinct) == (2, 0, 2)
