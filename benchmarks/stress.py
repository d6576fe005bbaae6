"""Stress test of the metrics: data whose structure is known, encoders whose faults are known, and all scores of both.

A metric is fooled where its score says the opposite of what the encoder does: a high score for noise, or a low one for
an exact copy. The idea is that of "Who Guards the Guardians?" (Joshi et al. 2026).

    python benchmarks/stress.py                      # prints the table in Markdown
    python benchmarks/stress.py --json stress.json --plot docs/metrics/stress.png
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import norm

from qlae.metrics import dci, find_score, score

NUM_SOURCES, NUM_LEVELS = 4, 8
METRICS = ("infomec", "mig", "sap", "modularity", "explicitness", "irs", "mcc")
SCORES = (
    *("infom", "infom_corrected", "infoe", "infoe_corrected", "infoc", "infoc_corrected"),
    *("d", "c", "i", "mig", "sap", "modularity", "explicitness", "irs", "mcc"),
)
Array = np.ndarray


def independent(n: int, rng: np.random.Generator) -> Array:
    return rng.integers(0, NUM_LEVELS, size=(n, NUM_SOURCES))


def correlated(n: int, rng: np.random.Generator) -> Array:
    """Sources with correlation 0.5 between every two, in classes of equal size."""
    return np.floor(NUM_LEVELS * norm.cdf(_gaussian(n, rng, 0.5))).astype(int)


def continuous(n: int, rng: np.random.Generator) -> Array:
    return _gaussian(n, rng, 0.0)


def _gaussian(n: int, rng: np.random.Generator, correlation: float) -> Array:
    covariance = np.full((NUM_SOURCES, NUM_SOURCES), correlation) + (1 - correlation) * np.eye(NUM_SOURCES)
    return rng.multivariate_normal(np.zeros(NUM_SOURCES), covariance, size=n)


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
    "constant": lambda x, rng: np.zeros_like(x),
}

# The scores that an encoder of independent sources ought to have: what the metric claims to measure.
WANTED = {
    "exact copy": {"all": 1.0},
    "elementwise nonlinear": {"all": 1.0},
    "scaled by 1 to 30": {"all": 1.0},
    "noise": {"all": 0.0},
    "noise, 16 latents": {"all": 0.0},
    "constant": {"all": 0.0},
    "partial": {"infoc": 0.75, "infoc_corrected": 0.75, "infoe": 0.75, "infoe_corrected": 0.75, "mcc": 0.75},
    "duplicated": {"infom": 1.0, "infom_corrected": 1.0, "modularity": 1.0, "d": 1.0},
}
TOLERANCE = 0.2
CHANCE = {"i": 1 / NUM_LEVELS, "explicitness": 0.5}  # scores whose value for noise is known and not 0


def is_fooled(encoder: str, key: str, value: float) -> bool:
    """Return whether a score is far from what the encoder deserves; False where that is not clear."""
    wanted = WANTED.get(encoder, {})
    target = wanted.get(key, wanted.get("all"))
    if target is None:
        return False
    if target == 0.0:
        target = CHANCE.get(key, 0.0)
    return abs(value - target) > TOLERANCE


def run(n: int, num_seeds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the mean scores over seeds: process → encoder → key → value."""
    results: dict[str, dict[str, dict[str, float]]] = {}
    for process, (draw, mixed) in PROCESSES.items():
        results[process] = {}
        for encoder, encode in ENCODERS.items():
            values: dict[str, list[float]] = {}
            for seed in range(num_seeds):
                rng = np.random.default_rng(seed)
                sources = draw(n, rng)
                unit = (sources - sources.mean(axis=0)) / sources.std(axis=0)
                observed = mixture(unit, rng) if mixed else unit
                latents = encode(observed, rng) + 0.0
                if sources.dtype.kind == "i":  # without ties, as an encoder of images has none
                    latents = latents + 0.02 * latents.std(axis=0) * rng.normal(size=latents.shape)
                for key, value in _scores(sources, latents, seed).items():
                    values.setdefault(key, []).append(value)
            results[process][encoder] = {key: float(np.mean(values[key])) for key in SCORES if key in values}
    return results


def _scores(sources: Array, latents: Array, seed: int) -> dict[str, float]:
    names = [name for name in METRICS if sources.dtype.kind == "i" or name != "explicitness"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = dict(score(sources, latents, metrics=names, seed=seed).values)
        forest = dci(sources, latents, num_trees=20, depths=[8], max_features=None, seed=seed)
    return values | {"d": forest.d, "c": forest.c, "i": forest.i}


def markdown(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return one table per process; scores that mislead are bold."""
    lines = []
    for process, rows in results.items():
        keys = [key for key in SCORES if any(key in row for row in rows.values())]
        lines += [f"**{process}**", "", "| encoder | " + " | ".join(_short(key) for key in keys) + " |"]
        lines.append("|---|" + "---|" * len(keys))
        for encoder, row in rows.items():
            judged = process in ("independent", "continuous")
            cells = [_cell(encoder, key, row[key], judged) if key in row else "" for key in keys]
            lines.append(f"| {encoder} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _cell(encoder: str, key: str, value: float, judged: bool) -> str:
    return f"**{value:.2f}**" if judged and is_fooled(encoder, key, value) else f"{value:.2f}"


def _short(key: str) -> str:
    return find_score(key).title.replace(", corrected", " corr.")


def plot(results: dict[str, dict[str, dict[str, float]]], path: Path) -> None:
    """Draw the scores as colours, one panel per process, with a frame around those that mislead."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(14, 9.5), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, (process, rows) in zip(figure.subplots(2, 2).ravel(), results.items(), strict=True):
        matrix = np.array([[row.get(key, np.nan) for key in SCORES] for row in rows.values()])
        axis.imshow(matrix, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (i, j), value in np.ndenumerate(matrix):
            if np.isnan(value):
                continue
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color="w" if value > 0.6 else "k")
            if process in ("independent", "continuous") and is_fooled(list(rows)[i], SCORES[j], value):
                axis.add_patch(Rectangle((j - 0.46, i - 0.45), 0.92, 0.9, fill=False, edgecolor="#d62728", lw=1.8))
        axis.set_xticks(range(len(SCORES)), [_short(key) for key in SCORES], rotation=55, ha="right", fontsize=8)
        axis.set_yticks(range(len(rows)), list(rows), fontsize=8)
        axis.set_title(process, fontsize=11)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-samples", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the scores to this file")
    parser.add_argument("--from-json", type=Path, help="take the scores from this file instead of computing them")
    parser.add_argument("--plot", type=Path, help="also draw the picture")
    options = parser.parse_args()
    if options.from_json:
        results = json.loads(options.from_json.read_text())["scores"]
    else:
        results = run(options.num_samples, options.seeds)
    print(markdown(results))
    if options.json:
        settings = {"num_samples": options.num_samples, "seeds": options.seeds}
        options.json.write_text(json.dumps({"settings": settings, "scores": results}, indent=1) + "\n")
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
