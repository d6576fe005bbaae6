"""A metric: its function, its scores, its result, and the table in which it is registered.

A metric is a function of `sources` (n, n_s) and `latents` (n, n_z) with one or several scores. `register_metric` enters
it into the table under a name. Each metric of qlae has a file that registers it; you register your own in the same way:

>>> from qlae.metrics import register_metric, score, unregister_metric
>>> @register_metric("range", title="Range")
... def latent_range(sources, latents):
...     return float(latents.max() - latents.min())
>>> score([[0], [1], [1]], [[0.5], [1.0], [3.0]], metrics=["range"])["range"]
2.5
>>> unregister_metric("range")

Code that prints scores asks `find_score` for titles and formats, so a registered metric appears in every table.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from .inputs import Floats, Latents, Sources, require_discrete

Function = TypeVar("Function", bound=Callable[..., Any])

UNIT = (0.0, 1.0)  # bounds of most scores
OPTIONS = ("seed", "n_jobs", "source_kinds", "latent_kind")  # passed to a metric's function if it takes them
#: Passed to a function that takes the InfoMEC protocol.
INFOMEC_OPTIONS = frozenset(("protocol", "prune", "code_input", "continuous_nmi", "corrected", "active"))
#: "all" stands for all metrics; results.json has other content under the other names.
RESERVED = frozenset(("all", "active_latents", "informative_latents", "infoe_input", "nmi", "bootstrap", "intervals"))
RESERVED |= {"by_sample_size", "prune", "r2_features", "columns", "code_input", "continuous_nmi", "null_encoder"}


@dataclass(frozen=True)
class Score:
    """A number that a metric computes: its name in results and how it is printed.

    Attributes:
        key: name in results and tables of data, such as ``"infom"``.
        title: heading for readers, such as ``"InfoM"``.
        digits: decimal places when the score stands alone.
        unit: such as ``"dB"``; empty for a score without a unit.
        meaning: half a line that explains the score.
        bounds: smallest and largest possible value, to which intervals are clipped; None if there are no bounds.
        watched: whether the log of a run in training shows the score.
    """

    key: str
    title: str
    digits: int = 3
    unit: str = ""
    meaning: str = ""
    bounds: tuple[float, float] | None = None
    watched: bool = False

    @property
    def heading(self) -> str:
        """The title, with the unit in parentheses if there is one."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def format(self, value: float, *, max_digits: int | None = None) -> str:
        """Return a value as text, without the unit.

        Args:
            value: an integer is printed as an integer, any other number with `digits` decimal places.
            max_digits: at most this many decimal places, for a narrow table.

        >>> psnr = Score("psnr", "PSNR", digits=1, unit="dB")
        >>> psnr.format(30.26), Score("infom", "InfoM").format(0.5, max_digits=2), Score("active", "active").format(7)
        ('30.3', '0.50', '7')
        """
        if isinstance(value, int):
            return str(value)
        digits = self.digits if max_digits is None else min(self.digits, max_digits)
        return f"{value:.{digits}f}"


@dataclass(frozen=True)
class Metric:
    """An entry of the table: a function, its scores and how `qlae.metrics.score` calls it.

    Attributes:
        scores: the scores that it computes. A result may lack some of them, but not the first.
        compute: the function; it takes sources, latents and the keyword arguments in `keywords`.
        keywords: names out of `OPTIONS`, and out of `INFOMEC_OPTIONS` if `takes_protocol`.

    The other attributes are the arguments of `register_metric`.
    """

    name: str
    scores: tuple[Score, ...]
    compute: Callable[..., Any]
    keywords: frozenset[str]
    counts: tuple[Score, ...] = ()
    needs_discrete: bool = False
    holds_rows_out: bool = False
    takes_protocol: bool = False
    takes_checked: bool = False
    in_all: bool = True

    @property
    def score_keys(self) -> tuple[str, ...]:
        """The keys of `scores`, in their order."""
        return tuple(score.key for score in self.scores)

    def is_in(self, scores: Mapping[str, Any]) -> bool:
        """Return whether scores by key, as ``results.json`` has them, include this metric."""
        return self.scores[0].key in scores


_METRICS: dict[str, Metric] = {}
_OTHER_SCORES: dict[str, Score] = {}  # computed outside the metrics: PSNR and R²

METRICS: Mapping[str, Metric] = MappingProxyType(_METRICS)
"""All metrics by name, in the order of tables: a read-only view, which includes metrics that are registered later."""


def register_metric(
    name: str,
    *,
    title: str | None = None,
    scores: Sequence[Score] = (),
    counts: Sequence[Score] = (),
    needs_discrete: bool = False,
    holds_rows_out: bool = False,
    takes_protocol: bool = False,
    takes_checked: bool = False,
    in_all: bool = True,
) -> Callable[[Function], Function]:
    """Return a decorator that enters a function into the table of metrics and leaves it unchanged.

    The function is called with `sources` (n, n_s) and `latents` (n, n_z) as float64 arrays without NaN; classes and
    codes are numbers, strings are numbered in alphabetical order. It may also take any of these keyword arguments:
    ``seed``; ``n_jobs``; ``source_kinds``, a list with "discrete" or "continuous" for each source; ``latent_kind``,
    "codes" or "continuous". It returns a float, or with several `scores` a mapping of keys to floats. A ``ValueError``
    means that a sample cannot be scored.

    Args:
        name: by which the metric is asked for, and the key of a single score.
        title: heading of a single score; the name by default.
        scores: several scores, or one with more than a title.
        counts: further numbers in the result, which get no interval.
        needs_discrete: whether continuous sources cannot be scored; "all" metrics then leave this one out.
        holds_rows_out: whether the function trains on the first rows and tests on the last, which must be alike; it
            then receives the rows in random order.
        takes_protocol: whether the function takes ``protocol``, the name of the InfoMEC protocol, and possibly other
            options of InfoMEC: ``prune``, ``code_input``, ``continuous_nmi``, ``corrected``, and for a half-sample
            ``active``, the latents that count in the whole sample.
        takes_checked: whether the function passes its arguments to `inputs.check_pair`, as the metrics of this package
            do. It then receives the pair that is checked already, and nothing is copied.
        in_all: whether "all" metrics include this one; otherwise it is computed only if it is named.

    Raises:
        ValueError: if the name or a key of a score is taken.
    """

    def register(function: Function) -> Function:
        parameters = inspect.signature(function).parameters
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        keywords = {option for option in OPTIONS if open_ended or option in parameters}
        if takes_protocol:
            keywords |= {"protocol", *INFOMEC_OPTIONS & parameters.keys()}
        own = tuple(scores) or (Score(name, title or name),)
        rules = needs_discrete, holds_rows_out, takes_protocol, takes_checked, in_all
        metric = Metric(name, own, function, frozenset(keywords), tuple(counts), *rules)
        _require_free(metric)
        _METRICS[name] = metric
        return function

    return register


def unregister_metric(name: str) -> None:
    """Remove a metric from the table."""
    del _METRICS[find_metric(name).name]


def register_score(score: Score) -> None:
    """Enter a score that no metric computes, such as the PSNR, into the table of scores."""
    _require_new_keys([score.key], known_scores())
    _OTHER_SCORES[score.key] = score


def find_metric(name: str) -> Metric:
    """Return the metric of that name, or raise a ``ValueError`` that suggests the nearest known name."""
    if name not in _METRICS:
        close = difflib.get_close_matches(str(name).lower(), list(_METRICS), n=1, cutoff=0.5)
        nearest = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"unknown metric {name!r}{nearest}; allowed are {', '.join(map(repr, _METRICS))}.")
    return _METRICS[name]


def metric_names(metrics: str | Sequence[str] = "all") -> list[str]:
    """Return the names of metrics, each once, in the order in which they are asked for.

    "all" stands for all metrics that were not registered with ``in_all=False``.

    >>> metric_names(["dci", "mig", "dci"])
    ['dci', 'mig']
    """
    names = [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics or ()))
    if not names:
        raise ValueError(f"metrics is empty; allowed are {', '.join(map(repr, _METRICS))}, or 'all'.")
    for name in names:
        if name != "all":
            find_metric(name)
    if "all" in names:
        return [name for name, metric in _METRICS.items() if metric.in_all or name in names]
    return names


def known_scores() -> dict[str, Score]:
    """Return all scores and counts by key, in the order of tables: those of the metrics, then the others."""
    found = [score for metric in _METRICS.values() for score in (*metric.scores, *metric.counts)]
    return {score.key: score for score in found} | _OTHER_SCORES


def find_score(key: str) -> Score:
    """Return the title and format of a score.

    A score that nobody registered, as in results of a metric whose module is not imported, has its key as title.

    >>> find_score("psnr").heading, find_score("infom").title
    ('PSNR (dB)', 'InfoM')
    """
    return known_scores().get(key) or Score(key, key)


def watched_scores() -> tuple[str, ...]:
    """Return the keys of the scores that the log of a run in training shows."""
    return tuple(key for key, score in known_scores().items() if score.watched)


def _require_free(metric: Metric) -> None:
    """Raise if the name or the keys of a metric are taken, unless by the same function, loaded again."""
    if str(metric.name).split() != [metric.name]:
        raise ValueError(f"the name of a metric is {metric.name!r}; give a string without spaces.")
    present, known = _METRICS.get(metric.name), set(known_scores())
    if present is not None:
        if _identity(present.compute) != _identity(metric.compute):
            raise ValueError(
                f"metric {metric.name!r} is already registered, by {'.'.join(_identity(present.compute))}; choose "
                "another name, or call qlae.metrics.unregister_metric first."
            )
        known -= {score.key for score in (*present.scores, *present.counts)}
    keys = [score.key for score in (*metric.scores, *metric.counts)]
    if len(set(keys)) < len(keys):
        raise ValueError(f"metric {metric.name!r} has the scores {', '.join(keys)}; give each its own key.")
    _require_new_keys([*keys, metric.name], known)


def _require_new_keys(keys: Sequence[str], known: Container[str]) -> None:
    for key in keys:
        if key in RESERVED or key in known:
            raise ValueError(f"the key {key!r} is taken by another score or entry of results; choose another one.")


def _identity(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the module and name of a function, which stay the same when a module is reloaded or a cell runs again."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return named.__module__, named.__qualname__


@dataclass(frozen=True, eq=False)
class MetricResult:
    """A score, the matrix it was computed from and the protocol.

    >>> print(MetricResult("mig", 0.25, None, "disentanglement_lib", 100))
    MIG 0.250  [disentanglement_lib; n = 100]
    """

    name: str
    score: float
    matrix: Floats | None
    """(n_s, n_z) the matrix behind the score."""
    protocol: str
    """The published implementation whose definition and defaults were used."""
    num_samples: int
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further scores and other numbers, by name."""

    def __float__(self) -> float:
        return self.score

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON."""
        plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in self.details.items()}
        return {self.name: self.score, "protocol": self.protocol, "num_samples": self.num_samples, **plain}

    def __str__(self) -> str:
        further = {key: self.details[key] for key in known_scores() if isinstance(self.details.get(key), int | float)}
        numbers = {self.name: self.score} | further
        text = "  ".join(f"{find_score(key).title} {find_score(key).format(value)}" for key, value in numbers.items())
        return f"{text}  [{self.protocol}; n = {self.num_samples:,}]"

    def __repr__(self) -> str:
        return f"MetricResult({self})"


def with_options(metrics: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None) -> list[Metric]:
    """Return the metrics of these names, with the keyword arguments that `options` has for some of them.

    Raises:
        ValueError: if a metric does not exist or its function does not take an argument.
    """
    chosen = {name: find_metric(name) for name in metrics}
    for name, arguments in (options or {}).items():
        metric = find_metric(name)
        # Without the arguments that `score` passes itself:
        allowed = inspect.signature(metric.compute).parameters.keys() - {"sources", "latents"} - metric.keywords
        for argument in arguments:
            if argument not in allowed:
                raise ValueError(
                    f"metric_options has {argument!r} for {name!r}; allowed are {', '.join(sorted(allowed)) or 'none'}."
                )
        if name in chosen:
            chosen[name] = replace(metric, compute=functools.partial(metric.compute, **arguments))
    return list(chosen.values())


def compute_metric(metric: Metric, sources: Sources, latents: Latents, *, seed: int = 0, **options: Any) -> Any:
    """Return the result of one metric, an object with ``to_dict``.

    `seed` also decides the order of rows for a metric that holds some out. `options` are ``n_jobs`` and the
    `INFOMEC_OPTIONS`, for the metrics that take them.
    """
    if metric.needs_discrete:
        require_discrete(sources, metric.name)
    if metric.holds_rows_out:  # so that the last rows are like the others
        rows = np.random.default_rng(seed).permutation(sources.num_samples)
        sources, latents = sources.rows(rows), latents.rows(rows)
    kinds = {"source_kinds": sources.kinds, "latent_kind": "codes" if latents.discrete else "continuous"}
    options = {"n_jobs": None, **options, "seed": seed, **kinds}
    passed = {name: options[name] for name in metric.keywords & options.keys()}
    pair = (sources, latents) if metric.takes_checked else (sources.values, latents.values)
    result = metric.compute(*pair, **passed)
    return _as_result(metric, result, sources.num_samples)


def scores_in(metric: Metric, result: Any) -> dict[str, float]:
    """Return the scores of a metric, by key and in their order, out of its result."""
    numbers = result.to_dict()
    return {key: numbers[key] for key in metric.score_keys if key in numbers}


def _as_result(metric: Metric, result: Any, num_samples: int) -> Any:
    """Wrap plain numbers; raise if a function did not return the scores that it declares."""
    keys = metric.score_keys
    wrapped = hasattr(result, "to_dict")
    numbers = result.to_dict() if wrapped else result
    if not isinstance(numbers, Mapping) and len(keys) == 1:
        numbers = {keys[0]: numbers}
    if not isinstance(numbers, Mapping) or not metric.is_in(numbers):
        raise TypeError(f"metric {metric.name!r} returned {result!r} without its score ({', '.join(keys)}).")
    if wrapped:
        return result
    if not numbers.keys() <= set(keys):
        raise TypeError(
            f"metric {metric.name!r} returned {', '.join(numbers)}; declare them by register_metric(scores=…)."
        )
    values = {key: float(numbers[key]) for key in keys if key in numbers}
    for key, value in values.items():
        if not np.isfinite(value):
            raise ValueError(f"metric {metric.name!r} returned {value} for {key}; raise a ValueError that says why.")
    return MetricResult(keys[0], values.pop(keys[0]), None, "custom", num_samples, values)
