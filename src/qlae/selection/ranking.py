"""Rank runs by their agreement with each other, say how sure the ranking is, and name the run to take.

The score of a run is the mean of its agreements with the other runs. UDR takes the median, which ignores the agreement
between disentangled runs if these are fewer than half, as they may be among several models. Runs whose reconstructions
are much worse than the best are not taken, whatever they agree on. Scores by sources, where there are any, are shown
beside the choice and never enter it.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._checks import require_known
from .._numpy_errors import usual_errors
from .._progress import progress_bar
from ..data import SourceDataset
from ..metrics.inputs import Bools, Floats
from ..runs.directory import Run
from ..scoring.fidelity import fidelity_db
from ..scoring.sample import PREFIXES
from .agreement import mean_agreement, similarity
from .caveats import MIN_RUNS, chance_agreement, find_caveats
from .reading import Candidate, Skipped, common_representations, find_runs, leave_out_copies, read_candidates
from .representation import Representation
from .result import RankedRun, Selection

NEAR_DB = 6.0  # twice the root mean squared error of the best run; as in studies
FEW_SHARE = 0.25  # of the latents that the median run uses; a run with no more is not taken
NUM_DRAWS = 2_000


@usual_errors()
def select(
    runs: Iterable[Run | str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    weights: str = "averaged",
    gap: bool = True,
    near_db: float = NEAR_DB,
    data: SourceDataset | None = None,
    device: str = "cpu",
    show: bool = True,
) -> Selection:
    """Rank runs of different seeds, hyperparameters or models of one data set without labels.

    Args:
        runs: run directories, or folders that hold run directories.
        weights: the set of weights, ``"averaged"`` or ``"raw"``.
        gap: whether to compute the straight-through gap of discrete latents, which needs checkpoints and images.
        near_db: how many decibels below the best PSNR a run may be to be taken, if it was trained to reconstruct.
        data: the data, if they cannot be loaded as the runs say; needed for gaps, and for samples of other images.
        device: where models run.
        show: whether to draw progress bars.

    Raises:
        ValueError: the runs are of different data, or fewer than two can be compared.
    """
    require_known(weights, PREFIXES, "set of weights")
    if not near_db >= 0:
        raise ValueError(f"near_db must not be negative, got {near_db}")
    candidates, skipped = read_candidates(find_runs(_paths_of(runs)), weights=weights)
    candidates, copies = leave_out_copies(candidates)
    skipped += copies
    _require_two(candidates, skipped)
    representations = common_representations(candidates, weights=weights, data=data, device=device, show=show)
    matrix = agreement_matrix(representations, show=show)
    chance, traits = chance_agreement(representations), candidates[0].config.data.observed.traits
    best = float(scores_of(matrix).max())
    warnings = find_caveats(candidates, representations, best=best, chance=chance, traits=traits)
    gaps: Sequence[float | None] = [None] * len(candidates)
    if gap:
        gaps, message = _find_gaps(candidates, weights=weights, data=data, device=device, show=show)
        warnings += [message] if message else []
    ranked = _rank(candidates, representations, matrix, gaps, near_db, weights)
    order = _order(ranked)
    return Selection(
        runs=tuple(ranked[i] for i in order),
        matrix=matrix[np.ix_(order, order)],
        chance=chance,
        skipped=tuple(skipped),
        num_images=representations[0].num_samples,
        kind=traits.name,
        data=candidates[0].config.data.name,
        weights=weights,
        near_db=float(near_db),
        warnings=tuple(warnings),
    )


def _paths_of(runs: Any) -> list[str | os.PathLike[str]]:
    """Return the paths of what the caller named; raise a ``ValueError`` if it is neither runs nor paths."""
    named = [runs] if isinstance(runs, Run | str | os.PathLike) or not isinstance(runs, Iterable) else list(runs)
    for run in named:
        if not isinstance(run, Run | str | os.PathLike):
            raise ValueError(f"runs must be run directories, or folders that hold some, got {run!r}")
    return [run.path if isinstance(run, Run) else run for run in named]


def agreement_matrix(representations: Sequence[Representation], *, show: bool = False) -> Floats:
    """Return the agreement (n, n) of each pair of representations; NaN on the diagonal."""
    count = len(representations)
    matrix = np.full((count, count), np.nan)
    within = [similarity(representation, representation) for representation in representations]
    done = 0
    with progress_bar("comparing", count * (count - 1) // 2, show=show) as report:
        for i in range(count):
            for j in range(i):
                between = similarity(representations[i], representations[j])
                matrix[i, j] = matrix[j, i] = mean_agreement(between, within[i], within[j])
                done += 1
                report(done)
    return matrix


def scores_of(matrix: Floats) -> Floats:
    """Return the score of each run (n,): the mean of its agreements with the others.

    >>> scores_of(np.array([[np.nan, 0.2, 0.4], [0.2, np.nan, 0.9], [0.4, 0.9, np.nan]])).round(2).tolist()
    [0.3, 0.55, 0.65]
    """
    return np.asarray(np.nanmean(matrix, axis=1))


def shares_first(matrix: Floats, eligible: Bools, *, num_draws: int = NUM_DRAWS, seed: int = 0) -> Floats:
    """Return how often each run (n,) would come first if the other runs were drawn anew (bootstrap).

    Each draw takes n of the runs with replacement, and each run is scored by its agreement with those, itself left out.

    Args:
        matrix: (n, n) agreements, NaN on the diagonal.
        eligible: (n,) runs that may come first.
        num_draws: number of draws.
        seed: of the draws.
    """
    count = len(matrix)
    random = np.random.default_rng(seed)
    wins = np.zeros(count)
    valid = 0
    for _ in range(num_draws):
        drawn = random.integers(count, size=count)
        if len(set(drawn.tolist())) < 2:  # that run would have nothing to agree with
            continue
        scores = np.where(eligible, scores_of(matrix[:, drawn]), -np.inf)
        best = scores >= scores.max() - 1e-12
        wins += best / best.sum()
        valid += 1
    return wins / max(valid, 1)


def _rank(
    candidates: Sequence[Candidate],
    representations: Sequence[Representation],
    matrix: Floats,
    gaps: Sequence[float | None],
    near_db: float,
    weights: str,
) -> list[RankedRun]:
    """Return the runs with their scores, in the given order."""
    scores, few = scores_of(matrix), _few(representations)
    near = _near(candidates, few, near_db, weights)
    first = shares_first(matrix, near)
    quartiles = np.nanquantile(matrix, (0.25, 0.75), axis=1)
    return [
        RankedRun(
            run=candidate.run,
            model=candidate.results["model"],
            seed=candidate.results["seed"],
            agreement=float(scores[i]),
            spread=(float(quartiles[0, i]), float(quartiles[1, i])),
            first=float(first[i]),
            gap=gaps[i],
            num_used=representations[i].num_used,
            num_latents=representations[i].num_latents,
            psnr=candidate.results.get(weights, {}).get("psnr"),
            r2=candidate.results.get(weights, {}).get("r2"),
            is_near=bool(near[i]),
            uses_few=bool(few[i]),
            infom=candidate.results.get(weights, {}).get("infom"),
        )
        for i, candidate in enumerate(candidates)
    ]


def _order(ranked: Sequence[RankedRun]) -> list[int]:
    """Return the places of the runs, best first; equal agreements, as of two runs, are ordered by gap and fidelity."""

    def key(i: int) -> tuple[float, float, float]:
        run = ranked[i]
        gap = run.gap if run.gap is not None and all(other.gap is not None for other in ranked) else 0.0
        return -round(run.agreement, 9), gap, -(run.decibels or 0.0)

    return sorted(range(len(ranked)), key=key)


def _near(candidates: Sequence[Candidate], few: Bools, near_db: float, weights: str) -> Bools:
    """Return which runs may be taken: their PSNR is near the best, and they do not use few latents."""
    psnr = [_psnr(candidate, weights) if _reconstructs(candidate) else None for candidate in candidates]
    best = max((value for value in psnr if value is not None), default=0.0)
    near = np.array([value is None or value >= best - near_db for value in psnr])
    return near & ~few if (near & ~few).any() else near


def _few(representations: Sequence[Representation]) -> Bools:
    """Return which runs use no latent, or far fewer than the median run: they have given up most sources.

    Agreement does not see that. Whatever a single latent encodes, it resembles one part of every other run.
    """
    used = np.array([representation.num_used for representation in representations])
    return np.asarray(used <= FEW_SHARE * float(np.median(used)))


def _reconstructs(candidate: Candidate) -> bool:
    from ..registry import OBJECTIVES

    return bool(OBJECTIVES.entry_of(candidate.config.objective).part.reconstructs)


def _psnr(candidate: Candidate, weights: str) -> float | None:
    """Return the PSNR of images, or what corresponds to it for other data, in decibels."""
    return fidelity_db(candidate.results.get(weights, {}))


def _require_two(candidates: Sequence[Candidate], skipped: Sequence[Skipped]) -> None:
    if len(candidates) < 2:
        reasons = "".join(f"\n  {skip.path}: {skip.reason}" for skip in skipped)
        raise ValueError(
            f"agreement needs at least two finished runs, better {MIN_RUNS} or more, got {len(candidates)}"
            f"{reasons and f'. Skipped:{reasons}'}"
        )


def _find_gaps(
    candidates: Sequence[Candidate], *, weights: str, data: SourceDataset | None, device: str, show: bool
) -> tuple[list[float | None], str]:
    """Return the gap of each run, and a message if images or models cannot be loaded."""
    if not any("codes" in candidate.arrays for candidate in candidates):
        return [None] * len(candidates), ""
    from .encoding import straight_through_gaps

    try:
        return straight_through_gaps(candidates, weights=weights, data=data, device=device, show=show), ""
    except (ValueError, OSError) as error:
        return [None] * len(candidates), f"there are no straight-through gaps: {error}"
