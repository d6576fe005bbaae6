"""The names that a person gives to latents and their values, kept with the run in ``names.json``.

The file is ``{"latents": {"3": "wall"}, "values": {"3": {"0": "red"}}}``: latents and codes by their numbers.
"""

import json
import threading
from pathlib import Path
from typing import Any

from .._files import write_json

FILE = "names.json"
MAX_LENGTH = 60


class Names:
    """The names of one run; every change is written at once, and whole.

    Args:
        path: the file; it need not exist.
        num_values: codes of each latent, 0 where it is continuous.
    """

    def __init__(self, path: Path, num_values: list[int]):
        self.path = path
        self._num_values = num_values
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any]:
        """All names; an error if the file is not what this class writes."""
        if not self.path.is_file():
            return {"latents": {}, "values": {}}
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            latents = {str(int(j)): str(name) for j, name in content["latents"].items()}
            values = {
                str(int(j)): {str(int(code)): str(name) for code, name in named.items()}
                for j, named in content["values"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.path} is not a file of names ({error}); mend it or move it away") from None
        return {"latents": latents, "values": values}

    def rename(self, latent: int, value: int | None, name: str) -> dict[str, Any]:
        """Name a latent, or one of its values; an empty name takes the old one away. All names after it.

        A name that stands for something else in a table of codes is an error.
        """
        self._require(latent, value)
        name = clean(name)
        with self._lock:
            names = self.read()
            where = names["latents"] if value is None else names["values"].setdefault(str(latent), {})
            key = str(latent if value is None else value)
            where.pop(key, None)
            if name:
                where[key] = name
                clash = self._clash(names, latent, value, name)
                if clash:
                    raise ValueError(f"{clash}; choose another name")
            names["values"] = {j: named for j, named in names["values"].items() if named}
            write_json(self.path, names)
        return names

    def read_distinct(self) -> dict[str, Any]:
        """All names; an error if one of them stands for two things in a table of codes."""
        names = self.read()
        for j, name in names["latents"].items():
            self._require_distinct(names, int(j), None, name)
        for j, named in names["values"].items():
            for code, name in named.items():
                self._require_distinct(names, int(j), int(code), name)
        return names

    def _require_distinct(self, names: dict[str, Any], latent: int, value: int | None, name: str) -> None:
        clash = self._clash(names, latent, value, name)
        if clash:
            told = f"z{latent}" if value is None else f"value {value} of z{latent}"
            raise ValueError(f"{self.path} calls {told} {name!r}, but {clash}; name it otherwise in `qlae explore`")

    def _clash(self, names: dict[str, Any], latent: int, value: int | None, name: str) -> str | None:
        """What else a name stands for: the first column, or another latent, or another value of the same latent."""
        if not 0 <= latent < len(self._num_values):
            return None
        taken: dict[str, str] = {}
        if value is None:
            taken |= {"file": "the files", "image": "the images"}
            own, num, given, plain, told = latent, len(self._num_values), names["latents"], "z{}", "z{}"
        else:
            given = names["values"].get(str(latent), {})
            own, num, plain, told = value, self._num_values[latent], "{}", "value {}"
        for k in set(range(num)) - {own}:
            taken |= dict.fromkeys((plain.format(k), given.get(str(k), plain.format(k))), told.format(k))
        return f"{name!r} stands for {taken[name]} in tables of codes" if name in taken else None

    def _require(self, latent: int, value: int | None) -> None:
        if not 0 <= latent < len(self._num_values):
            raise ValueError(f"latents run from 0 to {len(self._num_values) - 1}, got {latent}")
        if value is not None and not 0 <= value < self._num_values[latent]:
            sizes = self._num_values[latent]
            told = f"run from 0 to {sizes - 1}" if sizes else "are continuous and have no names"
            raise ValueError(f"the values of z{latent} {told}, got {value}")


def clean(name: str) -> str:
    """A name on one line without control characters; an error if it is too long."""
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if len(name) > MAX_LENGTH:
        raise ValueError(f"a name has at most {MAX_LENGTH} characters, got {len(name)}")
    return name
