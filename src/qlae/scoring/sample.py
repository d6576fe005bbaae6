"""The evaluation sample: which images are in it, and from a run's ``sample.npz`` to its scores, without torch.

The sample holds the sources of the evaluation images and, for both sets of weights, what the model made of them:
``codes`` where it has any, ``latents`` where each is one number, and ``psnr`` of each image; the raw weights' names
begin with ``raw_``.
"""

import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from .._files import write_json
from .._progress import progress_bar
from .._version import __version__
from ..data import SourceDataset
from ..metrics import METRICS, nmi, score
from ..metrics.inputs import check_sources, leave_out_constant, scored_form
from ..metrics.scoring import allowed_names, check_options, metric_names
from ..runs.directory import Run
from .resampling import NUM_DRAWS, SHARES, by_sample_size, mean_interval

NUM_SAMPLES = 10_000
PREFIXES = {"averaged": "", "raw": "raw_"}  # weights → what the names of their arrays begin with
PARTS = ("latents", "codes", "psnr")
SCORE_OF = {"infomec": "infom", "dci": "d"}  # by which to see that a metric was computed; others go by their names
OTHERS = ("d", "c", "i", *METRICS[2:])  # scores that do not depend on InfoMEC's protocol
RESAMPLED = ("bootstrap", "intervals", "by_sample_size")

Arrays = dict[str, NDArray[Any]]  # by name: of the whole sample, or the `PARTS` that one set of weights made of it


def draw_sample(data: SourceDataset, num_samples: int) -> NDArray[np.int64]:
    """Row numbers of the evaluation sample, the same for every model of a data set."""
    if num_samples < 2:
        raise ValueError(f"num_samples must be at least 2, got {num_samples}")
    count = min(num_samples, len(data))
    return np.sort(np.random.default_rng(0).choice(len(data), count, replace=False))


def require_scorable(data: SourceDataset, metrics: str | Sequence[str] = ("infomec",)) -> None:
    """An error if the sources are such that no model of the data could be scored, to be had before it is trained."""
    sources = data.sources[draw_sample(data, NUM_SAMPLES)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kinds = known_kinds(data.describe())
            checked = check_sources(sources, kinds=kinds)
            leave_out_constant(checked)
            nmi(sources, np.random.default_rng(0).normal(size=(len(sources), 1)), source_kinds=kinds)
            allowed_names(_names(metrics), checked)
    except ValueError as error:
        raise ValueError(
            f"no model of {data.name} could be scored by its sources ({', '.join(data.source_names)}): {error}"
        ) from error


def rescore_run(
    run: Run | str | os.PathLike[str],
    *,
    protocol: str | None = None,
    metrics: str | Sequence[str] | None = None,
    bootstrap: int = 0,
    jobs: int = 1,
    show: bool = True,
) -> dict[str, Any]:
    """Score the sample of an evaluated run again, by another protocol or with more metrics.

    What other metrics found before stays, and with the same protocol intervals do too, where none are asked for.

    Args:
        run: the run, or its directory, with ``sample.npz`` and ``results.json``; no checkpoint is needed.
        metrics: what to compute; InfoMEC alone by default.
        protocol, bootstrap, jobs, show: as for ``qlae.evaluate``.

    Returns:
        The content of ``results.json``, which is written anew.
    """
    run = run if isinstance(run, Run) else Run.open(run)
    results = run.results
    protocol = protocol or str(results["protocol"])
    metrics = ("infomec",) if metrics is None else metrics
    check_scoring(protocol, metrics, bootstrap, jobs)
    arrays = run.arrays(run.sample_path)
    _require_together(run, results, arrays)
    how: dict[str, Any] = {"protocol": protocol, "jobs": jobs, "source_kinds": known_kinds(results["data"])}
    scores, warned = score_sample(arrays, metrics=metrics, bootstrap=bootstrap, show=show, **how)
    kept = (*OTHERS, "psnr") + (RESAMPLED if protocol == results["protocol"] else ())
    scores = {
        weights: {name: results[weights][name] for name in kept if name in results[weights]} | told
        for weights, told in scores.items()
    }
    results |= {"protocol": protocol, **scores, "warnings": warned, "versions": results["versions"] | versions()}
    write_json(run.results_path, results)
    return results


def known_kinds(described: Mapping[str, Any]) -> str | list[str]:
    """Which sources are continuous, where the description of the data knows; else their values must tell."""
    if "drawn" not in described:
        return "auto"
    smooth = described["drawn"]["continuous"]
    return ["continuous" if name in smooth else "discrete" for name in described["source_names"]]


def metrics_of(results: dict[str, Any]) -> tuple[str, ...]:
    """The metrics that a run was scored by."""
    return tuple(metric for metric in METRICS if SCORE_OF.get(metric, metric) in results["averaged"])


def score_sample(arrays: Arrays, *, bootstrap: int = 0, **how: Any) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The scores of both sets of weights, by the arrays of ``sample.npz``, and what was warned of.

    Args:
        arrays: by name, with ``sources``.
        bootstrap: intervals for the averaged weights only.
        how: as for `score_weights`.
    """
    scores: dict[str, dict[str, Any]] = {}
    warned: list[str] = []
    for weights, prefix in PREFIXES.items():
        found = {name: arrays[prefix + name] for name in PARTS if prefix + name in arrays}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scores[weights] = score_weights(
                arrays["sources"], found, bootstrap=bootstrap if weights == "averaged" else 0, **how
            )
        for warning in caught:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        warned += dict.fromkeys(f"{weights} weights: {warning.message}" for warning in caught)
    return scores, warned


def score_weights(
    sources: NDArray[Any],
    found: Arrays,
    *,
    protocol: str = "paper",
    metrics: str | Sequence[str] = ("infomec",),
    source_kinds: str | Sequence[str] = "auto",
    bootstrap: int = 0,
    jobs: int = 1,
    show: bool = True,
) -> dict[str, Any]:
    """The scores of what one set of weights made of the sample, as ``results.json`` has them.

    InfoMEC is always among them, as pictures and tables need it. Data without sources have nothing but the PSNR.
    """
    told: dict[str, Any] = {}
    intervals: dict[str, list[float]] = {}
    held = found.get("codes", found.get("latents"))
    if held is not None and len(held) > 1 and (held == held[0]).all():
        warnings.warn("all images have the same code, so the model tells none from another; train longer", stacklevel=2)
    names = _names(metrics)
    if len(names) > 1 and not sources.shape[1]:
        others = ", ".join(name for name in names if name != "infomec")
        warnings.warn(f"the data have no sources, so there is no {others}; images alone give the PSNR", stacklevel=2)
    if sources.shape[1]:
        latents, kind = scored_form(found.get("latents"), found.get("codes"))
        kinds = {"source_kinds": source_kinds, "latent_kind": kind}
        options: dict[str, Any] = {"metrics": names, "protocol": protocol, **kinds}
        total = len(names) + bootstrap
        parts = iter(range(total + 1))
        with progress_bar("scoring", total, show=show and total > 1) as report:
            scored = score(
                sources,
                latents,
                bootstrap=bootstrap,
                n_jobs=jobs,
                progress=lambda part: report(next(parts), note=part),
                **options,
            )
        result = scored.results["infomec"]
        told = {
            **scored.values,
            "infoe_input": result.infoe_input,
            "active": result.num_active,
            "informative": int(result.informative.sum()),
            "active_latents": result.active.tolist(),
            "informative_latents": result.informative.tolist(),
            "nmi": np.round(result.nmi, 6).tolist(),
        }
        intervals = {name: list(ends) for name, ends in scored.intervals.items()}
        if bootstrap:
            with progress_bar("sample sizes", len(SHARES) * NUM_DRAWS, show=show) as report:
                told["by_sample_size"] = by_sample_size(
                    sources, latents, scored.values, n_jobs=jobs, progress=report, **options
                )
    if "psnr" in found:
        told["psnr"] = float(found["psnr"].mean(dtype=np.float64))
        if bootstrap:
            intervals["psnr"] = mean_interval(found["psnr"].astype(np.float64), bootstrap)
    if bootstrap:
        told |= {"bootstrap": bootstrap, "intervals": intervals}
    return told


def check_scoring(protocol: str, metrics: str | Sequence[str], bootstrap: int, jobs: int) -> None:
    """An error for what cannot be scored, before any work is done."""
    check_options(_names(metrics), protocol, bootstrap, jobs)


def _names(metrics: str | Sequence[str]) -> list[str]:
    """InfoMEC, which pictures and tables need, and what is asked for beside it."""
    return metric_names(("infomec", *([metrics] if isinstance(metrics, str) else metrics)))


def _require_together(run: Run, results: dict[str, Any], arrays: Arrays) -> None:
    """An error if the sample is not the one that the results are of, or is no sample."""
    if "sources" not in arrays:
        raise ValueError(f"{run.sample_path} has no sources in it; run `qlae evaluate {run.path}` to write it again")
    drawn = int(arrays.get("step", results["steps"])), len(arrays["sources"])
    told = results["steps"], results["num_samples"]
    if drawn != told:
        raise ValueError(
            f"{run.sample_path} holds {drawn[1]:,} images after update {drawn[0]:,}, and results.json is of "
            f"{told[1]:,} after update {told[0]:,}: an evaluation was stopped in between. "
            f"Run `qlae evaluate {run.path}`"
        )


def versions() -> dict[str, str]:
    """What scores depend on."""
    return {
        "qlae": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
