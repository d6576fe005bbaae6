"""Damage that files meet: bytes changed, cut, doubled or spliced; JSON and arrays whose parts are replaced."""

import copy
import io
import json
import random
from typing import Any

import numpy as np

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
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "..",
    "../../x",
    "/",
    "$\\frac{",
    "[red]",
    "<b>",
    "a\nb",
    "a" * 1000,
    "\x00",
    "\x1b[31m",
    "é×\ud7ff",
    "\ud800",
    [],
    [[]],
    [None],
    [1, "a"],
    [".."],
    [0.5, 0.5],
    [True, False],
    {},
    {"kind": "quantized"},
    {"a": {"b": []}},
]
DTYPES = ["float64", "float32", "float16", "int64", "int8", "uint8", "bool", "complex64", "U3", "S2", "datetime64[s]"]
NESTED = b'{"a":' * 100_000


def damage_bytes(content: bytes, source: random.Random) -> bytes:
    """Return bytes with one to four random changes."""
    data = bytearray(content)
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(data) + 1)
        length = source.choice([1, 2, 8, 64, 1024])
        kind = source.randrange(6)
        if kind == 0:
            data[place : place + length] = source.randbytes(len(data[place : place + length]))
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = source.randbytes(length)
        elif kind == 3:
            del data[place:]
        elif kind == 4:
            data[place:place] = data[source.randrange(len(data) + 1) :][:length]
        elif data:
            data[place % len(data)] ^= 1 << source.randrange(8)
    return bytes(data)


def damage_object(content: Any, source: random.Random) -> Any:
    """Return nested lists and dictionaries in which one to three random parts are replaced, removed or added."""
    root = [copy.deepcopy(content)]
    for _ in range(source.randint(1, 3)):
        holder, key = source.choice(list(_places(root)))
        kind = source.randrange(4)
        if kind == 0 and holder is not root:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder["unknown"] = copy.deepcopy(source.choice(ODD_VALUES))
        else:
            holder[key] = copy.deepcopy(source.choice(ODD_VALUES))
    return root[0]


def damage_json(content: Any, source: random.Random) -> bytes:
    """Return damaged JSON: mostly JSON with other parts, sometimes damaged bytes or nesting without end."""
    kind = source.randrange(50)
    if kind == 0:
        return NESTED
    if kind <= 10:
        return damage_bytes(json.dumps(content).encode(), source)
    return json.dumps(damage_object(content, source)).encode()


def damage_npz(arrays: dict[str, np.ndarray], source: random.Random) -> bytes:
    """Return an ``.npz`` in which arrays are missing, or have another type, shape or values, or damaged bytes."""
    arrays = dict(arrays)
    for _ in range(source.randint(1, 2)):
        name = source.choice(list(arrays) or [""])
        if name and source.randrange(6):
            arrays[name] = np.asarray(_damage_array(arrays[name], source))
        elif source.randrange(2):
            arrays.pop(name, None)
        else:
            arrays[source.choice(["unknown", name or "x"])] = np.asarray(source.choice(["x", 5, [], [[1.5]]]))
    file = io.BytesIO()
    np.savez(file, **arrays)
    return damage_bytes(file.getvalue(), source) if source.randrange(5) == 0 else file.getvalue()


def _damage_array(array: np.ndarray, source: random.Random) -> np.ndarray:
    kind = source.randrange(8)
    if kind == 0:
        with np.errstate(all="ignore"):
            try:
                return array.astype(source.choice(DTYPES))
            except (TypeError, ValueError, RuntimeError):
                return np.zeros(array.shape, "U3")
    if kind == 1:
        return array[None]
    if kind == 2:
        return array[:0] if array.ndim else np.zeros(0, array.dtype)
    if kind == 3 and array.ndim:
        return array[: source.randrange(len(array) + 1)]
    if kind == 4 and array.ndim > 1:
        return array.swapaxes(source.randrange(array.ndim), source.randrange(array.ndim))
    if kind == 5 and array.ndim:
        return array.take(0, axis=source.randrange(array.ndim)) if array.size else array.reshape(-1)
    if kind == 6 and array.ndim:
        return np.concatenate([array, array], axis=source.randrange(array.ndim))
    return _with_odd_entry(array, source)


def _with_odd_entry(array: np.ndarray, source: random.Random) -> np.ndarray:
    array = array.copy()
    odd: list[Any] = [0, 1]
    if array.dtype.kind == "f":
        odd = [np.nan, np.inf, -np.inf, 1e30, 5e-324]
    elif array.dtype.kind in "iu":
        odd = [np.iinfo(array.dtype).max, np.iinfo(array.dtype).min, 100]
    elif array.dtype.kind == "U":
        odd = ["", "\x00"]
    if array.size:
        array.reshape(-1)[source.randrange(array.size)] = source.choice(odd)
    return array


def _places(node: Any) -> Any:
    """Yield (holder, key) of every part of nested lists and dictionaries."""
    pairs = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
    for key, child in pairs[:50]:
        yield node, key
        if isinstance(child, dict | list):
            yield from _places(child)
