"""Sources: those of the built-in data sets (names, sizes, grids and random samples), and columns of a user's data.

The table is the paper's (Appendix, "data sets"). Images are in row-major order of the grid of sources: the last source
changes fastest. A grid holds every combination once, so its sources are independent and take few values. A random
sample instead draws a number of rows: each source is uniform over its levels, or over the whole range from the first to
the last, and pairs of sources may be correlated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
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


def source_values(column: Any) -> list[Any]:
    """Return the values of a source from a list, an array or a column of a data frame, None where one is missing."""
    values = column.detach().cpu().numpy() if hasattr(column, "detach") else column
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else [is_missing(v) for v in values]
    plain = np.asarray(values).tolist()
    return [None if gap else value for gap, value in zip(missing, plain, strict=True)]


def source_rows(sources: Any, num_rows: int) -> NDArray[Any]:
    """Return sources as an array (n, n_s); raise an error unless there is a row for each observation."""
    if isinstance(sources, np.ma.MaskedArray) and np.ma.is_masked(sources):
        raise ValueError("sources have masked entries: fill them in, or leave out these rows")
    if isinstance(sources, list | tuple) and any(map(is_missing, np.asarray(sources, dtype=object).ravel())):
        raise ValueError("sources have missing values: fill them in, or leave out these rows")
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
    gaps = [row for row, value in enumerate(values) if is_missing(value)]
    if gaps:
        raise ValueError(
            f"source {name!r} has {len(gaps):,} missing values, the first in row {gaps[0]}: fill them in, leave out "
            "these rows, or leave out the source"
        )
    if all(isinstance(v, int) or (isinstance(v, str) and WHOLE_NUMBER.fullmatch(v)) for v in values):
        whole = [int(value) for value in values]  # which floats may be unable to tell apart
        fits = all(-(2**63) <= number < 2**63 for number in whole)
        numbers = np.array(whole, dtype=np.int64 if fits else object)
    else:
        try:
            numbers = np.array(values, dtype=np.float64)
        except ValueError:
            return number_texts([str(value) for value in values])
        else:
            if not np.isfinite(numbers).all():
                raise ValueError(f"source {name!r} has values that are not finite numbers")
            if (numbers != np.floor(numbers)).any():
                return numbers
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def number_texts(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the place of each text among the sorted different ones (n,); an array of them could be very wide."""
    places = {text: place for place, text in enumerate(sorted(set(texts)))}
    return np.array([places[text] for text in texts], dtype=np.int64)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or what pandas puts in the place of missing values."""
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType") or value != value


def draw_levels(
    sizes: Mapping[str, int],
    num_rows: int,
    *,
    smooth: Collection[str] = (),
    circular: Collection[str] = (),
    correlated: Mapping[tuple[str, str], float] | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Draw random levels (n, number of sources).

    Args:
        sizes: the sources that vary and the number of levels of each.
        num_rows: n.
        smooth: the sources that take any value in their range.
        circular: sources for which further values lie between the last and the first.
        correlated: the correlation of the levels for pairs of sources, from −1 to 1. Sources with few levels, or with
            different numbers of them, cannot reach −1 or 1.
        seed: the same seed gives the same levels.
    """
    steps = [None if source in smooth else size for source, size in sizes.items()]
    normal = np.random.default_rng(seed).standard_normal((num_rows, len(sizes)))
    levels = _normal_cdf(normal @ _mixing_matrix(list(sizes), steps, correlated or {}).T)  # shares
    for column, (source, size) in enumerate(sizes.items()):
        if source not in smooth:
            levels[:, column] = np.minimum(np.floor(levels[:, column] * size), size - 1)
        elif source in circular:
            levels[:, column] = np.minimum(levels[:, column] * size, math.nextafter(size, 0))
        else:
            levels[:, column] *= size - 1
    return levels


def smooth_sources(varying: Sequence[str], continuous: bool | Sequence[str], categories: Collection[str]) -> list[str]:
    """Return the sources that take values between their levels: those in `continuous`, but no categories."""
    if isinstance(continuous, bool):
        return [s for s in varying if continuous and s not in categories]
    for source in continuous:
        require_known(source, varying, "source that varies")
        if source in categories:
            raise ValueError(f"{source!r} is a category, with nothing between its values: remove it from continuous")
    return list(continuous)


def _mixing_matrix(
    varying: Sequence[str], steps: Sequence[int | None], correlated: Mapping[tuple[str, str], float]
) -> NDArray[np.float64]:
    """Return a matrix (n_s, n_s) that turns independent normal variables into ones with the correlations of the levels.

    `steps` has the number of levels of each source; None if it takes any value in its range.
    """
    correlation = np.eye(len(varying))
    for (first, second), value in correlated.items():
        i, j = (varying.index(require_known(s, varying, "source that varies")) for s in (first, second))
        if i == j:
            raise ValueError(f"correlated takes pairs of two different sources, got {first!r} twice")
        if not -1 <= value <= 1:
            raise ValueError(f"the correlation of {first!r} and {second!r} must be from -1 to 1, got {value!r}")
        try:
            correlation[i, j] = correlation[j, i] = _normal_correlation(value, steps[i], steps[j])
        except ValueError as error:
            raise ValueError(f"{first!r} and {second!r} {error}") from None
    values, vectors = np.linalg.eigh(correlation)
    if values.min() < -1e-9:
        raise ValueError(f"these correlations exclude each other: lower some of them; got {dict(correlated)!r}")
    mixing: NDArray[np.float64] = vectors * np.sqrt(values.clip(0))
    return mixing


def _normal_correlation(levels: float, first: int | None, second: int | None) -> float:
    """Return the correlation of two normal variables whose levels have the correlation `levels`.

    `first` and `second` are the numbers of levels; None for a continuous source.
    """
    if first is None and second is None:
        return 2 * math.sin(math.pi * levels / 6)  # the closed form for uniform variables
    from scipy.optimize import brentq

    largest = _level_correlation(1.0, first, second)  # the smallest is its negative
    if abs(levels) > largest + 5e-4:
        raise ValueError(
            f"can be correlated from {-largest:.2f} to {largest:.2f}, given their numbers of levels; got {levels}"
        )
    if abs(levels) >= largest:
        return math.copysign(1.0, levels)
    return float(brentq(lambda normal: _level_correlation(normal, first, second) - levels, -1, 1, xtol=1e-6))


def _level_correlation(normal: float, first: int | None, second: int | None) -> float:
    """Return the correlation of the levels of two normal variables that have the correlation `normal`."""
    from scipy.special import ndtri

    share = (np.arange(4096) + 0.5) / 4096  # equal parts of the first variable's distribution
    z = ndtri(share)
    levels = share if first is None else np.floor(share * first)
    if second is None:
        expected, spread = _normal_cdf(normal * z / math.sqrt(2 - normal**2)), math.sqrt(1 / 12)
    else:
        borders = ndtri(np.arange(1, second) / second)[:, None]  # where the second goes from one level to the next
        rest = max(math.sqrt(1 - normal**2), 1e-9)
        expected, spread = _normal_cdf((normal * z - borders) / rest).sum(axis=0), math.sqrt((second**2 - 1) / 12)
    return float(np.cov(levels, expected, bias=True)[0, 1] / (levels.std() * spread))


def _normal_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import ndtr

    cdf: NDArray[np.float64] = ndtr(x)
    return cdf
