"""Samples are read from .npz, .npy and .csv files, and what cannot be read is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qlae.metrics import score, score_file
from qlae.metrics.sample_files import read_sample, which_is_sources
from qlae.observations import KINDS

TABLE = "file,hue,shape,z0,z1\na.png,1,cube,0.5,2\nb.png,2,ball,0.25,3\nc.png,1,ball,0.75,2\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_a_table_has_typed_columns(tmp_path: Path) -> None:
    sources, latents, options = read_sample(write(tmp_path, TABLE), {}, source_columns=["hue", "shape"])
    assert sources.tolist() == [[1, "cube"], [2, "ball"], [1, "ball"]]
    assert latents.dtype == np.float64
    assert latents.tolist() == [[0.5, 2.0], [0.25, 3.0], [0.75, 2.0]]
    assert options == {}


def test_integers_in_a_table_are_codes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 3, (200, 2))
    np.savetxt(tmp_path / "z.csv", sources, fmt="%d", delimiter=",", header="z0,z1", comments="")
    np.save(tmp_path / "s.npy", sources)
    scores = score_file(tmp_path / "z.csv", sources_path=tmp_path / "s.npy")
    assert scores["infom"] == score(sources, sources)["infom"]


@pytest.mark.parametrize("name", [kind.one for kind in KINDS.values()])
def test_row_numbers_of_encoded_observations_are_no_latents(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, f"{name},z0,source\n0,3,1\n1,2,2\n2,3,1\n")
    assert read_sample(path, {})[1].tolist() == [[3], [2], [3]]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (TABLE, [], r"starts with 'source' \(its columns are file, hue, shape, z0, z1\).*source_columns="),
        (TABLE, ["size"], "has no column 'size'; its columns are file, hue"),
        (TABLE, ["hue"], r"column 'shape' .* holds text \('cube'\), and latents are numbers.*source_columns="),
        (TABLE, ["file", "hue", "shape", "z0", "z1"], "every column of .* is a source"),
        ("source,z\n1,2\n1,\n", [], "line 3 of .* has no value for 'z'"),
        ("source,z\n1,2\n1\n", [], "line 3 of .* has 1 cells, and the header has 2"),
        ("1,2\n1,2\n3,4\n", [], "its first line must name the columns"),
        ("source,z,z\n1,2,3\n1,2,3\n", [], "two columns of one name"),
        ("source,z\n", [], "at least 2 samples"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path: Path, text: str, columns: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_sample(write(tmp_path, text), {}, source_columns=columns)


def test_two_files_are_told_apart_by_their_names() -> None:
    assert which_is_sources([Path("factors.npy"), Path("x.npy")]) == 0
    with pytest.raises(ValueError, match="do not tell which holds the sources"):
        which_is_sources([Path("a.npy"), Path("b.npy")])


def test_a_file_that_is_no_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "z.npy").write_text("text")
    np.save(tmp_path / "s.npy", np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"z.npy cannot be read .* np.save"):
        score_file(tmp_path / "z.npy", sources_path=tmp_path / "s.npy")
    with pytest.raises(ValueError, match="source columns are those of a single CSV table"):
        score_file(tmp_path / "z.npy", source_columns=["a"])


@pytest.mark.parametrize(("dtype", "num_rows"), [(np.int8, 1_100_000), (np.float64, 1_100_000), (np.int8, 9_000_000)])
def test_a_small_archive_of_many_numbers_is_refused(tmp_path: Path, dtype: type, num_rows: int) -> None:
    path = tmp_path / "sample.npz"
    zeros = np.zeros((num_rows, 10), dtype)
    np.savez_compressed(path, sources=zeros, latents=zeros)
    with pytest.raises(ValueError, match=r"sample.npz cannot be read \(its .* bytes .*; score fewer rows"):
        score_file(path)


def test_small_files_that_announce_much_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "latents.npy").open("wb") as file:
        header = {"descr": "<U0", "fortran_order": False, "shape": (300_000_000, 1)}
        np.lib.format.write_array_header_1_0(file, header)
    np.save(tmp_path / "sources.npy", np.arange(10) % 2)
    with pytest.raises(ValueError, match=r"128 bytes hold 300,000,000 numbers"):
        score_file(tmp_path / "latents.npy", sources_path=tmp_path / "sources.npy")
    text = np.array(["a", "b"] * 500).astype("U24000")
    np.savez_compressed(tmp_path / "text.npz", sources=text, latents=np.arange(1000) % 3)
    with pytest.raises(ValueError, match="numbers or characters"):
        score_file(tmp_path / "text.npz")


def test_a_table_with_one_very_long_cell(tmp_path: Path) -> None:
    rows = [f"{'xy'[i % 2]},{i * 0.37 % 1:.3f}" for i in range(400)]
    rows[7] = "q" * 130_000 + ",0.1"
    (tmp_path / "a.csv").write_text("\n".join(["source_a,z0", *rows]))
    assert score_file(tmp_path / "a.csv")["infom"] >= 0.0
