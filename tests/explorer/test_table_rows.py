"""Rows of tables in the explorer: one line per column, with categories by their levels and what is missing by name."""

import numpy as np
import pandas as pd
import pytest

from qlae import train
from qlae.data import load_data
from qlae.explorer.exploration import open_run

ROW = "city,size,day\nBern,,2024-01-05\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A run on a table with a category, a number with missing values and a date."""
    random = np.random.default_rng(0)
    group = random.integers(0, 3, 90)
    frame = pd.DataFrame({"city": np.array(["Aarau", "Bern", "Chur"])[group], "size": 10.0 * group})
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * group, unit="D")
    frame.loc[::5, "size"] = np.nan
    folder = tmp_path_factory.mktemp("rows")
    frame.to_csv(folder / "own.csv", index=False)
    options = {"size": "small", "num_latents": 2, "num_values": 4, "steps": 200, "threads": 1, "show": False}
    train("qlae", load_data(folder / "own.csv", hold_out=0), out=folder / "run", **options)
    return open_run(folder / "run", show=False)


def test_the_page_knows_columns_and_the_statistics_of_levels(table):
    described = table.describe()["observations"]
    city, size, day = described["columns"]
    assert (described["kind"], city["levels"], city["first"]) == ("tables", ["Aarau", "Bern", "Chur"], 0)
    assert described["names"][size["missing"]] == "size is missing"
    assert (day["missing"], day["date"]) == (None, "date")
    shares = np.array(described["mean"][:3])
    assert shares.sum() == pytest.approx(1)
    assert described["deviation"][:3] == pytest.approx(np.sqrt(shares * (1 - shares)).tolist())


def test_a_row_of_csv_in_the_columns_of_the_table_is_encoded(table):
    row, code, note = table.encode(ROW.encode())
    assert row.tolist()[:3] == [0, 1, 0]
    assert row[table.view.observations.names.index("size is missing")] == 1
    assert (len(code), note) == (2, "")
    assert "first of 2 rows" in table.encode((ROW.replace(",", ";") + "Chur;1;2024-01-01\n").encode())[2]
    for content, words in ((b"", "no row"), (b"\xff\xfe", "not text"), (b"city,size\nBern,1\n", "'day'")):
        with pytest.raises(ValueError, match=words):
            table.encode(content)


def test_each_row_has_its_r2(table):
    texts = [table.sample(row)["fidelity"] for row in range(len(table))]
    mean = np.mean([float(text.removeprefix("R² ").replace("−", "-")) for text in texts])
    assert mean == pytest.approx(table.results["averaged"]["r2"], abs=0.006)


def test_columns_stand_on_the_page(table, serve, open_page):
    page = open_page(serve(table))
    page.locator("#features .number.decoded:not(:empty)").first.wait_for()
    assert page.locator("#features .feature-name").all_inner_texts() == ["city", "size", "day"]
    row = int(np.flatnonzero(np.isin(table.indices, range(0, 90, 5)))[0])
    page.evaluate(f"qlae.samples.pick({row})")
    size = page.locator("#features .feature").nth(1)
    size.locator("text=missing").wait_for()
    assert page.locator("#features .feature").nth(2).locator(".number").first.inner_text().startswith("2024-01-")
    first = page.evaluate("qlae.view.toText(qlae.state.sample.picture)")
    names, values = first.strip().split("\n")
    assert names == "city,size,day"
    assert values.split(",")[0] in ("Aarau", "Bern", "Chur")
    assert values.split(",")[1] == ""
    assert table.encode(first.encode())[1] == page.evaluate("qlae.state.code")
    assert page.locator("#about .fidelity").inner_text() == table.sample(row)["fidelity"]
