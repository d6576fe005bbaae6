"""Damage that files meet: bytes changed, cut, doubled or spliced, and JSON whose parts are replaced."""

import copy
import json
import os
import random
from collections.abc import Callable
from typing import Any

#: Inputs per reader. `make test-slow` sets a large number; `make test` tries a few.
NUM_INPUTS = int(os.environ.get("QLAE_FUZZ", "40"))

ODD_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    5,
    10**30,
    -(10**30),
    2**53 + 1,
    0.5,
    1e308,
    "",
    "x",
    "..",
    "$\\frac{",
    "a" * 1000,
    "\x00",
    "é×\ud7ff",
    [],
    [[]],
    [None],
    [1, "a"],
    [".."],
    {},
    {"kind": "quantized"},
    {"a": {"b": []}},
]


def damage_bytes(content: bytes, random_source: random.Random) -> bytes:
    """Return bytes with one to four random changes."""
    data = bytearray(content)
    for _ in range(random_source.randint(1, 4)):
        place = random_source.randrange(len(data) + 1)
        length = random_source.choice([1, 2, 8, 64, 1024])
        kind = random_source.randrange(6)
        if kind == 0:
            data[place : place + length] = random_source.randbytes(len(data[place : place + length]))
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = random_source.randbytes(length)
        elif kind == 3:
            del data[place:]
        elif kind == 4:
            data[place:place] = data[random_source.randrange(len(data) + 1) :][:length]
        elif data:
            data[place % len(data)] ^= 1 << random_source.randrange(8)
    return bytes(data)


def damage_json(content: Any, random_source: random.Random) -> bytes:
    """Return JSON in which one to three random parts are replaced, removed or added."""
    root = [copy.deepcopy(content)]
    for _ in range(random_source.randint(1, 3)):
        holder, key = random_source.choice(list(_places(root)))
        kind = random_source.randrange(4)
        if kind == 0 and holder is not root:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder["unknown"] = random_source.choice(ODD_VALUES)
        else:
            holder[key] = copy.deepcopy(random_source.choice(ODD_VALUES))
    if random_source.randrange(50) == 0:
        return b'{"a":' * 100_000
    return json.dumps(root[0]).encode()


def _places(node: Any) -> Any:
    """Yield (holder, key) of every part of nested lists and dictionaries."""
    pairs = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
    for key, child in pairs[:50]:
        yield node, key
        if isinstance(child, dict | list):
            yield from _places(child)


def survives(read: Callable[[], object], content: bytes) -> None:
    """Call a reader; anything but a result, a ``ValueError`` or an ``OSError`` that names a file is a failure."""
    message = "returned"
    try:
        read()
    except ValueError as error:
        message = str(error)
    except OSError as error:
        message = str(error.filename or "")
    assert message, content[:200]
