"""Launch kernels, and compile those of a rehearsal in parallel.

Triton compiles a kernel when it is first launched: one after the other, a fifth of a second each, and an update has
about thirty. In a rehearsal, launches only record what they would launch; at its end several threads compile that.
"""

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

MAX_THREADS = 16

_recorded: ContextVar[dict[Any, tuple[Any, ...]] | None] = ContextVar("recorded", default=None)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Run a kernel over a grid of programs; inside ``rehearsal``, only record it."""
    recorded = _recorded.get()
    if recorded is None:
        kernel[grid](*arguments, **options)
        return
    kinds = tuple(a.dtype if isinstance(a, Tensor) else a for a in arguments)
    recorded.setdefault((kernel, kinds, tuple(options.items())), (kernel, grid, arguments, options))


@contextlib.contextmanager
def rehearsal() -> Iterator[None]:
    """Compile the kernels that the block would launch, without running them; its results are meaningless.

    Backward passes run in this thread, where the recording is.
    """
    recorded: dict[Any, tuple[Any, ...]] = {}
    token = _recorded.set(recorded)
    try:
        with torch.autograd.grad_mode.set_multithreading_enabled(False):
            yield
    finally:
        _recorded.reset(token)
    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        for _ in pool.map(_compile, recorded.values()):
            pass


def _compile(recorded: tuple[Any, ...]) -> None:
    kernel, grid, arguments, options = recorded
    kernel.warmup(*arguments, grid=grid, **options)
