"""One call for all: `score(sources, latents, metrics=[…])`, with bootstrap intervals, and `score_file` for an .npz."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from .dci import dci
from .infoe import explicitness_per_source
from .infomec import concentration, infomec
from .information import estimate, normalise
from .inputs import Latents, Sources, check_pair, check_sources, scored_form, whole_number
from .irs import irs
from .mcc import mcc
from .mig import mig
from .modularity import explicitness, modularity, require_discrete
from .protocols import PROTOCOLS, Protocol, find_protocol
from .sap import sap

METRICS = ("infomec", "dci", "mig", "sap", "modularity", "explicitness", "irs", "mcc")
HELD_OUT = ("sap", "explicitness")  # trained on the first rows and tested on the last, which must not differ in kind
_NUMBERS = ("infom", "infoe", "infoe_scalar", "infoc", "d", "c", "i", *METRICS[2:])


@dataclass(frozen=True, eq=False)
class Scores:
    """The results of several metrics, their numbers by name, and intervals if they were asked for."""

    results: Mapping[str, Any]
    """Metric → its result object."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Number → the interval in which it varies from sample to sample, with `confidence`; bias is not in it."""
    confidence: float = 0.95
    num_bootstrap: int = 0

    @property
    def values(self) -> dict[str, float]:
        """All numbers by name: infom, infoe, infoe_scalar, infoc, d, c, i, mig, …"""
        numbers: dict[str, float] = {}
        for result in self.results.values():
            numbers.update({key: value for key, value in result.to_dict().items() if key in _NUMBERS})
        return {name: numbers[name] for name in _NUMBERS if name in numbers}

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, fit for JSON: each metric's own, and the intervals."""
        plain: dict[str, Any] = {name: result.to_dict() for name, result in self.results.items()}
        if self.intervals:
            plain["bootstrap"] = {
                "num_bootstrap": self.num_bootstrap,
                "confidence": self.confidence,
                "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            }
        return plain

    def __str__(self) -> str:
        lines = [str(result) for result in self.results.values()]
        if self.intervals:
            lines.append(f"{self.confidence:.0%} intervals ({self.num_bootstrap} bootstrap samples):")
            lines += [f"  {name} {low:.3f} to {high:.3f}" for name, (low, high) in self.intervals.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Scores({', '.join(f'{name} {value:.3f}' for name, value in self.values.items())})"


def score(
    sources: Any,
    latents: Any,
    *,
    metrics: Sequence[str] = ("infomec",),
    protocol: str = "paper",
    seed: int = 0,
    bootstrap: int = 0,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> Scores:
    """Several metrics of one representation.

    Parameters
    ----------
    sources, latents : as for `infomec`.
    metrics : names out of "infomec", "dci", "mig", "sap", "modularity", "explicitness", "irs", "mcc"; "all" for all
        that the sources allow.
    protocol : of InfoMEC; the others take their own default. SAP and explicitness, which hold out the last tenth of
        the rows, get them in a random order.
    seed : of everything random.
    bootstrap : number of half samples (rows drawn without replacement) on which every number is computed again. Half
        of n rows vary around the whole as much as the whole would around the truth, so the quantiles of their
        deviations give the intervals. Rows are not drawn twice: KSG, and in-sample regression, would take that for
        information. Active latents stay those of the whole sample. What a sample of this size makes too high or too
        low on average is not in the intervals.
    confidence : of the intervals.
    n_jobs : processes for the bootstrap and threads for DCI's forests, as in joblib.
    progress : called with a line before each part, for a progress bar.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 4, size=(500, 2))
    >>> scores = score(sources, sources, metrics=["infomec", "mig"])
    >>> scores["infom"] > 0.97, scores["mig"] > 0.97
    (True, True)
    """
    names = check_options(metrics, protocol, bootstrap, n_jobs)
    whole_number("seed", seed, 0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; give 0 < confidence < 1.")
    kinds: dict[str, Any] = {"source_kinds": source_kinds, "latent_kind": latent_kind}
    if "explicitness" in names:
        names = allowed_names(names, check_sources(sources, kinds=source_kinds))
    results = {}
    for name in names:
        if progress is not None:
            progress(name)
        results[name] = _compute(name, sources, latents, protocol, seed, kinds, n_jobs)
    whole = Scores(results)
    if not bootstrap:
        return whole
    checked, given = check_pair(sources, latents, **kinds)
    jobs = (
        delayed(_resampled)(checked, given, names, PROTOCOLS[protocol], whole.results, seed + 1 + draw)
        for draw in range(bootstrap)
    )
    drawn = []
    for count, numbers in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs), start=1):
        if progress is not None:
            progress(f"bootstrap {count} of {bootstrap}")
        drawn.append(numbers)
    found = {name: [numbers[name] for numbers in drawn if name in numbers] for name in whole.values}
    intervals = {
        name: _interval(value, found[name], confidence) for name, value in whole.values.items() if len(found[name]) > 1
    }
    return Scores(results, intervals, confidence, bootstrap)


def check_options(metrics: str | Sequence[str], protocol: str, bootstrap: int, n_jobs: int | None) -> list[str]:
    """The names of the metrics; an error for what `score` cannot do, to be had before any work is done."""
    names = metric_names(metrics)
    find_protocol(protocol)
    whole_number("bootstrap", bootstrap, 0)
    if bootstrap == 1:
        raise ValueError("bootstrap is 1: one half sample has no spread; give 200, or 0 for no intervals.")
    if n_jobs == 0:
        raise ValueError("n_jobs must be at least 1, or -1 for all cores, got 0.")
    return names


def metric_names(metrics: str | Sequence[str]) -> list[str]:
    """The metrics asked for, each once and in their order; "all" among them stands for all.

    >>> metric_names(["dci", "mig", "dci"])
    ['dci', 'mig']
    """
    names = [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics or ()))
    if not names or any(name not in (*METRICS, "all") for name in names):
        raise ValueError(f"metrics are {names}; allowed are {', '.join(map(repr, METRICS))}, or 'all'.")
    return list(METRICS) if "all" in names else names


def allowed_names(names: list[str], sources: Sources) -> list[str]:
    """The metrics that sources allow: of all metrics those, with a warning; of chosen ones all, or an error."""
    if "explicitness" not in names or all(sources.discrete):
        return names
    if len(names) < len(METRICS):
        require_discrete(sources)
    warnings.warn("explicitness is left out: it asks for discrete sources, and some are continuous", stacklevel=3)
    return [name for name in names if name != "explicitness"]


def score_file(path: str | Path, **options: Any) -> Scores:
    """`score` of a file with arrays `sources` and `latents` or `codes` (.npz); options as for `score`.

    Where both are there, as in a run's ``sample.npz``, codes are scored as the numbers they stand for.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is not a file; give an .npz with arrays 'sources' and 'latents'.")
    try:
        file = np.load(path, allow_pickle=False)
        arrays = dict(file) if isinstance(file, np.lib.npyio.NpzFile) else {}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        told = "it is no .npz file of plain arrays" if isinstance(error, ValueError) else error
        raise ValueError(
            f"{path} cannot be read ({told}); write it with np.savez(path, sources=…, latents=…)."
        ) from error
    if "sources" not in arrays or not {"latents", "codes"} & set(arrays):
        held = ", ".join(arrays) or "a single unnamed array"
        raise ValueError(f"{path} holds {held}; arrays named 'sources' and 'latents' are needed.")
    latents, kind = scored_form(arrays.get("latents"), arrays.get("codes"))
    return score(arrays["sources"], latents, **({"latent_kind": kind} | options))


def _compute(
    name: str,
    sources: Any,
    latents: Any,
    protocol: str,
    seed: int,
    kinds: Mapping[str, Any],
    n_jobs: int | None = None,
) -> Any:
    seeded: dict[str, Callable[..., Any]] = {"mig": mig, "sap": sap}
    plain: dict[str, Callable[..., Any]] = {
        "modularity": modularity,
        "explicitness": explicitness,
        "irs": irs,
        "mcc": mcc,
    }
    if name == "infomec":
        return infomec(sources, latents, protocol=protocol, seed=seed, **kinds)
    if name == "dci":
        return dci(sources, latents, seed=seed, n_jobs=n_jobs, **kinds)
    if name in HELD_OUT:
        sources, latents, kinds = _in_random_order(sources, latents, kinds, seed)
    if name in seeded:
        return seeded[name](sources, latents, seed=seed, **kinds)
    return plain[name](sources, latents, **kinds)


def _in_random_order(
    sources: Any, latents: Any, kinds: Mapping[str, Any], seed: int
) -> tuple[Any, Any, dict[str, Any]]:
    """The same rows, of which any part is like the whole; and their kinds, which no longer follow from types."""
    checked, given = check_pair(sources, latents, **kinds)
    order = np.random.default_rng(seed).permutation(checked.num_samples)
    return checked.values[order], given.values[order], _kinds_of(checked, given)


def _kinds_of(sources: Sources, latents: Latents) -> dict[str, Any]:
    return {"source_kinds": sources.kinds, "latent_kind": "codes" if latents.discrete else "continuous"}


def _resampled(
    sources: Sources, latents: Latents, names: Sequence[str], protocol: Protocol, whole: Mapping[str, Any], seed: int
) -> dict[str, float]:
    """The numbers of one half sample; what depends on the whole sample only (active latents) is not redone."""
    n = sources.num_samples
    rows = np.sort(np.random.default_rng(seed).permutation(n)[: max(2, n // 2)])
    part, drawn = sources.rows(rows), latents.rows(rows)
    kinds = _kinds_of(part, drawn)
    numbers: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            try:
                if name == "infomec":
                    found = _infomec_numbers(part, drawn, protocol, whole[name].active, seed)
                else:
                    found = _compute(name, part.values, drawn.values, protocol.name, seed, kinds).to_dict()
            except ValueError:  # what is rare in the whole may be missing in a half: no number from this one
                continue
            numbers.update({key: value for key, value in found.items() if key in _NUMBERS})
    return numbers


def _infomec_numbers(
    sources: Sources, latents: Latents, protocol: Protocol, active: Any, seed: int
) -> dict[str, float]:
    varying = sources.varying
    if not varying.any():
        return {}
    matrix = normalise(np.maximum(estimate(sources, latents, k=protocol.k, seed=seed), 0.0), sources, latents)
    kept = matrix[np.ix_(varying, active)]
    numbers = {"infom": concentration(kept.T), "infoc": concentration(kept)}
    how = protocol.code_input if latents.discrete else "scalar"
    numbers["infoe"] = float(explicitness_per_source(sources, latents, protocol, how)[varying].mean())
    if latents.discrete and protocol.solver == "converged":
        scalar = explicitness_per_source(sources, latents, protocol, "scalar")
        numbers["infoe_scalar"] = float(scalar[varying].mean())
    return numbers


def _interval(value: float, drawn: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of a score, within [0, 1]."""
    low, high = np.clip(half_sample_interval(value, drawn, confidence), 0.0, 1.0)
    return float(low), float(high)


def half_sample_interval(value: float, drawn: Sequence[float], confidence: float) -> tuple[float, float]:
    """The value, plus the quantiles of how half samples deviate from their mean."""
    ends = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]) - np.mean(drawn)
    low, high = value + ends
    return float(low), float(high)
