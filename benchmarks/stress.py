"""Compute and draw the stress test of docs/metrics.md: all scores of the cases of `qlae.metrics.stress`.

python benchmarks/stress.py                      # prints the table in Markdown
python benchmarks/stress.py --json stress.json --plot docs/metrics/stress.png
python benchmarks/stress.py --correlations --json docs/metrics/correlations.json --plot docs/metrics/correlations.png
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from qlae.metrics import dci, find_score, score
from qlae.metrics.stress import ENCODERS, PROCESSES, draw_case, encode_sources, gaussian, is_fooled

METRICS = ("infomec", "mig", "sap", "modularity", "explicitness", "irs", "mcc")
SCORES = (
    *("infom", "infom_corrected", "infoe", "infoe_corrected", "infoc", "infoc_corrected"),
    *("d", "c", "i", "mig", "sap", "modularity", "explicitness", "irs", "mcc"),
)
CORRELATIONS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95)
COMPARED = ("infom", "infom_corrected", "infom_conditional", "infoc_conditional", "d", "mig", "mcc")
Array = np.ndarray


def run(n: int, num_seeds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the mean scores over seeds: process → encoder → key → value."""
    results: dict[str, dict[str, dict[str, float]]] = {}
    for process in PROCESSES:
        results[process] = {}
        for encoder in ENCODERS:
            values: dict[str, list[float]] = {}
            for seed in range(num_seeds):
                for key, value in _scores(*draw_case(process, encoder, n, seed), seed, METRICS).items():
                    values.setdefault(key, []).append(value)
            results[process][encoder] = {key: float(np.mean(values[key])) for key in SCORES if key in values}
    return results


def run_correlations(n: int, num_seeds: int) -> dict[str, dict[str, list[float]]]:
    """Return the mean scores over seeds of Gaussian sources, at each correlation: encoder → key → values."""
    results: dict[str, dict[str, list[float]]] = {}
    for encoder in ("exact copy", "rotated", "noise"):
        results[encoder] = {key: [] for key in COMPARED}
        for correlation in CORRELATIONS:
            drawn = []
            for seed in range(num_seeds):
                rng = np.random.default_rng(seed)
                case = encode_sources(gaussian(n, rng, correlation), encoder, rng)
                drawn.append(_scores(*case, seed, ("infomec", "mig", "mcc", "conditional_infomec")))
            for key in COMPARED:
                results[encoder][key].append(float(np.mean([values[key] for values in drawn])))
    return results


def plot_correlations(results: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw the scores against the correlation of the sources, one panel per encoder."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(results), sharey=True)
    for axis, (encoder, scores) in zip(axes, results.items(), strict=True):
        for key, values in scores.items():
            conditional = key.endswith("_conditional")
            axis.plot(
                CORRELATIONS, values, "o-" if conditional else ".--", lw=2 if conditional else 1, label=_short(key)
            )
        axis.set_title(encoder, fontsize=11)
        axis.set_xlabel("correlation of the sources")
        axis.set_ylim(-0.03, 1.03)
    axes[-1].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def print_correlations(results: dict[str, dict[str, list[float]]]) -> None:
    print("| encoder | score | " + " | ".join(f"{c:g}" for c in CORRELATIONS) + " |")
    print("|---|---|" + "---|" * len(CORRELATIONS))
    for encoder, scores in results.items():
        for key, values in scores.items():
            print(f"| {encoder} | {_short(key)} | " + " | ".join(f"{value:.2f}" for value in values) + " |")


def _scores(sources: Array, latents: Array, seed: int, metrics: tuple[str, ...]) -> dict[str, float]:
    names = [name for name in metrics if sources.dtype.kind == "i" or name != "explicitness"]
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
    parser.add_argument("--correlations", action="store_true", help="vary the correlation of Gaussian sources instead")
    options = parser.parse_args()
    if options.from_json:
        results = json.loads(options.from_json.read_text())["scores"]
    else:
        results = (run_correlations if options.correlations else run)(options.num_samples, options.seeds)
    if options.correlations:
        print_correlations(results)
    else:
        print(markdown(results))
    if options.json:
        settings = {"num_samples": options.num_samples, "seeds": options.seeds}
        options.json.write_text(json.dumps({"settings": settings, "scores": results}, indent=1) + "\n")
    if options.plot:
        (plot_correlations if options.correlations else plot)(results, options.plot)


if __name__ == "__main__":
    main()
