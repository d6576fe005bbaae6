"""Modules and names of version 0.1 that have moved: they still work, with a ``DeprecationWarning``."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

#: Modules of version 0.1 and where their content is now.
MODULES = {
    "atomic": "_files",
    "data.own": "data.user_images",
    "data.rendered": "data.rendering",
    "data.sampled": "data.sampling",
    "counts": "_checks",
    "device": "_device",
    "divergences": "ops.divergences",
    "encoding": "runs.encoding",
    "evaluation": "scoring.evaluation",
    "export": "runs.export",
    "latents": "models.latents",
    "loading": "runs.loading",
    "locks": "_locks",
    "memory": "_device",
    "model": "models.model",
    "names": "_checks",
    "naming": "runs.names",
    "networks": "models.networks",
    "norms": "ops.norms",
    "objectives.cross_entropy": "ops.cross_entropy",
    "pretrained": "runs.pretrained",
    "progress": "_progress",
    "report.aggregate": "study.report.aggregate",
    "report.correlations": "study.report.correlations",
    "report.published": "published",
    "report.tables": "study.report.tables",
    "report.vignettes": "study.report.vignettes",
    "resampling": "scoring.resampling",
    "run": "runs.directory",
    "sample": "scoring.sample",
    "training.checkpoint": "runs.checkpoint",
}
#: Names that a moved module had in version 0.1 and that are now in another module than its other names.
NAMES = {
    "model.Networks": "models.building",
    "model.build_model": "models.building",
    "model.build_networks": "models.building",
}


def new_place(name: str) -> str | None:
    """Return the new name of a module of version 0.1, also inside a package that moved; None if it did not move."""
    for old, new in MODULES.items():
        if name == f"qlae.{old}" or name.startswith(f"qlae.{old}."):
            return f"qlae.{new}{name.removeprefix(f'qlae.{old}')}"
    return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a moved module from its new place."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        new = new_place(name)
        if new is None or importlib.util.find_spec(new) is None:
            return None
        # As a package, the alias of a package leads to this finder for its modules too.
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        new = new_place(spec.name)
        assert new is not None
        warnings.warn(f"{spec.name} is now {new}", DeprecationWarning, stacklevel=2)
        return _Alias(spec.name, new)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module at the new place has been executed."""


class _Alias(ModuleType):
    """A module whose names are those of another."""

    def __init__(self, name: str, new: str):
        super().__init__(name, f"Moved to {new}.")
        self.__dict__["_target"] = importlib.import_module(new)
        self.__dict__["__path__"] = []  # not the target's, in which its modules would be loaded a second time

    def __getattr__(self, name: str) -> Any:
        other = NAMES.get(f"{self.__name__.removeprefix('qlae.')}.{name}")
        if other is not None:
            return getattr(importlib.import_module(f"qlae.{other}"), name)
        return getattr(self.__dict__["_target"], name)


def former_names(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module whose public names have moved, by old name and new place."""

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = f"qlae.{places[name]}".rpartition(".")
        warnings.warn(f"{module}.{name} is now {home}.{new}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), new)

    return find


def install() -> None:
    """Make the moved modules importable under their old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
