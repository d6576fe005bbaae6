"""Paths in the data sets of a plan: a name that is an existing path becomes a ``path``, and paths become absolute.

Relative paths start at the working directory. They are stored as absolute paths, so that a study can be resumed from
any directory.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..data.registration import registered_names
from ..data.sources import BUILT_IN_SETS

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def with_absolute_paths(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a plan in which the files of each data set have an absolute path.

    A list of names stays as it is, unless one of them is a path.

    Raises:
        ValueError: a path in a list of names does not exist, or its last part cannot be a label.
    """
    tables = content.get("data")
    if isinstance(tables, list):
        tables = _tables_of_names(tables)
    if not isinstance(tables, dict):
        return content
    absolute = {
        label: _with_paths(label, table) if isinstance(table, dict) else table for label, table in tables.items()
    }
    return content | {"data": absolute}


def _tables_of_names(names: list[Any]) -> list[Any] | dict[str, Any]:
    """Return a list of names as tables if one of them is a path, each under the last part of its path."""
    if not any(_is_path(name) for name in names) or any(names.count(name) > 1 for name in names):
        return names
    tables: dict[str, Any] = {}
    for name in names:
        label = _label_of_path(name) if _is_path(name) else str(name)
        if label in tables:
            raise ValueError(
                f"data: {name!r} would have the label {label}, like another entry; use tables with different labels, "
                f'such as [data.other] with path = "{name}"'
            )
        tables[label] = {"path": name} if _is_path(name) else {}
    return tables


def _label_of_path(path: str) -> str:
    """Return the last part of a path, which names the folder of its runs."""
    if not os.path.exists(path):
        raise ValueError(f"data: there is no folder or file {path} in the working directory, {Path.cwd()}")
    label = os.path.basename(os.path.abspath(path))
    if not LABEL.fullmatch(label):
        raise ValueError(
            f"data: labels name folders, so they may contain letters, digits and . _ + - only, got {label!r}; choose a "
            f'label for this path: [data.mine] with path = "{path}"'
        )
    return label


def _with_paths(label: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a data set with absolute paths; a name that is a path is one, as in `qlae.load_data`."""
    table = dict(table)
    name = table.get("name", label)
    if "path" not in table and _is_path(name) and os.path.exists(name):
        table["path"] = name
    for key in ("path", "source_file"):
        if isinstance(table.get(key), str) and table[key]:
            table[key] = str(Path(table[key]).absolute())
    return table


def _is_path(name: Any) -> bool:
    """Return whether a name of data is a path: that of an existing file or folder, or any with a slash."""
    if not isinstance(name, str) or not name or name in {*BUILT_IN_SETS, *registered_names()}:
        return False
    return "/" in name or "\\" in name or os.path.exists(name)
