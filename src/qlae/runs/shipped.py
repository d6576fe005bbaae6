"""Models that come with the package, by name: ``qlae.load("shapes3d-qlae")``, ``qlae explore shapes3d-qlae``.

Each is an exported folder in ``qlae/shipped``. ``models.json`` there lists the models, with the SHA-256 of their files,
which is checked before a model is loaded. A folder of the same name in the working directory comes first.
"""

import difflib
import hashlib
import os
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from .._checks import nearest_name
from .._io import read_json, read_regular

INDEX = "models.json"


def shipped_folder() -> Path:
    """Return the folder of the models that come with the package."""
    return Path(str(resources.files("qlae") / "shipped"))


@cache
def shipped_models() -> dict[str, dict[str, Any]]:
    """Return the models that come with the package: name → ``about``, ``files`` (name → SHA-256)."""
    index: dict[str, dict[str, Any]] = read_json(shipped_folder() / INDEX, remedy="install qlae again")
    return index


def is_shipped(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the name of a model that comes with the package, and no folder has this name."""
    return os.fspath(path) in shipped_models() and not os.path.lexists(path)


def find_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a run or a model: a path as it is, and for the name of a shipped model where it is.

    Raises:
        ValueError: if the path is empty, if it is a name that neither a folder nor a shipped model has, or if a shipped
            file is damaged.
    """
    name = os.fspath(path)
    if not name:
        raise ValueError(f"the path is empty; give a run directory or a shipped model: {', '.join(shipped_models())}")
    if is_shipped(path):
        return _checked(name)
    if not os.path.lexists(path) and os.path.basename(name) == name:
        raise ValueError(f"there is no run directory {name}, and no shipped model of this name: {_nearest(name)}")
    return Path(path)


def _nearest(name: str) -> str:
    """Return the end of a message about an unknown name: the nearest shipped model, if one is near, and all of them."""
    names = list(shipped_models())
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.75)
    return nearest_name(name, names) if close else f"known: {', '.join(names)}"


def require_not_shipped(path: str | os.PathLike[str]) -> None:
    """Raise ``ValueError`` if a path is the name of a shipped model, for work that needs a run directory.

    Exported models have no checkpoint and no pictures to score or draw again.
    """
    if is_shipped(path):
        raise ValueError(
            f"{path} is an exported model that comes with qlae, and this needs a run directory, which `qlae train` "
            f"makes. `qlae explore {path}`, `qlae encode {path}` and qlae.load({os.fspath(path)!r}) take the model"
        )


def _checked(name: str) -> Path:
    folder = shipped_folder() / name
    for file, expected in shipped_models()[name]["files"].items():
        path = folder / file
        if not path.is_file() or hashlib.sha256(read_regular(path)).hexdigest() != expected:
            raise ValueError(f"{path} is missing or not the file that qlae was published with; install qlae again")
    return folder
