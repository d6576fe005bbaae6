"""Call a metric of the table: prepare its arguments, check what its function returns, and read off the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .inputs import Latents, Sources, check_pair, require_discrete
from .registry import Metric
from .result import ScoreValues


def compute_metric(
    metric: Metric,
    sources: Any,
    latents: Any,
    *,
    protocol: str = "paper",
    prune: bool = True,
    code_input: str = "auto",
    continuous_nmi: str = "denoised",
    seed: int = 0,
    n_jobs: int | None = None,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> Any:
    """Return the result of one metric, an object with ``to_dict``.

    Args:
        metric: an entry of the table.
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        protocol, prune, code_input, continuous_nmi: of InfoMEC, for the metrics that take them.
        seed: of everything random, including the order of rows for a metric that holds some out.
        n_jobs: threads, for the metrics that take it.
    """
    num_samples = 0
    kinds: dict[str, Any] = {"source_kinds": source_kinds, "latent_kind": latent_kind}
    if metric.holds_rows_out or not metric.validates:
        checked_sources, checked_latents = check_pair(sources, latents, **kinds)
        if metric.needs_discrete:
            require_discrete(checked_sources, metric.name)
        sources, latents = checked_sources.values, checked_latents.values
        kinds, num_samples = kinds_of(checked_sources, checked_latents), checked_sources.num_samples
    if metric.holds_rows_out:  # so that the last rows are like the others
        order = np.random.default_rng(seed).permutation(num_samples)
        sources, latents = sources[order], latents[order]
    options = {"protocol": protocol, "prune": prune, "code_input": code_input, "continuous_nmi": continuous_nmi}
    options |= {"seed": seed, "n_jobs": n_jobs, **kinds}
    result = metric.compute(sources, latents, **{name: options[name] for name in metric.keywords})
    return _as_result(metric, result, num_samples)


def kinds_of(sources: Sources, latents: Latents) -> dict[str, Any]:
    """Return the kinds of checked arrays as keyword arguments of a metric."""
    return {"source_kinds": sources.kinds, "latent_kind": "codes" if latents.discrete else "continuous"}


def scores_in(metric: Metric, numbers: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of a metric, by key and in their order, out of the numbers of a result."""
    return {key: numbers[key] for key in metric.score_keys if key in numbers}


def _as_result(metric: Metric, result: Any, num_samples: int) -> Any:
    """Wrap plain numbers; raise if a function did not return the scores that it declares."""
    declared = ", ".join(metric.score_keys)
    if hasattr(result, "to_dict"):
        if not metric.is_in(result.to_dict()):
            raise TypeError(f"metric {metric.name!r} returned a result without its score ({declared}).")
        return result
    if not isinstance(result, Mapping):
        if len(metric.scores) > 1:
            raise TypeError(f"metric {metric.name!r} returned {result!r}; return a mapping with {declared}.")
        result = {metric.scores[0].key: result}
    if not metric.is_in(result) or not result.keys() <= set(metric.score_keys):
        raise TypeError(
            f"metric {metric.name!r} returned {', '.join(map(str, result)) or 'nothing'} and declares {declared}; "
            "name its scores in register_metric(…, scores={key: title})."
        )
    return ScoreValues({key: _finite(metric, key, value) for key, value in result.items()}, num_samples)


def _finite(metric: Metric, key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metric {metric.name!r} returned {value!r} for {key}; return a number.") from error
    if not np.isfinite(number):
        raise ValueError(
            f"metric {metric.name!r} returned {number} for {key}; return a finite number, or raise a ValueError that "
            "says why the sample cannot be scored."
        )
    return number
