"""Which defaults the help of a command shows behind the text of an option."""

import dataclasses
import inspect
import typing
from typing import Annotated, TypeVar

from tyro.conf import arg

Options = TypeVar("Options", bound=type)


def hide_unset(options: Options) -> Options:
    """Decorate a dataclass of options so that its help shows no default that only says "not set".

    These are None, False and empty collections: the text of an option says what they mean.
    """
    types = typing.get_type_hints(options, include_extras=True)
    unset = [field.name for field in dataclasses.fields(options) if _is_unset(field)]
    silent = {name: Annotated[types[name], arg(help_behavior_hint="")] for name in unset}
    options.__annotations__ = {**inspect.get_annotations(options), **silent}
    return options


def _is_unset(field: "dataclasses.Field[object]") -> bool:
    if field.default_factory is not dataclasses.MISSING:
        return not field.default_factory()
    return field.default is None or field.default is False or field.default == ()
