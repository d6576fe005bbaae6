"""Run fits in threads, and metrics in processes, also metrics whose module those processes cannot import by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from importlib.machinery import PathFinder
from typing import Any, TypeVar

from .metric import Metric

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def available_threads() -> int:
    """Return how many threads may compute: OMP_NUM_THREADS if it is set, else the cores that this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(wanted) if wanted.isdecimal() and int(wanted) > 0 else num_cores()


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item], num_threads: int) -> list[Result]:
    """Return ``function(item)`` for each item; each call sees the caller's context, such as `np.errstate`."""
    if num_threads <= 1:
        return [function(item) for item in items]
    tasks = [(copy_context(), item) for item in items]
    with ThreadPoolExecutor(num_threads) as pool:
        return list(pool.map(lambda task: task[0].run(function, task[1]), tasks))


def run_jobs(
    function: Callable[..., Any], metrics: Sequence[Metric], calls: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Any]:
    """Yield ``function(metrics, *arguments)`` for each tuple of arguments, in their order, from `n_jobs` processes.

    Other processes have registered only the metrics of qlae. A metric is therefore sent as an object, and its function
    as code if its module cannot be imported by name.
    """
    from joblib import Parallel, delayed

    try:
        import cloudpickle
    except ImportError:  # joblib before 1.6 has its own copy
        from joblib.externals import cloudpickle

    for metric in metrics:
        compute = getattr(metric.compute, "func", metric.compute)  # of a partial function
        module = sys.modules.get(getattr(compute, "__module__", type(compute).__module__))
        if module is not None and not _is_importable(module):
            cloudpickle.register_pickle_by_value(module)
    yield from Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(metrics, *call) for call in calls)


def _is_importable(module: Any) -> bool:
    """Return whether a new process would find this module by its name (or joblib takes care of it)."""
    root = module.__name__.partition(".")[0]
    found = PathFinder.find_spec(root)
    loaded = getattr(sys.modules.get(root), "__file__", None)
    return loaded is None or root in ("qlae", "__main__") or (found is not None and found.origin == loaded)
