"""Time the metrics against the procedure of the published code on the same data, one thread each.

    python benchmarks/metrics.py                 # n = 10,000, sizes of Shapes3D, MPI3D and Isaac3D
    python benchmarks/metrics.py --pieces infoe-codes dci-codes --sets mpi3d
    python benchmarks/metrics.py --scores        # processor seconds of every metric, n = 10,000, 12 latents
    python benchmarks/metrics.py --scaling       # only ours at n = 10,000, 100,000 and 1,000,000, with peak memory
    python benchmarks/metrics.py --agreement     # DCI by numba and by scikit-learn, over 10 seeds

Functions that numba compiles are called once before they are timed; `--compilation` says what that costs.
Both sides run alternately (`--repeats` times); the best time of each counts, and their ratio is printed. The reference
side is written here from the description of the published procedure: scikit-learn's estimators, one pair or source at a
time.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before NumPy

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score

from qlae.metrics import METRICS, dci, infomec, nmi, score
from qlae.metrics.infoe import explicitness_per_source
from qlae.metrics.inputs import check_pair

SIZES = {
    "shapes3d": (10, 10, 10, 8, 4, 15),
    "mpi3d": (4, 4, 2, 3, 3, 40, 40),
    "isaac3d": (3, 8, 5, 4, 4, 4, 6, 4, 4),
}


def sample(name: str, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sources, continuous latents and codes: two per source, of which most follow one source and some two."""
    rng = np.random.default_rng(seed)
    sizes = np.array(SIZES[name])
    sources = np.column_stack([rng.integers(0, size, n) for size in sizes])
    unit = (sources - (sizes - 1) / 2) / np.sqrt((sizes**2 - 1) / 12)
    columns = []
    for j in range(2 * sizes.size):
        main, second = unit[:, j % sizes.size], unit[:, rng.integers(sizes.size)]
        mix = main + rng.choice([0.0, 0.0, 0.6]) * second
        columns.append(mix + rng.choice([0.05, 0.2, 0.5]) * rng.normal(size=n))
    latents = np.column_stack(columns)
    latents[:, 0] = rng.normal(size=n)  # one latent of noise
    edges = np.linspace(-1.8, 1.8, 9)
    return sources, latents, np.digitize(latents, edges)


# The published procedure ------------------------------------------------------------------------------------------


def reference_nmi_continuous(sources: np.ndarray, latents: np.ndarray) -> np.ndarray:
    result = np.empty((sources.shape[1], latents.shape[1]))
    for i in range(sources.shape[1]):
        for j in range(latents.shape[1]):
            result[i, j] = mutual_info_classif(
                latents[:, [j]], sources[:, i], discrete_features=False, n_neighbors=3, random_state=0
            )[0]
        result[i] /= mutual_info_score(sources[:, i], sources[:, i])
    return result


def reference_nmi_codes(sources: np.ndarray, codes: np.ndarray) -> np.ndarray:
    result = np.empty((sources.shape[1], codes.shape[1]))
    for i in range(sources.shape[1]):
        for j in range(codes.shape[1]):
            entropy = mutual_info_score(sources[:, i], sources[:, i])
            result[i, j] = mutual_info_score(sources[:, i], codes[:, j]) / entropy
    return result


def reference_infoe(sources: np.ndarray, design: np.ndarray) -> np.ndarray:
    result = []
    for source in sources.T:
        losses = []
        for X in (design, np.zeros((design.shape[0], 1))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = LogisticRegression(C=np.inf, max_iter=100, tol=1e-4, class_weight="balanced").fit(X, source)
            losses.append(log_loss(source, model.predict_proba(X)))
        result.append(1 - losses[0] / losses[1])
    return np.array(result)


def reference_infoe_continuous(sources: np.ndarray, latents: np.ndarray) -> np.ndarray:
    return reference_infoe(sources, (latents - latents.mean(axis=0)) / latents.std(axis=0))


def reference_infoe_codes(sources: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return reference_infoe(sources, np.hstack([np.eye(c.max() + 1)[c] for c in codes.T]))


def reference_official_sparse(sources: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the same from a sparse one-hot matrix, which the authors' code does not use."""
    return reference_infoe(sources, sparse.csr_matrix(np.hstack([np.eye(c.max() + 1)[c] for c in codes.T])))


def reference_dci(sources: np.ndarray, latents: np.ndarray) -> np.ndarray:
    """Return the importances of the best of 16 forests, one per depth, by held-out accuracy."""
    order = np.random.default_rng(0).permutation(len(sources))
    cut = int(0.9 * len(sources))
    train, test = order[:cut], order[cut:]
    result = []
    for source in sources.T:
        best, importance = -1.0, None
        for depth in range(1, 17):
            forest = RandomForestClassifier(100, criterion="entropy", max_depth=depth, random_state=0)
            forest.fit(latents[train], source[train])
            accuracy = forest.score(latents[test], source[test])
            if accuracy > best:
                best, importance = accuracy, forest.feature_importances_
        result.append(importance)
    return np.array(result)


# Ours ---------------------------------------------------------------------------------------------------------------


def our_infoe(sources: np.ndarray, latents: np.ndarray) -> np.ndarray:
    s, z = check_pair(sources, latents)
    return explicitness_per_source(s, z, "converged", "one-hot" if z.discrete else "scalar")


def our_official(sources: np.ndarray, latents: np.ndarray) -> np.ndarray:
    s, z = check_pair(sources, latents)
    return explicitness_per_source(s, z, "lbfgs-balanced", "one-hot")


def our_dci(sources: np.ndarray, latents: np.ndarray) -> np.ndarray:
    return dci(sources, latents, depths=range(1, 17)).importance


PIECES: dict[str, tuple[str, Callable[..., np.ndarray], Callable[..., np.ndarray], float]] = {
    # name: (latents, reference, ours, ratio wanted)
    "nmi-continuous": ("continuous", reference_nmi_continuous, nmi, 20),
    "nmi-codes": ("codes", reference_nmi_codes, nmi, 40),
    "infoe-continuous": ("continuous", reference_infoe_continuous, our_infoe, 4),
    "infoe-codes": ("codes", reference_infoe_codes, our_infoe, 1),
    "official-codes": ("codes", reference_infoe_codes, our_official, 2),
    "official-sparse": ("codes", reference_official_sparse, our_official, 1),
    "dci-continuous": ("continuous", reference_dci, our_dci, 30),
    "dci-codes": ("codes", reference_dci, our_dci, 30),
}


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()  # processor time, so that other programs do not count
    result = call(*arguments)
    return time.process_time() - start, result


def compare(pieces: list[str], sets: list[str], n: int, repeats: int) -> None:
    print(f"n = {n:,}, one thread, processor seconds, best of {repeats} alternating runs")
    print(f"{'piece':18}{'sizes':10}{'reference s':>12}{'ours s':>10}{'ratio':>8}{'wanted':>8}   largest difference")
    warm_up()
    for piece in pieces:
        kind, reference, ours, wanted = PIECES[piece]
        for name in sets:
            sources, continuous, codes = sample(name, n)
            latents = codes if kind == "codes" else continuous
            theirs_best = ours_best = np.inf
            for _ in range(repeats):
                seconds, a = timed(reference, sources, latents)
                theirs_best = min(theirs_best, seconds)
                seconds, b = timed(ours, sources, latents)
                ours_best = min(ours_best, seconds)
            ratio = theirs_best / ours_best
            difference = np.abs(np.asarray(a) - np.asarray(b)).max()
            print(
                f"{piece:18}{name:10}{theirs_best:12.3f}{ours_best:10.4f}{ratio:8.1f}{wanted:8g}   {difference:.1e}",
                flush=True,
            )


def warm_up() -> None:
    """Compile what numba compiles, or load it from its cache."""
    sources, latents, _ = sample("shapes3d", 100)
    dci(sources, latents, num_trees=1)


def agreement(sets: list[str], n: int, num_seeds: int) -> None:
    """Print means and standard errors over seeds of D, C, I and the mean depth, by both implementations of forests."""
    warm_up()
    print(f"n = {n:,}, {num_seeds} seeds: mean ± standard error; t is their difference in standard errors")
    cases: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in sets:
        sources, continuous, codes = sample(name, n)
        cases |= {f"{name}, continuous": (sources, continuous), f"{name}, codes": (sources, codes)}
    sources, continuous, _ = sample("shapes3d", n)
    cases["regression"] = (continuous[:, :6] + 0.0, np.tanh(continuous) + 0.0)
    for name, (sources, latents) in cases.items():
        columns = {}
        for forest in ("numba", "scikit-learn"):
            results = [dci(sources, latents, forest=forest, seed=seed, n_jobs=1) for seed in range(num_seeds)]
            columns[forest] = np.array([[x.d, x.c, x.i, x.depth.mean()] for x in results])  # type: ignore[union-attr]
        ours, theirs = columns.values()
        errors = [column.std(axis=0, ddof=1) / np.sqrt(num_seeds) for column in (ours, theirs)]
        t = (ours.mean(axis=0) - theirs.mean(axis=0)) / np.hypot(*errors)
        for k, name_of_score in enumerate(("D", "C", "I", "depth")):
            values = [f"{c.mean(axis=0)[k]:.4f} ± {e[k]:.4f}" for c, e in zip((ours, theirs), errors, strict=True)]
            print(f"{name:22}{name_of_score:6}{values[0]:>20}{values[1]:>20}{t[k]:8.1f}", flush=True)


def compilation() -> None:
    """Print how long the first call of a compiled forest takes in this process."""
    sources, latents, _ = sample("shapes3d", 100)
    for call in ("first", "second"):
        start, wall = time.process_time(), time.perf_counter()
        dci(sources, latents, num_trees=1)
        print(f"{call} call: {time.process_time() - start:.2f} processor s, {time.perf_counter() - wall:.2f} s")


def scaling(sets: list[str], sizes: list[int]) -> None:
    print(f"{'piece':18}{'sizes':10}{'n':>10}{'seconds':>10}{'ns per n log2 n':>17}{'peak GiB':>10}")
    for name in sets:
        for n in sizes:
            sources, continuous, codes = sample(name, n)
            for piece, call, latents in (
                ("nmi-continuous", nmi, continuous),
                ("nmi-codes", nmi, codes),
                ("infoe-continuous", our_infoe, continuous),
                ("infoe-codes", our_infoe, codes),
                ("infomec-codes", infomec, codes),
            ):
                seconds, _ = timed(call, sources, latents)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                unit = seconds / (n * np.log2(n)) * 1e9
                print(f"{piece:18}{name:10}{n:10,}{seconds:10.2f}{unit:17.0f}{peak:10.2f}", flush=True)


def scores(n: int) -> None:
    """Print the processor seconds of each metric for the sizes of Shapes3D, and of those that "all" stands for."""
    sources, continuous, codes = sample("shapes3d", n)
    warm_up()
    print(f"n = {n:,}, 6 sources, 12 latents, one thread, processor seconds")
    print(f"{'metric':22}{'continuous':>12}{'codes':>10}")
    totals = np.zeros(2)
    for name, metric in METRICS.items():
        seconds = np.array(
            [timed(lambda x, name=name: score(sources, x, metrics=[name]), x)[0] for x in (continuous, codes)]
        )
        totals += seconds * metric.in_all
        print(f"{name:22}{seconds[0]:12.2f}{seconds[1]:10.2f}{'' if metric.in_all else '   by name only'}", flush=True)
    print(f"{'all':22}{totals[0]:12.2f}{totals[1]:10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", nargs="+", choices=list(PIECES), default=list(PIECES))
    parser.add_argument("--sets", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--agreement", action="store_true")
    parser.add_argument("--compilation", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    if options.compilation:
        compilation()
    elif options.scores:
        scores(options.n)
    elif options.agreement:
        agreement(options.sets, options.n, options.seeds)
    elif options.scaling:
        scaling(options.sets, options.sizes)
    else:
        compare(options.pieces, options.sets, options.n, options.repeats)


if __name__ == "__main__":
    main()
