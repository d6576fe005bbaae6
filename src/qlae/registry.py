"""Open tables of the parts that a run is made of: latent spaces, objectives, networks and kinds of data.

A part is a class together with a frozen dataclass that holds its settings. It registers itself under a *kind*:

    @LATENTS.register("quantized", QuantizedConfig)
    class QuantizedLatent(DiscreteLatent): ...

A run's ``config.json`` stores the kind with the settings, ``{"kind": "quantized", "num_latents": 12, …}``, and the
table turns that back into the dataclass. Code outside the package registers its parts the same way. For such a part
the JSON also names the module that registered it, so that an error can say what to import.

The parts of qlae itself are imported when a table is first asked for a kind.
"""

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ._checks import nearest_name
from ._parsing import parse

ClassT = TypeVar("ClassT", bound=type)


class MissingPart(ValueError):
    """A part that a run or an export needs is not registered; the message names the module to import."""


class Entry(NamedTuple):
    """A registered part."""

    kind: str
    config: type  # a frozen dataclass
    part: Any  # the class that is built from the config
    module: str  # that registered it, as one would import it

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its settings."""
        return tuple(field.name for field in dataclasses.fields(self.config))

    @property
    def is_ours(self) -> bool:
        """Whether the part belongs to qlae itself."""
        return self.module.split(".")[0] == "qlae"


class Registry:
    """Kinds of one sort of part, by name.

    Args:
        what: the name of the sort of part, for error messages.
        home: the module whose import registers the parts of qlae itself.
        base: the config that every config of this sort subclasses, by name, and the fields that it declares.
    """

    def __init__(self, what: str, home: str, base: tuple[str, tuple[str, ...]]):
        self.what = what
        self._home = home
        self._base, self._base_fields = base
        self._entries: dict[str, Entry] = {}

    def register(self, kind: str, config: type | None = None) -> Callable[[ClassT], ClassT]:
        """Return a decorator that registers a class under ``kind``.

        Args:
            kind: the name in configs, such as ``"quantized"``.
            config: the frozen dataclass of its settings; None if the class itself is one, as those of data are.

        Raises:
            ValueError: if another class has that kind already, or ``config`` is not a frozen dataclass with the fields
                that every config of this sort has.
        """

        if config is not None:
            self._check_config(kind, config)

        def decorate(part: ClassT) -> ClassT:
            if config is None:
                self._check_config(kind, part)
            self._load_home(part.__module__)
            present, name = self._entries.get(kind), (part.__module__, part.__qualname__)
            # A class of the same name is a module that is reloaded, or a notebook cell that runs again.
            if present and (present.part.__module__, present.part.__qualname__) != name:
                raise ValueError(
                    f"the {self.what} {kind!r} is already registered by {present.module}; choose another kind, or "
                    "call unregister first"
                )
            self._entries[kind] = Entry(kind, config or part, part, _importable(part.__module__))
            return part

        return decorate

    def _check_config(self, kind: str, config: type) -> None:
        what, names = f"the config of the {self.what} {kind!r}", getattr(config, "__dataclass_fields__", ())
        if not (dataclasses.is_dataclass(config) and config.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            raise ValueError(f"{what} must be a frozen dataclass, got {config!r}")
        if missing := [name for name in self._base_fields if name not in names]:
            raise ValueError(
                f"{what} must be a subclass of {self._base}, and {config.__name__} has no field {missing[0]!r}"
            )
        if reserved := [name for name in ("kind", "module") if name in names]:
            raise ValueError(f"{what} must not have a field {reserved[0]!r}, which config.json uses")

    def unregister(self, kind: str) -> None:
        """Remove a kind, so that another class can register under it."""
        del self._entries[self[kind].kind]

    def __getitem__(self, kind: str) -> Entry:
        """Return the entry of a kind; an unknown one is an error that suggests the nearest known one."""
        if kind not in self:
            raise ValueError(f"unknown {self.what} {kind!r}: {nearest_name(str(kind), self)}")
        return self._entries[kind]

    def __contains__(self, kind: object) -> bool:
        self._load_home()
        return kind in self._entries

    def __iter__(self) -> Iterator[str]:
        self._load_home()
        return iter(list(self._entries))

    def entry_of(self, config: Any) -> Entry:
        """Return the entry whose config dataclass ``config`` is an instance of."""
        for kind in self:
            if type(config) is self[kind].config:
                return self[kind]
        raise ValueError(f"{type(config).__name__} is not the config of a registered {self.what}")

    def build(self, config: Any, *arguments: Any, **options: Any) -> Any:
        """Build the part that a config describes: ``part.from_config(config, …)``."""
        return self.entry_of(config).part.from_config(config, *arguments, **options)

    def to_dict(self, config: Any) -> dict[str, Any]:
        """Return a config as plain data, with its kind and, for parts from outside the package, their module."""
        entry = self.entry_of(config)
        outside = {} if entry.is_ours else {"module": entry.module}
        return {"kind": entry.kind, **outside, **dataclasses.asdict(config)}

    def from_dict(self, content: Any, where: str) -> Any:
        """Return the config from the result of ``to_dict``; ``where`` is its place in the file, for messages."""
        settings = parse(content, dict[str, Any], where)
        kind, module = settings.pop("kind", None), settings.pop("module", None)
        if not isinstance(kind, str):
            raise ValueError(f"{where}.kind must be a string, got {kind!r}")
        if kind not in self and isinstance(module, str):
            name = module.removesuffix(".py")
            raise MissingPart(
                f"{where}: the {self.what} {kind!r} is not registered; it comes from {module}. Import that module "
                f"first: `import {name}` in Python, or --import {module} on the command line"
            )
        return parse(settings, self[kind].config, where)

    def _load_home(self, importing: str = "") -> None:
        """Import the built-in parts once, unless it is one of them that is being imported."""
        if not importing.startswith(self._home):
            importlib.import_module(self._home)


def _importable(module: str) -> str:
    """Return how a module can be imported again; a script that runs as ``__main__`` is named by its file."""
    if module != "__main__":
        return module
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).name if file else "a notebook or interactive session"


LATENTS = Registry("latent space", "qlae.models.latents", ("LatentConfig", ("num_latents",)))
OBJECTIVES = Registry("objective", "qlae.objectives", ("ObjectiveConfig", ("weights", "schedules")))
NETWORKS = Registry("network pair", "qlae.models.networks", ("NetworksConfig", ("size", "form", "patches", "own")))
DATA = Registry("kind of data", "qlae.data", ("DataSpec", ("name",)))
