"""Ways to pass the same numbers to a trained model: arrays, data frames, files, the estimator and the explorer.

A door takes a `Table` and returns codes. It raises `Inexpressible` for a table that it has no form for.
"""

import csv
import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
import torch

import qlae
from qlae.cli import main
from qlae.estimator import QLAE
from qlae.explorer.observation_views import VectorView


class Inexpressible(Exception):
    """A table that a door has no form for."""


class Table(NamedTuple):
    """Cells (n, d) of any type, and the names of their columns."""

    names: list[Any]
    cells: np.ndarray

    @property
    def columns(self) -> list[list[Any]]:
        return [list(column) for column in self.cells.T]

    def numbers(self) -> np.ndarray:
        """Return the cells as NumPy infers them: floats, complex numbers, text; None is NaN."""
        rows = [[np.nan if cell is None else cell for cell in row] for row in self.cells.tolist()]
        array = np.asarray(rows) if rows else np.empty(self.cells.shape)
        if array.dtype.kind == "U" and not all(isinstance(cell, str) for row in rows for cell in row):
            array = np.asarray(rows, dtype=object)
        return array

    def floats(self) -> np.ndarray:
        array = self.numbers()
        if array.dtype.kind not in "fiub":
            raise Inexpressible
        return array.astype(np.float64)

    def frame(self) -> pd.DataFrame:
        frame = pd.concat([pd.Series(column) for column in self.columns], axis=1)
        return frame.set_axis(self.names, axis=1)


def as_tensor(table: Table) -> torch.Tensor:
    array = table.numbers()
    if array.dtype.kind not in "fiubc":
        raise Inexpressible
    return torch.from_numpy(np.ascontiguousarray(array))


def as_masked(table: Table) -> np.ma.MaskedArray:
    array = table.floats()
    return np.ma.masked_array(np.nan_to_num(array, nan=-9999.0), mask=np.isnan(array))


def as_sparse(table: Table, form=scipy.sparse.csr_array) -> Any:
    array = table.numbers()
    if array.dtype.kind not in "fiubc":
        raise Inexpressible
    return form(array)


def as_anndata(table: Table, *, sparse: bool = False) -> Any:
    import anndata

    matrix = table.numbers()
    if matrix.dtype.kind not in "fiubc" or not len(matrix):
        raise Inexpressible
    names = [str(name) for name in table.names]
    obs = pd.DataFrame(index=pd.Index([f"cell {i}" for i in range(len(matrix))], dtype=object))
    matrix = scipy.sparse.csr_matrix(matrix) if sparse else matrix
    return anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=pd.Index(names, dtype=object)))


def text_of(table: Table, delimiter: str = ",") -> str:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.names)
    for row in table.cells.tolist():
        writer.writerow(["" if cell is None else cell for cell in row])
    return file.getvalue()


class Doors:
    """All doors of one model.

    Args:
        run: its run directory.
        folder: for files.
    """

    def __init__(self, run: Path, folder: Path):
        self.run = run
        self.folder = folder
        self.model = qlae.load(run)
        self.estimator = QLAE.from_pretrained(run, output="codes")
        self.view = VectorView(self.model.observations)
        self.count = 0

    def in_memory(self) -> dict[str, Callable[[Table], Any]]:
        """Return the doors of objects, which do not have names of columns."""
        encode = self.model.encode
        forms: dict[str, Callable[[Table], Any]] = {
            "array": Table.numbers,
            "Fortran order": lambda t: np.asfortranarray(t.numbers()),
            "every second row": lambda t: np.repeat(t.numbers(), 2, axis=0)[::2],
            "backwards": lambda t: np.ascontiguousarray(t.numbers()[::-1])[::-1],
            "big-endian": lambda t: t.floats().astype(">f8"),
            "read-only": lambda t: np.frombuffer(t.floats().tobytes()).reshape(t.cells.shape),
            "objects": lambda t: t.cells,
            "matrix": lambda t: np.asmatrix(t.floats()),
            "lists": lambda t: t.cells.tolist(),
            "tuples": lambda t: tuple(map(tuple, t.cells.tolist())),
            "list of arrays": lambda t: list(t.numbers()),
            "list of tensors": lambda t: list(as_tensor(t)),
            "tensor": as_tensor,
            "tensor with gradient": lambda t: torch.from_numpy(t.floats()).requires_grad_(),
            "strided tensor": lambda t: as_tensor(t).T.contiguous().T,
            "negated view": lambda t: torch._neg_view(-torch.from_numpy(t.floats())),
            "sparse tensor": lambda t: torch.from_numpy(t.floats()).to_sparse(),
            "masked array": as_masked,
            "csr": as_sparse,
            "lil": lambda t: as_sparse(t, scipy.sparse.lil_array),
            "csc matrix": lambda t: as_sparse(t, scipy.sparse.csc_matrix),
        }
        doors = {name: lambda t, form=form: encode(form(t)) for name, form in forms.items()}
        doors["data set"] = lambda t: encode(qlae.load_data(t.numbers(), layout="vectors"))
        doors["qlae.encode of an array"] = lambda t: self._encode(t.numbers())
        doors["estimator"] = lambda t: self.estimator.transform(t.numbers())
        doors["estimator, masked"] = lambda t: self.estimator.transform(as_masked(t))
        doors["estimator, tensor"] = lambda t: self.estimator.transform(torch.from_numpy(t.floats()))
        for name, save in {".npy": self._npy, ".npz": self._npz, ".safetensors": self._safetensors}.items():
            doors[name] = lambda t, save=save: encode(save(t))
            doors[f"qlae.encode of {name}"] = lambda t, save=save: self._encode(save(t))
        return doors

    def with_names(self) -> dict[str, Callable[[Table], Any]]:
        """Return the doors of objects and files that have names of columns."""
        encode = self.model.encode
        forms = self._tables() | {
            "sparse frame": self._sparse_frame,
            "AnnData": as_anndata,
            "sparse AnnData": lambda t: as_anndata(t, sparse=True),
            ".h5ad": lambda t: self._h5ad(as_anndata(t)),
            "sparse .h5ad": lambda t: self._h5ad(as_anndata(t, sparse=True)),
        }
        doors = {name: lambda t, form=form: encode(form(t)) for name, form in forms.items()}
        doors["data set of a frame"] = lambda t: encode(qlae.load_data(t.frame(), column_kinds=self._kinds(t)))
        doors["estimator, frame"] = lambda t: self.estimator.transform(t.frame())
        for name in ("frame", "CSV", "Parquet", ".h5ad"):
            doors[f"qlae.encode of {name}"] = lambda t, form=forms[name]: self._encode(form(t))
        doors["command line"] = lambda t: self._command(self._text(t, ".csv", ","))
        doors["explorer, CSV"] = lambda t: self._explore(t, text_of)
        doors["explorer, TSV"] = lambda t: self._explore(t, lambda row: text_of(row, "\t"))
        return doors

    def of_rows(self) -> dict[str, Callable[[Table], Any]]:
        """Return the doors of tables that may have categories, dates and missing values."""
        encode, forms = self.model.encode, self._tables()
        doors = {name: lambda t, form=form: encode(form(t)) for name, form in forms.items()}
        for name in ("frame", "CSV", "Parquet"):
            doors[f"qlae.encode of {name}"] = lambda t, form=forms[name]: self._encode(form(t))
        doors["command line"] = lambda t: self._command(self._text(t, ".csv", ","))
        return doors

    def _tables(self) -> dict[str, Callable[[Table], Any]]:
        """Return the forms of tables: data frames, and paths of files."""
        return {
            "frame": Table.frame,
            "frame of objects": lambda t: t.frame().astype(object),
            "nullable frame": lambda t: t.frame().convert_dtypes(),
            "Arrow frame": self._arrow_frame,
            "frame with an index": lambda t: (
                t.frame().rename_axis("row").set_axis([f"r{i}" for i in range(len(t.cells))])
            ),
            "polars": self._polars,
            "CSV": lambda t: self._text(t, ".csv", ","),
            "CSV with semicolons": lambda t: self._text(t, ".csv", ";"),
            "TSV": lambda t: self._text(t, ".tsv", "\t"),
            "Parquet": self._parquet,
        }

    def _kinds(self, table: Table) -> dict[str, str]:
        return {str(name): "number" for name in table.names}

    def _path(self, suffix: str) -> Path:
        self.count += 1
        return self.folder / f"{self.count}{suffix}"

    def _encode(self, data: Any) -> np.ndarray:
        return self._codes(qlae.encode(self.run, data, show=False))

    def _command(self, path: Path) -> np.ndarray:
        out = self._path(".csv")
        try:
            main(["encode", str(self.run), "--data", str(path), "--quiet", "--out", str(out)])
        except SystemExit as ended:
            if ended.code not in (0, None):
                raise ValueError(f"exit status {ended.code}") from None
        return self._codes(pd.read_csv(out))

    def _codes(self, table: pd.DataFrame) -> np.ndarray:
        return table.iloc[:, -self.model.latent.num_latents :].to_numpy()

    def _explore(self, table: Table, write: Callable[[Table], str]) -> np.ndarray:
        if not len(table.cells):
            raise Inexpressible
        rows = [self.view.read(write(Table(table.names, row[None])).encode())[0] for row in table.cells]
        return self.model.encode(np.stack(rows))

    def _npy(self, table: Table) -> Path:
        np.save(path := self._path(".npy"), table.numbers(), allow_pickle=True)
        return path

    def _npz(self, table: Table) -> Path:
        np.savez(path := self._path(".npz"), X=table.numbers())
        return path

    def _safetensors(self, table: Table) -> Path:
        from safetensors.torch import save_file

        save_file({"embeddings": torch.from_numpy(table.floats())}, path := self._path(".safetensors"))
        return path

    def _text(self, table: Table, suffix: str, delimiter: str) -> Path:
        (path := self._path(suffix)).write_text(text_of(table, delimiter))
        return path

    def _parquet(self, table: Table) -> Path:
        pyarrow = _need("pyarrow")
        parquet = _need("pyarrow.parquet")
        try:
            content = pyarrow.Table.from_arrays(
                [pyarrow.array(c) for c in table.columns], [str(n) for n in table.names]
            )
        except pyarrow.ArrowException:
            raise Inexpressible from None
        parquet.write_table(content, path := self._path(".parquet"))
        return path

    def _arrow_frame(self, table: Table) -> pd.DataFrame:
        pyarrow = _need("pyarrow")
        try:
            return table.frame().convert_dtypes(dtype_backend="pyarrow")
        except (pyarrow.ArrowException, NotImplementedError):
            raise Inexpressible from None

    def _sparse_frame(self, table: Table) -> pd.DataFrame:
        table.floats()
        return table.frame().astype(pd.SparseDtype(float))

    def _polars(self, table: Table) -> Any:
        polars = _need("polars")
        try:
            return polars.DataFrame([polars.Series(str(n), c) for n, c in zip(table.names, table.columns, strict=True)])
        except (polars.exceptions.PolarsError, TypeError):
            raise Inexpressible from None

    def _h5ad(self, adata: Any) -> Path:
        try:
            adata.write_h5ad(path := self._path(".h5ad"))
        except (TypeError, ValueError, NotImplementedError):
            raise Inexpressible from None
        return path


def _need(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Inexpressible from None
