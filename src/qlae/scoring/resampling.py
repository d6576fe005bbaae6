"""Scores of parts of the evaluation sample: how far the whole sample can be trusted. No torch here.

Intervals come from repeated half-samples (`qlae.metrics.intervals`). The curve of scores against the sample size
shows whether the sample was large enough: on small samples InfoE is too high, and InfoM too low or too high.
"""

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import Metric, find_metric
from ..metrics.inputs import check_sources
from ..metrics.intervals import half_sample_interval
from ..metrics.metric import compute_metric, scores_in, with_options
from ..metrics.parallel import run_jobs

SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the sample, which itself ends the curve
NUM_DRAWS = 5  # parts per size
MIN_ROWS = 50  # smaller parts are not scored
CONFIDENCE = 0.95


def by_sample_size(
    sources: NDArray[Any],
    latents: NDArray[Any],
    whole: Mapping[str, float],
    *,
    metrics: Sequence[str],
    protocol: str,
    prune: bool = True,
    code_input: str = "auto",
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
    n_jobs: int | None = None,
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Compute every score on several parts of each size, rows drawn without replacement.

    Args:
        sources, latents: the sample.
        whole: the scores of the whole sample, which end the curve.
        metrics, protocol, prune, code_input, source_kinds, latent_kind, metric_options: as for
            `qlae.metrics.score`.
        n_jobs: processes, as in joblib.
        progress: called with the number of parts that are done.

    Returns:
        ``sizes``, and under ``scores`` for each key a list of values for each size, without those of parts that
        cannot be scored.
    """
    count = len(sources)
    sizes = [size for size in (int(share * count) for share in SHARES) if size >= MIN_ROWS]
    draws = [(size, seed) for size in sizes for seed in range(NUM_DRAWS)]
    curves: dict[str, list[list[float]]] = {key: [[] for _ in sizes] for key in whole}
    kinds = check_sources(sources, kinds=source_kinds).kinds  # of the whole: in a part, few values repeat
    options = {"protocol": protocol, "prune": prune, "code_input": code_input}
    options |= {"source_kinds": kinds, "latent_kind": latent_kind}
    calls = ((sources, latents, size, seed, options) for size, seed in draws)
    parts = run_jobs(_score_part, with_options([find_metric(name) for name in metrics], metric_options), calls, n_jobs)
    for number, ((size, _), values) in enumerate(zip(draws, parts, strict=True), start=1):
        for key in whole:
            if key in values:
                curves[key][sizes.index(size)].append(round(values[key], 6))
        if progress is not None:
            progress(number)
    return {"sizes": [*sizes, count], "scores": {key: [*curves[key], [value]] for key, value in whole.items()}}


def mean_interval(values: NDArray[np.float64], num_halves: int, *, seed: int = 0) -> list[float]:
    """Return the 95% interval of the mean of `values`, (num_images,), from repeated half-samples."""
    random = np.random.default_rng(seed)
    half = max(1, len(values) // 2)
    means = [values[random.permutation(len(values))[:half]].mean() for _ in range(num_halves)]
    return list(half_sample_interval(float(values.mean()), means, CONFIDENCE))


def _score_part(
    metrics: Sequence[Metric],
    sources: NDArray[Any],
    latents: NDArray[Any],
    size: int,
    seed: int,
    options: dict[str, Any],
) -> dict[str, float]:
    rows = np.sort(np.random.default_rng([size, seed]).permutation(len(sources))[:size])
    values: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a source may be constant in a small part
        for metric in metrics:
            with contextlib.suppress(ValueError):  # or all of them, and there is nothing to score
                result = compute_metric(metric, sources[rows], latents[rows], seed=seed, **options)
                values |= scores_in(metric, result.to_dict())
    return values
