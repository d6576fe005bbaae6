"""Tables of codes: one row per observation, first what identifies it, then one column per latent.

`table_of_codes` makes such a table, with the names that latents and values have in the explorer; `codes_in` finds the
codes in one again. Files are CSV, Parquet or ``.npz``, and each can be read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._io import read_npz, require_new, write_bytes, write_columns, write_whole
from ..data import SourceDataset
from ..data.dataset import first_few
from ..data.table_files import PARQUET_SUFFIXES, read_csv, read_frame
from ..models.latents import LatentSpace

TABLE_SUFFIXES = (".csv", *PARQUET_SUFFIXES, ".npz")


class NamedCodes(NamedTuple):
    """Codes, and what identifies each.

    Attributes:
        ids: (n, columns) such as file names.
        codes: (n, num_latents) whole numbers, or the values of latents.
    """

    ids: pd.DataFrame
    codes: NDArray[Any]


def ids_of(data: SourceDataset) -> pd.DataFrame:
    """Return what identifies the rows of a data set: files, identifiers of a table, units and times, or numbers."""
    columns: dict[str, Any] = {}
    if data.file_names is not None:
        columns["file"] = list(data.file_names)
    if data.ids is not None:
        columns |= {str(name): data.ids[name].to_numpy() for name in data.ids}
    return pd.DataFrame(columns or {data.observations.traits.one: range(len(data))})


def table_of_codes(ids: pd.DataFrame, codes: NDArray[Any], names: Mapping[str, Any]) -> pd.DataFrame:
    """Return codes (n, num_latents), or values of latents, as a table with the names of latents and of values.

    Args:
        ids: what identifies each row.
        codes: whole numbers, or floats, for which names of values do not apply.
        names: as `Names.read` returns them.
    """
    columns = latent_columns(codes.shape[1], names)
    if taken := [repr(name) for name in columns if name in ids]:
        raise ValueError(f"{first_few(taken)} names a latent and a column that identifies rows: rename the latent")
    table: dict[str, Any] = {}
    for j, name in enumerate(columns):
        known = names["values"].get(str(j), {}) if codes.dtype.kind in "iu" else {}
        table[name] = [known.get(str(code), code) for code in codes[:, j].tolist()] if known else codes[:, j]
        if known:
            table[name] = [str(entry) for entry in table[name]]  # one type in a column
    return pd.concat([ids.reset_index(drop=True), pd.DataFrame(table)], axis=1)


def latent_columns(num_latents: int, names: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns of latents."""
    return [names["latents"].get(str(j), f"z{j}") for j in range(num_latents)]


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table to a new CSV or Parquet file, or its columns to an ``.npz``, as the suffix says.

    A float of 32 bits gets its shortest text, which always has a point or an exponent, unlike a code.
    """
    require_new(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        write_columns(path, {name: _plain_array(table[name]) for name in table})
    elif suffix in PARQUET_SUFFIXES:
        _require_pyarrow(path)
        write_whole(path, lambda file: table.to_parquet(file, index=False))
    else:
        shortest = {name: table[name].map(str) for name in table if table[name].dtype == np.float32}
        write_bytes(path, str(table.assign(**shortest).to_csv(index=False, lineterminator="\n")).encode())


def require_table_path(path: Path, also: Sequence[str] = ()) -> None:
    """Raise an error for a path that no table can be written to."""
    suffixes = (*TABLE_SUFFIXES, *also)
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"out must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}, got {path}")
    if path.suffix.lower() in PARQUET_SUFFIXES:
        _require_pyarrow(path)
    require_new(path)


def read_table(path: Path) -> pd.DataFrame:
    """Return a table that `write_table` wrote, or any other with the same columns."""
    if path.suffix.lower() != ".npz":  # of a CSV as text: a value may be called "none"
        return read_frame(path) if path.suffix.lower() in PARQUET_SUFFIXES else read_csv(path)
    arrays = read_npz(path)
    if len({array.shape for array in arrays.values()}) != 1 or any(array.ndim != 1 for array in arrays.values()):
        raise ValueError(f"{path} must hold one array (n,) per column, all of the same length")
    return pd.DataFrame(arrays)


def codes_in(table: pd.DataFrame, latent: LatentSpace, names: Mapping[str, Any], what: object) -> NamedCodes:
    """Return the codes in a table, or the values of latents where these are floats, and its other columns.

    Args:
        table: its columns may have any order, and latents may be called z0, z1, … or by their names.
        latent: the latent space of the model.
        names: as `Names.read` returns them.
        what: the name of the table in messages.
    """
    columns = []
    for j, name in enumerate(latent_columns(latent.num_latents, names)):
        found = next((column for column in (name, f"z{j}") if column in table), None)
        columns.append(found or "")
        if found is None:
            raise ValueError(
                f"{what} lacks the latent {name!r}: it must have a column for each of the {latent.num_latents} latents"
                f", and has {first_few([repr(column) for column in table])}"
            )
    cells = [_numbers_of(table[column], names["values"].get(str(j), {}), what) for j, column in enumerate(columns)]
    codes = np.stack(cells, axis=1) if cells else np.zeros((len(table), 0))
    is_codes = latent.has_codes and all(column.dtype.kind in "iu" for column in cells)
    ids = table.drop(columns=columns)
    return NamedCodes(ids.reset_index(drop=True), codes.astype(np.int64 if is_codes else np.float32))


def _numbers_of(column: pd.Series[Any], values: Mapping[str, str], what: object) -> NDArray[Any]:
    """Return the codes, or numbers, in a column, whose cells may be names of values."""
    by_name = {name: int(code) for code, name in values.items()}
    if by_name:
        column = column.map(lambda cell: by_name.get(str(cell), cell))
    numbers: NDArray[Any]
    try:
        numbers = pd.to_numeric(column).to_numpy()
    except (ValueError, TypeError):
        numbers = np.full(1, np.nan)
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        wrong = next((cell for cell in column if not _is_number(cell)), None)
        known = f", nor one of {first_few([repr(name) for name in by_name])}" if by_name else ""
        raise ValueError(f"{what} has {wrong!r} in the column {column.name!r}, which is no number{known}")
    return numbers


def _is_number(cell: Any) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except (ValueError, TypeError):
        return False


def _plain_array(column: pd.Series[Any]) -> NDArray[Any]:
    """Return a column as an array that needs no pickle: numbers, dates, or texts."""
    array = column.to_numpy()
    return array if array.dtype.kind in "iufbMm" else np.array([str(cell) for cell in column])


def _require_pyarrow(path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ValueError(f"{path} is a Parquet file, which needs pyarrow: pip install 'qlae[parquet]'") from None
