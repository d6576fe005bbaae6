"""Read request bodies with a size limit and validate their fields.

Every reader raises a ``ValueError`` that names the field, what came and what is allowed; the server answers with 400.
"""

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.requests import Request

from .exploration import Exploration
from .search import Condition

MAX_JSON_BYTES = 2**20
MAX_PICTURES = 128  # decoded or shown per request
MAX_CONDITIONS = 64  # of a search
MAX_VALUES = 1024  # of a condition
MAX_TEXT = 200  # characters of a file name to search for
MAX_ROW_DIGITS = 9


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request, or raise HTTP 413 as soon as it exceeds ``limit`` bytes."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > limit:
        raise HTTPException(413, f"at most {limit:,} bytes, got {int(announced):,}")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise HTTPException(413, f"at most {limit:,} bytes, got more")
        parts.append(part)
    return b"".join(parts)


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request; NaN and infinity are not allowed."""
    content = await read_body(request, MAX_JSON_BYTES)
    try:
        body = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError("the body must be JSON, without NaN or infinity") from None
    if not isinstance(body, dict):
        raise ValueError(f"the body must be an object, got {type(body).__name__}")
    return body


def read_integer(body: dict[str, Any], name: str, default: int | None = None) -> int:
    """Return an integer field."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be an integer, got {_summarize(value)}")
    return value


def read_count(body: dict[str, Any], name: str, default: int) -> int:
    """Return a number of pictures, from 1 to ``MAX_PICTURES``."""
    value = read_integer(body, name, default)
    if not 1 <= value <= MAX_PICTURES:
        raise ValueError(f"{name} must lie between 1 and {MAX_PICTURES}, got {value}")
    return value


def read_number(body: dict[str, Any], name: str) -> float:
    """Return a finite number; an ``int`` stays an ``int``."""
    return _require_finite(body.get(name), name)


def read_text(body: dict[str, Any], name: str, max_length: int | None = None) -> str:
    """Return a string field."""
    value = body.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {_summarize(value)}")
    if max_length is not None and len(value) > max_length:
        raise ValueError(f"{name} must have at most {max_length} characters, got {len(value):,}")
    return value


def read_code(body: dict[str, Any], exploration: Exploration) -> NDArray[Any]:
    """Return the field ``code`` as an array (num_latents,)."""
    return _to_code(body.get("code"), exploration)


def read_codes(body: dict[str, Any], exploration: Exploration) -> NDArray[Any]:
    """Return the field ``codes`` as an array (n, num_latents)."""
    value = body.get("codes")
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_PICTURES:
        raise ValueError(f"codes must be a list of 1 to {MAX_PICTURES} codes, got {_summarize(value)}")
    return np.stack([_to_code(entries, exploration) for entries in value])


def read_conditions(body: dict[str, Any], exploration: Exploration) -> list[Condition]:
    """Return the field ``where``: objects with a latent and its allowed ``values``, or ``low`` and ``high``."""
    value = body.get("where")
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_CONDITIONS:
        raise ValueError(f"where must be a list of 1 to {MAX_CONDITIONS} conditions, got {_summarize(value)}")
    return [_to_condition(entry, exploration) for entry in value]


def _to_condition(entry: Any, exploration: Exploration) -> Condition:
    if not isinstance(entry, dict):
        raise ValueError(f"a condition must be an object, got {_summarize(entry)}")
    latent = read_integer(entry, "latent")
    if not exploration.has_codes:
        return Condition(latent, [read_number(entry, "low"), read_number(entry, "high")])
    values = entry.get("values")
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_VALUES:
        raise ValueError(f"values must be a list of 1 to {MAX_VALUES} codes, got {_summarize(values)}")
    return Condition(latent, [_require_finite(value, "an entry of values") for value in values])


def parse_rows(query: str) -> list[int]:
    """Return row numbers from a query such as ``"3,17,204"``."""
    parts = query.split(",")
    if not 1 <= len(parts) <= MAX_PICTURES or not all(part.isascii() and part.isdecimal() for part in parts):
        raise ValueError(f"rows must be 1 to {MAX_PICTURES} integers separated by commas, got {_summarize(query)}")
    if any(len(part) > MAX_ROW_DIGITS for part in parts):
        raise ValueError(f"rows must have at most {MAX_ROW_DIGITS} digits each")
    return [int(part) for part in parts]


def _to_code(entries: Any, exploration: Exploration) -> NDArray[Any]:
    if not isinstance(entries, list):
        raise ValueError(f"a code must be a list of numbers, got {_summarize(entries)}")
    return exploration.to_code([_require_finite(entry, "an entry of a code") for entry in entries])


def _require_finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {_summarize(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return value


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is not valid JSON")


def _summarize(value: Any) -> str:
    """Return a value in a form that is short enough for a message."""
    if isinstance(value, list | dict):
        return f"{type(value).__name__} of {len(value)}"
    return repr(value)[:60]
