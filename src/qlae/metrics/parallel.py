"""Compute metrics in several processes, also metrics whose module those processes cannot import by name."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .metric import Metric


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def run_jobs(
    function: Callable[..., Any], metrics: Sequence[Metric], calls: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Any]:
    """Yield ``function(metrics, *arguments)`` for each tuple of arguments, in their order.

    Args:
        function: of the top level of a module of qlae.
        metrics: the metrics to compute, not their names: another process has registered only those of qlae.
        calls: the other arguments of each call.
        n_jobs: number of processes, as in joblib.
    """
    from joblib import Parallel, delayed

    portable = [_PortableMetric(metric) for metric in metrics]
    jobs = (delayed(_run)(function, portable, arguments) for arguments in calls)
    yield from Parallel(n_jobs=n_jobs, return_as="generator")(jobs)


def _run(function: Callable[..., Any], portable: Sequence[_PortableMetric], arguments: tuple[Any, ...]) -> Any:
    return function([item.metric for item in portable], *arguments)


class _PortableMetric:
    """A metric that finds the file of its function again in another process."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        function = self.metric.compute
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        qualname = getattr(function, "__qualname__", "<locals>")
        file = getattr(module, "__file__", None)
        if module is None or file is None or "<" in qualname or module.__name__.split(".")[0] in ("qlae", "__main__"):
            return _PortableMetric, (self.metric,)  # joblib sends functions of scripts and notebooks whole
        without_function = dataclasses.replace(self.metric, compute=len)
        return _restore, (module.__name__, str(Path(file).absolute()), qualname, without_function)


def _restore(module: str, file: str, qualname: str, metric: Metric) -> _PortableMetric:
    function = operator.attrgetter(qualname)(_import_from(module, file))
    return _PortableMetric(dataclasses.replace(metric, compute=function))


@lru_cache
def _import_from(name: str, file: str) -> ModuleType:
    """Return the module that was loaded from a file, whether or not its folder is on the path."""
    try:
        module = importlib.import_module(name)
        if getattr(module, "__file__", None) == file:
            return module
    except ImportError:
        pass
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module
