"""Cells by genes: AnnData in memory or in an ``.h5ad``, and sparse matrices, whose rows are vectors.

A sparse matrix stays sparse: rows become dense batch by batch. Counts can be brought to the same total in every cell
and to their logarithm; both leave zeros what they are. Columns of ``obs`` may be sources.
"""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from .._checks import require_known
from .._io import DAMAGE, require_loadable, require_regular
from ..observations import VECTORS, Observations
from ..registry import DATA
from .cache import name_of_files
from .dataset import LazyImages, Progress, SourceDataset, first_few, observe
from .spec import UserData
from .tables import group_labels

SUFFIX = ".h5ad"
CELL = "cell"  # the name of the names of observations, unless the index of obs has one
NUM_CHECKED = 100_000  # entries in which fractions are looked for


def is_anndata_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the suffix of AnnData's files."""
    return Path(path).suffix.lower() == SUFFIX


def is_anndata(data: Any) -> bool:
    """Return whether an object is an AnnData."""
    return all(hasattr(data, name) for name in ("X", "obs", "var_names", "layers"))


def is_sparse(data: Any) -> bool:
    """Return whether an object is a sparse matrix or array of SciPy."""
    return bool(scipy.sparse.issparse(data))


def require_real(matrix: Any, what: str) -> None:
    """Raise a ``ValueError`` for a matrix whose entries are no real numbers, of which a part would be lost."""
    if np.dtype(matrix.dtype).kind not in "fiub":
        raise ValueError(f"{what} must hold real numbers, got {matrix.dtype}")


class SparseRows(LazyImages):
    """Rows of a sparse matrix, which become dense when they are indexed.

    Args:
        matrix: (n, d), of any sparse format.
        dtype: of the rows.
    """

    stays_lazy = True

    def __init__(self, matrix: Any, dtype: str = "float32") -> None:
        require_real(matrix, "the sparse matrix")
        self.matrix = scipy.sparse.csr_array(matrix, dtype=dtype)
        self.matrix.check_format()  # places outside the matrix would be read from elsewhere in memory
        self.shape = tuple(self.matrix.shape)
        self.dtype = np.dtype(dtype)

    def compute(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        return self[rows]

    def __getitem__(self, rows: Any, /) -> NDArray[Any]:
        if isinstance(rows, int | np.integer):
            row: NDArray[Any] = self[rows : rows + 1 or None][0]
            return row
        dense: NDArray[Any] = self.matrix[rows].toarray()
        return dense

    def checksum(self) -> str:
        """Return the SHA-256 of the entries and their places."""
        digest = hashlib.sha256(repr(self.shape).encode())
        for array in (self.matrix.indptr.astype(np.int64), self.matrix.indices.astype(np.int64), self.matrix.data):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


class CellOptions(NamedTuple):
    """How cells become vectors.

    Attributes:
        normalize: the total to which the counts of each cell are scaled; None to leave them as they are.
        log1p: whether to take log(1 + count).
        source_columns: columns of ``obs`` that are sources.
        feature_columns: the genes to take, in this order; empty for all.
        group_column: a column of ``obs`` whose equal values stay together when rows are held out.
    """

    normalize: float | None = None
    log1p: bool = False
    source_columns: Sequence[str] = ()
    feature_columns: Sequence[str] = ()
    group_column: str | None = None

    def check(self) -> None:
        """Raise a ``ValueError`` for a total that is not possible."""
        if self.normalize is not None and not self.normalize > 0:
            raise ValueError(f"normalize must be the total of each cell, such as 10000, got {self.normalize!r}")


@DATA.register("anndata")
@dataclass(frozen=True, kw_only=True)
class AnnDataFile(UserData):
    """The matrix of an ``.h5ad``, one vector per cell.

    Attributes:
        path: of the file.
        layer: the layer to take instead of ``X``.
        normalize, log1p, source_columns, feature_columns, group_column: see `CellOptions`.
    """

    title: ClassVar[str] = "the AnnData file"
    path_fields: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    layer: str | None = None
    normalize: float | None = None
    log1p: bool = False
    source_columns: tuple[str, ...] = ()
    feature_columns: tuple[str, ...] = ()
    group_column: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.options.check()
        self._set(name=name_of_files(self.path, self.name))

    @property
    def options(self) -> CellOptions:
        """How cells become vectors."""
        return CellOptions(*(getattr(self, name) for name in CellOptions._fields))

    def preview(self) -> Observations:
        genes = list(self.feature_columns) or _read_file(self.path, self.layer, with_matrix=False).genes
        return Observations(VECTORS, (len(genes),), "float32", tuple(genes))

    def read(self, progress: Progress | None = None) -> SourceDataset:
        return _to_data(_read_file(self.path, self.layer), self.options, self.path, self.name)


@dataclass(frozen=True, kw_only=True, eq=False)
class CellsInMemory(UserData):
    """An AnnData or a sparse matrix. A run cannot store them, so the data set that is returned has no spec.

    Attributes:
        data: the AnnData, or a sparse matrix (n, d).
        layer, normalize, log1p, source_columns, feature_columns, group_column: as for `AnnDataFile`.
    """

    title: ClassVar[str] = "cells in memory"

    name: str = "array"
    data: Any
    layer: str | None = None
    normalize: float | None = None
    log1p: bool = False
    source_columns: Sequence[str] = ()
    feature_columns: Sequence[str] = ()
    group_column: str | None = None

    def load(self, *, progress: Progress | None = None) -> SourceDataset:
        data = super().load(progress=progress)
        data.spec = None
        return data

    def read(self, progress: Progress | None = None) -> SourceDataset:
        options = CellOptions(*(getattr(self, name) for name in CellOptions._fields))
        options.check()
        if is_anndata(self.data):
            if self.layer is not None:
                require_known(self.layer, list(self.data.layers), "layer of the AnnData")
            matrix = self.data.X if self.layer is None else self.data.layers[self.layer]
            matrix = matrix.to_memory() if hasattr(matrix, "to_memory") else matrix[:]
            cells = Cells(matrix, self.data.obs, [str(name) for name in self.data.var_names])
            return _to_data(cells, options, "the AnnData", self.name)
        if self.layer is not None or self.source_columns or self.group_column:
            raise ValueError(
                "a sparse matrix has neither layers nor obs: leave layer, source_columns and group_column out"
            )
        return _to_data(Cells(self.data, None, []), options, "the sparse matrix", self.name)


class Cells(NamedTuple):
    """A matrix of cells by genes.

    Attributes:
        matrix: (n, d), dense or sparse; None if it was not read.
        obs: (n, columns); None if nothing is known of the cells.
        genes: names of the columns of the matrix; empty if they have none.
    """

    matrix: Any
    obs: pd.DataFrame | None
    genes: list[str]


def _to_data(cells: Cells, options: CellOptions, what: str, name: str) -> SourceDataset:
    matrix = cells.matrix
    if matrix is None or len(matrix.shape) != 2 or 0 in matrix.shape:
        shape = "no matrix" if matrix is None else f"shape {matrix.shape}"
        raise ValueError(f"{what} must hold cells by genes, got {shape}")
    require_real(matrix, what)
    if len(set(cells.genes)) < len(cells.genes):
        raise ValueError(f"{what} has genes of the same name: call adata.var_names_make_unique() and save it again")
    matrix = _transform(matrix, options, what)
    genes = cells.genes
    if options.feature_columns:
        missing = [repr(gene) for gene in options.feature_columns if gene not in set(genes)]
        if missing:
            raise ValueError(f"{what} lacks genes that are needed: {first_few(missing)}")
        numbers = {gene: number for number, gene in enumerate(genes)}
        matrix, genes = matrix[:, [numbers[gene] for gene in options.feature_columns]], list(options.feature_columns)
    rows: Any = SparseRows(matrix) if is_sparse(matrix) else np.ascontiguousarray(matrix, dtype=np.float32)
    observations = observe(rows, VECTORS, genes, name=what)
    sources = _columns_of_obs(cells, options.source_columns, what)
    data = SourceDataset.from_columns(rows, sources, observations, name=name)
    for values in _columns_of_obs(cells, [options.group_column] if options.group_column else [], what).values():
        data.groups = group_labels(values)
    if cells.obs is not None:
        data.ids = pd.DataFrame({str(cells.obs.index.name or CELL): cells.obs.index.astype(str)})
    data.checksum = rows.checksum() if isinstance(rows, SparseRows) else data.compute_checksum()
    return data


def _transform(matrix: Any, options: CellOptions, what: str) -> Any:
    """Return counts with the same total in every cell, and their logarithms, if that is asked for."""
    if options.normalize is None and not options.log1p:
        return matrix
    matrix = (
        scipy.sparse.csr_array(matrix, dtype=np.float32, copy=True)
        if is_sparse(matrix)
        else np.array(matrix, dtype=np.float32)
    )
    entries = matrix.data if is_sparse(matrix) else matrix.reshape(-1)
    if entries.size and not entries.min() >= 0:  # also true for NaN
        raise ValueError(f"normalize and log1p are for counts, and {what} has negative or missing values")
    if options.normalize is not None:
        if (entries[:NUM_CHECKED] % 1).any():
            warnings.warn(
                f"{what} has numbers with fractions, as if it were normalised already; if it has a layer of counts, "
                "choose it by layer (--layer)",
                stacklevel=5,
            )
        totals = np.asarray(matrix.sum(axis=1), dtype=np.float64).reshape(-1)
        if not totals.all():
            warnings.warn(f"{(totals == 0).sum():,} cells of {what} have no counts and stay zero", stacklevel=5)
        factors = (options.normalize / np.where(totals > 0, totals, 1)).astype(np.float32)
        if is_sparse(matrix):
            matrix.data *= np.repeat(factors, np.diff(matrix.indptr))
        else:
            matrix *= factors[:, None]
    return np.log1p(matrix) if options.log1p else matrix


def _columns_of_obs(cells: Cells, columns: Sequence[str], what: str) -> dict[str, list[Any]]:
    values: dict[str, list[Any]] = {}
    for column in columns:
        assert cells.obs is not None
        require_known(column, [str(name) for name in cells.obs], f"column of obs of {what}")
        if cells.obs[column].isna().any():
            raise ValueError(f"{what} has missing values in the column {column!r} of obs: fill them in")
        values[column] = cells.obs[column].tolist()
    return values


def _read_file(path: str, layer: str | None, *, with_matrix: bool = True) -> Cells:
    """Return what is needed of an ``.h5ad``; other layers, embeddings and graphs are not read."""
    h5py, read = require_anndata(path)
    require_regular(path)
    try:
        with h5py.File(path, "r") as file:
            if isinstance(file["var"], h5py.Dataset):  # written before AnnData 0.7
                _require_modest(file, list(file), path)
                return _read_old_file(path, layer)
            place = "X" if layer is None else f"layers/{layer}"
            _require_modest(file, ["obs", "var", *([place] if with_matrix else [])], path)
            obs, genes = read(file["obs"]), [str(name) for name in read(file["var"]).index]
            if layer is not None:
                require_known(layer, list(file.get("layers", ())), f"layer of {path}")
            matrix = read(file[place]) if with_matrix and place in file else None
    except (*DAMAGE, OSError, AttributeError, TypeError) as error:
        if isinstance(error, ValueError) and ("layer of" in str(error) or "in memory" in str(error)):
            raise
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read as AnnData ({reason})") from error
    return Cells(matrix, obs, genes)


def _read_old_file(path: str, layer: str | None) -> Cells:
    """Return what is needed of an ``.h5ad`` whose tables are arrays of records; AnnData reads it as a whole."""
    import anndata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the file is old
        cells = anndata.read_h5ad(path)
    if layer is not None:
        require_known(layer, list(cells.layers), f"layer of {path}")
    return Cells(cells.X if layer is None else cells.layers[layer], cells.obs, [str(name) for name in cells.var_names])


def _require_modest(file: Any, places: Sequence[str], path: str) -> None:
    """Raise a ``ValueError`` if parts of an open HDF5 file would take far more memory than its size suggests."""
    sizes = []

    def measure(_: str, part: Any) -> None:
        if hasattr(part, "dtype"):
            sizes.append(math.prod(part.shape or ()) * max(8, part.dtype.itemsize))  # texts become pointers

    for place in places:
        if place in file:
            measure(place, file[place])
            if hasattr(file[place], "visititems"):
                file[place].visititems(measure)
    require_loadable(Path(path), num_bytes=sum(sizes))


def obs_columns(data: Any) -> list[str]:
    """Return the columns of ``obs`` of an AnnData, or of the one in a file."""
    obs: Any = data.obs if is_anndata(data) else _read_file(data, None, with_matrix=False).obs
    return [str(name) for name in obs]


def require_anndata(path: object) -> tuple[Any, Any]:
    """Return the module h5py and the function that reads an element of an ``.h5ad``."""
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError:
        raise ValueError(f"{path} needs anndata: pip install 'qlae[anndata]'") from None
    return h5py, read_elem
