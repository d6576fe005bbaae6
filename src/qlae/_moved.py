"""Modules and names of version 0.1 that have moved: they still work, with a ``DeprecationWarning``."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

#: Modules of version 0.1 and where their content is now.
MODULES = {
    "atomic": "_files",
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
    "pretrained": "runs.pretrained",
    "progress": "_progress",
    "resampling": "scoring.resampling",
    "run": "runs.directory",
    "sample": "scoring.sample",
    "training.checkpoint": "runs.checkpoint",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a moved module from its new place."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.removeprefix("qlae.") in MODULES and name.startswith("qlae."):
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        new = f"qlae.{MODULES[spec.name.removeprefix('qlae.')]}"
        warnings.warn(f"{spec.name} is now {new}", DeprecationWarning, stacklevel=2)
        return _Alias(spec.name, new)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module at the new place has been executed."""


class _Alias(ModuleType):
    """A module whose names are those of another."""

    def __init__(self, name: str, new: str):
        super().__init__(name, f"Moved to {new}.")
        self.__dict__["_target"] = importlib.import_module(new)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_target"], name)


def install() -> None:
    """Make the moved modules importable under their old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
