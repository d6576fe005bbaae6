"""Files below 1 MB are read or refused within 1 GB of memory and 10 seconds."""

import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

import qlae
from qlae.data.tables import group_labels

LIMITED = """
import resource, sys, warnings
import pandas, torch, qlae
from qlae.data.inspection import inspect_data
from qlae.data.loading import data_spec
for name in ("pyarrow.parquet", "anndata", "h5py"):
    try: __import__(name)
    except ImportError: pass
warnings.simplefilter("ignore")
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**30,) * 2)
used = resource.getrusage(resource.RUSAGE_SELF)
resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 10,) * 2)
options = {"source_columns": ["s"]} if sys.argv[2] else {}
for read in (inspect_data, lambda spec: spec.load()):
    try:
        read(data_spec(sys.argv[1], **options))
    except ValueError as error:
        print(error)
"""


def npz(path, **members):
    """Write an ``.npz`` of zeros, given as (type, shape)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (dtype, shape) in members.items():
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(head.getvalue())
                left = int(np.prod(shape)) * np.dtype(dtype).itemsize
                while left:
                    left -= file.write(bytes(min(left, 2**20)))


def npy(path, dtype, shape):
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})


def table(path, cell, rows=2500):
    path.write_text("a,s\n" + "".join(f"{i * 1.5},l{i % 3}\n" for i in range(rows)) + f"1,{cell}\n")


def parquet(path, column):
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"a": column}), path, compression="zstd")


def h5ad(path):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    names = [pd.DataFrame(index=pd.Index(list(letters), dtype=object)) for letters in ("abc", "xyz")]
    anndata.AnnData(np.zeros((3, 3)), obs=names[0], var=names[1]).write_h5ad(path)
    with h5py.File(path, "a") as file:
        attributes = dict(file["X"].attrs)
        del file["X"]
        file.create_dataset("X", (30_000_000, 3), "f8", chunks=(1_000_000, 3), compression="gzip")
        file["X"].attrs.update(attributes)


FILES = {
    "cell.csv": lambda path: table(path, "y" * 130_000),
    "source.csv": lambda path: table(path, "y" * 130_000),
    "number.csv": lambda path: table(path, "9" * 130_000),
    "gaps.csv": lambda path: path.write_text("a,b\n" + ",\n" * 480_000),
    "commas.csv": lambda path: path.write_text("a" + "," * 20_000 + "\n" + "1\n" * 400_000),
    "texts.csv": lambda path: path.write_text("a\n" + "x\n" * 480_000),
    "text.npz": lambda path: npz(path, X=("<U1000", (30_000, 1))),
    "names.npz": lambda path: npz(path, X=("<f8", (10, 3)), feature_names=("<U1", (30_000_000,))),
    "bools.npz": lambda path: npz(path, X=("|b1", (60_000_000, 4))),
    "floats.npz": lambda path: npz(path, X=("<f8", (30_000_000, 4))),
    "sources.npz": lambda path: npz(path, X=("|b1", (25_000_000, 2)), sources=("|i1", (25_000_000, 2))),
    "text.npy": lambda path: npy(path, "<U0", (300_000_000,)),
    "floats.npy": lambda path: npy(path, "<f8", (300_000_000, 0)),
    "rows.parquet": lambda path: parquet(path, np.zeros(60_000_000)),
    "lists.parquet": lambda path: parquet(path, [[1.0] * 100] * 100_000),
    "texts.parquet": lambda path: parquet(path, ["x" * 1000] * 1_000_000),
    "cells.h5ad": h5ad,
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process by /proc and the resource module")
@pytest.mark.parametrize("name", FILES)
def test_files_below_one_megabyte_take_less_than_a_gigabyte(tmp_path, name):
    FILES[name](path := tmp_path / name)
    assert path.stat().st_size < 2**20
    command = [sys.executable, "-c", LIMITED, str(path), "s" if name == "source.csv" else ""]
    limits = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, env=limits, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.mark.parametrize("name", ["text.npy", "floats.npy", "source.csv", "cell.csv"])
def test_rows_without_numbers_and_long_cells_are_refused_at_once(tmp_path, name):
    FILES[name](path := tmp_path / name)
    if name == "source.csv":
        assert qlae.load_data(path, source_columns=["s"], hold_out=0).source_sizes == (4,)
        return
    with pytest.raises(ValueError, match=r"must hold rows of numbers, got|long text|too many different"):
        qlae.load_data(path)


def test_small_files_with_many_rows_are_refused(tmp_path):
    parquet(path := tmp_path / "t.parquet", np.zeros(5_000_000))
    with pytest.raises(ValueError, match=r"t\.parquet has [\d,]+ bytes for 5,000,000 cells"):
        qlae.load_data(path)


def test_groups_are_numbered_in_the_order_of_their_text():
    for labels in (["b", "a", "b"], [10, 9, 10], [2.5, 10.0, 2.5], pd.Series(["b", "a", "b"]), [True, False, True]):
        expected = np.unique(np.asarray(labels).astype(str), return_inverse=True)[1]
        assert group_labels(labels).tolist() == expected.tolist()
