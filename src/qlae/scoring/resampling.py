"""Beyond the point estimate: how sure a score is of itself, from parts of the evaluation sample.

Intervals come from half samples (see `qlae.metrics.score`). The curve of scores against the sample size shows whether
the sample was large enough: on small ones InfoE comes out too high and InfoM too low or too high. No torch here.
"""

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ..metrics import score
from ..metrics.inputs import check_sources
from ..metrics.scoring import half_sample_interval

SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the sample, beside the whole of it
NUM_DRAWS = 5
LEAST = 50  # rows, below which scores mean nothing
CONFIDENCE = 0.95


def by_sample_size(
    sources: NDArray[Any],
    latents: NDArray[Any],
    whole: dict[str, float],
    *,
    metrics: Sequence[str],
    protocol: str,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Every score on parts of the sample, rows drawn without replacement, several times a size.

    Args:
        sources, latents: the sample.
        whole: the scores of the whole sample, which end the curve.
        metrics, protocol, source_kinds, latent_kind: as for `qlae.metrics.score`.
        n_jobs: processes, as in joblib.
        progress: called with the number of parts done.

    Returns:
        ``sizes``, and under ``scores`` for each name a list of values for each size, without those of parts that
        cannot be scored.
    """
    count = len(sources)
    sizes = [size for size in (int(share * count) for share in SHARES) if size >= LEAST]
    draws = [(size, seed) for size in sizes for seed in range(NUM_DRAWS)]
    found: dict[str, list[list[float]]] = {name: [[] for _ in sizes] for name in whole}
    kinds = check_sources(sources, kinds=source_kinds).kinds  # of the whole: in a part, few values repeat
    options = {"protocol": protocol, "source_kinds": kinds, "latent_kind": latent_kind}
    jobs = (delayed(_part)(sources, latents, size, seed, metrics, options) for size, seed in draws)
    made = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    for number, ((size, _), values) in enumerate(zip(draws, made, strict=True), start=1):
        for name in whole:
            if name in values:
                found[name][sizes.index(size)].append(round(values[name], 6))
        if progress is not None:
            progress(number)
    return {"sizes": [*sizes, count], "scores": {name: [*found[name], [value]] for name, value in whole.items()}}


def mean_interval(values: NDArray[np.float64], num_draws: int, *, seed: int = 0) -> list[float]:
    """The 95% interval of a mean over images, from as many half samples."""
    random = np.random.default_rng(seed)
    half = max(1, len(values) // 2)
    means = [values[random.permutation(len(values))[:half]].mean() for _ in range(num_draws)]
    return list(half_sample_interval(float(values.mean()), means, CONFIDENCE))


def _part(
    sources: NDArray[Any],
    latents: NDArray[Any],
    size: int,
    seed: int,
    metrics: Sequence[str],
    options: dict[str, Any],
) -> dict[str, float]:
    rows = np.sort(np.random.default_rng([size, seed]).permutation(len(sources))[:size])
    values: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a source may be constant in a small part
        for metric in metrics:
            with contextlib.suppress(ValueError):  # or all of them, and there is nothing to score
                values |= score(sources[rows], latents[rows], metrics=[metric], seed=seed, **options).values
    return values
