"""Unknown names, answered with the nearest known one."""

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest known one, and the list.

    >>> nearest_name("shapes3", ["shapes3d", "mpi3d"])
    'did you mean "shapes3d"? Known: shapes3d, mpi3d'
    """
    names = list(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
    hint = next((f'did you mean "{n}"? ' for n in names if close and n.lower() == close[0]), "")
    return f"{hint}{'K' if hint else 'k'}nown: {', '.join(names)}"


def require_known(name: object, known: Iterable[str], what: str) -> str:
    """`name` itself if it is one of the known names; else a ``ValueError`` with the nearest of them."""
    names = list(known)
    if isinstance(name, str) and name in names:
        return name
    raise ValueError(f"unknown {what} {name!r}: {nearest_name(str(name), names)}")
