"""Launching kernels, and compiling those of a rehearsal all at once.

Triton compiles a kernel when it is first launched: one after the other, a fifth of a second each, and an update has
some thirty of them. In a rehearsal launches only note what they would launch; at its end several threads compile that.
"""

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch import Tensor

MAX_THREADS = 16

_noted: dict[Any, tuple[Any, ...]] | None = None  # launches of a rehearsal, one of each kind


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Run a kernel over a grid of programs; in a rehearsal, only note that it will be."""
    if _noted is None:
        kernel[grid](*arguments, **options)
        return
    kinds = tuple(a.dtype if isinstance(a, Tensor) else a for a in arguments)
    _noted.setdefault((kernel, kinds, tuple(options.items())), (kernel, grid, arguments, options))


@contextlib.contextmanager
def rehearsal() -> Iterator[None]:
    """For work whose results nobody looks at: what it launches is compiled, and nothing of it runs."""
    global _noted
    _noted = {}
    try:
        yield
        noted = list(_noted.values())
    finally:
        _noted = None
    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        for _ in pool.map(_compile, noted):
            pass


def _compile(noted: tuple[Any, ...]) -> None:
    kernel, grid, arguments, options = noted
    kernel.warmup(*arguments, grid=grid, **options)
