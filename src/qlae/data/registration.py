"""Data sets that are registered from outside the package: a name and the function that loads it."""

from __future__ import annotations

import copy
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .cache import safe_name
from .dataset import SourceDataset
from .sources import BUILT_IN_SETS

Loader = Callable[..., SourceDataset]


@dataclass(frozen=True)
class _Registration:
    loader: Loader
    module: str  # the module that registered it

    def accepts(self, option: str) -> bool:
        parameters = inspect.signature(self.loader).parameters
        return option in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


_REGISTRATIONS: dict[str, _Registration] = {}


def register_dataset(name: str, loader: Loader) -> None:
    """Register a data set, so that `load_data`, the command line and study plans find it by its name.

    A run stores the name of the module that made this call, not the images. Whoever loads the run imports that module
    first, on the command line with ``--import MODULE``.

    Args:
        name: the name; letters, digits and ``. _ -`` only. The same module may register it again.
        loader: called as ``loader(resolution=…, **options)``, returns a `SourceDataset`, and returns the same data
            whenever it gets the same arguments. Square RGB images have that resolution; other observations may ignore
            it. `load_data` passes on those of its arguments that the
            caller gave, and ``seed`` if the loader has such a parameter. It adds noise to the pixels itself.

    Raises:
        ValueError: the name is taken, or has other characters.

    Example::

        def load_greys(resolution, num_greys=4):
            greys = np.linspace(0, 255, num_greys).astype(np.uint8)
            images = np.tile(greys[:, None, None, None], (1, resolution, resolution, 3))
            return SourceDataset(images, np.arange(num_greys), name="greys", origin="rendered")

        register_dataset("greys", load_greys)
        data = qlae.load_data("greys", resolution=16, num_greys=8)
    """
    if not isinstance(name, str) or not name or safe_name(name) != name:
        raise ValueError(f"the name of a data set must consist of letters, digits and . _ -, got {name!r}")
    if name in BUILT_IN_SETS:
        raise ValueError(f"{name!r} is a built-in data set: choose another name")
    if "module" in inspect.signature(loader).parameters:
        raise ValueError("the parameter name 'module' is reserved: rename it in the loader")
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    previous = _REGISTRATIONS.get(name)
    if previous is not None and previous.module != module:
        raise ValueError(f"{name!r} is registered by the module {previous.module} already: choose another name")
    _REGISTRATIONS[name] = _Registration(loader, module)


def registered_names() -> list[str]:
    """Return the names of all registered data sets."""
    return list(_REGISTRATIONS)


def load_registered(name: str, resolution: int, options: Mapping[str, Any], *, seed: int) -> SourceDataset:
    """Load a registered data set.

    Args:
        name: one of `registered_names`.
        resolution: height and width of the images.
        options: further arguments of the loader, fit for JSON.
        seed: passed on if the loader has such a parameter.

    Returns:
        The data under its registered name. Its recipe is empty apart from ``module``, and ``seed`` where it matters.
    """
    registration = _REGISTRATIONS[name]
    for option in options:
        if not registration.accepts(option):
            parameters = ", ".join(inspect.signature(registration.loader).parameters)
            raise ValueError(f"the data set {name!r} has no option {option!r}: its loader takes {parameters}")
    takes_seed = registration.accepts("seed")
    seeds = {"seed": seed} if takes_seed else {}
    data = registration.loader(resolution=resolution, **options, **seeds)
    if not isinstance(data, SourceDataset):
        raise ValueError(f"the loader of {name!r} must return a SourceDataset, got {type(data).__name__}")
    if data.observations.is_standard and data.resolution != resolution:
        raise ValueError(
            f"the loader of {name!r} returned images of {data.resolution}×{data.resolution} pixels for "
            f"resolution={resolution}"
        )
    data = copy.copy(data)  # the loader may return the same object every time
    data.name = name
    data.recipe = {"module": registration.module} | (seeds if seed else {})
    if not data.observations.is_standard:
        data.recipe["resolution"] = resolution  # which their description does not tell
    return data


def require_registered(name: str, module: str) -> None:
    """Raise a ``ValueError`` that names what to import, unless a data set from this module is registered."""
    if name in _REGISTRATIONS:
        return
    if module == "__main__":
        raise ValueError(
            f"the data set {name!r} was registered by a script or a notebook: register it again with "
            "qlae.data.register_dataset before loading it"
        )
    raise ValueError(
        f"the data set {name!r} is not registered: import the module {module} first, which registers it "
        f"(on the command line: --import {module})"
    )


def require_json(options: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` unless options can be stored in the config of a run."""
    try:
        json.dumps(dict(options), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options of a data set must be fit for JSON, got {dict(options)!r} ({error})") from None
