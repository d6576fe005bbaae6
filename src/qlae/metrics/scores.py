"""Score a representation by several metrics: `score` takes arrays, `score_file` files, `print_scores` prints them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .infomec import InfoMEC
from .inputs import MAX_DRAWS, MAX_JOBS, Sources, check_pair, require_discrete, whole_number
from .intervals import half_sample_intervals
from .metric import METRICS, compute_metric, find_metric, find_score, metric_names, scores_in, with_options
from .protocols import choose_protocol, find_protocol
from .sample_files import read_sample

if TYPE_CHECKING:
    from rich.table import Table

    from .null_encoder import NullScores


@dataclass(frozen=True, eq=False)
class Scores:
    """The results of several metrics, their scores by key, and intervals if they were asked for."""

    results: Mapping[str, Any]
    """Name of a metric → its result object."""
    values: Mapping[str, float]
    """All scores by key: infom, infoe, infoe_scalar, infoc, d, c, i, mig, …"""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
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
        metrics: names out of `METRICS`, which include metrics that you registered; "all" for all that the sources
            allow.
        protocol: of InfoMEC; each other metric uses its own default. SAP and explicitness, which hold out the last
            tenth of the rows, receive them in random order.
        prune, code_input, continuous_nmi, corrected: of InfoMEC; see `infomec`.
        seed: of everything random.
        bootstrap: number of half-samples, from which each score gets an interval (see intervals.py). Latents count as
            active if they are active in the whole sample. The intervals do not include bias, by which a sample of this
            size makes a score too high or too low on average.
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
    choose_protocol(protocol, prune=prune, code_input=code_input, continuous_nmi=continuous_nmi)
    whole_number("seed", seed, 0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; give 0 < confidence < 1.")
    sample = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    chosen = with_options([find_metric(name) for name in allowed_names(names, sample[0])], metric_options)
    options: dict[str, Any] = {
        "protocol": protocol,
        "prune": prune,
        "code_input": code_input,
        "continuous_nmi": continuous_nmi,
        "corrected": corrected,
    }
    results = {}
    for metric in chosen:
        if progress is not None:
            progress(metric.name)
        results[metric.name] = compute_metric(metric, *sample, seed=seed, n_jobs=n_jobs, **options)
    values: dict[str, float] = {}
    for name, metric in METRICS.items():
        values |= scores_in(metric, results[name].to_dict()) if name in results else {}
    if not bootstrap:
        return Scores(results, values)
    intervals = half_sample_intervals(
        *sample,
        chosen,
        results,
        values,
        infomec_options=options,
        seed=seed,
        num_halves=bootstrap,
        confidence=confidence,
        n_jobs=n_jobs,
        progress=progress,
    )
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
    if all(sources.discrete):
        return names
    refused = [name for name in names if METRICS[name].needs_discrete]
    for name in refused:
        if len(names) < len(METRICS):
            require_discrete(sources, name)
        warnings.warn(f"{name} is left out: it needs discrete sources, and some are continuous", stacklevel=3)
    return [name for name in names if name not in refused]


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

    table = Table(title=title, title_justify="left")
    table.add_column("score")
    table.add_column("value", justify="right")
    if scores.intervals:
        table.add_column(f"{scores.confidence:.0%} interval", justify="right")
    if null is not None:
        table.add_column("null encoder", justify="right")
    table.add_column("protocol")
    table.add_column("meaning")
    for name, value in scores.values.items():
        described = find_score(name)
        row = [described.title, described.format(value)]
        if scores.intervals:
            row.append(" – ".join(map(described.format, scores.intervals.get(name, ()))))
        if null is not None:
            row.append(described.format(null[name]) if name in null.values else "")
        table.add_row(*row, _protocol_of(scores, name), _meaning_of(scores, name))
    return table


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
        unpruned = "" if result.prune else ", not pruned"
        informative = "" if result.informative is None else f", {result.num_informative} of them informative"
        console.print(
            f"{result.num_active} of {result.active.size} latents active{unpruned}{informative}, "
            f"n = {result.num_samples:,}."
        )
        if result.informative is not None and (noise := np.flatnonzero(result.active & ~result.informative)).size:
            names = ", ".join(f"z{j}" for j in noise)
            console.print(
                f"{names} {'is' if noise.size == 1 else 'are'} no more informative about any source than noise; "
                "InfoM and InfoC count them nevertheless, the corrected scores as 0."
            )


def _meaning_of(scores: Scores, key: str) -> str:
    """Return the meaning of a score; with InfoM, how many of the latents that it counts are informative."""
    meaning = find_score(key).meaning
    result = scores.results.get("infomec")
    if key == "infom" and isinstance(result, InfoMEC) and result.informative is not None:
        return f"{meaning} ({result.num_informative} of {result.num_active} active latents informative)"
    return meaning


def _protocol_of(scores: Scores, key: str) -> str:
    for result in scores.results.values():
        if key in result.to_dict():
            if key in ("infoe", "infoe_corrected") and isinstance(result, InfoMEC):
                return f"{result.protocol}, {result.infoe_input}"
            return str(result.protocol)
    return ""
