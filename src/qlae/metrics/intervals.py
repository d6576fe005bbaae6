"""Intervals from repeated half-samples: how much a score varies from sample to sample.

Every score is computed again on many half-samples, n/2 rows drawn without replacement. They spread around their mean as
whole samples spread around theirs, so the quantiles of their deviations give the interval. The usual bootstrap would
draw rows twice, which KSG estimates and in-sample regression take for information.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .inputs import Latents, Sources
from .metric import Metric, compute_metric, find_score, scores_in
from .parallel import run_jobs

Interval = tuple[float, float]


def half_sample_intervals(
    sources: Sources,
    latents: Latents,
    metrics: Sequence[Metric],
    results: Mapping[str, Any],
    values: Mapping[str, float],
    *,
    infomec_options: Mapping[str, Any],
    seed: int,
    num_halves: int,
    confidence: float,
    n_jobs: int | None,
    progress: Callable[[str], None] | None,
) -> dict[str, Interval]:
    """Return the interval of each score that at least two half-samples have.

    Args:
        sources, latents: the checked sample.
        metrics: the metrics to compute.
        results, values: results of the whole sample by the name of the metric, and its scores by key.
        infomec_options, confidence, n_jobs, progress: as for `score`.
        seed: half-sample number d draws from ``seed + 1 + d``.
        num_halves: number of half-samples.
    """
    calls = ((sources, latents, infomec_options, results, seed + 1 + draw) for draw in range(num_halves))
    halves: Iterator[dict[str, float]] = run_jobs(_score_half, metrics, calls, n_jobs)
    drawn: dict[str, list[float]] = {key: [] for key in values}
    for count, numbers in enumerate(halves, start=1):
        if progress is not None:
            progress(f"half-sample {count} of {num_halves}")
        for key in drawn.keys() & numbers.keys():
            drawn[key].append(numbers[key])
    return {
        key: _clip(half_sample_interval(value, drawn[key], confidence), find_score(key).bounds)
        for key, value in values.items()
        if len(drawn[key]) > 1
    }


def half_sample_interval(value: float, drawn: Sequence[float], confidence: float) -> Interval:
    """Return the interval of a value: the value plus the quantiles of how half-samples deviate from their mean."""
    ends = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]) - np.mean(drawn)
    low, high = value + ends
    return float(low), float(high)


def _clip(interval: Interval, bounds: tuple[float, float] | None) -> Interval:
    if bounds is None:
        return interval
    low, high = np.clip(interval, *bounds)
    return float(low), float(high)


def _score_half(
    metrics: Sequence[Metric],
    sources: Sources,
    latents: Latents,
    infomec_options: Mapping[str, Any],
    whole: Mapping[str, Any],
    seed: int,
) -> dict[str, float]:
    """Return the scores of one half-sample, without those that cannot be computed on it."""
    n = sources.num_samples
    rows = np.sort(np.random.default_rng(seed).permutation(n)[: max(2, n // 2)])
    half_sources, half_latents = sources.rows(rows), latents.rows(rows)
    values: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for metric in metrics:
            try:
                if metric.compute_part is not None:
                    numbers = metric.compute_part(half_sources, half_latents, whole[metric.name], seed)
                else:
                    numbers = compute_metric(metric, half_sources, half_latents, seed=seed, **infomec_options).to_dict()
            except ValueError:  # a rare value of the whole may be missing in a half
                continue
            values |= scores_in(metric, numbers)
    return values
