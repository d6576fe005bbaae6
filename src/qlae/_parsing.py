"""The one door for whatever comes from a file or a request: JSON and TOML become typed objects, or one clear error.

``decode_json`` and ``decode_toml`` turn bytes into plain data; ``parse`` turns plain data into an instance of a type,
usually a frozen dataclass. Both raise a ``ValueError`` that names the wrong field, the value it has and what is
allowed. Unknown fields, NaN, infinity and nesting without end are errors. ``msgspec`` does the work
(docs/architecture.md says why).
"""

import collections.abc
import dataclasses
import re
import tomllib
import types
import typing
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

import msgspec

from ._checks import MAX_COUNT, nearest_name, shortened

T = TypeVar("T")

#: Numbers from here on are damage.
MAX_MAGNITUDE = 1e300
#: A whole number that is not negative, for fields of dataclasses.
Count = Annotated[int, msgspec.Meta(ge=0, lt=MAX_COUNT)]

# An error of msgspec: "Expected `int`, got `str` - at `$.training.steps`".
_ERROR = re.compile(r"(?P<reason>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`, got `[^`]*`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
# A step of its path: a field, an index, or a value of a dictionary, whose key it does not name.
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_NAMES = {"array": "a list", "object": "an object"}


def decode_json(content: bytes | str) -> Any:
    """Return the plain data of a JSON text in UTF-8; NaN, infinity and halves of characters are not JSON."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None


def decode_toml(content: bytes) -> dict[str, Any]:
    """Return the plain data of a TOML text in UTF-8."""
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not TOML: {error}") from None


def parse(content: Any, kind: type[T], where: str, *, allow_unknown: bool = False) -> T:
    """Return plain data as an instance of a dataclass or another type, whose hints say what each field may hold.

    Integers are accepted as floats and lists as tuples; nothing else is converted. ``where`` is the place of the
    content for error messages, such as ``"config.training"``, empty for a whole file. ``allow_unknown`` ignores unknown
    fields, for content that others extend.

    Raises:
        ValueError: if a field is unknown, missing or of another type, if a number is not finite, or if the type itself
            rejects the values (``__post_init__``).
    """
    try:
        _require_finite(content, where)
        result = msgspec.convert(content, kind)
        _complete(content, result, where, allow_unknown)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(error, content, kind, where)) from error.__cause__
    except RecursionError:
        raise ValueError(f"{_named(where)} is nested too deeply") from None
    except UnicodeError:
        raise ValueError(f"{_named(where)} contains half of a character, which UTF-8 does not allow") from None
    except (TypeError, NameError) as error:  # from a dataclass registered outside the package
        raise ValueError(
            f"{_named(where)} has a field whose type JSON cannot hold ({error}); use numbers, strings, tuples"
        ) from None
    return result


def _require_finite(content: Any, where: str) -> None:
    """Raise a ``ValueError`` if a number is NaN, infinite, or too large for a float."""
    if isinstance(content, dict):
        for key, value in content.items():
            _require_finite(value, f"{where}.{key}")
    elif isinstance(content, list | tuple):
        for i, value in enumerate(content):
            _require_finite(value, f"{where}[{i}]")
    elif isinstance(content, int | float) and not abs(content) < MAX_MAGNITUDE:
        raise ValueError(f"{_named(where)} must be a finite number, got {shortened(content)}")


def _complete(content: Any, parsed: Any, where: str, allow_unknown: bool) -> None:
    """Do what msgspec leaves out for dataclasses: reject unknown fields, and set the fields that have their defaults.

    Otherwise ``vars(parsed)`` would lack them.
    """
    if dataclasses.is_dataclass(parsed):
        values = {field.name: getattr(parsed, field.name) for field in dataclasses.fields(parsed)}
        for name, value in values.items():
            object.__setattr__(parsed, name, value)  # it may be frozen
        parsed = values
    if isinstance(content, dict) and isinstance(parsed, dict):
        unknown = [str(key) for key in content if key not in parsed]
        if unknown and not allow_unknown:
            known = nearest_name(unknown[0], parsed)
            raise ValueError(f"{_named(where)} has unknown fields: {', '.join(unknown)} ({known})")
        for key, value in content.items():
            if key in parsed:
                _complete(value, parsed[key], f"{where}.{key}", allow_unknown)
    elif isinstance(content, list | tuple) and isinstance(parsed, list | tuple):
        for i, (value, parsed_value) in enumerate(zip(content, parsed, strict=False)):
            _complete(value, parsed_value, f"{where}[{i}]", allow_unknown)


def _explain(error: msgspec.ValidationError, content: Any, kind: Any, where: str) -> str:
    """Return the message of an error of msgspec, with the full name of the field and the value it has."""
    match = _ERROR.fullmatch(str(error))
    assert match is not None
    place, value, hint = _follow(match["path"] or "", content, kind)
    where, reason = _named(where + place), match["reason"]
    if isinstance(error.__cause__, ValueError | TypeError):  # from `__post_init__`
        return f"{where}: {error.__cause__}"
    if missing := _MISSING.fullmatch(reason):
        return f"{where} is incomplete: it has no {missing['name']!r}"
    if expected := _EXPECTED.fullmatch(reason):
        kinds = " or ".join(_NAMES.get(name, name) for name in expected["kinds"].split(" | "))
        return f"{where} must be {kinds}, got {shortened(value)}"
    choices = [choice for kind in (hint, *typing.get_args(hint)) for choice in _choices(kind)]
    if choices:
        return f"{where} must be one of {', '.join(map(repr, choices))}, got {shortened(value)}"
    return f"{where} is wrong ({reason.replace('`array`', 'a list').replace('`', '')}), got {shortened(value)}"


def _choices(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()


def _named(where: str) -> str:
    """Return a place as messages name it."""
    return where.removeprefix(".") or "the content"


def _follow(path: str, content: Any, kind: Any) -> tuple[str, Any, Any]:
    """Follow the path of an error through the content; return the place, the value there and its type hint."""
    place = ""
    for step in _STEP.finditer(path):
        members = typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)
        if key := step["field"]:
            kind = typing.get_type_hints(next(filter(dataclasses.is_dataclass, members)))[key]
            content, place = content[key], f"{place}.{key}"
        elif step["index"]:
            i, kinds = int(step["index"]), _arguments(members, tuple, list, collections.abc.Sequence)
            kind = kinds[i] if i < len(kinds) and kinds[-1] is not Ellipsis else kinds[0]
            content, place = content[i], f"{place}[{i}]"
        else:
            kind = _arguments(members, dict, collections.abc.Mapping)[1]
            key = next((key for key, value in content.items() if not _fits(value, kind)), None)
            if key is None:  # the key is wrong, not a value
                break
            content, place = content[key], f"{place}.{key}"
    return place, content, kind


def _arguments(members: Iterable[Any], *origins: Any) -> tuple[Any, ...]:
    """Return the arguments of the first type, such as ``tuple[int, …]``, that has one of these origins."""
    return typing.get_args(next(member for member in members if typing.get_origin(member) in origins))


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
