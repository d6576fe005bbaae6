"""Read the two arrays that metrics take, check them once, and bring them into the form that estimators need.

`sources` (n, n_s) and `latents` (n, n_z) may be anything that NumPy can read: arrays of any integer, float or boolean
type, read-only or strided, data frames, tensors on the CPU, nested lists. Sources may also be strings.

* Integer (or boolean) latents are *codes*; float latents are *continuous*.
* Integer, boolean and string sources are *discrete*. A float source is discrete if its values repeat, as those of a
  label file do: at most `MAX_FLOAT_LEVELS` different values, each of which occurs `MIN_FLOAT_REPEATS` times on average.
  Any other float source is *continuous*.

Several metrics train on some rows and test on others; the splits are at the end of this file.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Upper bounds: of seeds, as scikit-learn takes them, of repetitions, and of processes.
MAX_SEED, MAX_DRAWS, MAX_JOBS = 2**32 - 1, 1_000_000, 4096
MAX_FLOAT_LEVELS = 256
MIN_FLOAT_REPEATS = 4
EXACT = 2**53  # a float represents every integer up to this one
FAR = 2.0**10  # an offset of more ranges than this is removed
PLAIN = 6  # powers of two by which a range may differ from 1
MIN_TEST_ROWS = 10  # fewer may have a single value of a source by chance
_WIDE = 1 << 24  # bytes of a column of text, above which its strings are numbered
LARGEST = 1e30  # allowed magnitude of a float, so that sums of squares stay finite and solvers terminate


def unwrap_tensor(array: Any, name: str) -> Any:
    """Return a tensor in a form that `np.asarray` can read, and anything else as it is.

    Raises:
        ValueError: for masked entries, which `np.asarray` would not mask, for sparse matrices, and for tensors on
            another device.
    """
    parts = array if isinstance(array, list | tuple) else [array]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).any() for part in parts):
        raise ValueError(f"{name} has masked entries; leave their rows out, or fill them.")
    if hasattr(array, "toarray") and hasattr(array, "nnz"):
        raise ValueError(f"{name} is a sparse matrix; give .toarray().")
    if not hasattr(array, "detach"):
        # NumPy has no bfloat16: that of JAX is a foreign type, which it cannot compare.
        return array.astype("float32") if str(getattr(array, "dtype", "")) == "bfloat16" else array
    array = array.detach()
    if getattr(getattr(array, "device", None), "type", "cpu") != "cpu":
        raise ValueError(f"{name} is a tensor on {array.device}: call .cpu() on it first.")
    return array.float() if str(getattr(array, "dtype", "")) == "torch.bfloat16" else array  # NumPy has no bfloat16


def read_columns(array: Any, *, name: str) -> list[NDArray[Any]]:
    """Return the columns of a 2-D array-like, each an integer, boolean, float64 or string vector without NaN."""
    unwrapped = unwrap_tensor(array, name)
    try:
        table = np.asarray(unwrapped)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} cannot be read as an array ({error}); give (num_samples, num_columns).") from error
    if table.ndim == 0:
        raise ValueError(f"{name} is a {type(array).__name__}, not a table; give an array (num_samples, num_columns).")
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
        wide = column.dtype.itemsize * column.size > _WIDE
        return text_column(column.astype(str).tolist()) if wide else column.astype(str)
    if column.dtype.kind != "f":
        dates = " (dates as numbers, such as days)" if column.dtype.kind in "mM" else ""
        raise ValueError(f"{name} has type {column.dtype}; give integers, floats, booleans or strings{dates}.")
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
        return text_column(items)
    if all(isinstance(item, (bool, int, np.integer, np.bool_)) for item in items):
        return np.array(items)
    if all(isinstance(item, (bool, int, float, np.number, np.bool_)) for item in items):
        return np.array(items, dtype=np.float64)
    kinds = sorted({type(item).__name__ for item in items})
    raise ValueError(
        f"{name} mixes {', '.join(kinds)}; give one kind: integers, floats or strings, without missing values."
    )


def text_column(items: Sequence[str]) -> NDArray[Any]:
    """Return strings as an array, in which each takes as much memory as the longest.

    If that is too much, each is replaced by its number in alphabetical order, as a string.

    >>> text_column(["b", "a" * 10_000_000]).tolist()
    ['1', '0']
    """
    if len(items) * max(map(len, items), default=0) * 4 <= _WIDE:
        return np.array(items, dtype=str)
    levels = sorted(set(items))
    width = len(str(len(levels) - 1))
    names = {text: f"{number:0{width}d}" for number, text in enumerate(levels)}
    return np.array([names[item] for item in items])


@dataclass(frozen=True, eq=False)
class Sources:
    """Checked sources: labels 0 … size − 1 of the discrete ones, and all of them as numbers."""

    labels: Ints  # (n, n_s); 0 for continuous sources
    values: Floats  # (n, n_s); the numbers themselves, or the labels of strings
    sizes: tuple[int, ...]  # numbers of different values; 0 for continuous sources, 1 for constant ones
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
        """The kind of each source, in the words of `source_kinds`."""
        return ["discrete" if discrete else "continuous" for discrete in self.discrete]

    def rows(self, index: Any) -> Sources:
        """Return the sources of some rows; labels are numbered anew, without values that no longer occur."""
        return _sources_from_columns(
            [self.labels[index, i] if d else self.values[index, i] for i, d in enumerate(self.discrete)],
            self.values[index],
            self.discrete,
        )

    def columns(self, index: Sequence[int]) -> Sources:
        """Return some of the sources."""
        sizes, discrete = tuple(self.sizes[i] for i in index), tuple(self.discrete[i] for i in index)
        return Sources(self.labels[:, index], self.values[:, index], sizes, discrete)


@dataclass(frozen=True, eq=False)
class Latents:
    """Checked latents: float values, and codes 0 … size − 1 if they are discrete."""

    values: Floats  # (n, n_z)
    codes: Ints | None  # (n, n_z)
    sizes: tuple[int, ...]  # numbers of different codes; () for continuous latents

    @property
    def discrete(self) -> bool:
        return self.codes is not None

    @property
    def num_latents(self) -> int:
        return int(self.values.shape[1])

    @property
    def varying(self) -> Bools:
        """(n_z,) False for a latent whose value is constant in this sample."""
        return np.asarray(np.ptp(self.values, axis=0) > 0)

    def rows(self, index: Any) -> Latents:
        """Return the latents of some rows; codes are numbered anew, without those that no longer occur."""
        if self.codes is None:
            return Latents(self.values[index], None, ())
        codes, sizes = _factorise_columns(self.codes[index].T)
        return Latents(self.values[index], codes, sizes)

    def columns(self, index: Sequence[int]) -> Latents:
        """Return some of the latents."""
        if self.codes is None:
            return Latents(self.values[:, index], None, ())
        return Latents(self.values[:, index], self.codes[:, index], tuple(self.sizes[j] for j in index))


def check_pair(
    sources: Any, latents: Any, *, source_kinds: str | Sequence[str] = "auto", latent_kind: str = "auto"
) -> tuple[Sources, Latents]:
    """Check both arrays, (n, …) or (n,), and that they have the same number of rows; the kinds overrule the types.

    A pair that has been checked is returned as it is, without a copy.
    """
    if isinstance(sources, Sources) and isinstance(latents, Latents):
        return sources, latents
    s = check_sources(sources, kinds=source_kinds)
    z = check_latents(latents, kind=latent_kind)
    if s.num_samples != z.values.shape[0]:
        raise ValueError(
            f"sources have {s.num_samples} rows and latents {z.values.shape[0]}: "
            "give one row per sample in both, in the same order."
        )
    return s, z


def check_sources(sources: Any, *, kinds: str | Sequence[str] = "auto") -> Sources:
    """Check `sources`, (n, n_s) or (n,)."""
    columns = read_columns(sources, name="sources")
    words = list(kinds) if isinstance(kinds, Sequence) and not isinstance(kinds, str) else [kinds] * len(columns)
    if len(words) != len(columns):
        raise ValueError(
            f"source_kinds has {len(words)} entries for {len(columns)} sources: give one word, or one per source."
        )
    for word in words:
        require_choice("source_kinds", word, ("auto", "discrete", "continuous"))
    discrete = []
    for i, (column, word) in enumerate(zip(columns, words, strict=True)):
        if word == "continuous" and column.dtype.kind == "U":
            raise ValueError(f"sources[:, {i}] holds strings and cannot be continuous: leave its kind at 'auto'.")
        discrete.append(_is_discrete(column) if word == "auto" else word == "discrete")
    numbers = [_numbers(column) if d else column for column, d in zip(columns, discrete, strict=True)]
    values = np.ascontiguousarray(np.column_stack(numbers), dtype=np.float64)
    return _sources_from_columns(columns, values, tuple(discrete))


def check_latents(latents: Any, *, kind: str = "auto") -> Latents:
    """Check `latents`, (n, n_z) or (n,)."""
    require_choice("latent_kind", kind, ("auto", "codes", "continuous"))
    columns = read_columns(latents, name="latents")
    if any(column.dtype.kind == "U" for column in columns):
        raise ValueError(
            "latents hold strings; give codes as integers (for one column: np.unique(column, return_inverse=True)[1])."
        )
    integer = [column.dtype.kind in "iub" for column in columns]
    if kind == "auto" and any(integer) and not all(integer):
        raise ValueError(
            f"latents mix {sum(integer)} integer columns (codes) with {len(integer) - sum(integer)} float columns "
            "(continuous): score them separately, or say latent_kind='codes' or 'continuous'."
        )
    if kind == "continuous" or (kind == "auto" and not all(integer)):
        return Latents(np.column_stack([column.astype(np.float64) for column in columns]), None, ())
    codes, sizes = _factorise_columns(columns)
    return Latents(np.column_stack([_numbers(column) for column in columns]), codes, sizes)


def scored_form(latents: Any | None, codes: Any | None) -> tuple[Any, str, str]:
    """Return the array of a sample that metrics score, its `latent_kind`, and the `code_input` of InfoE.

    Codes that stand for numbers are scored as those numbers, so that metrics which depend on scale and order see them.
    The index identifies a code: its number is taken from the first row that has the code. Indices that stand for
    vectors, as those of a VQ-VAE, have no order, so no protocol takes them as numbers.

    Args:
        latents: (n, n_z) values of the latents; None if a latent is not one number.
        codes: (n, n_z) indices; None if the latents are continuous.
    """
    if codes is None:
        return latents, "auto", "auto"
    if latents is None:
        return codes, "codes", "one-hot"
    indices, numbers = (array[:, None] if array.ndim == 1 else array for array in map(np.asarray, (codes, latents)))
    if indices.shape != numbers.shape or indices.ndim != 2:
        raise ValueError(f"codes have shape {indices.shape} and latents {numbers.shape}: give both for each latent.")
    values = np.empty_like(numbers)
    for j in range(indices.shape[1]):
        _, first, index = np.unique(indices[:, j], return_index=True, return_inverse=True)
        values[:, j] = numbers[first, j][index]
    return values, "codes", "auto"


def plain_columns(values: Floats) -> Floats:
    """Return columns of (n, m) or (n,) without offsets and scales that cause numerical trouble.

    An offset of very many ranges is subtracted, and a range far from 1 is scaled by a power of two, which rounds
    nothing; other columns stay as they are. This avoids squares that underflow, and helps jitter in units of the mean,
    absolute thresholds (trees treat features less than 1e-7 apart as equal) and single precision.

    >>> plain_columns(np.array([[0.0, 3.0], [2.0**-300, 7.0]])).tolist()
    [[0.0, 3.0], [0.5, 7.0]]
    """
    spread = np.ptp(values, axis=0)
    middle = (values.min(axis=0) + values.max(axis=0)) / 2
    exponent = np.frexp(spread)[1]
    near = values - np.where(np.abs(middle) > FAR * spread, middle, 0.0)
    return np.asarray(np.ldexp(near, np.where(np.abs(exponent) > PLAIN, -exponent, 0)))


def leave_out_constant(sources: Sources, *, but_for: str = "") -> Bools:
    """Return the mask (n_s,) of sources that vary; warn about the others, and raise if there are none.

    Args:
        sources: the checked sources.
        but_for: the score that counts constant sources nevertheless.
    """
    varying = sources.varying
    if not varying.any():
        raise ValueError(
            "every source is constant in this sample: there is nothing to be informative about. Draw other samples."
        )
    if not varying.all():
        constant = ", ".join(str(i) for i in np.flatnonzero(~varying))
        exception = f", except {but_for} by this protocol" if but_for else ""
        message = f"constant sources are left out of the scores{exception} (their NMI is 0): columns {constant}."
        warnings.warn(message, stacklevel=3)
    return varying


def require_discrete(sources: Sources, metric: str) -> None:
    """Raise a ``ValueError`` if a source is continuous, for a metric that distinguishes classes."""
    if not all(sources.discrete):
        continuous = ", ".join(str(i) for i, discrete in enumerate(sources.discrete) if not discrete)
        raise ValueError(
            f"{metric} needs discrete sources, and these columns are continuous: {continuous}. Use infomec, which "
            "scores continuous sources by R², or say source_kinds='discrete' if they are classes."
        )


def require_choice(name: str, value: Any, allowed: Iterable[str | bool]) -> None:
    """Raise a ``ValueError`` that lists the allowed values, unless `value` is one of them."""
    if value not in tuple(allowed):
        raise ValueError(f"{name} is {value!r}; allowed are {', '.join(map(repr, allowed))}.")


def whole_number(name: str, value: Any, least: int, most: int = MAX_SEED) -> int:
    """Return `value` as an int; raise a ``ValueError`` unless it is a whole number from `least` to `most`.

    >>> whole_number("num_bins", np.int64(20), 2)
    20
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}.")
    if value > most:
        raise ValueError(f"{name} is {value!r}; give a whole number of at most {most:,}.")
    return int(value)


def _is_discrete(column: NDArray[Any]) -> bool:
    if column.dtype.kind != "f":
        return True
    levels = np.unique(column).size
    return bool(levels <= MAX_FLOAT_LEVELS and levels * MIN_FLOAT_REPEATS <= max(column.size, MIN_FLOAT_REPEATS))


def _numbers(column: NDArray[Any]) -> Floats:
    """Return classes as floats: the numbers themselves, or labels of strings and of integers too large for floats."""
    beyond = column.dtype.kind in "iu" and (int(column.max()) > EXACT or int(column.min()) < -EXACT)
    return (_factorise(column)[0] if beyond or column.dtype.kind == "U" else column).astype(np.float64)


def _factorise(column: NDArray[Any]) -> tuple[Ints, int]:
    """Return labels 0 … size − 1 in the order of the values, and size."""
    if column.dtype.kind in "iu" and column.size:
        low, high = int(column.min()), int(column.max())
        if high - low <= 4 * column.size + 1024:  # count instead of sorting
            wide = column if column.dtype.itemsize == 8 else column.astype(np.int64)  # differences do not overflow
            shifted = (wide - wide.dtype.type(low)).astype(np.int64)
            present = np.bincount(shifted, minlength=high - low + 1) > 0
            size = int(present.sum())
            return (shifted if size == present.size else (np.cumsum(present) - 1)[shifted]), size
    levels, labels = np.unique(column, return_inverse=True)
    return labels.reshape(-1).astype(np.int64), int(levels.size)


def _factorise_columns(columns: Iterable[NDArray[Any]]) -> tuple[Ints, tuple[int, ...]]:
    codes, sizes = zip(*map(_factorise, columns), strict=True)
    return np.asfortranarray(np.column_stack(codes)), sizes


def _sources_from_columns(columns: Sequence[NDArray[Any]], values: Floats, discrete: tuple[bool, ...]) -> Sources:
    labels = np.zeros(values.shape, dtype=np.int64, order="F")
    sizes = [0] * len(columns)
    for i, column in enumerate(columns):
        if discrete[i]:
            labels[:, i], sizes[i] = _factorise(column)
        elif np.ptp(values[:, i]) == 0:
            sizes[i] = 1  # constant, and therefore left out
    return Sources(labels, values, tuple(sizes), discrete)


def train_size(n: int) -> int:
    """Return ⌈0.9 n⌉, the number of training rows, but leave at least one row for testing.

    >>> train_size(25), train_size(5)
    (23, 4)
    """
    return min(int(np.ceil(0.9 * n)), n - 1)


def random_split(n: int, seed: int) -> tuple[Ints, Ints]:
    """Return the numbers of the training rows and of the test rows out of n, in random order."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: train_size(n)], order[train_size(n) :]


def honest_split(n: int, seed: int) -> tuple[Ints, Ints, Ints]:
    """Return the numbers of the rows that train (eight tenths), that choose a model and that test (one tenth each).

    >>> [rows.size for rows in honest_split(100, seed=0)]
    [80, 10, 10]
    """
    if n < 3:
        raise ValueError(f"an honest split needs at least 3 rows: to train, to choose and to test; got {n}.")
    held_out = max(1, n // 10)
    order = np.random.default_rng(seed).permutation(n)
    return order[: n - 2 * held_out], order[n - 2 * held_out : n - held_out], order[n - held_out :]


def warn_if_ordered(sources: Sources, test_rows: slice) -> None:
    """Warn if a source has a single value in the test rows: rows are then sorted, and the others say little of them."""
    for i in np.flatnonzero(sources.varying & np.array(sources.discrete)).tolist():
        labels = sources.labels[test_rows, i]
        if len(labels) >= MIN_TEST_ROWS and (labels == labels[0]).all():
            warnings.warn(
                f"source {i} has one value only in the rows held out, the last {len(labels)}: sorted rows give wrong "
                "scores; shuffle them, or use qlae.metrics.score, which does.",
                stacklevel=3,
            )
            return
