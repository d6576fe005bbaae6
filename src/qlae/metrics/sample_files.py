"""Read sources and latents from files: an .npz archive, a CSV table, or one file (.npy or .csv) of each."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inputs import scored_form, text_column

#: An archive may hold this many numbers, or one for each of its bytes if that is more. Scoring takes some 40 bytes for
#: each number, however few of the bytes of the archive it had.
_MAX_NUMBERS = 20 * 2**20
_MAX_BYTES_PER_NUMBER = 8
_SMALLER = "score fewer rows (100,000 are plenty), or write it without compression"
#: First columns that number or name the rows, also in files of `qlae encode`.
_ROW_NAMES = ("", "image", "vector", "series", "file", "index", "row", "id")

Table = dict[str, NDArray[Any]]  # the columns of a CSV file by name


def read_sample(
    path: str | Path,
    options: Mapping[str, Any],
    *,
    sources_path: str | Path | None = None,
    source_columns: Sequence[str] = (),
) -> tuple[Any, Any, dict[str, Any]]:
    """Return sources and latents of files, and the options of `score`, completed by those that an .npz file implies.

    The arguments are those of `qlae.metrics.score_file`.
    """
    path = Path(path)
    if source_columns and (sources_path is not None or path.suffix != ".csv"):
        raise ValueError("source columns are those of a single CSV table; leave them out for other files.")
    if sources_path is not None:
        return _read_single(Path(sources_path), "sources"), _read_single(path, "latents"), dict(options)
    if path.suffix == ".csv":
        return *_divide(_read_table(path), path, source_columns), dict(options)
    return _read_archive(path, options)


def _read_archive(path: Path, options: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    if not path.is_file():
        sample = path / "sample.npz"
        hint = f"give {sample}" if sample.is_file() else "give an .npz with arrays 'sources' and 'latents'"
        raise ValueError(f"{path} is not a file; {hint}.")
    arrays = _load(path, "np.savez(path, sources=…, latents=…)")
    if not isinstance(arrays, dict):
        raise ValueError(f"{path} holds a single unnamed array; give the sources, too, in a second file.")
    if "sources" not in arrays or not {"latents", "codes"} & set(arrays):
        raise ValueError(f"{path} holds {', '.join(arrays)}; arrays named 'sources' and 'latents' are needed.")
    latents, latent_kind, code_input = scored_form(arrays.get("latents"), arrays.get("codes"))
    own = {"latent_kind": latent_kind}
    if options.get("latent_kind") != "continuous":
        own["code_input"] = code_input
    return arrays["sources"], latents, {**own, **options}


def which_is_sources(files: Sequence[Path]) -> int:
    """Return which of two files holds the sources, by their names, or raise a ``ValueError``.

    >>> which_is_sources([Path("run/latents.npy"), Path("run/sources.npy")])
    1
    """
    stems = [file.stem.lower() for file in files]
    votes = [("source" in stem or "factor" in stem) - ("latent" in stem or "code" in stem) for stem in stems]
    if votes[0] == votes[1]:
        raise ValueError(
            f"the names of {files[0]} and {files[1]} do not tell which holds the sources: give it as --sources"
        )
    return int(votes[1] > votes[0])


def _read_single(path: Path, what: str) -> NDArray[Any]:
    """Return the one array of an .npy or .csv file."""
    if path.suffix not in (".npy", ".csv") or not path.is_file():
        raise ValueError(f"the {what} file {path} is not an .npy or .csv file; write one with np.save(path, {what}).")
    if path.suffix == ".npy":
        return np.asarray(_load(path, f"np.save(path, {what})"))
    columns = _without_row_names(_read_table(path))
    return _latents(columns, path) if what == "latents" else _sources(columns.values())


def _divide(table: Table, path: Path, source_columns: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sources and the latents of a table."""
    present = ", ".join(table)
    for name in source_columns:
        if name not in table:
            raise ValueError(f"{path} has no column {name!r}; its columns are {present}.")
    chosen = set(source_columns) or {name for name in table if name.lower().startswith("source")}
    if not chosen:
        raise ValueError(
            f"no column of {path} has a name that starts with 'source' (its columns are {present}): "
            "say which columns are sources (source_columns=[…]), or give sources in a separate file."
        )
    latents = _without_row_names({name: column for name, column in table.items() if name not in chosen})
    if not latents:
        raise ValueError(f"every column of {path} is a source; latents are needed, too.")
    return _sources(column for name, column in table.items() if name in chosen), _latents(latents, path)


def _without_row_names(table: Table) -> Table:
    """Leave out a first column that numbers or names the rows."""
    names = list(table)
    return {name: table[name] for name in (names[1:] if len(names) > 1 and names[0].lower() in _ROW_NAMES else names)}


def _sources(columns: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return columns as one array; of objects, if some are text and others are not."""
    columns = list(columns)
    mixed = len({column.dtype.kind == "U" for column in columns}) > 1
    return np.column_stack([column.astype(object) for column in columns] if mixed else columns)


def _latents(table: Table, path: Path) -> NDArray[Any]:
    """Return columns of numbers as one array."""
    for name, column in table.items():
        if column.dtype.kind == "U":
            text = next(cell for cell in column.tolist() if not is_number(cell))
            raise ValueError(
                f"column {name!r} of {path} holds text ({text!r}), and latents are numbers: if it is a source, name it "
                "(source_columns=[…])."
            )
    return np.column_stack(list(table.values()))


def _read_table(path: Path) -> Table:
    """Return the columns of a CSV file with a header: integers, floats or text."""
    if not path.is_file():
        raise ValueError(f"{path} is not a file.")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as a CSV table ({error}).") from error
    if len(rows) < 3:
        raise ValueError(f"{path} has {len(rows)} lines; a header and at least 2 samples are needed.")
    names = [name.strip() for name in rows[0]]
    if all(map(is_number, names)):
        raise ValueError(f"{path} begins with numbers ({names[0]}, …); its first line must name the columns.")
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has two columns of one name; its columns are {', '.join(names)}.")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise ValueError(f"line {number} of {path} has {len(row)} cells, and the header has {len(names)}.")
        for name, cell in zip(names, row, strict=True):
            if not cell.strip():
                raise ValueError(f"line {number} of {path} has no value for {name!r}; fill it, or leave the line out.")
    return {name: _column(cells) for name, cells in zip(names, zip(*rows[1:], strict=True), strict=True)}


def _column(cells: Sequence[str]) -> NDArray[Any]:
    for kind in (np.int64, np.float64):
        try:
            return np.array([kind(cell) for cell in cells])
        except (ValueError, OverflowError):
            continue
    return text_column([cell.strip() for cell in cells])


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _load(path: Path, writer: str) -> Any:
    """Return the array of an .npy file, or the arrays of an .npz file by name."""
    try:
        if zipfile.is_zipfile(path):
            _require_modest(path)
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            require_few_numbers({"": loaded}, path)
            return loaded
        with loaded:
            arrays = dict(loaded)
        require_few_numbers(arrays, path)
        return arrays
    except Exception as error:  # damaged files raise nearly anything
        reason = error if isinstance(error, OSError | OversizedError) else "it is no file of plain numbers or strings"
        raise ValueError(f"{path} cannot be read ({reason}); write it with {writer}.") from error


class OversizedError(ValueError):
    """An archive that holds far more than its size suggests."""


def _require_modest(path: Path) -> None:
    """Raise if a small archive would fill the memory when it is read."""
    with zipfile.ZipFile(path) as archive:
        expanded = sum(info.file_size for info in archive.infolist())
    size = path.stat().st_size
    if expanded > _MAX_BYTES_PER_NUMBER * max(_MAX_NUMBERS, size):
        raise OversizedError(f"its {size:,} bytes would expand to {expanded:,}; {_SMALLER}")


def require_few_numbers(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Raise an `OversizedError` if scoring the arrays of a small archive would fill the memory.

    It may hold 20,971,520 numbers, or one for each of its bytes if that is more. Each character of text counts as one.
    """
    numbers, size = 0, path.stat().st_size
    for array in arrays.values():
        characters = array.dtype.itemsize // 4 if array.dtype.kind == "U" else array.dtype.itemsize
        numbers += array.size * max(1, characters if array.dtype.kind in "US" else 1)
    if numbers > max(_MAX_NUMBERS, size):
        raise OversizedError(f"its {size:,} bytes hold {numbers:,} numbers or characters; {_SMALLER}")
