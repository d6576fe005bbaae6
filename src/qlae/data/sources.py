"""Sources: those of the built-in data sets (names, sizes, and the order of the images), and columns of a user's data.

Images are in row-major order of the grid of sources: the last source changes fastest. This file holds the paper's data
table (Appendix, "data sets") and converts row numbers to source levels. It imports NumPy only, so that looking up a
name never loads torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known

#: data set → {source name: number of values}, slowest source first.
SOURCES: dict[str, dict[str, int]] = {
    # The paper's table swaps two sizes of Shapes3D; the real set has 10 wall hues and 15 orientations.
    "shapes3d": {"floor hue": 10, "wall hue": 10, "object hue": 10, "scale": 8, "shape": 4, "orientation": 15},
    "mpi3d": {
        "object color": 4,
        "shape": 4,
        "size": 2,
        "camera height": 3,
        "background color": 3,
        "horizontal": 40,
        "vertical": 40,
    },
    "falcor3d": {
        "lighting intensity": 5,
        "lighting x": 6,
        "lighting y": 6,
        "lighting z": 6,
        "camera x": 6,
        "camera y": 6,
        "camera z": 6,
    },
    "isaac3d": {
        "object shape": 3,
        "robot x": 8,
        "robot y": 5,
        "camera height": 4,
        "object scale": 4,
        "lighting intensity": 4,
        "lighting direction": 6,
        "object color": 4,
        "wall color": 4,
    },
    "dsprites": {"shape": 3, "scale": 6, "orientation": 40, "x": 32, "y": 32},
}
#: The data sets that have a scene and can be rendered.
RENDERED_SETS = ("shapes3d", "mpi3d", "falcor3d", "isaac3d", "dsprites")
#: Those whose images have one channel instead of red, green and blue.
GREY_SETS = ("dsprites",)

#: The data sets of vectors and series that qlae generates (`generated`).
GENERATED_SETS = ("mixtures", "pendulum", "sensors")
#: The data sets that come with scikit-learn.
BUNDLED_SETS = ("digits",)
#: All names that are taken.
BUILT_IN_SETS = (*SOURCES, *GENERATED_SETS, *BUNDLED_SETS)

#: data set → its categorical sources: nothing lies between their values.
CATEGORIES: dict[str, tuple[str, ...]] = {
    "shapes3d": ("shape",),
    "mpi3d": ("shape",),
    "isaac3d": ("object shape",),
    "dsprites": ("shape",),
}
#: data set → its circular sources: further values lie between the last and the first.
CIRCULAR: dict[str, tuple[str, ...]] = {"shapes3d": ("floor hue", "wall hue", "object hue")}

WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,1000}\s*")


def grid_levels(sizes: Sequence[int], rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return the source levels (k, n_s) of k rows, or all, of a grid in row-major order.

    >>> grid_levels([2, 3])[:4].tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0]]
    """
    rows = np.arange(math.prod(sizes)) if rows is None else rows
    return np.stack(np.unravel_index(rows, tuple(sizes)), axis=1).astype(np.int64, copy=False)


def split_sources(
    table: Mapping[str, int], sources: Sequence[str], fixed: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sizes of the sources that vary, in the order of `table`, and the levels of the others.

    No `sources` stand for all that are not fixed. Sources in neither `sources` nor `fixed` stay at the middle.
    """
    for name, level in fixed.items():
        require_known(name, table, "source")
        if not 0 <= level < table[name]:
            raise ValueError(f"fixed level of {name!r} must be an integer from 0 to {table[name] - 1}, got {level!r}")
    for name in sources:
        require_known(name, table, "source")
        if name in fixed:
            raise ValueError(f"source {name!r} is in both sources and fixed: remove it from one of them")
        if sources.count(name) > 1:
            raise ValueError(f"source {name!r} is in sources twice: remove one of them")
    varying = {n: size for n, size in table.items() if (n in sources if sources else n not in fixed)}
    if not varying:
        raise ValueError(f"no source is left to vary: choose at least one of {', '.join(table)}")
    constant = {n: fixed.get(n, size // 2) for n, size in table.items() if n not in varying}
    return varying, constant


def default_source_names(num_sources: int) -> list[str]:
    """Return names for sources that have none."""
    return [f"source {i + 1}" for i in range(num_sources)]


def source_rows(sources: Any, num_rows: int) -> NDArray[Any]:
    """Return sources as an array (n, n_s); raise an error unless there is a row for each observation."""
    table = sources.detach().cpu().numpy() if hasattr(sources, "detach") else np.asarray(sources)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != num_rows or table.dtype.kind not in "iufUb":
        raise ValueError(
            f"sources must have one row for each of {num_rows} observations: numbers or text of shape (n, n_s), "
            f"got {table.dtype} {table.shape}"
        )
    return table


def named_columns(table: NDArray[Any], names: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the columns of an array (n, n_s) by name; without names, they are "source 1", "source 2", …."""
    names = list(names) or default_source_names(table.shape[1])
    if len(names) != table.shape[1] or len(set(names)) != len(names):
        raise ValueError(f"{table.shape[1]} sources need {table.shape[1]} distinct names, got {names}")
    return {n: table[:, i].tolist() for i, n in enumerate(names)}


def level_table(columns: Mapping[str, Sequence[Any]], num_rows: int) -> NDArray[Any]:
    """Return columns of sources as an array (n, n_s) of levels; floats if any source has fractions."""
    for name, values in columns.items():
        if len(values) != num_rows:
            raise ValueError(f"there are {num_rows:,} observations, and the source {name!r} has {len(values):,} values")
    numbers = [as_levels(name, list(values)) for name, values in columns.items()]
    return np.stack(numbers, axis=1) if numbers else np.zeros((num_rows, 0), np.int64)


def as_levels(name: str, values: list[Any]) -> NDArray[Any]:
    """Convert a column of numbers or words to levels in sorted order; numbers with fractions stay unchanged."""
    numbers: NDArray[Any]
    if all(isinstance(v, int) or (isinstance(v, str) and WHOLE_NUMBER.fullmatch(v)) for v in values):
        whole = [int(value) for value in values]  # which floats may be unable to tell apart
        fits = all(-(2**63) <= number < 2**63 for number in whole)
        numbers = np.array(whole, dtype=np.int64 if fits else object)
    else:
        try:
            numbers = np.array(values, dtype=np.float64)
        except ValueError:
            numbers = np.array([str(v) for v in values])
        else:
            if not np.isfinite(numbers).all():
                raise ValueError(f"source {name!r} has values that are not finite numbers")
            if (numbers != np.floor(numbers)).any():
                return numbers
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
