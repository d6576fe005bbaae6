"""Score a representation by several metrics: `score` takes arrays, `score_file` files, `print_scores` prints them.

**Intervals** come from repeated half-samples. Every score is computed again on many half-samples, n/2 rows drawn
without replacement. They spread around their mean as whole samples spread around theirs, so the quantiles of their
deviations give the interval. The usual bootstrap would draw rows twice, which KSG estimates and in-sample regression
take for information.

**Null encoders** (`null_scores`) have latents that are independent of the sources. Many scores are not 0 for noise, by
an amount that depends on the number of latents, their levels and the sample size. A score is meaningful if it exceeds
that of a null encoder of the same size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .infomec import InfoMEC, choose_protocol, find_protocol
from .inputs import (
    MAX_DRAWS,
    MAX_JOBS,
    Ints,
    Latents,
    Sources,
    check_latents,
    check_pair,
    require_choice,
    require_discrete,
    whole_number,
)
from .metric import METRICS, Metric, compute_metric, find_score, metric_names, scores_in, with_options
from .parallel import run_jobs
from .sample_files import read_sample

if TYPE_CHECKING:
    from rich.table import Table

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Scores:
    """The results of several metrics, their scores by key, and intervals if they were asked for."""

    results: Mapping[str, Any]
    """Name of a metric → its result object."""
    values: Mapping[str, float]
    """All scores by key: infom, infoe, infoe_scalar, infoc, d, c, i, mig, …"""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """Key of a score → the interval in which it varies from sample to sample, with `confidence`; without bias."""
    confidence: float = 0.95
    num_bootstrap: int = 0
    """The number of half-samples behind the intervals."""

    def __getitem__(self, key: str) -> float:
        return self.values[key]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON: the results by metric, and the intervals."""
        plain: dict[str, Any] = {name: result.to_dict() for name, result in self.results.items()}
        if self.intervals:
            plain["bootstrap"] = {
                "num_bootstrap": self.num_bootstrap,
                "confidence": self.confidence,
                "intervals": {key: list(ends) for key, ends in self.intervals.items()},
            }
        return plain

    def __str__(self) -> str:
        lines = [str(result) for result in self.results.values()]
        if self.intervals:
            lines.append(f"{self.confidence:.0%} intervals from {self.num_bootstrap} half-samples:")
            for key, (low, high) in self.intervals.items():
                described = find_score(key)
                lines.append(f"  {described.title} {described.format(low)} to {described.format(high)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Scores({', '.join(f'{key} {find_score(key).format(value)}' for key, value in self.values.items())})"


def score(
    sources: Any,
    latents: Any,
    *,
    metrics: str | Sequence[str] = ("infomec",),
    protocol: str = "paper",
    prune: bool = True,
    code_input: str = "auto",
    continuous_nmi: str = "denoised",
    corrected: bool = True,
    seed: int = 0,
    bootstrap: int = 0,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Scores:
    """Score a representation by several metrics.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        metrics: names out of `METRICS`, which include metrics that you registered; "all" for those that the sources
            allow, except those that are computed only by name (see docs/metrics.md).
        protocol: of InfoMEC; each other metric uses its own default. SAP and explicitness, which hold out the last
            tenth of the rows, receive them in random order.
        prune, code_input, continuous_nmi, corrected: of InfoMEC; see `infomec`.
        seed: of everything random.
        bootstrap: number of half-samples, from which each score gets an interval (see the top of the module). Latents
            count as active if they are active in the whole sample. The intervals do not include bias, by which a sample
            of this size makes a score too high or too low on average.
        confidence: of the intervals.
        n_jobs: processes for the half-samples and threads for DCI's forests, as in joblib.
        metric_options: further keyword arguments of single metrics, such as ``{"dci": {"max_features": "all"}}``.
        progress: called with a line of text at each step, for a progress bar.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 4, size=(500, 2))
    >>> scores = score(sources, sources, metrics=["infomec", "mig"])
    >>> scores["infom"] > 0.97, scores["mig"] > 0.97
    (True, True)
    """
    names = check_options(metrics, protocol, bootstrap, n_jobs)
    options: dict[str, Any] = {"prune": prune, "code_input": code_input, "continuous_nmi": continuous_nmi}
    choose_protocol(protocol, **options)
    options |= {"protocol": protocol, "corrected": corrected}
    whole_number("seed", seed, 0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; give 0 < confidence < 1.")
    report = progress or (lambda _: None)
    sample = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    results, chosen = {}, with_options(allowed_names(names, sample[0]), metric_options)
    for metric in chosen:
        report(metric.name)
        results[metric.name] = compute_metric(metric, *sample, seed=seed, n_jobs=n_jobs, **options)
    values: dict[str, float] = {}
    for name, metric in METRICS.items():
        values |= scores_in(metric, results[name]) if name in results else {}
    if not bootstrap:
        return Scores(results, values)
    if "infomec" in results:
        options["active"] = results["infomec"].active
    drawn: dict[str, list[float]] = {key: [] for key in values}
    halves = score_parts(*sample, chosen, _draw_halves(sample[0].num_samples, seed, bootstrap), options, n_jobs)
    for count, numbers in enumerate(halves, start=1):
        report(f"half-sample {count} of {bootstrap}")
        for key in drawn.keys() & numbers.keys():
            drawn[key].append(numbers[key])
    intervals = {
        key: half_sample_interval(values[key], numbers, confidence, find_score(key).bounds)
        for key, numbers in drawn.items()
        if len(numbers) > 1
    }
    return Scores(results, values, intervals, confidence, bootstrap)


def check_options(metrics: str | Sequence[str], protocol: str, bootstrap: int, n_jobs: int | None) -> list[str]:
    """Return the names of the metrics, or raise a ``ValueError`` if `score` would refuse an option."""
    names = metric_names(metrics)
    find_protocol(protocol)
    whole_number("bootstrap", bootstrap, 0, MAX_DRAWS)
    if bootstrap == 1:
        raise ValueError("bootstrap is 1: one half-sample has no spread; give 200, or 0 for no intervals.")
    if n_jobs == 0:
        raise ValueError("n_jobs must be at least 1, or -1 for all cores, got 0.")
    if n_jobs is not None:
        whole_number("n_jobs", n_jobs, -MAX_JOBS, MAX_JOBS)
    return names


def allowed_names(names: list[str], sources: Sources) -> list[str]:
    """Return the metrics that can score the sources.

    If all metrics are asked for, those that need discrete sources are left out with a warning; otherwise they raise a
    ``ValueError``.
    """
    refused = [] if all(sources.discrete) else [name for name in names if METRICS[name].needs_discrete]
    for name in refused:
        if not set(metric_names("all")) <= set(names):
            require_discrete(sources, name)
        warnings.warn(f"{name} is left out: it needs discrete sources, and some are continuous", stacklevel=3)
    return [name for name in names if name not in refused]


def score_parts(
    sources: Sources,
    latents: Latents,
    metrics: Sequence[Metric],
    parts: Iterable[tuple[Ints, int]],
    options: Mapping[str, Any],
    n_jobs: int | None,
) -> Iterator[dict[str, float]]:
    """Yield the scores of parts of a sample by key, without those that cannot be computed on a part.

    Each part has its rows and its seed; `options` are those of InfoMEC, as for `compute_metric`.
    """
    calls = ((sources.rows(rows), latents.rows(rows), seed, options) for rows, seed in parts)
    return run_jobs(_score_part, metrics, calls, n_jobs)


def _score_part(
    metrics: Sequence[Metric], sources: Sources, latents: Latents, seed: int, options: Mapping[str, Any]
) -> dict[str, float]:
    values: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for metric in metrics:
            try:
                values |= scores_in(metric, compute_metric(metric, sources, latents, seed=seed, **options))
            except ValueError:  # a rare value of the whole may be missing in a part
                continue
    return values


def _draw_halves(num_samples: int, seed: int, num_halves: int) -> Iterator[tuple[Ints, int]]:
    """Yield the rows of half-samples, each with its seed."""
    for own_seed in range(seed + 1, seed + 1 + num_halves):
        order = np.random.default_rng(own_seed).permutation(num_samples)
        yield np.sort(order[: max(2, num_samples // 2)]), own_seed


def half_sample_interval(
    value: float, drawn: Sequence[float], confidence: float, bounds: Interval | None = None
) -> Interval:
    """Return the interval of a value: the value plus the quantiles of how half-samples deviate from their mean."""
    ends = value + (np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]) - np.mean(drawn))
    low, high = ends if bounds is None else np.clip(ends, *bounds)
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class NullScores:
    """Scores of null encoders: the mean and the standard deviation over several draws, by key."""

    latents: str
    """A description of the latents."""
    num_draws: int
    values: Mapping[str, float]
    deviations: Mapping[str, float]
    """0 for a single draw."""

    def __getitem__(self, key: str) -> float:
        return self.values[key]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, suitable for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"null encoder: {self.latents}, {self.num_draws} draws"]
        for key, value in self.values.items():
            described = find_score(key)
            lines.append(f"  {described.title} {described.format(value)} ± {described.format(self.deviations[key])}")
        return "\n".join(lines)


def null_scores(
    sources: Any,
    latents: Any = None,
    *,
    num_latents: int | None = None,
    kind: str = "continuous",
    num_values: int = 10,
    num_draws: int = 5,
    seed: int = 0,
    **options: Any,
) -> NullScores:
    """Score latents that are independent of the sources.

    Args:
        sources: (n, n_s), as for `score`.
        latents: (n, n_z) latents of an encoder, whose rows are shuffled: the baseline keeps their distribution. If
            None, independent latents are drawn.
        num_latents: number of latents to draw; only without `latents`.
        kind: of the latents to draw: "continuous" (standard normal) or "codes" (uniform).
        num_values: number of values of each code.
        num_draws: number of null encoders; each score is their mean.
        seed: of the draws.
        options: as for `score`: ``metrics``, ``protocol``, ``source_kinds``, …

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 4, size=(500, 3))
    >>> null = null_scores(sources, num_latents=6, kind="codes", num_values=8)
    >>> bool(null["infoc"] > 0.05), null["infoc_corrected"]
    (True, 0.0)
    """
    if (latents is None) == (num_latents is None):
        raise ValueError("give either latents, whose rows are shuffled, or num_latents to draw, not both or neither.")
    whole_number("num_draws", num_draws, 1, MAX_DRAWS)
    require_choice("kind", kind, ("continuous", "codes"))
    whole_number("num_values", num_values, 2)
    random = np.random.default_rng(seed)
    if latents is not None:
        checked = check_latents(latents, kind=options.get("latent_kind", "auto"))
        options["latent_kind"] = "codes" if checked.discrete else "continuous"
        description, shape = f"{checked.num_latents} latents with their rows shuffled", checked.values.shape
    else:
        shape = np.shape(sources)[0], whole_number("num_latents", num_latents, 1)
        drawn_from = "normal latents" if kind == "continuous" else f"codes with {num_values} values"
        description = f"{shape[1]} independent {drawn_from}"

    def draw() -> Any:
        if latents is not None:
            return checked.values[random.permutation(shape[0])]
        return random.normal(size=shape) if kind == "continuous" else random.integers(0, num_values, size=shape)

    drawn: dict[str, list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the latents are uninformative is the point
        for number in range(num_draws):
            for key, value in score(sources, draw(), seed=seed + number, **options).values.items():
                drawn.setdefault(key, []).append(value)
    means = {key: float(np.mean(values)) for key, values in drawn.items()}
    deviations = {key: float(np.std(values, ddof=1)) if len(values) > 1 else 0.0 for key, values in drawn.items()}
    return NullScores(description, num_draws, means, deviations)


def score_file(
    path: str | Path,
    *,
    sources_path: str | Path | None = None,
    source_columns: Sequence[str] = (),
    **options: Any,
) -> Scores:
    """Score the latents of a file: an .npz file or a CSV table with sources, or a file of latents and one of sources.

    In an .npz file the arrays are called ``sources``, and ``latents`` or ``codes``. If it has both of these, as a run's
    ``sample.npz`` does, codes are scored as the numbers that they stand for. Codes alone stand for vectors, as those of
    a VQ-VAE, and enter InfoE one-hot. In tables, columns of integers are codes, and columns of floats are continuous.

    Args:
        path: an .npz, .npy or .csv file.
        sources_path: an .npy or .csv file of the sources, if `path` has only latents.
        source_columns: names of the columns of a single CSV table that are sources; by default those whose names start
            with "source".
        options: as for `score`.
    """
    sources, latents, options = read_sample(path, options, sources_path=sources_path, source_columns=source_columns)
    return score(sources, latents, **options)


def score_table(scores: Scores, *, title: str | None = None, null: NullScores | None = None) -> Table:
    """Return a `rich` table with one row per score: its value, interval (if there is one), protocol and meaning.

    Args:
        scores: of `score`.
        title: of the table.
        null: scores of null encoders, as a column next to the values.
    """
    from rich.table import Table

    interval = [f"{scores.confidence:.0%} interval"] if scores.intervals else []
    table = Table(title=title, title_justify="left")
    for heading in ("score", "value", *interval, *(["null encoder"] if null else []), "protocol", "meaning"):
        table.add_column(heading, justify="left" if heading in ("score", "protocol", "meaning") else "right")
    results = {key: result for result in scores.results.values() for key in result.to_dict()}
    for key, value in scores.values.items():
        described = find_score(key)
        row = [described.title, described.format(value)]
        if scores.intervals:
            row.append(" – ".join(map(described.format, scores.intervals.get(key, ()))))
        if null is not None:
            row.append(described.format(null[key]) if key in null.values else "")
        table.add_row(*row, *_protocol_and_meaning(results[key], key))
    return table


def comparison_table(scores: Mapping[str, Scores]) -> Table:
    """Return a `rich` table with one row per score and one column per representation, with intervals if there are any.

    Args:
        scores: of `score`, by the name of the representation.
    """
    from rich.table import Table

    table = Table("score")
    for name in scores:
        table.add_column(name, justify="right", overflow="fold")  # whole paths, which differ at their ends
    for key in dict.fromkeys(key for each in scores.values() for key in each.values):
        described, cells = find_score(key), []
        for each in scores.values():
            interval = " – ".join(map(described.format, each.intervals.get(key, ()))) if each.intervals else ""
            value = described.format(each.values[key]) if key in each.values else "–"
            cells.append(f"{value} ({interval})" if interval else value)
        table.add_row(described.title, *cells)
    return table


def _protocol_and_meaning(result: Any, key: str) -> tuple[str, str]:
    protocol, meaning = result.protocol, find_score(key).meaning
    if isinstance(result, InfoMEC) and key in ("infoe", "infoe_corrected"):
        protocol = f"{protocol}, {result.infoe_input}"
    if isinstance(result, InfoMEC) and key == "infom" and result.informative is not None:
        meaning = f"{meaning} ({result.num_informative} of {result.num_active} active latents informative)"
    return protocol, meaning


def print_scores(
    scores: Scores, *, title: str | None = None, console: Any = None, null: NullScores | None = None
) -> None:
    """Print the table of scores, and how many latents are active and which of them are noise, if InfoMEC says so.

    Args:
        scores: of `score`.
        title: of the table.
        console: a `rich` console; standard output by default.
        null: scores of null encoders, as a column next to the values; see `null_scores`.
    """
    from rich.console import Console

    console = console or Console()
    console.print(score_table(scores, title=title, null=null))
    result = scores.results.get("infomec")
    if isinstance(result, InfoMEC):
        console.print("\n".join(_notes(result)))


def _notes(result: InfoMEC) -> Iterator[str]:
    informative = "" if result.informative is None else f", {result.num_informative} of them informative"
    yield f"{result.activity}{informative}, n = {result.num_samples:,}."
    noise = [] if result.informative is None else np.flatnonzero(result.active & ~result.informative).tolist()
    if noise:
        yield (
            f"{', '.join(f'z{j}' for j in noise)} {'is' if len(noise) == 1 else 'are'} no more informative about any "
            "source than noise; InfoM and InfoC count them nevertheless, the corrected scores as 0."
        )
