"""The loop of every fuzz test: damage a file, read it, and collect each distinct way in which that went wrong."""

import functools
import os
import random
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutations import damage_bytes, damage_json, damage_npz

#: Inputs per reader. `make test-fuzz` sets a large number; `make test` tries a few.
NUM_INPUTS = int(os.environ.get("QLAE_FUZZ", "40"))
#: Another text here gives other inputs.
SEED = os.environ.get("QLAE_FUZZ_SEED", "")
#: One small input may take at most this long, and all inputs of a test may raise the peak of memory by at most this.
MAX_SECONDS, MAX_BYTES = 20, 700 * 2**20


def fuzz(label: str, make: Callable[[random.Random], Any], read: Callable[[Any], object], *, num_inputs=NUM_INPUTS):
    """Make inputs and read them; fail if any of them raises another error than allowed, takes long or fills memory.

    Args:
        label: what is read. It determines the inputs, together with the seed.
        make: returns an input.
        read: reads it. It may return anything, or raise a ``ValueError`` with a message or an ``OSError`` that names a
            file.
        num_inputs: number of inputs.
    """
    source, failures = random.Random(label + SEED), {}
    peak = _peak_memory()
    for number in range(num_inputs):
        content = make(source)
        start = time.monotonic()
        try:
            survives(functools.partial(read, content))
            seconds = time.monotonic() - start
            assert seconds < MAX_SECONDS, f"it took {seconds:.0f} s"
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__, place.filename, place.lineno
            failures.setdefault(kind, (number, repr(content)[:600], "".join(traceback.format_exception(error)[-6:])))
    for number, shown, trace in failures.values():
        print(f"input {number} of {label!r} (QLAE_FUZZ_SEED={SEED!r}): {shown}\n{trace}")
    if failures:
        pytest.fail(f"{label}: {len(failures)} ways to fail: {', '.join(f'{k[0]} at {k[1]}:{k[2]}' for k in failures)}")
    growth = _peak_memory() - peak
    assert growth < MAX_BYTES, f"{label}: reading small files took {growth / 2**20:.0f} MiB of memory"


def survives(read: Callable[[], object]) -> None:
    """Call a reader; anything but a result, a ``ValueError`` or an ``OSError`` that names a file is a failure."""
    try:
        read()
    except UnicodeError:
        raise
    except ValueError as error:
        if not str(error):
            raise
    except OSError as error:
        if not error.filename:
            raise


def _written(path: Path, read: Callable[[], object]) -> Callable[[bytes], object]:
    def write_and_read(content: bytes) -> object:
        path.write_bytes(content)
        return read()

    return write_and_read


def fuzz_bytes(path: Path, read: Callable[[], object], **options) -> None:
    """Damage the bytes of a file, and read it; it is restored in the end."""
    content = path.read_bytes()
    fuzz(path.name, functools.partial(damage_bytes, content), _written(path, read), **options)
    path.write_bytes(content)


def fuzz_json(path: Path, content: Any, read: Callable[[], object], **options) -> None:
    """Write damaged JSON to a path, and read it."""
    fuzz(path.name, functools.partial(damage_json, content), _written(path, read), **options)


def fuzz_npz(path: Path, arrays: dict[str, Any], read: Callable[[], object], **options) -> None:
    """Write damaged arrays to a path, and read them."""
    fuzz(path.name, functools.partial(damage_npz, arrays), _written(path, read), **options)


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
