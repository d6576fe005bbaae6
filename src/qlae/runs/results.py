"""Check the content of ``results.json``, so that its readers can rely on it.

The file may have been edited, damaged or written by another version, so it is checked once, where it is read. A library
for schemas (pydantic, msgspec) would bring a dependency for this one file, and messages that speak of its own types;
configs are checked against their dataclasses already.
"""

import math
from typing import Any

from ..observations import described_observations

WEIGHTS = ("averaged", "raw")
#: Entries of the scores that are not plain numbers.
TEXTS = ("infoe_input", "protocol", "forest", "split", "normalisation")


def check_results(content: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names the first entry which is missing or of another kind than expected."""
    _texts(content, ("model", "protocol"), "")
    _counts(content, ("seed", "steps", "num_samples"), "")
    _number(content, "seconds", "")
    _require(isinstance(content.get("versions", {}), dict), "versions", content.get("versions"), "an object")
    _list_of(content, "warnings", str, "", optional=True)
    data = _object(content, "data")
    _texts(data, ("name", "origin"), "data.")
    _counts(data, ("num_images",) if "observations" in data else ("resolution", "num_images"), "data.")
    described_observations(data)
    num_sources = len(_list_of(data, "source_names", str, "data."))
    sizes = _list_of(data, "source_sizes", int, "data.")
    _require(len(sizes) == num_sources, "data.source_sizes", sizes, f"a list of {num_sources} numbers")
    for weights in WEIGHTS:
        if weights in content or weights == "averaged":
            _check_scores(_object(content, weights), f"{weights}.", num_sources)


def _check_scores(scores: dict[str, Any], where: str, num_sources: int) -> None:
    for key, value in scores.items():
        if key == "nmi":
            rows = _list_of(scores, key, list, where)
            num_latents = len(_list_of(scores, "active_latents", bool, where))
            fits = len(rows) == num_sources and all(len(row) == num_latents for row in rows)
            numbers = fits and all(_is_number(entry) for row in rows for entry in row)
            _require(numbers, where + key, value, f"{num_sources} lists of {num_latents} numbers")
            others = _list_of(scores, "informative_latents", bool, where)
            _require(len(others) == num_latents, f"{where}informative_latents", others, f"a list of {num_latents}")
        elif key in ("active_latents", "informative_latents"):
            _list_of(scores, key, bool, where)
        elif key == "intervals":
            pairs = _object(scores, key, where).values()
            fits = all(isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair)) for pair in pairs)
            _require(fits, where + key, value, "an object of pairs of numbers")
        elif key == "by_sample_size":
            _check_curve(_object(scores, key, where), where + key)
        elif isinstance(value, dict | list):
            continue  # of a metric of the user's
        elif not isinstance(value, str) or key not in TEXTS:
            _number(scores, key, where)


def _check_curve(curve: dict[str, Any], where: str) -> None:
    sizes = _list_of(curve, "sizes", int, f"{where}.")
    for values in _object(curve, "scores", f"{where}.").values():
        fits = isinstance(values, list) and len(values) == len(sizes)
        fits = fits and all(isinstance(part, list) and all(map(_is_number, part)) for part in values)
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
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
        _require(is_count, where + key, value, "a whole number that is not negative")


def _number(content: dict[str, Any], key: str, where: str) -> None:
    _require(_is_number(content.get(key)), where + key, content.get(key), "a number")


def _list_of(content: dict[str, Any], key: str, kind: type, where: str, *, optional: bool = False) -> list[Any]:
    value = content.get(key, [] if optional else None)
    fits = isinstance(value, list) and all(type(entry) is kind for entry in value)
    _require(fits, where + key, value, f"a list of {KINDS[kind]}")
    return list(value or [])


KINDS = {str: "texts", int: "whole numbers", bool: "true and false", list: "lists"}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)


def _require(holds: bool, where: str, value: Any, expected: str) -> None:
    if not holds:
        text = "nothing" if value is None else repr(value)
        raise ValueError(f"{where} must be {expected}, got {text if len(text) <= 60 else text[:50] + '…'}")
