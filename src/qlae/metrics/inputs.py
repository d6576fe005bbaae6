"""What comes in: two arrays, checked once, in the form the estimators want.

`sources` (n, n_s) and `latents` (n, n_z) may be anything that NumPy can read: arrays of any integer, float or boolean
type, read-only or strided, data frames, tensors on the CPU, nested lists. Sources may also be strings.

* Integer (or boolean) latents are *codes*; float latents are *continuous*.
* Integer, boolean and string sources are *discrete*. A float source is discrete if its values repeat, as those of a
  data set's label file do: at most `MAX_FLOAT_LEVELS` different values, each met `MIN_FLOAT_REPEATS` times on average.
  Any other float source is *continuous*.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_FLOAT_LEVELS = 256
MIN_FLOAT_REPEATS = 4
EXACT = 2**53  # up to which a float holds every integer
FAR = 2.0**10  # ranges, beyond which an offset is in the way
PLAIN = 6  # powers of two by which a range may differ from 1
LARGEST = 1e30  # of a float, so that sums of squares stay finite and solvers come to an end
MANY_HELD_OUT = 10  # rows, in which a source that varies hardly has one value only by chance


@dataclass(frozen=True, eq=False)
class Sources:
    """Checked sources: labels 0 … size − 1 where discrete, values where numbers."""

    labels: Ints  # (n, n_s); 0 for continuous sources
    values: Floats  # (n, n_s); the numbers given, or the labels of strings
    sizes: tuple[int, ...]  # different values met; 0 for continuous sources
    discrete: tuple[bool, ...]

    @property
    def num_samples(self) -> int:
        return int(self.values.shape[0])

    @property
    def num_sources(self) -> int:
        return int(self.values.shape[1])

    @property
    def varying(self) -> Bools:
        """(n_s,) False for a source that is constant in this sample."""
        return np.array([size != 1 for size in self.sizes], dtype=bool)

    @property
    def kinds(self) -> list[str]:
        """As `source_kinds` takes them."""
        return ["discrete" if discrete else "continuous" for discrete in self.discrete]

    def rows(self, index: Any) -> Sources:
        """The same sources on other rows; levels that no longer occur are closed up."""
        return _sources_from_columns(
            [self.labels[index, i] if d else self.values[index, i] for i, d in enumerate(self.discrete)],
            self.values[index],
            self.discrete,
        )


@dataclass(frozen=True, eq=False)
class Latents:
    """Checked latents: float values, and codes 0 … size − 1 if they came as integers."""

    values: Floats  # (n, n_z)
    codes: Ints | None  # (n, n_z)
    sizes: tuple[int, ...]  # different codes met; () for continuous latents

    @property
    def discrete(self) -> bool:
        return self.codes is not None

    @property
    def num_latents(self) -> int:
        return int(self.values.shape[1])

    def rows(self, index: Any) -> Latents:
        """The same latents on other rows; codes that no longer occur are closed up."""
        if self.codes is None:
            return Latents(self.values[index], None, ())
        codes, sizes = _factorise_columns(self.codes[index])
        return Latents(self.values[index], codes, sizes)


def check_pair(
    sources: Any, latents: Any, *, source_kinds: str | Sequence[str] = "auto", latent_kind: str = "auto"
) -> tuple[Sources, Latents]:
    """Check both arrays and that they belong together.

    `source_kinds` and `latent_kind` overrule what the types say: "auto", "discrete" or "continuous" for sources (one
    word, or one a source), "auto", "codes" or "continuous" for latents.
    """
    checked = check_sources(sources, kinds=source_kinds)
    given = check_latents(latents, kind=latent_kind)
    if checked.num_samples != given.values.shape[0]:
        raise ValueError(
            f"sources have {checked.num_samples} rows and latents {given.values.shape[0]}: "
            "give one row per sample in both, in the same order."
        )
    return checked, given


def check_sources(sources: Any, *, kinds: str | Sequence[str] = "auto") -> Sources:
    """Read `sources` (n, n_s) or (n,)."""
    columns = _columns(sources, name="sources")
    words = [kinds] * len(columns) if isinstance(kinds, str) else list(kinds)
    if len(words) != len(columns):
        raise ValueError(
            f"source_kinds has {len(words)} entries for {len(columns)} sources: give one word, or one each."
        )
    for word in words:
        if word not in ("auto", "discrete", "continuous"):
            raise ValueError(f"source_kinds got {word!r}; allowed are 'auto', 'discrete' and 'continuous'.")
    discrete = []
    for i, (column, word) in enumerate(zip(columns, words, strict=True)):
        if word == "continuous" and column.dtype.kind == "U":
            raise ValueError(f"sources[:, {i}] holds strings and cannot be continuous: leave its kind at 'auto'.")
        discrete.append(_is_discrete(column) if word == "auto" else word == "discrete")
    values = np.empty((columns[0].shape[0], len(columns)))
    for i, column in enumerate(columns):
        values[:, i] = _numbers(column) if discrete[i] else column
    return _sources_from_columns(columns, values, tuple(discrete))


def check_latents(latents: Any, *, kind: str = "auto") -> Latents:
    """Read `latents` (n, n_z) or (n,)."""
    if kind not in ("auto", "codes", "continuous"):
        raise ValueError(f"latent_kind got {kind!r}; allowed are 'auto', 'codes' and 'continuous'.")
    columns = _columns(latents, name="latents")
    if any(column.dtype.kind == "U" for column in columns):
        raise ValueError(
            "latents hold strings; give codes as integers (for one column: np.unique(column, return_inverse=True)[1])."
        )
    integer = [column.dtype.kind in "iub" for column in columns]
    if kind == "auto" and any(integer) and not all(integer):
        raise ValueError(
            f"latents mix {sum(integer)} integer columns (codes) with {len(integer) - sum(integer)} float columns "
            "(continuous): score them apart, or say latent_kind='codes' or 'continuous'."
        )
    if kind == "continuous" or (kind == "auto" and not all(integer)):
        return Latents(np.column_stack([column.astype(np.float64) for column in columns]), None, ())
    codes, sizes = _factorise_columns(columns)
    return Latents(np.column_stack([_numbers(column) for column in columns]), codes, sizes)


def scored_form(latents: Any | None, codes: Any | None) -> tuple[Any, str]:
    """What is scored of a sample, and its kind: codes where there are any, else the latents as they come.

    A code that stands for a number is scored as that number, so that its scale and its order count where a metric asks
    for them. Which code it is says its index: the numbers are taken from where each code first occurs, not compared.
    """
    if codes is None:
        return latents, "auto"
    if latents is None:
        return codes, "codes"
    indices, numbers = (array[:, None] if array.ndim == 1 else array for array in map(np.asarray, (codes, latents)))
    if indices.shape != numbers.shape or indices.ndim != 2:
        raise ValueError(f"codes have shape {indices.shape} and latents {numbers.shape}: give both for each latent.")
    values = np.empty_like(numbers)
    for j in range(indices.shape[1]):
        _, first, index = np.unique(indices[:, j], return_index=True, return_inverse=True)
        values[:, j] = numbers[first, j][index]
    return values, "codes"


def plain_columns(values: Floats) -> Floats:
    """Columns of (n, m) or (n,) free of offsets and scales that arithmetic trips over; most are so already, and stay.

    An offset of very many ranges is taken away, and a range far from 1 is brought there by a power of two, so that
    nothing is rounded. For squares that underflow, jitter in units of the mean, thresholds that know no units (trees
    take features less than 1e-7 apart for equal), and single precision.

    >>> plain_columns(np.array([[0.0, 3.0], [2.0**-300, 7.0]])).tolist()
    [[0.0, 3.0], [0.5, 7.0]]
    """
    spread = np.ptp(values, axis=0)
    middle = (values.min(axis=0) + values.max(axis=0)) / 2
    exponent = np.frexp(spread)[1]
    near = values - np.where(np.abs(middle) > FAR * spread, middle, 0.0)
    return np.asarray(np.ldexp(near, np.where(np.abs(exponent) > PLAIN, -exponent, 0)))


def leave_out_constant(sources: Sources, *, but_for: str = "") -> Bools:
    """The mask of sources that vary; warns of those that do not, raises if none does.

    Args:
        sources: checked.
        but_for: the score that counts constant ones all the same.
    """
    varying = sources.varying
    if not varying.any():
        raise ValueError(
            "every source is constant in this sample: there is nothing to inform about. Draw other samples."
        )
    if not varying.all():
        constant = ", ".join(str(i) for i in np.flatnonzero(~varying))
        exception = f", but for {but_for}, by this protocol" if but_for else ""
        told = f"constant sources are left out of the scores{exception} (their NMI is 0): columns {constant}."
        warnings.warn(told, stacklevel=3)
    return varying


def require_discrete(sources: Sources, metric: str) -> None:
    """Raise a ``ValueError`` if a source is continuous, for a metric that distinguishes classes."""
    if not all(sources.discrete):
        continuous = ", ".join(str(i) for i, discrete in enumerate(sources.discrete) if not discrete)
        raise ValueError(
            f"{metric} needs discrete sources, and these columns are continuous: {continuous}. Use infomec, which "
            "scores continuous sources by R², or say source_kinds='discrete' if they are classes."
        )


def warn_of_order(sources: Sources, held_out: slice) -> None:
    """Tell of rows in the order of a source: what is learned on the others says little about those held out."""
    for i in np.flatnonzero(sources.varying & np.array(sources.discrete)).tolist():
        labels = sources.labels[held_out, i]
        if len(labels) >= MANY_HELD_OUT and (labels == labels[0]).all():
            warnings.warn(
                f"source {i} has one value only in the rows held out, the last {len(labels)}: rows in the order of a "
                "source give wrong scores; shuffle them, or use qlae.metrics.score, which does.",
                stacklevel=3,
            )
            return


def unwrapped(array: Any, name: str) -> Any:
    """What `np.asarray` can read of a tensor; anything else as it is; an error for masks, which it would drop."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        raise ValueError(f"{name} has masked entries; leave their rows out, or fill them.")
    if not hasattr(array, "detach"):
        return array
    array = array.detach()
    if getattr(getattr(array, "device", None), "type", "cpu") != "cpu":
        raise ValueError(f"{name} is a tensor on {array.device}: call .cpu() on it first.")
    return array.float() if str(getattr(array, "dtype", "")) == "torch.bfloat16" else array  # which NumPy has not


def _columns(array: Any, *, name: str) -> list[NDArray[Any]]:
    """The columns of a 2-D array-like, each an integer, boolean, float64 or string vector without gaps."""
    try:
        table = np.asarray(unwrapped(array, name))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} cannot be read as an array ({error}); give (num_samples, num_columns).") from error
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise ValueError(f"{name} has shape {table.shape}; give (num_samples, num_columns).")
    if table.shape[0] < 2 or table.shape[1] < 1:
        raise ValueError(f"{name} has shape {table.shape}; at least 2 samples and 1 column are needed.")
    return [_readable(table[:, i], name=f"{name}[:, {i}]") for i in range(table.shape[1])]


def whole_number(name: str, value: Any, least: int) -> int:
    """`value` as an int if it is a whole number of at least `least`, else a ``ValueError``.

    >>> whole_number("num_bins", np.int64(20), 2)
    20
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}.")
    return int(value)


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
    """Python objects, as a frame of mixed columns gives them: all integers, all numbers or all strings."""
    items = column.tolist()
    if all(isinstance(item, str) for item in items):
        return np.array(items, dtype=str)
    if all(isinstance(item, (bool, int, np.integer, np.bool_)) for item in items):
        return np.array(items)
    if all(isinstance(item, (bool, int, float, np.number, np.bool_)) for item in items):
        return np.array(items, dtype=np.float64)
    kinds = sorted({type(item).__name__ for item in items})
    raise ValueError(f"{name} mixes {', '.join(kinds)}; give one kind: integers, floats or strings, without gaps.")


def _is_discrete(column: NDArray[Any]) -> bool:
    if column.dtype.kind != "f":
        return True
    levels = np.unique(column).size
    return bool(levels <= MAX_FLOAT_LEVELS and levels * MIN_FLOAT_REPEATS <= max(column.size, MIN_FLOAT_REPEATS))


def _numbers(column: NDArray[Any]) -> Floats:
    """Classes as numbers: those that they are, or the labels of strings and of integers that no float tells apart."""
    beyond = column.dtype.kind in "iu" and (int(column.max()) > EXACT or int(column.min()) < -EXACT)
    return (_factorise(column)[0] if beyond or column.dtype.kind == "U" else column).astype(np.float64)


def _factorise(column: NDArray[Any]) -> tuple[Ints, int]:
    """Labels 0 … size − 1 in the order of the values, and size."""
    if column.dtype.kind in "iu" and column.size:
        low, high = int(column.min()), int(column.max())
        if high - low <= 4 * column.size + 1024:  # count instead of sorting
            wide = column if column.dtype.itemsize == 8 else column.astype(np.int64)  # which holds any difference
            shifted = (wide - wide.dtype.type(low)).astype(np.int64)
            present = np.bincount(shifted, minlength=high - low + 1) > 0
            size = int(present.sum())
            return (shifted if size == present.size else (np.cumsum(present) - 1)[shifted]), size
    levels, labels = np.unique(column, return_inverse=True)
    return labels.reshape(-1).astype(np.int64), int(levels.size)


def _factorise_columns(columns: Any) -> tuple[Ints, tuple[int, ...]]:
    if isinstance(columns, np.ndarray):
        columns = list(columns.T)
    codes = np.empty((columns[0].shape[0], len(columns)), dtype=np.int64, order="F")
    sizes = []
    for i, column in enumerate(columns):
        codes[:, i], size = _factorise(column)
        sizes.append(size)
    return codes, tuple(sizes)


def _sources_from_columns(columns: Sequence[NDArray[Any]], values: Floats, discrete: tuple[bool, ...]) -> Sources:
    labels = np.zeros(values.shape, dtype=np.int64, order="F")
    sizes = [0] * len(columns)
    for i, column in enumerate(columns):
        if discrete[i]:
            labels[:, i], sizes[i] = _factorise(column)
        elif np.ptp(values[:, i]) == 0:
            sizes[i] = 1  # constant: neither kind, and left out
    return Sources(labels, values, tuple(sizes), discrete)
