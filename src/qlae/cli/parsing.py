"""Parse options that are not single values: loss weights, schedules, numbers of values."""

import typing
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from ..options import TrainingOptions, parse_curve

REGISTRY = ConstructorRegistry()


def parse_weight(text: str) -> tuple[str, float]:
    """Return a loss term and its weight from ``"kl=4"``."""
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise ValueError(f'--weights takes "term=number", such as kl=4, got {text!r}') from None


def parse_weight_schedule(text: str) -> tuple[str, Any]:
    """Return a loss term and its schedule from ``"quantize=0:0,5000:1"``."""
    name, sign, curve = text.partition("=")
    if not sign:
        raise ValueError(f'--weight-schedules takes "term=update:factor,…", such as quantize=0:0,5000:1, got {text!r}')
    return name.strip(), parse_curve(curve)


def _parse_num_values(texts: list[str]) -> int | tuple[int, ...] | None:
    try:
        numbers = tuple(int(text) for text in texts)
    except ValueError:
        raise ValueError(f"--num-values takes whole numbers, got {' '.join(texts)!r}") from None
    return None if not numbers else numbers[0] if len(numbers) == 1 else numbers


def _as_text(value: object) -> list[str]:
    return [str(value)]


_HINTS = typing.get_type_hints(TrainingOptions)
# Type of the field → what it shows as its value, and how it is read.
_RULES: list[tuple[Any, str, Callable[[list[str]], Any]]] = [
    (_HINTS["weights"], "TERM=NUMBER", lambda texts: dict(parse_weight(text) for text in texts)),
    (_HINTS["weight_schedules"], "TERM=CURVE", lambda texts: dict(parse_weight_schedule(text) for text in texts)),
    (_HINTS["num_values"], "INT", _parse_num_values),
]


@REGISTRY.primitive_rule
def _read_structured(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    for kind, metavar, parse in _RULES:
        if info.type == kind:
            return PrimitiveConstructorSpec(
                nargs="*",
                metavar=f"[{metavar} …]",
                instance_from_str=parse,
                is_instance=lambda value: True,
                str_from_instance=_as_text,
            )
    return None


@REGISTRY.primitive_rule
def _read_optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Show ``INT`` for an option whose default is None; tyro would show ``{None}|INT``."""
    for kind, metavar in ((int, "INT"), (float, "FLOAT"), (str, "NAME")):
        if info.type == kind | None:
            return PrimitiveConstructorSpec(
                nargs=1,
                metavar=metavar,
                instance_from_str=lambda texts, kind=kind: kind(texts[0]),  # type: ignore[misc]
                is_instance=lambda value: True,
                str_from_instance=_as_text,
            )
    return None


@REGISTRY.primitive_rule
def _read_optional_choice(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Show ``{a,b}`` for a choice whose default is None; tyro would show ``{None,a,b}``."""
    options = [kind for kind in get_args(info.type) if kind is not type(None)]
    if len(options) == len(get_args(info.type)) or [get_origin(kind) for kind in options] != [Literal]:
        return None
    choices = get_args(options[0])
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=f"{{{','.join(choices)}}}",
        instance_from_str=lambda texts: texts[0],
        is_instance=lambda value: True,
        str_from_instance=_as_text,
        choices=choices,
    )


@REGISTRY.primitive_rule
def _read_schedule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Parse a name such as ``step`` or a curve, for fields that take either."""
    if info.type != _HINTS["weight_decay_schedule"]:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="NAME|CURVE",
        instance_from_str=lambda texts: parse_curve(texts[0]) if ":" in texts[0] else texts[0],
        is_instance=lambda value: True,
        str_from_instance=_as_text,
    )
