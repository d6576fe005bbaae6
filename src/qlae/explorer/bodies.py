"""What comes in with a request, read with a limit and checked before anything is done with it."""

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.requests import Request

from .exploration import Exploration

MAX_JSON_BYTES = 2**20
MAX_UPLOAD_BYTES = 2**24
MAX_PICTURES = 128  # decoded or shown by one request


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request, never more than ``limit`` bytes of it."""
    told = request.headers.get("content-length", "0")
    if told.isdecimal() and int(told) > limit:
        raise HTTPException(413, f"at most {limit:,} bytes, got {int(told):,}")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise HTTPException(413, f"at most {limit:,} bytes, got more")
        parts.append(part)
    return b"".join(parts)


async def read_object(request: Request) -> dict[str, Any]:
    """The JSON object of a request; NaN and infinity are no JSON."""
    content = await read_body(request, MAX_JSON_BYTES)
    try:
        body = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ValueError("the body must be JSON, without NaN or infinity") from None
    if not isinstance(body, dict):
        raise ValueError(f"the body must be an object, got {type(body).__name__}")
    return body


def whole(body: dict[str, Any], name: str, default: int | None = None) -> int:
    """A whole number of the body."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {_told(value)}")
    return value


def count(body: dict[str, Any], name: str, default: int) -> int:
    """How many pictures are wanted, at least 1."""
    value = whole(body, name, default)
    if not 1 <= value <= MAX_PICTURES:
        raise ValueError(f"{name} must lie between 1 and {MAX_PICTURES}, got {value}")
    return value


def number(body: dict[str, Any], name: str) -> float:
    """A finite number of the body, whole where it is written so."""
    return _finite(body.get(name), name)


def text(body: dict[str, Any], name: str) -> str:
    """A string of the body."""
    value = body.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {_told(value)}")
    return value


def code(body: dict[str, Any], exploration: Exploration) -> NDArray[Any]:
    """The one code of the body, (num_latents,)."""
    return _code(body.get("code"), exploration)


def codes(body: dict[str, Any], exploration: Exploration) -> NDArray[Any]:
    """The codes of the body, (n, num_latents)."""
    value = body.get("codes")
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_PICTURES:
        raise ValueError(f"codes must be a list of 1 to {MAX_PICTURES} codes, got {_told(value)}")
    return np.stack([_code(entries, exploration) for entries in value])


def row_numbers(query: str) -> list[int]:
    """Rows from ``"3,17,204"``."""
    parts = query.split(",")
    if not 1 <= len(parts) <= MAX_PICTURES or not all(part.isascii() and part.isdecimal() for part in parts):
        raise ValueError(f"rows must be 1 to {MAX_PICTURES} whole numbers with commas between, got {_told(query)}")
    if any(len(part) > 9 for part in parts):
        raise ValueError("rows must have at most 9 digits")
    return [int(part) for part in parts]


def _code(entries: Any, exploration: Exploration) -> NDArray[Any]:
    if not isinstance(entries, list):
        raise ValueError(f"a code must be a list of numbers, got {_told(entries)}")
    return exploration.to_code([_finite(entry, "an entry of a code") for entry in entries])


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {_told(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return value


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _told(value: Any) -> str:
    """What came, short enough for a message."""
    if isinstance(value, list | dict):
        return f"{type(value).__name__} of {len(value)}"
    return repr(value)[:60]
