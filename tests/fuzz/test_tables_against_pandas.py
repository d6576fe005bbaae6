"""Random messy CSVs, read by qlae and by pandas: the same columns and values, or one clear refusal.

`make test` tries a few, `make test-fuzz` 10,000; QLAE_FUZZ_SEED set to another text gives other files.
"""

import os
import random
import warnings

import numpy as np
import pandas as pd
import pytest

import qlae
from qlae.data.table_encoding import decode_rows
from qlae.data.table_files import MISSING, read_table

pytestmark = pytest.mark.filterwarnings("ignore")
NUM_FILES = int(os.environ.get("QLAE_FUZZ", "60"))
SEED = os.environ.get("QLAE_FUZZ_SEED", "")
GAPS = ("", "NA", "nan", "NULL", "?")
WORDS = ("red", "dark blue", 'a "b"', "x;y", "p,q", "tab\tbed", "Ökö", "two\nlines")


class Messy:
    """A table and the text of a CSV that holds it.

    `frame` is what a careful reader finds, with the first column as text in the CSV only where `has_index`.
    """

    def __init__(self, source: random.Random):
        self.delimiter = source.choice(",;\t")
        self.decimal = "," if self.delimiter != "," and source.random() < 0.3 else "."
        self.newline = source.choice(["\n", "\r\n"])
        self.has_index = source.random() < 0.3
        self.num_rows = source.randint(24, 40)
        kinds = [source.choice(["float", "int", "word", "bool", "date"]) for _ in range(source.randint(1, 5))]
        self.columns = {
            f"{kind} {i}": [self._value(kind, source) for _ in range(self.num_rows)] for i, kind in enumerate(kinds)
        }
        self.columns["steady"] = [0.5 + i % 3 for i in range(self.num_rows)]
        self.gap_share = source.choice([0, 0, 0.2])
        for name, values in self.columns.items():
            if name != "steady":
                self.columns[name] = [None if source.random() < self.gap_share else value for value in values]
        rows = [[self._cell(self.columns[name][i], source) for name in self.columns] for i in range(self.num_rows)]
        header = [self._quoted(name, source) for name in self.columns]
        if self.has_index:
            header.insert(0, "")
            rows = [[str(i), *row] for i, row in enumerate(rows)]
        self.wrong_line = None
        if source.random() < 0.2:
            at = source.randrange(len(rows))
            self.wrong_line = at
            rows[at] = rows[at][:-1] if source.random() < 0.5 and len(rows[at]) > 1 else [*rows[at], "1"]
        lines = [self.delimiter.join(row) for row in [header, *rows]]
        for _ in range(source.randint(0, 3)):
            lines.insert(source.randint(1, len(lines)), "")
        self.text = "\ufeff" * (source.random() < 0.2) + self.newline.join(lines) + self.newline * source.randint(0, 2)

    def _value(self, kind, source):
        return {
            "float": lambda: source.choice([source.uniform(-1e3, 1e3), round(source.gauss(0, 1), 2), 1e-7, -3e12]),
            "int": lambda: source.randint(-3, 40),
            "word": lambda: source.choice(WORDS),
            "bool": lambda: source.random() < 0.5,
            "date": lambda: f"2024-{source.randint(1, 12):02}-{source.randint(1, 28):02}",
        }[kind]()

    def _cell(self, value, source):
        if value is None:
            return source.choice(GAPS)
        if isinstance(value, float):
            return self._quoted(repr(value).replace(".", self.decimal), source)
        return self._quoted(str(value), source)

    def _quoted(self, text, source):
        special = any(character in text for character in (self.delimiter, '"', "\n"))
        return '"' + text.replace('"', '""') + '"' if special or source.random() < 0.1 else text


def messy_tables():
    for number in range(NUM_FILES):
        yield number, Messy(random.Random(f"{SEED}{number}"))


def read_by_pandas(table, path):
    return pd.read_csv(
        path,
        sep=table.delimiter,
        decimal=table.decimal,
        index_col=0 if table.has_index else None,
        na_values=MISSING,
        keep_default_na=False,
        encoding="utf-8-sig",
        float_precision="round_trip",
    )


def test_rows_are_those_that_pandas_reads(tmp_path):
    path = tmp_path / "t.csv"
    outcomes = {"read": 0, "refused": 0}
    for number, table in messy_tables():
        path.write_bytes(table.text.encode())
        raw = read_table(path, decimal=table.decimal)
        if table.wrong_line is not None:
            assert len(raw.problems) == 1, (number, table.text)
            assert "another number of cells" in raw.problems[0]
            outcomes["refused"] += 1
            continue
        assert not raw.problems, (number, raw.problems, table.text)
        expected = read_by_pandas(table, path)
        assert raw.index_columns == (("index",) if table.has_index else ())
        frame = raw.frame.drop(columns=list(raw.index_columns))
        pd.testing.assert_frame_equal(frame.reset_index(drop=True), expected.reset_index(drop=True))
        lines = table.text.encode().decode("utf-8-sig").splitlines()
        assert all(lines[line - 1].strip() for line in raw.frame.index)
        outcomes["read"] += 1
    assert min(outcomes.values()) > 0


def test_features_stand_for_the_cells(tmp_path):
    path = tmp_path / "t.csv"
    outcomes = {"read": 0, "refused": 0}
    for number, table in messy_tables():
        path.write_bytes(table.text.encode())
        if table.wrong_line is not None:
            with pytest.raises(ValueError, match="another number of cells"):
                qlae.load_data(path, decimal=table.decimal, hold_out=0)
            outcomes["refused"] += 1
            continue
        data = qlae.load_data(path, decimal=table.decimal, hold_out=0)
        outcomes["read"] += 1
        expected = read_by_pandas(table, path)
        assert np.isfinite(data.images).all()
        if not data.observations.columns:
            names = list(data.observations.feature_names)
            np.testing.assert_array_equal(data.images, expected[names].to_numpy(float))
            continue
        frame = decode_rows(np.asarray(data.images), data.observations)
        for column in frame:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cells = expected[column]
            assert frame[column].isna().tolist() == cells.isna().tolist(), (number, column, table.text)
            here = cells.notna().to_numpy()
            found, wanted = frame[column][here], cells[here]
            if column.startswith(("float", "int", "steady")):
                np.testing.assert_allclose(found.to_numpy(float), wanted.to_numpy(float), rtol=1e-12)
            elif column.startswith("date"):
                assert found.dt.strftime("%Y-%m-%d").tolist() == wanted.astype(str).tolist()
            else:
                assert found.astype(str).tolist() == wanted.astype(str).str.strip().tolist()
    assert outcomes["read"] > outcomes["refused"] > 0
