"""Run independent fits in threads: NumPy and SciPy release the lock of the interpreter while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def available_threads() -> int:
    """Return how many threads may compute: OMP_NUM_THREADS if it is set, else the cores that this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return num_cores()


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item], num_threads: int) -> list[Result]:
    """Return ``function(item)`` for each item; each call sees the caller's context, such as `np.errstate`."""
    tasks = [(copy_context(), item) for item in items]
    num_threads = min(num_threads, len(tasks))
    if num_threads <= 1:
        return [function(item) for _, item in tasks]
    with ThreadPoolExecutor(num_threads) as pool:
        return list(pool.map(lambda task: task[0].run(function, task[1]), tasks))
