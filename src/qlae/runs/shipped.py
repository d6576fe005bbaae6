"""Models that come with the package, by name: ``qlae.load("shapes3d-qlae")``, ``qlae explore shapes3d-qlae``.

Each is an exported folder in ``qlae/shipped``. ``models.json`` there lists the models, with the SHA-256 of their files,
which is checked before a model is loaded. A folder of the same name in the working directory comes first.
"""

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
    name, models = os.fspath(path), shipped_models()
    if not name:
        raise ValueError(f"the path is empty; give a run directory or a shipped model: {', '.join(models)}")
    if os.path.lexists(path) or os.path.basename(name) != name:
        return Path(path)
    if name not in models:
        known = nearest_name(name, models)
        raise ValueError(f"there is no run directory {name}, and no shipped model of this name: {known}")
    folder = shipped_folder() / name
    for file, expected in models[name]["files"].items():
        shipped = folder / file
        if not shipped.is_file() or hashlib.sha256(read_regular(shipped)).hexdigest() != expected:
            raise ValueError(f"{shipped} is missing or not the file that qlae was published with; install qlae again")
    return folder
