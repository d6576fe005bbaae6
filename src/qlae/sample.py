"""From a run's ``sample.npz`` to its scores. It needs neither the model nor the images, and no torch.

The sample holds the sources of the evaluation images and, for both sets of weights, what the model made of them:
``codes`` where it has any, ``latents`` where each is one number, and ``psnr`` of each image; the raw weights' names
begin with ``raw_``.
"""

import os
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from ._version import __version__
from .atomic import write_json
from .metrics import score
from .metrics.protocols import find_protocol
from .metrics.scoring import metric_names
from .progress import progress_bar
from .resampling import NUM_DRAWS, SHARES, by_sample_size, mean_interval
from .run import Run

PREFIXES = {"averaged": "", "raw": "raw_"}  # weights → what the names of their arrays begin with
PARTS = ("latents", "codes", "psnr")

Arrays = dict[str, NDArray[Any]]  # by name: of the whole sample, or the `PARTS` that one set of weights made of it


def rescore_run(
    run: Run | str | os.PathLike[str],
    *,
    protocol: str = "paper",
    metrics: Sequence[str] = ("infomec",),
    bootstrap: int = 0,
    jobs: int = 1,
    show: bool = True,
) -> dict[str, Any]:
    """Score the sample of an evaluated run again, by another protocol or with more metrics.

    Args:
        run: the run, or its directory, with ``sample.npz`` and ``results.json``; no checkpoint is needed.
        protocol, metrics, bootstrap, jobs, show: as for ``qlae.evaluate``.

    Returns:
        The content of ``results.json``, which is written anew.
    """
    check_scoring(protocol, metrics, bootstrap)
    run = run if isinstance(run, Run) else Run.open(run)
    results = run.results
    scores = score_sample(
        run.arrays(run.sample_path), protocol=protocol, metrics=metrics, bootstrap=bootstrap, jobs=jobs, show=show
    )
    for weights, told in scores.items():
        told.setdefault("psnr", results[weights]["psnr"])
    results |= {"protocol": protocol, **scores, "versions": results["versions"] | versions()}
    write_json(run.results_path, results)
    return results


def score_sample(arrays: Arrays, *, bootstrap: int = 0, **how: Any) -> dict[str, dict[str, Any]]:
    """The scores of both sets of weights, by the arrays of ``sample.npz``; intervals for the averaged ones only.

    Args:
        arrays: by name, with ``sources``.
        bootstrap, how: as for `score_weights`.
    """
    return {
        weights: score_weights(
            arrays["sources"],
            {name: arrays[prefix + name] for name in PARTS if prefix + name in arrays},
            bootstrap=bootstrap if weights == "averaged" else 0,
            **how,
        )
        for weights, prefix in PREFIXES.items()
    }


def score_weights(
    sources: NDArray[Any],
    found: Arrays,
    *,
    protocol: str = "paper",
    metrics: Sequence[str] = ("infomec",),
    bootstrap: int = 0,
    jobs: int = 1,
    show: bool = True,
) -> dict[str, Any]:
    """The scores of what one set of weights made of the sample, as ``results.json`` has them.

    InfoMEC is always among them, as pictures and tables need it. Data without sources have nothing but the PSNR.
    """
    told: dict[str, Any] = {}
    intervals: dict[str, list[float]] = {}
    if sources.shape[1]:
        latents, kind = scored_form(found)
        options: dict[str, Any] = {
            "latent_kind": kind,
            "metrics": metric_names(("infomec", *metrics)),
            "protocol": protocol,
        }
        total = len(options["metrics"]) + bootstrap
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


def scored_form(found: Arrays) -> tuple[NDArray[Any], str]:
    """What is scored, and its kind: codes where there are any, else the continuous latents.

    A code that stands for a number is scored as that number, so that its scale and its order count where a metric asks
    for them. Which code it is says its index: the numbers are taken from the codebook's entries, not compared.
    """
    if "codes" not in found:
        return found["latents"], "continuous"
    codes = found["codes"]
    if "latents" not in found:
        return codes, "codes"
    values = np.empty_like(found["latents"])
    for j in range(codes.shape[1]):
        _, first, index = np.unique(codes[:, j], return_index=True, return_inverse=True)
        values[:, j] = found["latents"][first, j][index]
    return values, "codes"


def check_scoring(protocol: str, metrics: Sequence[str], bootstrap: int) -> None:
    """An error for what cannot be scored, before any work is done."""
    find_protocol(protocol)
    metric_names(("infomec", *metrics))
    if bootstrap < 0:
        raise ValueError(f"bootstrap must not be negative, got {bootstrap}")


def versions() -> dict[str, str]:
    """What scores depend on."""
    return {
        "qlae": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
