"""Arguments of single metrics, for callers that compute several: the command line and `qlae.metrics.score`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from .registry import Metric, find_metric

Options = Mapping[str, Mapping[str, Any]]  # name of a metric → keyword arguments of its function


def with_options(metrics: Sequence[Metric], options: Options | None) -> list[Metric]:
    """Return the metrics, with keyword arguments bound to the functions of those that `options` name.

    Raises:
        ValueError: if a metric does not exist or its function does not take an argument.
    """
    for name, arguments in (options or {}).items():
        allowed = set(inspect.signature(find_metric(name).compute).parameters) - {"sources", "latents"}
        allowed -= find_metric(name).keywords  # which `score` passes itself
        for argument in arguments:
            if argument not in allowed:
                raise ValueError(
                    f"metric_options has {argument!r} for {name!r}; allowed are {', '.join(sorted(allowed)) or 'none'}."
                )
    return [
        dataclasses.replace(metric, compute=functools.partial(metric.compute, **options[metric.name]))
        if options and options.get(metric.name)
        else metric
        for metric in metrics
    ]


def dci_options(max_features: str, split: str) -> dict[str, dict[str, Any]]:
    """Return the options of DCI from words of the command line; none if they are the defaults.

    >>> dci_options("0.5", "honest"), dci_options("4", "paper"), dci_options("sqrt", "paper")
    ({'dci': {'max_features': 0.5, 'split': 'honest'}}, {'dci': {'max_features': 4}}, {})
    """
    options: dict[str, Any] = {}
    if max_features != "sqrt":
        options["max_features"] = _number(max_features)
    if split != "paper":
        options["split"] = split
    return {"dci": options} if options else {}


def _number(text: str) -> str | int | float:
    """Return a number if the text is one: a whole number of latents, or a share."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
