"""Checks of names and counts, with errors that say what is allowed."""

import difflib
import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name: the nearest known one, and the list.

    >>> nearest_name("shapes3", ["shapes3d", "mpi3d"])
    'did you mean "shapes3d"? Known: shapes3d, mpi3d'
    """
    names = list(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
    hint = next((f'did you mean "{n}"? ' for n in names if close and n.lower() == close[0]), "")
    return f"{hint}{'K' if hint else 'k'}nown: {', '.join(names)}"


def require_known(name: object, known: Iterable[str], what: str) -> str:
    """Return ``name`` if it is one of the known names; raise a ``ValueError`` with the nearest of them otherwise."""
    names = list(known)
    if isinstance(name, str) and name in names:
        return name
    raise ValueError(f"unknown {what} {name!r}: {nearest_name(str(name), names)}")


#: Upper bounds of counts: the numbers that a double holds exactly, and codes that no network could have.
MAX_COUNT, MAX_LATENTS, MAX_VALUES = 2**53, 2**20, 2**24
#: The largest seed: torch's generator on the CPU takes 32 bits and would drop further ones without an error.
MAX_SEED = 2**32 - 1


def whole_number(name: str, value: Any, *, at_least: int = 1, at_most: int = MAX_COUNT) -> int:
    """Return ``value`` as an int; raise an error unless it is a whole number within the bounds."""
    if not _is_whole(value) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {shortened(value)}")
    if value > at_most:
        raise ValueError(f"{name} must be a whole number of at most {at_most:,}, got {shortened(value)}")
    return int(value)


def require_not_negative(name: str, value: Any) -> float:
    """Return ``value`` as a float; raise an error unless it is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or value < 0 or not value <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number of at least 0, got {shortened(value)}")
    return float(value)


def shortened(value: Any) -> str:
    """Return the repr of a value, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:50]}…"


def plain(value: Any) -> Any:
    """Return integers of any type (also NumPy's) as int, sequences of them as tuples, and anything else unchanged."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(plain(one) for one in value)
    return int(value) if _is_whole(value) else value


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral)


def values_per_latent(num_latents: int, num_values: int | Iterable[int]) -> tuple[int, ...]:
    """Return one number of values per latent, from one for all or one per latent.

    >>> values_per_latent(3, 10), values_per_latent(2, [4, 10])
    ((10, 10, 10), (4, 10))
    """
    whole_number("num_latents", num_latents, at_most=MAX_LATENTS)
    if not isinstance(num_values, Iterable):
        return (whole_number("num_values", num_values, at_most=MAX_VALUES),) * num_latents
    sizes = tuple(whole_number("num_values", size, at_most=MAX_VALUES) for size in num_values)
    if len(sizes) != num_latents:
        raise ValueError(
            f"num_values has {len(sizes)} entries for {num_latents} latents; give one number, or one per latent"
        )
    return sizes
