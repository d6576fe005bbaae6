"""The evaluation sample: which images it contains, and how a run's ``sample.npz`` is scored without its model.

``sample.npz`` holds the sources of the evaluation images and, for both sets of weights, the outputs of the model for
the images: ``codes`` if its latents are discrete, ``latents`` if each latent is one number, and the ``psnr`` of each
image, or the errors and variances that give the R² of vectors and series (``fidelity.py``). The names of the arrays of
the raw weights begin with ``raw_``.
"""

import os
import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from .._io import seal, write_json
from .._process import usual_errors
from .._progress import progress_bar
from .._version import __version__
from ..data import SourceDataset
from ..metrics import METRICS, known_scores, metric_names, nmi, score
from ..metrics.inputs import check_pair, check_sources, leave_out_constant, scored_form
from ..metrics.metric import with_options
from ..metrics.scores import allowed_names, check_options, score_parts
from ..runs.directory import Run
from .fidelity import PARTS as FIDELITY_PARTS
from .fidelity import score_fidelity, score_unseen
from .held_out import describe_gap, with_held_out

NUM_SAMPLES = 10_000
PREFIXES = {"averaged": "", "raw": "raw_"}  # of the names of arrays, by set of weights
PARTS = ("latents", "codes", *FIDELITY_PARTS)
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the sample, which itself ends the curve
NUM_DRAWS = 5  # parts per size
MIN_ROWS = 50  # smaller parts are not scored
MIN_HELD_OUT = 500  # held-out rows that scores by sources need
RESAMPLED = ("bootstrap", "intervals", "by_sample_size")
DCI_DETAILS = ("max_features", "split", "forest", "chance", "depth")
INFOMEC_DETAILS = ("infoe_input", "active_latents", "informative_latents", "nmi")  # further entries of results

Arrays = dict[str, NDArray[Any]]  # by name: the whole sample, or the `PARTS` that belong to one set of weights


def draw_sample(data: SourceDataset, num_samples: int, *, held_out: bool = False) -> NDArray[np.int64]:
    """Return the row numbers of the evaluation sample, which are the same for every model of a data set.

    They are drawn from the training rows, or from those that are held out, which may be fewer or none.
    """
    rows = data.held_out_rows if held_out else data.training_rows
    if num_samples < 2:
        raise ValueError(f"num_samples must be at least 2, got {num_samples}")
    count = min(num_samples, len(rows))
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), count, replace=False))]


def require_scorable(data: SourceDataset, metrics: str | Sequence[str] = ("infomec",)) -> None:
    """Raise a ``ValueError`` if no model of the data could be scored by its sources; call it before training."""
    sources = data.sources[draw_sample(data, NUM_SAMPLES)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kinds = known_kinds(data.describe())
            table = check_sources(sources, kinds=kinds)
            leave_out_constant(table)
            nmi(sources, np.random.default_rng(0).normal(size=(len(sources), 1)), source_kinds=kinds)
            allowed_names(_with_infomec(metrics), table)
    except ValueError as error:
        raise ValueError(
            f"no model of {data.name} could be scored by its sources ({', '.join(data.source_names)}): {error}"
        ) from error


@usual_errors()
def rescore_run(
    run: Run | str | os.PathLike[str],
    *,
    protocol: str | None = None,
    prune: bool | None = None,
    metrics: str | Sequence[str] | None = None,
    bootstrap: int = 0,
    jobs: int = 1,
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    show: bool = True,
) -> dict[str, Any]:
    """Score the sample of an evaluated run again, by another protocol or with more metrics.

    Scores of metrics that are not computed again are kept. So are intervals, if InfoMEC is computed in the same way and
    no new ones are asked for.

    Args:
        run: the run, or its directory, with ``sample.npz`` and ``results.json``; no checkpoint is needed.
        protocol, prune: of InfoMEC; as in the last evaluation by default.
        metrics: names of metrics, of which InfoMEC is always computed; InfoMEC alone by default.
        bootstrap, jobs, metric_options, show: as for ``qlae.evaluate``.

    Returns:
        The content of ``results.json``, which is rewritten.
    """
    run = run if isinstance(run, Run) else Run.open(run)
    results = run.results
    infomec: dict[str, Any] = {
        "protocol": protocol or str(results["protocol"]),
        "prune": results["prune"] if prune is None else prune,
    }
    metrics = ("infomec",) if metrics is None else metrics
    check_scoring(infomec["protocol"], metrics, bootstrap, jobs)
    arrays = run.arrays(run.sample_path, ("sources",))
    step, count = int(arrays.get("step", results["steps"])), len(arrays["sources"])
    if (step, count) != (results["steps"], results["num_samples"]):
        raise ValueError(
            f"{run.sample_path} holds {count:,} images after update {step:,}, and results.json is of "
            f"{results['num_samples']:,} after update {results['steps']:,}: an evaluation was interrupted in between. "
            f"Run `qlae evaluate {run.path}`"
        )
    options = infomec | {"source_kinds": known_kinds(results["data"]), "metric_options": metric_options}
    scores, messages = score_sample(arrays, metrics=metrics, bootstrap=bootstrap, jobs=jobs, show=show, **options)
    same_infomec = all(results[key] == value for key, value in infomec.items())
    merged: dict[str, Any] = {w: _kept_scores(results[w], same_infomec) | new for w, new in scores.items()}
    if "held_out" in results:
        unseen = score_held_out(run.arrays(run.held_out_path, ("sources",)), metrics=metrics, jobs=jobs, **options)
        unseen |= {w: _kept_scores(results["held_out"][w], same_infomec) | unseen[w] for w in merged}
        merged = {w: with_held_out(own, unseen[w]) for w, own in merged.items()} | {"held_out": unseen}
        messages += [gap] if (gap := describe_gap(merged["averaged"])) else []
    results |= infomec | merged | {"warnings": messages, "versions": results["versions"] | versions()}
    write_json(run.results_path, seal(results))
    return results


def _kept_scores(before: Mapping[str, Any], same_infomec: bool) -> dict[str, Any]:
    """Return the part of earlier scores that stays valid: everything that does not depend on how InfoMEC is computed.

    Scores of metrics that are not registered now are among it.
    """
    owners = [metric for metric in METRICS.values() if metric.takes_protocol]
    dependent = {number.key for metric in owners for number in (*metric.scores, *metric.counts)}
    dependent |= {*INFOMEC_DETAILS, *(() if same_infomec else RESAMPLED)}
    keys = dict.fromkeys([key for key in (*known_scores(), *RESAMPLED) if key in before] + list(before))
    return {key: before[key] for key in keys if key not in dependent}


def known_kinds(described: Mapping[str, Any]) -> str | list[str]:
    """Return the kind of each source if the description of the data says it, else ``"auto"``."""
    if "drawn" not in described:
        return "auto"
    continuous = described["drawn"]["continuous"]
    return ["continuous" if name in continuous else "discrete" for name in described["source_names"]]


def metrics_of(results: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the registered metrics that a run was scored by."""
    return tuple(name for name, metric in METRICS.items() if metric.is_in(results["averaged"]))


def parts_of(arrays: Arrays, weights: str) -> Arrays:
    """Return the `PARTS` of a sample that belong to a set of weights."""
    prefix = PREFIXES[weights]
    return {name: arrays[prefix + name] for name in PARTS if prefix + name in arrays}


def score_sample(arrays: Arrays, *, bootstrap: int = 0, **options: Any) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Score both sets of weights from the arrays of ``sample.npz``; options as for `score_weights`.

    Only the averaged weights get intervals. Also return the messages of the warnings, which begin with the set of
    weights.
    """
    scores: dict[str, dict[str, Any]] = {}
    warned: dict[str, dict[str, warnings.WarningMessage]] = {}  # by text and set of weights
    for weights in PREFIXES:
        own = parts_of(arrays, weights)
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            scores[weights] = score_weights(
                arrays["sources"], own, bootstrap=bootstrap if weights == "averaged" else 0, **options
            )
        for warning in records:
            warned.setdefault(str(warning.message), {})[weights] = warning
    for text, by_weights in warned.items():  # a warning about all weights is issued once
        weights, warning = next(iter(by_weights.items()))
        about = text if len(by_weights) > 1 else f"{weights} weights: {text}"
        warnings.warn_explicit(about, warning.category, warning.filename, warning.lineno)
    messages = [f"{weights} weights: {text}" for weights in PREFIXES for text in warned if weights in warned[text]]
    return scores, messages


def score_held_out(arrays: Arrays, **options: Any) -> dict[str, Any]:
    """Return the scores of held-out rows, by set of weights; options as for `score_weights`.

    R² divides by the variance in the training data, since few rows may hardly vary in a feature. Scores by sources, if
    the data have any, need 500 rows; fewer, or rows that lack values of a source, have none.
    """
    sources = arrays["sources"]
    scores: dict[str, Any] = {"num_samples": len(sources)}
    for weights in PREFIXES:
        own = parts_of(arrays, weights)
        scores[weights] = score_unseen(own)
        if not sources.shape[1] or len(sources) < MIN_HELD_OUT:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those about the training rows have been issued
                scores[weights] = score_weights(sources, own, **options) | scores[weights]
        except ValueError as error:
            scores["not_scored"] = str(error)
    return scores


def score_weights(
    sources: NDArray[Any],
    arrays: Arrays,
    *,
    metrics: str | Sequence[str] = ("infomec",),
    bootstrap: int = 0,
    jobs: int = 1,
    show: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Return the scores of one set of weights by key, and the further entries of ``results.json``.

    InfoMEC is always computed, because pictures and tables need it. Data without sources have PSNR or R² alone. The
    values of codes that are numbers enter InfoE as the protocol says; indices of vectors, as those of a VQ-VAE, enter
    it one-hot. ``infoe_input`` in the result says which it was.

    Args:
        sources: (n, n_s).
        arrays: the `PARTS` of the sample that belong to these weights.
        metrics, bootstrap, options: as for `qlae.metrics.score`, whose ``n_jobs`` is ``jobs``.
        show: draw progress bars.
    """
    names = _with_infomec(metrics)
    _warn_about_sample(sources, arrays, names)
    scores, intervals = score_fidelity(arrays, bootstrap)
    if sources.shape[1]:
        latents, latent_kind, code_input = scored_form(arrays.get("latents"), arrays.get("codes"))
        options |= {"metrics": names, "latent_kind": latent_kind, "code_input": code_input, "n_jobs": jobs}
        own, own_intervals = _score_by_sources(sources, latents, {"protocol": "paper"} | options, bootstrap, show)
        scores, intervals = own | scores, own_intervals | intervals
    return scores | ({"bootstrap": bootstrap, "intervals": intervals} if bootstrap else {})


def _score_by_sources(
    sources: NDArray[Any], latents: NDArray[Any], options: dict[str, Any], bootstrap: int, show: bool
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Return the scores of latents (n, n_z) and their intervals; options as for `qlae.metrics.score`."""
    total = len(options["metrics"]) + bootstrap
    steps = iter(range(total + 1))
    with progress_bar("scoring", total, show=show and total > 1) as report:
        result = score(
            sources, latents, bootstrap=bootstrap, progress=lambda part: report(next(steps), note=part), **options
        )
    infomec = result.results["infomec"]
    scores = {
        **result.values,
        "infoe_input": infomec.infoe_input,
        "active": infomec.num_active,
        "informative": int(infomec.informative.sum()),
        "active_latents": infomec.active.tolist(),
        "informative_latents": infomec.informative.tolist(),
        "nmi": np.round(infomec.nmi, 6).tolist(),
    }
    if "dci" in result.results:  # how D, C and I were computed
        plain = result.results["dci"].to_dict()
        scores["dci"] = {key: plain[key] for key in DCI_DETAILS if key in plain}
    if bootstrap:
        with progress_bar("sample sizes", len(SHARES) * NUM_DRAWS, show=show) as report:
            scores["by_sample_size"] = by_sample_size(sources, latents, result.values, progress=report, **options)
    return scores, {key: list(ends) for key, ends in result.intervals.items()}


def by_sample_size(
    sources: NDArray[Any],
    latents: NDArray[Any],
    whole: Mapping[str, float],
    *,
    metrics: Sequence[str],
    progress: Callable[[int], None] = lambda count: None,
    **options: Any,
) -> dict[str, Any]:
    """Compute every score on several parts of each size, rows drawn without replacement.

    Options are those of `qlae.metrics.score`. The result holds ``sizes`` and, under ``scores`` for each key, a list of
    values for each size, without those of parts that cannot be scored; the scores of the whole sample end the curve.
    """
    how, kinds = with_options(metrics, options.pop("metric_options", None)), ("source_kinds", "latent_kind")
    n_jobs = options.pop("n_jobs", None)
    sample = check_pair(sources, latents, **{name: options.pop(name, "auto") for name in kinds})
    count = len(sources)
    sizes = [size for size in (int(share * count) for share in SHARES) if size >= MIN_ROWS]
    draws = [(size, seed) for size in sizes for seed in range(NUM_DRAWS)]
    curves: dict[str, list[list[float]]] = {key: [[] for _ in sizes] for key in whole}
    rows = ((np.sort(np.random.default_rng([size, seed]).permutation(count)[:size]), seed) for size, seed in draws)
    parts = score_parts(*sample, how, rows, options, n_jobs)
    for number, ((size, _), values) in enumerate(zip(draws, parts, strict=True), start=1):
        for key in whole.keys() & values.keys():
            curves[key][sizes.index(size)].append(round(values[key], 6))
        progress(number)
    return {"sizes": [*sizes, count], "scores": {key: [*curves[key], [value]] for key, value in whole.items()}}


def _warn_about_sample(sources: NDArray[Any], arrays: Arrays, names: list[str]) -> None:
    """Warn about a model that encodes all images alike, and about metrics that data without sources cannot have."""
    encoded = arrays.get("codes", arrays.get("latents"))
    if encoded is not None and len(encoded) > 1 and (encoded == encoded[0]).all():
        more_values = ", or give latents more values by num_values (at least two)" if "codes" in arrays else ""
        warnings.warn(
            "all observations have the same code, so the model does not distinguish them; lower weight_decay, "
            f"learning_rate or the weight of entropy, if the loss has one{more_values}. A run of very few updates may "
            "only need more of them",
            stacklevel=3,
        )
    if len(names) > 1 and not sources.shape[1]:
        others = ", ".join(name for name in names if name != "infomec")
        warnings.warn(
            f"the data have no sources, so there is no {others}; without them, only reconstructions are scored",
            stacklevel=3,
        )


def check_scoring(protocol: str, metrics: str | Sequence[str], bootstrap: int, jobs: int) -> None:
    """Raise a ``ValueError`` if `score_weights` would refuse an option; call it before any work is done."""
    check_options(_with_infomec(metrics), protocol, bootstrap, jobs)


def _with_infomec(metrics: str | Sequence[str]) -> list[str]:
    """Return the names of the metrics, with InfoMEC first."""
    return metric_names(("infomec", *([metrics] if isinstance(metrics, str) else metrics)))


def versions() -> dict[str, str]:
    """Return the versions of the packages that scores depend on."""
    return {
        "qlae": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
