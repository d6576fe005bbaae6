"""Read an array-like into plain columns, and refuse what no metric can use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e30  # allowed magnitude of a float, so that sums of squares stay finite and solvers terminate


def unwrap_tensor(array: Any, name: str) -> Any:
    """Return a tensor in a form that `np.asarray` can read, and anything else as it is.

    Raises:
        ValueError: for masked entries, which `np.asarray` would not mask, and for tensors on another device.
    """
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        raise ValueError(f"{name} has masked entries; leave their rows out, or fill them.")
    if not hasattr(array, "detach"):
        return array
    array = array.detach()
    if getattr(getattr(array, "device", None), "type", "cpu") != "cpu":
        raise ValueError(f"{name} is a tensor on {array.device}: call .cpu() on it first.")
    return array.float() if str(getattr(array, "dtype", "")) == "torch.bfloat16" else array  # NumPy has no bfloat16


def read_columns(array: Any, *, name: str) -> list[NDArray[Any]]:
    """Return the columns of a 2-D array-like, each an integer, boolean, float64 or string vector without NaN."""
    try:
        table = np.asarray(unwrap_tensor(array, name))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} cannot be read as an array ({error}); give (num_samples, num_columns).") from error
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise ValueError(f"{name} has shape {table.shape}; give (num_samples, num_columns).")
    if table.shape[0] < 2 or table.shape[1] < 1:
        raise ValueError(f"{name} has shape {table.shape}; at least 2 samples and 1 column are needed.")
    return [_readable(table[:, i], name=f"{name}[:, {i}]") for i in range(table.shape[1])]


def _readable(column: NDArray[Any], *, name: str) -> NDArray[Any]:
    if column.dtype.kind == "O":
        column = _from_objects(column, name=name)
    if column.dtype.kind in "iub":
        return column
    if column.dtype.kind in "US":
        return column.astype(str)
    if column.dtype.kind != "f":
        raise ValueError(f"{name} has type {column.dtype}; give integers, floats, booleans or strings.")
    column = column.astype(np.float64)
    bad = ~np.isfinite(column)
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(
            f"{name} has {int(bad.sum())} NaN or infinite values (the first, {column[first]}, in row {first}): "
            "remove those samples or repair the encoder."
        )
    largest = float(np.abs(column).max(initial=0.0))
    if largest > LARGEST:
        raise ValueError(f"{name} has values up to {largest:.3g}; their squares must not overflow: rescale it first.")
    return column


def _from_objects(column: NDArray[Any], *, name: str) -> NDArray[Any]:
    """Convert Python objects, as a data frame of mixed columns has them: all integers, all numbers or all strings."""
    items = column.tolist()
    if all(isinstance(item, str) for item in items):
        return np.array(items, dtype=str)
    if all(isinstance(item, (bool, int, np.integer, np.bool_)) for item in items):
        return np.array(items)
    if all(isinstance(item, (bool, int, float, np.number, np.bool_)) for item in items):
        return np.array(items, dtype=np.float64)
    kinds = sorted({type(item).__name__ for item in items})
    raise ValueError(
        f"{name} mixes {', '.join(kinds)}; give one kind: integers, floats or strings, without missing values."
    )
