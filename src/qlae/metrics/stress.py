"""Stress test of metrics: data whose structure is known, encoders whose faults are known, and scores of both.

A metric is wrong where its score says the opposite of what the encoder does: a high score for noise, or a low one for
an exact copy. The idea is that of "Who Guards the Guardians?" (Joshi et al. 2026). `stress` runs registered metrics,
also yours, and `qlae metrics stress my_metric.py` prints where they are wrong; ``benchmarks/stress.py`` draws the
pictures of docs/metrics.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .inputs import MAX_DRAWS, check_pair, whole_number
from .metric import METRICS, compute_metric, find_metric, find_score, scores_in

if TYPE_CHECKING:
    from rich.table import Table

NUM_SOURCES, NUM_LEVELS = 4, 8
Array = NDArray[Any]


def independent(n: int, rng: np.random.Generator) -> Array:
    return rng.integers(0, NUM_LEVELS, size=(n, NUM_SOURCES))


def correlated(n: int, rng: np.random.Generator) -> Array:
    """Return sources with correlation 0.5 between every two, in classes of equal size."""
    return in_classes(gaussian(n, rng, 0.5))


def continuous(n: int, rng: np.random.Generator) -> Array:
    return gaussian(n, rng, 0.0)


def gaussian(n: int, rng: np.random.Generator, correlation: float) -> Array:
    """Return Gaussian sources (n, n_s) with this correlation between every two."""
    covariance = np.full((NUM_SOURCES, NUM_SOURCES), correlation) + (1 - correlation) * np.eye(NUM_SOURCES)
    return rng.multivariate_normal(np.zeros(NUM_SOURCES), covariance, size=n)


def in_classes(values: Array) -> Array:
    """Return standard normal values as classes of equal size."""
    from scipy.special import ndtr

    return np.asarray(np.floor(NUM_LEVELS * ndtr(values)), dtype=np.int64)


def mixture(unit: Array, rng: np.random.Generator) -> Array:
    """Return an invertible nonlinear mixture: two random rotations, each followed by a leaky rectifier."""
    mixed = unit
    for _ in range(2):
        mixed = mixed @ _rotation(rng, NUM_SOURCES)
        mixed = np.where(mixed > 0, mixed, 0.3 * mixed)
    return mixed


def _rotation(rng: np.random.Generator, size: int) -> Array:
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


PROCESSES: dict[str, tuple[Callable[[int, np.random.Generator], Array], bool]] = {
    "independent": (independent, False),  # the observation is the sources themselves
    "correlated, 0.5": (correlated, False),
    "nonlinear mixture": (independent, True),  # the observation is a mixture, which encoders do not undo
    "continuous": (continuous, False),
}

# What each encoder makes of the observation (n, n_s) in units of its standard deviation.
ENCODERS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "exact copy": lambda x, rng: x,
    "elementwise nonlinear": lambda x, rng: x + 0.9 * np.sin(x) + 0.1 * x**3,
    "scaled by 1 to 30": lambda x, rng: x * np.geomspace(1, 30, x.shape[1]),
    "rotated": lambda x, rng: x @ _rotation(rng, x.shape[1]),
    "entangled": lambda x, rng: np.tanh(x @ rng.normal(size=(x.shape[1], x.shape[1]))),
    "over-complete": lambda x, rng: np.hstack([x @ rng.normal(size=(x.shape[1], x.shape[1])), x]),
    "duplicated": lambda x, rng: np.hstack([x, -x]),
    "partial": lambda x, rng: x[:, :-1],
    "half noise": lambda x, rng: np.hstack([x, rng.normal(size=x.shape)]),
    "noise": lambda x, rng: rng.normal(size=x.shape),
    "noise, 16 latents": lambda x, rng: rng.normal(size=(len(x), 16)),
    "shuffled copy": lambda x, rng: rng.permutation(x),
    "constant": lambda x, rng: np.zeros_like(x),
}

# The scores that an encoder of independent sources ought to have: what the metric claims to measure.
WANTED: dict[str, dict[str, float]] = {
    "exact copy": {"all": 1.0},
    "elementwise nonlinear": {"all": 1.0},
    "scaled by 1 to 30": {"all": 1.0},
    "noise": {"all": 0.0},
    "noise, 16 latents": {"all": 0.0},
    "shuffled copy": {"all": 0.0},
    "constant": {"all": 0.0},
    "partial": {"infoc": 0.75, "infoc_corrected": 0.75, "infoe": 0.75, "infoe_corrected": 0.75, "mcc": 0.75},
    "duplicated": {"infom": 1.0, "infom_corrected": 1.0, "modularity": 1.0, "d": 1.0},
}
TOLERANCE = 0.2
CHANCE = {"i": 1 / NUM_LEVELS, "explicitness": 0.5}  # scores whose value for noise is known and not 0


def wanted_score(encoder: str, key: str) -> float | None:
    """Return the score that an encoder deserves, or None where that depends on what the metric measures."""
    wanted = WANTED.get(encoder, {})
    target = wanted.get(key, wanted.get("all"))
    return CHANCE.get(key, 0.0) if target == 0.0 else target


def is_fooled(encoder: str, key: str, value: float) -> bool:
    """Return whether a score is far from what the encoder deserves; False where that is not clear."""
    target = wanted_score(encoder, key)
    return target is not None and abs(value - target) > TOLERANCE


#: Encoders that ignore their input.
NULL = frozenset(("noise", "noise, 16 latents", "shuffled copy", "constant"))


def draw_case(process: str, encoder: str, n: int, seed: int) -> tuple[Array, Array]:
    """Return sources (n, n_s) and the latents of an encoder (n, n_z)."""
    rng = np.random.default_rng(seed)
    draw, mixed = PROCESSES[process]
    return encode_sources(draw(n, rng), encoder, rng, mixed=mixed)


def encode_sources(
    sources: Array, encoder: str, rng: np.random.Generator, *, mixed: bool = False
) -> tuple[Array, Array]:
    """Return sources and the latents of an encoder, which have no ties."""
    unit = (sources - sources.mean(axis=0)) / sources.std(axis=0)
    latents = ENCODERS[encoder](mixture(unit, rng) if mixed else unit, rng) + 0.0
    if sources.dtype.kind == "i":  # without ties, as an encoder of images has none
        latents = latents + 0.02 * latents.std(axis=0) * rng.normal(size=latents.shape)
    return sources, latents


@dataclass(frozen=True)
class Case:
    """One score of one encoder: its mean over seeds, or why there is none."""

    process: str
    encoder: str
    key: str
    value: float | None
    wanted: float | None
    """The score that the encoder deserves; None if that depends on what the metric measures."""
    problem: str = ""
    """An exception of the metric."""

    @property
    def is_wrong(self) -> bool:
        """Whether the metric failed, or the score is more than 0.2 from the wanted one."""
        if self.value is None:
            return True
        return self.wanted is not None and abs(self.value - self.wanted) > TOLERANCE


def stress(
    metrics: Sequence[str],
    *,
    num_samples: int = 1000,
    num_seeds: int = 2,
    progress: Callable[[str], None] | None = None,
) -> list[Case]:
    """Score encoders whose faults are known on four kinds of data by some metrics.

    A copy of the sources deserves 1 on any data but the mixture, also if the sources are correlated. An encoder that
    ignores its input deserves 0, or chance where that is known. Other encoders are scored, too, but what they deserve
    depends on what a metric measures.

    Args:
        metrics: names of registered metrics.
        num_samples: rows of each sample.
        num_seeds: samples whose scores are averaged.
        progress: called with a line of text at each step.

    Returns:
        The cases, in the order of the metrics' scores, processes and encoders. A metric that needs discrete sources is
        not run on continuous ones.
    """
    whole_number("num_samples", num_samples, 20, 10_000_000)
    whole_number("num_seeds", num_seeds, 1, MAX_DRAWS)
    cases = []
    for name in metrics:
        metric = find_metric(name)
        for process in PROCESSES:
            if metric.needs_discrete and process == "continuous":
                continue
            for encoder in ENCODERS:
                if progress is not None:
                    progress(f"{name}: {process}, {encoder}")
                values, problem = _mean_scores(name, process, encoder, num_samples, num_seeds)
                for key in metric.score_keys if problem else values:
                    deserves = wanted_score(encoder, key) if encoder in NULL or process != "nonlinear mixture" else None
                    cases.append(Case(process, encoder, key, values.get(key), deserves, problem))
    order = {key: place for place, key in enumerate(dict.fromkeys(case.key for case in cases))}
    return sorted(cases, key=lambda case: order[case.key])


def _mean_scores(name: str, process: str, encoder: str, n: int, num_seeds: int) -> tuple[dict[str, float], str]:
    """Return mean scores by key, or none and what the metric raised."""
    metric = METRICS[name]
    drawn: dict[str, list[float]] = {}
    for seed in range(num_seeds):
        sources, latents = check_pair(*draw_case(process, encoder, n, seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = scores_in(metric, compute_metric(metric, sources, latents, seed=seed))
            except Exception as error:  # of a metric that may not be ours
                return {}, f"{type(error).__name__}: {error}"
        for key, value in values.items():
            drawn.setdefault(key, []).append(value)
    return {key: float(np.mean(values)) for key, values in drawn.items()}, ""


def stress_tables(cases: Sequence[Case]) -> Iterable[Table]:
    """Return a `rich` table for each score: its values by encoder and process, with what is wrong."""
    from rich.table import Table

    for key in dict.fromkeys(case.key for case in cases):
        own = [case for case in cases if case.key == key]
        processes = list(dict.fromkeys(case.process for case in own))
        judged = [case for case in own if case.wanted is not None or case.value is None]
        wrong = sum(case.is_wrong for case in own)
        title = f"{find_score(key).title}: wrong in {wrong} of {len(judged)} cases that have a right answer"
        table = Table(title=title, title_justify="left")
        table.add_column("encoder")
        for process in processes:
            table.add_column(process, justify="right")
        for encoder in dict.fromkeys(case.encoder for case in own):
            row = {case.process: case for case in own if case.encoder == encoder}
            table.add_row(encoder, *(_cell(row.get(process)) for process in processes))
        yield table


def _cell(case: Case | None) -> str:
    if case is None:
        return ""
    if case.value is None:
        return "error"
    wanted = f" (should be {case.wanted:.2g})" if case.is_wrong else ""
    return f"{find_score(case.key).format(case.value, max_digits=2)}{wanted}"
