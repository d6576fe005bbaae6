"""Data sets that are registered from outside the package: a name and the function that loads it."""

from __future__ import annotations

import copy
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ..observations import Observations
from ..registry import DATA
from .cache import safe_name
from .dataset import Progress, SourceDataset
from .sources import BUILT_IN_SETS
from .spec import SquareImages

Loader = Callable[..., SourceDataset]


#: name → the function that loads a data set, and the module that registered it
_REGISTRATIONS: dict[str, tuple[Loader, str]] = {}


def _accepts(loader: Loader, option: str) -> bool:
    parameters = inspect.signature(loader).parameters
    return option in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def register_dataset(name: str, loader: Loader) -> None:
    """Register a data set, so that `load_data`, the command line and study plans find it by its name.

    A run stores the name of the module that made this call, not the images. Whoever loads the data of the run imports
    that module first, on the command line with ``--import MODULE``.

    Args:
        name: the name; letters, digits and ``. _ -`` only. The same module may register it again.
        loader: called as ``loader(resolution=…, **options)``, returns a `SourceDataset`, and returns the same data
            whenever it gets the same arguments. Square RGB images have that resolution; other observations may ignore
            it. Options are numbers, texts, lists and dictionaries, since ``config.json`` stores them; ``seed`` is
            passed on if the loader has such a parameter. `load_data` adds noise to the pixels itself.

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
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    _, other = _REGISTRATIONS.get(name, (None, module))
    if other != module:
        raise ValueError(f"{name!r} is registered by the module {other} already: choose another name")
    _REGISTRATIONS[name] = loader, module


def registered_names() -> list[str]:
    """Return the names of all registered data sets."""
    return list(_REGISTRATIONS)


@DATA.register("registered")
@dataclass(frozen=True, kw_only=True)
class RegisteredData(SquareImages):
    """A data set that `register_dataset` made known. Observations that are no square images may ignore the resolution.

    Attributes:
        options: further arguments of the loader.
        registered_by: the module that registered the data set, which is to be imported before they are loaded.
    """

    title: ClassVar[str] = "the registered data set"

    options: dict[str, Any] = field(default_factory=dict)
    registered_by: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name not in _REGISTRATIONS:
            return
        loader, module = _REGISTRATIONS[self.name]
        for option in self.options:
            if not _accepts(loader, option):
                takes = ", ".join(inspect.signature(loader).parameters)
                raise ValueError(f"the data set {self.name!r} has no option {option!r}: its loader takes {takes}")
        self._set(registered_by=module)

    @property
    def is_random(self) -> bool:
        return super().is_random or self.name not in _REGISTRATIONS or _accepts(_REGISTRATIONS[self.name][0], "seed")

    def preview(self) -> Observations:
        return self.load().observations

    def read(self, progress: Progress | None = None) -> SourceDataset:
        if self.name not in _REGISTRATIONS:
            module = self.registered_by
            way = f"import the module {module} first, which registers it (on the command line: --import {module})"
            if module == "__main__":
                way = "a script or a notebook registered it; call qlae.data.register_dataset again before loading it"
            raise ValueError(f"the data set {self.name!r} is not registered: {way}")
        loader = _REGISTRATIONS[self.name][0]
        seeds = {"seed": self.seed} if _accepts(loader, "seed") else {}
        data = loader(resolution=self.resolution, **self.options, **seeds)
        if not isinstance(data, SourceDataset):
            raise ValueError(f"the loader of {self.name!r} must return a SourceDataset, got {type(data).__name__}")
        if data.observations.is_standard and data.resolution != self.resolution:
            raise ValueError(
                f"the loader of {self.name!r} returned images of {data.resolution}×{data.resolution} pixels for "
                f"resolution={self.resolution}"
            )
        data = copy.copy(data)  # the loader may return the same object every time
        data.name = self.name
        return data


def split_registered_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `RegisteredData` from a user's options, of which all others are those of the loader."""
    own = {name: options[name] for name in ("name", "resolution", "noise", "seed") if name in options}
    others = {name: value for name, value in options.items() if name not in own and value is not None}
    others = {name: str(value) if isinstance(value, Path) else value for name, value in others.items()}
    try:
        json.dumps(others, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options of a data set must be fit for JSON, got {others!r} ({error})") from None
    return own | {"options": others}
