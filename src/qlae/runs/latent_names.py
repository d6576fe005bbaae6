"""The names that users give to latents and their values in the explorer, stored with the run in ``names.json``.

The file is ``{"latents": {"3": "wall"}, "values": {"3": {"0": "red"}}}``: latents are keyed by index, values by latent
and code. `qlae encode` writes the names into its tables of codes, so a name must not be ambiguous there.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._io import read_json, read_regular, write_bytes, write_json
from .._parsing import parse
from ..data.cache import cache_folder
from . import directory

FILE = "names.json"
MAX_LENGTH = 60


@dataclass(frozen=True)
class _Content:
    """The content of the file."""

    latents: dict[str, str]
    values: dict[str, dict[str, str]]


class Names:
    """The names of one run, in a file that need not exist; each change rewrites it at once.

    ``num_values`` is the number of codes of each latent, 0 where a latent is continuous.
    """

    def __init__(self, path: Path, num_values: list[int]):
        self.path = path
        self._num_values = num_values

    def read(self) -> dict[str, Any]:
        """Return all names; raise a ``ValueError`` if the file is damaged."""
        if not self.path.is_file():
            return {"latents": {}, "values": {}}
        try:
            content = parse(read_json(self.path), _Content, "")
            latents = {str(int(j)): name for j, name in content.latents.items()}
            values = {
                str(int(j)): {str(int(code)): name for code, name in names.items()}
                for j, names in content.values.items()
            }
        except ValueError as error:
            raise ValueError(f"{self.path} is not a valid file of names ({error}); repair or remove it") from None
        return {"latents": latents, "values": values}

    def rename(self, latent: int, value: int | None, name: str) -> dict[str, Any]:
        """Name a latent, or one of its values, write the file and return all names. An empty name removes the old one.

        Raises:
            ValueError: there is no such latent or value, or the name stands for something else in a table of codes.
        """
        self._require_known(latent, value)
        name, names = clean_name(name), self.read()
        group = names["latents"] if value is None else names["values"].setdefault(str(latent), {})
        group.pop(str(latent if value is None else value), None)
        if name:
            self._require_distinct(names, latent, value, name)
            group[str(latent if value is None else value)] = name
        names["values"] = {j: value_names for j, value_names in names["values"].items() if value_names}
        write_json(self.path, names)
        return names

    def _require_distinct(self, names: dict[str, Any], latent: int, value: int | None, name: str) -> None:
        """Raise an error if a name stands for the first column, another latent, or another value of the latent."""
        if value is None:
            owners = {"file": "the files", "image": "the images"}  # name → its meaning
            own, count, custom, default, title = latent, len(self._num_values), names["latents"], "z{}", "z{}"
        else:
            owners = {}
            own, count, custom = value, self._num_values[latent], names["values"].get(str(latent), {})
            default, title = "{}", "value {}"
        for k in set(range(count)) - {own}:
            owners |= dict.fromkeys((default.format(k), custom.get(str(k), default.format(k))), title.format(k))
        if name in owners:
            raise ValueError(f"{name!r} stands for {owners[name]} in tables of codes; choose another name")

    def _require_known(self, latent: int, value: int | None) -> None:
        if not 0 <= latent < len(self._num_values):
            raise ValueError(f"latents run from 0 to {len(self._num_values) - 1}, got {latent}")
        size = self._num_values[latent]
        if value is not None and not 0 <= value < size:
            allowed = f"the values of z{latent} run from 0 to {size - 1}" if size else f"z{latent} is continuous"
            raise ValueError(f"{allowed}, got value {value}")


def name_latents(
    run: str | os.PathLike[str],
    latents: Mapping[int, str] | None = None,
    values: Mapping[int, Mapping[int, str]] | None = None,
) -> dict[str, Any]:
    """Name latents and their values, as users do in the explorer, and return all names of the run.

    Args:
        run: the run directory, the folder of an exported model, or the name of a shipped one.
        latents: the name of each latent, by its index; an empty name removes the old one.
        values: names of values, by the index of the latent and the code of the value.

    Raises:
        ValueError: there is no such latent or value, or two have the same name.
    """
    config = directory.find_folder(run) / "config.json"
    space = directory.read_config(config, remedy="name a run directory").latent
    sizes = list(getattr(space, "values_each", ())) or [0] * space.num_latents
    names = Names(names_file(run), sizes)
    for latent, name in (latents or {}).items():
        names.rename(latent, None, name)
    for latent, own in (values or {}).items():
        for value, name in own.items():
            names.rename(latent, value, name)
    return names.read()


def clean_name(name: str) -> str:
    """Return a name on one line, without control characters; raise a ``ValueError`` if it is too long."""
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if len(name) > MAX_LENGTH:
        raise ValueError(f"a name has at most {MAX_LENGTH} characters, got {len(name)}")
    return name


def names_file(path: str | os.PathLike[str]) -> Path:
    """Return the file of the names that users give to latents.

    It is in the folder of the model. That of a shipped model is in the user's cache folder, and is first copied there.
    """
    if not directory.is_shipped(path):
        return Path(path) / FILE
    file = cache_folder() / "names" / f"{os.fspath(path)}.json"
    original = directory.shipped_folder() / path / FILE
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        if original.is_file():
            write_bytes(file, read_regular(original))
    return file
