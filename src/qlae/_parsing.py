"""Build frozen dataclasses from nested plain data, such as JSON, with errors that name the wrong field."""

import collections.abc
import dataclasses
import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")


def parse_dataclass(cls: type[T], content: Any, where: str) -> T:
    """Return an instance of a dataclass from nested dictionaries.

    Args:
        cls: the dataclass; its type hints say what each field may hold.
        content: the plain data.
        where: its place in the file, for error messages.

    Raises:
        ValueError: if a field is unknown, missing or of another type.
    """
    if not isinstance(content, dict):
        raise ValueError(f"{where} must be an object, got {type(content).__name__}")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(content) - {field.name for field in dataclasses.fields(cls)})  # type: ignore[arg-type]
    if unknown:
        raise ValueError(f"{where} has unknown fields: {', '.join(unknown)}; was it written by another version?")
    try:
        return cls(**{name: parse_value(hints[name], value, f"{where}.{name}") for name, value in content.items()})
    except TypeError as error:
        raise ValueError(f"{where} is incomplete: {error}") from None


def parse_value(kind: Any, value: Any, where: str) -> Any:
    """Return ``value`` as an instance of the type hint ``kind``."""
    if dataclasses.is_dataclass(kind):
        return parse_dataclass(typing.cast(type, kind), value, where)
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return _parse_union(typing.get_args(kind), value, where)
    if origin is tuple:
        return _parse_tuple(typing.get_args(kind), value, where)
    if origin is typing.Literal:
        if value not in typing.get_args(kind):
            raise ValueError(f"{where} must be one of {', '.join(map(repr, typing.get_args(kind)))}, got {value!r}")
        return value
    if origin is list:
        return list(_parse_tuple((*typing.get_args(kind), ...), value, where))
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            raise ValueError(f"{where} must be an object, got {value!r}")
        entry_kind = typing.get_args(kind)[1]
        return {key: parse_value(entry_kind, entry, f"{where}.{key}") for key, entry in value.items()}
    if kind is Any:
        return value
    if not isinstance(kind, type) or origin is not None:
        raise ValueError(f"{where} has the type {kind}, which config.json cannot hold; use numbers, strings, tuples")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return _to_float(value, where)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ValueError(f"{where} must be {kind.__name__}, got {value!r}")
    return value


def _to_float(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{where} must be a number that a float can hold, got an integer of many digits") from None


def _parse_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Return ``value`` as an instance of the first type that accepts it, or raise the error of the closest one."""
    if value is None and type(None) in kinds:
        return None
    options = [kind for kind in kinds if kind is not type(None)]
    # An integer stays one where floats are allowed as well, and a list is read as the alternative that is a list.
    options.sort(key=lambda kind: (kind is not type(value), (_origin(kind) is tuple) != _is_list(value)))
    errors = []
    for kind in options:
        try:
            return parse_value(kind, value, where)
        except ValueError as error:
            errors.append(error)
    raise errors[0]


def _origin(kind: Any) -> Any:
    return typing.get_origin(kind)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _parse_tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{where} must be a list, got {value!r}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(parse_value(kinds[0], entry, f"{where}[{i}]") for i, entry in enumerate(value))
    if len(kinds) != len(value):
        raise ValueError(f"{where} must be a list of {len(kinds)} entries, got {value!r}")
    return tuple(
        parse_value(kind, entry, f"{where}[{i}]") for i, (kind, entry) in enumerate(zip(kinds, value, strict=True))
    )


def flatten(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, with dotted keys.

    >>> flatten({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    flat: dict[str, Any] = {}
    for key, value in content.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
