"""Read the files of an evaluation, ``results.json``, ``sample.npz`` and ``pictures.npz``, and check their content.

The files may have been edited or damaged, so they are checked once, where they are read, and others can rely on them.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io import read_json
from ..observations import MAX_MAGNITUDE as MAX_ENTRY
from ..observations import Observations, described_observations

WEIGHTS = ("averaged", "raw")
#: Scores that come with the matrix of NMI.
INFOMEC = ("infom", "infoe", "infoc")
#: Lists of booleans, one per latent.
LATENT_LISTS = ("active_latents", "informative_latents")
#: Entries that say how a metric was computed.
DETAILS = ("dci",)
#: Larger numbers are damage.
MAX_MAGNITUDE, MAX_COUNT = 1e300, 2**53
#: Entries of the scores that are not plain numbers.
TEXTS = ("infoe_input", "protocol", "forest", "split", "normalisation")
#: Types and dimensions of the arrays. A dimension with a name has the same size in all arrays of a file.
FORMS: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "indices": ("iu", ("images",)),
    "sources": ("iuf", ("images", "sources")),
    "step": ("iu", ()),
    "latents": ("f", ("images", "latents")),
    "codes": ("iu", ("images", "latents")),
    "psnr": ("f", ("images",)),
    "errors": ("f", ("images",)),
    "variances": ("f", ("images",)),
    "feature_errors": ("f", ("features",)),
    "feature_variances": ("f", ("features",)),
    "originals": ("pixels", ("examples", "side", "side", 3)),
    "reconstructions": ("pixels", ("examples", "side", "side", 3)),
    "interventions": ("pixels", ("samples", "steps", "latents", "side", "side", 3)),
    "intervention_steps": ("iuf", ("steps", "latents")),
    "interpolations": ("pixels", ("samples", "even steps", "latents", "side", "side", 3)),
    "interpolation_steps": ("f", ("even steps", "latents")),
    "strips": ("pixels", ("latents", "strip steps", "side", "side", 3)),
    "strip_codes": ("iu", ("latents", 2)),
    "generated": ("pixels", ("generated", "side", "side", 3)),
}
PIXELS = ("side", "side", 3)
RAW = "raw_"  # prefix of the arrays of the raw weights
WORDS = {"iu": "whole numbers", "iuf": "numbers", "f": "numbers with fractions", "pixels": "bytes"}
MIN_STEPS = {"strip steps": 2}  # both ends


def read_results(path: Path, *, remedy: str) -> dict[str, Any]:
    """Return the content of a ``results.json``.

    Args:
        path: the file.
        remedy: what the user can do about a damaged file. It ends the error message.

    Raises:
        ValueError: the content is damaged, or of another kind than expected.
        OSError: the file is missing or the system cannot read it; the error names it.
    """
    content = read_json(path, remedy=remedy)
    try:
        check_results(content)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {remedy}") from None
    return content


def check_results(content: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names the first entry which is missing or of another kind than expected."""
    _texts(content, ("model", "protocol"), "")
    _counts(content, ("seed", "steps", "num_samples"), "")
    _number(content, "seconds", "")
    _object(content, "versions")
    _require(isinstance(content.get("settings", {}), dict), "settings", content.get("settings"), "an object")
    _require(isinstance(content.get("prune"), bool), "prune", content.get("prune"), "true or false")
    _list_of(content, "warnings", str, "")
    data = _object(content, "data")
    _texts(data, ("name", "origin"), "data.")
    _counts(data, ("num_images",) if "observations" in data else ("resolution", "num_images"), "data.")
    described_observations(data)
    num_sources = len(_list_of(data, "source_names", str, "data."))
    sizes = _list_of(data, "source_sizes", int, "data.")
    _require(len(sizes) == num_sources, "data.source_sizes", sizes, f"a list of {num_sources} numbers")
    if "drawn" in data:
        _list_of(_object(data, "drawn", "data."), "continuous", str, "data.drawn.")
    for weights in WEIGHTS:
        _check_scores(_object(content, weights), f"{weights}.", num_sources)


def _check_scores(scores: dict[str, Any], where: str, num_sources: int) -> None:
    lists = [_list_of(scores, key, bool, where) for key in LATENT_LISTS if key in scores]
    _require(
        len({len(flags) for flags in lists}) < 2, where + LATENT_LISTS[-1], lists[-1:], "as long as the other list"
    )
    if "nmi" in scores:
        _check_nmi(scores, where, num_sources)
    for key, value in scores.items():
        if key in ("nmi", *LATENT_LISTS):
            continue
        if key == "intervals":
            _check_intervals(scores, _object(scores, key, where), where)
        elif key == "by_sample_size":
            _check_curve(_object(scores, key, where), where + key)
        elif isinstance(value, dict | list) and not _is_score(key):
            continue  # details of a metric
        elif not isinstance(value, str) or key not in TEXTS:
            _number(scores, key, where)


def _is_score(key: str) -> bool:
    """Return whether a key is that of a number which tables show. Metrics load slowly, so they are asked last."""
    if key in DETAILS:
        return False
    from ..metrics import known_scores

    return key in known_scores()


def _check_nmi(scores: dict[str, Any], where: str, num_sources: int) -> None:
    """Check the scores of InfoMEC, which come together: the matrix of NMI, two lists of latents, three scores."""
    rows = _list_of(scores, "nmi", list, where)
    num_latents = len(_list_of(scores, "active_latents", bool, where))
    fits = len(rows) == num_sources > 0 and all(len(row) == num_latents > 0 for row in rows)
    numbers = fits and all(is_number(entry) for row in rows for entry in row)
    _require(numbers, f"{where}nmi", rows, f"{num_sources} lists of {num_latents} numbers")
    _list_of(scores, "informative_latents", bool, where)
    for key in INFOMEC:
        _number(scores, key, where)


def _check_intervals(scores: dict[str, Any], intervals: dict[str, Any], where: str) -> None:
    _counts(scores, ("bootstrap",), where)
    for key, pair in intervals.items():
        fits = isinstance(pair, list) and len(pair) == 2 and all(map(is_number, pair))
        _require(fits, f"{where}intervals.{key}", pair, "a pair of numbers")
        _number(scores, key, where)


def _check_curve(curve: dict[str, Any], where: str) -> None:
    sizes = _list_of(curve, "sizes", int, f"{where}.")
    _require(all(is_count(size) and size > 0 for size in sizes), f"{where}.sizes", sizes, "a list of positive numbers")
    for values in _object(curve, "scores", f"{where}.").values():
        fits = isinstance(values, list) and len(values) == len(sizes)
        fits = fits and all(isinstance(part, list) and all(map(is_number, part)) for part in values)
        _require(fits, f"{where}.scores", values, f"lists of numbers for {len(sizes)} sizes")


def _object(content: dict[str, Any], key: str, where: str = "") -> dict[str, Any]:
    value = content.get(key)
    _require(isinstance(value, dict), where + key, value, "an object")
    return dict(value or {})


def _texts(content: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        _require(isinstance(content.get(key), str), where + key, content.get(key), "text")


def _counts(content: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        value = content.get(key)
        _require(is_count(value), where + key, value, "a whole number that is not negative")


def _number(content: dict[str, Any], key: str, where: str) -> None:
    _require(is_number(content.get(key)), where + key, content.get(key), "a number")


def _list_of(content: dict[str, Any], key: str, kind: type, where: str) -> list[Any]:
    value = content.get(key)
    fits = isinstance(value, list) and all(type(entry) is kind for entry in value)
    _require(fits, where + key, value, f"a list of {KINDS[kind]}")
    return list(value or [])


KINDS = {str: "texts", int: "whole numbers", bool: "true and false", list: "lists"}


def is_number(value: Any) -> bool:
    """Return whether a value of a JSON file is a finite number."""
    return type(value) in (int, float) and abs(value) < MAX_MAGNITUDE  # false for NaN too


def is_count(value: Any) -> bool:
    """Return whether a value of a JSON file is a whole number that is not negative."""
    return type(value) is int and 0 <= value < MAX_COUNT


def _require(holds: bool, where: str, value: Any, expected: str) -> None:
    if not holds:
        text = "nothing" if value is None else repr(value)
        raise ValueError(f"{where} must be {expected}, got {text if len(text) <= 60 else text[:50] + '…'}")


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], required: Collection[str] = (), observations: Observations | None = None
) -> None:
    """Raise a ``ValueError`` that names the first array which is missing, or is not as `FORMS` says.

    Args:
        arrays: by name. Others than those of `FORMS` pass.
        required: names that must be there.
        observations: what arrays of pixels hold, if not square RGB images of bytes.
    """
    for name in (*required, *(["strip_codes"] if "strips" in arrays else [])):
        if name not in arrays:
            raise ValueError(f"it has no array {name!r}")
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        if (form := FORMS.get(name.removeprefix(RAW))) is not None:
            kinds, dimensions = _form_of(form, observations)
            _check_array_type(name, array, kinds)
            _check_array_shape(name, array.shape, dimensions, sizes)


def _form_of(
    form: tuple[str, tuple[str | int, ...]], observations: Observations | None
) -> tuple[str, tuple[str | int, ...]]:
    """Return type and dimensions of an array whose last dimensions, if they are pixels, are those of observations."""
    kinds, dimensions = form
    if kinds != "pixels" or observations is None or observations.is_standard:
        return form
    shape = (*dimensions[: -len(PIXELS)], *observations.shape)
    return (kinds if observations.dtype == "uint8" else "f"), shape


def _check_array_type(name: str, array: NDArray[Any], kinds: str) -> None:
    fits = array.dtype == np.uint8 if kinds == "pixels" else array.dtype.kind in kinds
    if not fits:
        raise ValueError(f"{name!r} must hold {WORDS[kinds]}, got {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds numbers that are not finite")
    if name != "sources" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > MAX_ENTRY:
        raise ValueError(f"{name!r} holds numbers larger than {MAX_ENTRY:g}")


def _check_array_shape(
    name: str, shape: tuple[int, ...], dimensions: tuple[str | int, ...], sizes: dict[str, int]
) -> None:
    """Compare a shape with what earlier arrays have said about its dimensions, and remember what it says."""
    expected = [size if isinstance(size, int) else sizes.get(size) for size in dimensions]
    fits = len(shape) == len(dimensions)
    for size, known, dimension in zip(shape, expected, dimensions, strict=False):
        least = 0 if dimension == "sources" else MIN_STEPS.get(str(dimension), 1)
        fits = fits and size >= least and known in (None, size)
    named = dict(zip((d for d in dimensions if isinstance(d, str)), shape, strict=False))
    if not fits or any(shape[i] != named.get(str(d), shape[i]) for i, d in enumerate(dimensions)):
        text = ", ".join(str(d if known is None else known) for d, known in zip(dimensions, expected, strict=True))
        raise ValueError(f"{name!r} must have the shape ({text}), got {shape}")
    sizes |= named
