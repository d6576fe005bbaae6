"""The same numbers through every door of a model: the same codes, or a refusal at all of them.

`make test` tries one table per kind of content, QLAE_FUZZ=4000 a hundred; QLAE_FUZZ_SEED set to another text gives
other numbers and more of the doors that must refuse.
"""

import datetime
import decimal
import os
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from doors import Doors, Inexpressible, Table

import qlae

NUM_TABLES = max(1, int(os.environ.get("QLAE_FUZZ", "40")) // 40)
SEED = os.environ.get("QLAE_FUZZ_SEED", "")
OPTIONS = {"size": "small", "steps": 40, "batch_size": 16, "num_latents": 6, "num_values": 10, "device": "cpu"}
NAMES = ["a", "b", "c", "d"]
SCALES, MEANS = np.array([1, 1e-4, 1e5, 30]), np.array([0, 0, 3e5, 0])
LEVELS = ("red", "dark blue", "green")
START = datetime.date(2024, 1, 1)
TAKEN = ("clean", "one row", "whole")
REFUSED = (
    *("missing", "infinite", "too large", "complex", "word", "words", "date", "dates", "durations", "lists"),
    *("too narrow", "name twice", "1 and '1'"),
)


def draw(source: random.Random, num_rows: int) -> np.ndarray:
    """Return numbers (n, 4) that fit into float32, so that no door has to round them."""
    rng = np.random.default_rng(source.getrandbits(32))
    return (rng.normal(size=(num_rows, 4)) * SCALES + MEANS).astype(np.float32).astype(np.float64)


def train(data, folder: Path) -> Path:
    qlae.train("qlae", data, out=folder / "run", show=False, evaluate=False, **OPTIONS)
    return folder / "run"


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """The doors of a model of vectors."""
    folder = tmp_path_factory.mktemp("numbers")
    pd.DataFrame(draw(random.Random(0), 60), columns=NAMES).to_csv(folder / "train.csv", index=False)
    return Doors(train(folder / "train.csv", folder), folder)


def tables(source: random.Random) -> dict[str, Table]:
    """Return one table for each kind of content."""
    cells = draw(source, 7).astype(object)
    row, column = source.randrange(7), source.randrange(4)

    def with_cell(value) -> Table:
        changed = cells.copy()
        changed[row, column] = value
        return Table(NAMES, changed)

    def with_column(values) -> Table:
        changed = cells.copy()
        changed[:, column] = values
        return Table(NAMES, changed)

    order = source.sample(range(4), 4)
    again = np.concatenate([cells, cells[:, :1]], axis=1)
    return {
        "clean": Table(NAMES, cells),
        "one row": Table(NAMES, cells[:1]),
        "whole": Table(NAMES, np.array([[source.randint(-9, 9) for _ in NAMES] for _ in range(7)], dtype=object)),
        "no rows": Table(NAMES, cells[:0]),
        "missing": with_cell(source.choice([None, np.nan])),
        "infinite": with_cell(source.choice([np.inf, -np.inf])),
        "too large": with_cell(source.choice([1e30, -1e25, 1e300])),
        "complex": with_cell(complex(1, source.choice([0.0, 2.0]))),
        "word": with_cell(source.choice(["x", "1,5", "--", "1.5.2"])),
        "words": with_column("w"),
        "text of numbers": with_column([str(cell) for cell in cells[:, column]]),
        "bool": with_cell(True),
        "decimal": with_cell(decimal.Decimal("1.5")),
        "date": with_cell(START),
        "dates": with_column([pd.Timestamp("2024-01-02")] * 7),
        "durations": with_column([pd.Timedelta("1D")] * 7),
        "lists": with_cell([1, 2]),
        "bytes": with_cell(b"1.5"),
        "too narrow": Table(NAMES[:3], cells[:, :3]),
        "too wide": Table([*NAMES, "e"], again),
        "name twice": Table([*NAMES, "a"], again),
        "1 and '1'": Table([*NAMES, 1, "1"], np.concatenate([again, cells[:, :1]], axis=1)),
        "reordered": Table([NAMES[i] for i in order], cells[:, order]),
    }


def expected(doors: Doors, table: Table) -> np.ndarray:
    """Return the codes of the columns that the model takes, as an array."""
    names = [str(name) for name in table.names]
    return doors.model.encode(table.cells[:, [names.index(name) for name in NAMES]].astype(np.float64))


def outcome(door, table: Table) -> np.ndarray | str | None:
    """Return codes, "refused", or None if the door has no form for the table."""
    try:
        return np.asarray(door(table))
    except Inexpressible:
        return None
    except ValueError as error:
        if not str(error):
            raise
        return "refused"


@pytest.mark.filterwarnings("ignore")
def test_the_same_numbers_have_the_same_codes_or_are_refused(numbers, capsys):
    named, unnamed, wrong, tried = numbers.with_names(), numbers.in_memory(), [], 0
    for number in range(NUM_TABLES):
        source = random.Random(f"doors {SEED} {number}")
        for kind, table in tables(source).items():
            doors = named if kind == "reordered" else {**named, **unnamed}  # an array has no names
            if kind not in TAKEN and NUM_TABLES == 1:
                doors = dict(source.sample(list(doors.items()), 18))
            for name, door in doors.items():
                try:
                    result = outcome(door, table)
                except TypeError:
                    assert name.startswith("estimator"), (kind, name)  # as check_array of scikit-learn
                    result = "refused"
                tried += result is not None
                if isinstance(result, str):
                    wrong += [(kind, name, "is refused")] * (kind in TAKEN and name not in ("objects", "sparse tensor"))
                elif kind in REFUSED and result is not None:
                    wrong.append((kind, name, "is taken"))
                elif result is not None and not np.array_equal(result, expected(numbers, table)):
                    wrong.append((kind, name, "has other codes"))
    assert not wrong
    assert tried > 350 * NUM_TABLES


@pytest.mark.filterwarnings("ignore")
def test_columns_are_found_by_their_names(numbers):
    doors = numbers.with_names()
    for number in range(NUM_TABLES):
        every = tables(random.Random(f"names {SEED} {number}"))
        for kind in ("reordered", "too wide"):
            for name, door in doors.items():
                result = outcome(door, every[kind])
                if name in ("estimator, frame", "data set of a frame") and isinstance(result, str):
                    continue  # scikit-learn wants the same columns, and a data set keeps those that it has
                assert result is None or np.array_equal(result, expected(numbers, every[kind])), (kind, name)


def test_a_data_set_of_other_columns_is_refused(numbers):
    frame = pd.DataFrame(draw(random.Random(1), 12), columns=["a", "b", "c", "other"])
    with pytest.raises(ValueError, match="'other' in the place of 'd'"):
        numbers.model.encode(qlae.load_data(frame, hold_out=0))


def test_a_gap_is_named(numbers, tmp_path):
    frame = pd.DataFrame(draw(random.Random(2), 12), columns=NAMES)
    frame.loc[3, "c"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (frame, tmp_path / "t.csv"):
        with pytest.raises(ValueError, match="has missing values, text or dates in 'c'"):
            numbers.model.encode(data)


def messy(source: random.Random, num_rows: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "num": [round(source.gauss(0, 1), 3) for _ in range(num_rows)],
            "gap": [None if source.random() < 0.3 else round(source.gauss(100, 5), 3) for _ in range(num_rows)],
            "colour": [source.choice(LEVELS) for _ in range(num_rows)],
            "flag": [source.random() < 0.5 for _ in range(num_rows)],
            "day": [pd.Timestamp(START) + pd.Timedelta(days=source.randrange(300)) for _ in range(num_rows)],
        }
    )


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The doors of a model of rows with categories, dates and missing values."""
    folder = tmp_path_factory.mktemp("rows")
    messy(random.Random(0), 80).to_csv(folder / "train.csv", index=False)
    return Doors(train(folder / "train.csv", folder), folder)


def changes(source: random.Random) -> dict[str, tuple[str, object, bool]]:
    """Return changes of a cell: its column, the new value or a function of the old one, and whether it is allowed."""
    return {
        "clean": ("num", lambda cell: cell, True),
        "date": ("day", lambda day: day.date(), True),
        "text of a date": ("day", lambda day: str(day.date()), True),
        "text of a bool": ("flag", str, True),
        "missing": ("gap", lambda _: None, True),
        "not missing before": (source.choice(["num", "colour", "flag", "day"]), lambda _: None, False),
        "unknown level": ("colour", lambda _: source.choice(["violet", "RED", "red\0"]), False),
        "number of a level": ("colour", lambda _: 1, False),
        "infinite": (source.choice(["num", "gap"]), lambda _: np.inf, False),
        "text": (source.choice(["num", "gap", "day"]), lambda _: source.choice(["x", "-", "1,5"]), False),
        "complex": ("num", lambda _: 1 + 2j, False),
    }


@pytest.mark.filterwarnings("ignore")
def test_rows_of_a_table_have_the_same_codes_or_are_refused(rows, capsys):
    tried, wrong = 0, []
    for number in range(NUM_TABLES):
        source = random.Random(f"rows {SEED} {number}")
        for kind, (column, change, is_allowed) in changes(source).items():
            frame = messy(source, 12).astype(object)
            frame.loc[3, "gap"] = 99.5
            cells = frame[column].tolist()
            cells[3] = change(cells[3])
            frame[column] = pd.Series(cells, dtype=object)
            frame = frame.where(frame.notna(), None)[source.sample(list(frame.columns), 5)]
            table, results = Table(list(frame.columns), frame.to_numpy()), {}
            for name, door in rows.of_rows().items():
                if (result := outcome(door, table)) is not None:
                    results[name] = result
            tried += len(results)
            taken = {name: result for name, result in results.items() if not isinstance(result, str)}
            if len(taken) != (len(results) if is_allowed else 0):
                wrong.append((kind, column, f"is taken by {sorted(taken)} of {sorted(results)}"))
            elif any(not np.array_equal(result, taken["frame"]) for result in taken.values()):
                wrong.append((kind, column, "has different codes"))
    assert not wrong
    assert tried > 70 * NUM_TABLES


def test_a_data_set_fills_gaps_as_the_training_data(rows):
    frame = messy(random.Random(3), 40)
    frame["gap"] += 1000  # the mean of these rows is not the mean that the model knows
    codes = rows.model.encode(frame)
    data = qlae.load_data(frame, hold_out=0)
    assert np.array_equal(rows.model.encode(data), codes)
    assert np.array_equal(rows.model.encode(qlae.load_data(frame, hold_out=0.2)), codes)
    frame.loc[3, "colour"] = None
    with pytest.raises(ValueError, match="missing in 'colour', which were complete in the training data"):
        rows.model.encode(qlae.load_data(frame, hold_out=0))


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr"])
def test_tensors_without_an_array_are_refused(numbers, form):
    import torch

    tensor = torch.from_numpy(draw(random.Random(4), 12))
    with pytest.raises(ValueError, match=r"a tensor that cannot become an array .*tensor.to_dense"):
        numbers.model.encode(getattr(tensor, form)())
    quantized = torch.quantize_per_tensor(tensor.float(), 0.1, 0, torch.qint8)
    for bad in (quantized, torch.empty((12, 4), device="meta")):
        with pytest.raises(ValueError, match="a tensor that cannot become an array"):
            numbers.model.encode(bad)
        with pytest.raises(ValueError, match="a tensor that cannot become an array"):
            qlae.load_data(bad)
