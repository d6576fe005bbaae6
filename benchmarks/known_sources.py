"""Compare models and linear baselines on generated vectors and series, whose sources are known.

    qlae study results/known-sources/vectors.toml --out runs/known-sources/vectors --workers 1 --device cpu
    qlae study results/known-sources/series.toml --out runs/known-sources/series --workers 1 --device cpu
    python benchmarks/known_sources.py runs/known-sources/vectors runs/known-sources/series --out results/known-sources

The script reads the results of both studies and fits PCA and ICA (scikit-learn) to the same standardised data, once
with as many components as there are sources and once with as many as the models have latents. Components are scored
like latents, by the same protocol on the same 10,000 rows. It writes ``scores.json``, ``tables.md`` and ``scores.png``.
"""

import argparse
import json
import shutil
import statistics
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning

import qlae
from qlae._io import write_bytes, write_json
from qlae.metrics import r2, score
from qlae.presets import LATENTS_PER_SOURCE
from qlae.scoring.sample import draw_sample, known_kinds

DATA = ("mixtures", "sensors", "pendulum")
SEEDS = (1, 2, 3, 4, 5)
NUM_SAMPLES = 10_000
SCORES = ("infom", "infoc", "infoe", "infom_corrected", "infoc_corrected", "infoe_corrected", "r2")
TITLES = {
    **{"infom": "InfoM", "infoc": "InfoC", "infoe": "InfoE", "r2": "R²"},
    **{f"info{letter}_corrected": f"Info{letter.upper()}, corrected" for letter in "mce"},
}
DIGITS = {"r2": 4}  # of the others two
KEPT_FILES = ("config.json", "results.json")
MODELS = {
    "qlae": "QLAE, 4 values",
    "qlae-10": "QLAE, 10 values",
    "ae": "AE",
    "beta-tcvae": "β-TCVAE, β = 1",
    "beta-tcvae-10": "β-TCVAE, β = 10",
}


def baselines(name: str) -> dict[str, dict[int, dict[str, float]]]:
    """Return the scores of PCA and ICA by label and seed; PCA has no seed, so it has one entry."""
    data = qlae.load_data(name)
    observed = data.observations
    rows = ((data.images - np.asarray(observed.offset)) / np.asarray(observed.scale)).reshape(len(data), -1)
    sample = draw_sample(data, NUM_SAMPLES)
    kinds = known_kinds(data.describe())
    num_sources = len(data.source_names)
    found: dict[str, dict[int, dict[str, float]]] = {}
    for count in (num_sources, LATENTS_PER_SOURCE * num_sources):
        fits = {f"PCA, {count}": [(0, PCA(count, svd_solver="full"))]}
        fits[f"ICA, {count}"] = [
            (seed, FastICA(count, whiten="unit-variance", random_state=seed, max_iter=1000)) for seed in SEEDS
        ]
        for label, models in fits.items():
            for seed, model in models:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always", ConvergenceWarning)
                    latents = model.fit(rows).transform(rows[sample])
                scores = score(data.sources[sample], latents, source_kinds=kinds)
                numbers = {key: float(scores[key]) for key in SCORES if key != "r2"}
                numbers["r2"] = float(r2(rows[sample], model.inverse_transform(latents)))
                numbers["converged"] = not any(issubclass(one.category, ConvergenceWarning) for one in caught)
                found.setdefault(label, {})[seed] = numbers
                print(name, label, seed, {key: round(value, 3) for key, value in numbers.items()}, flush=True)
    return found


def study_scores(studies: list[Path], out: Path | None) -> dict[str, dict[str, dict[int, dict[str, float]]]]:
    """Return the scores of the runs of studies by data set, label and seed, and copy their small files to `out`."""
    found: dict[str, dict[str, dict[int, dict[str, float]]]] = {}
    for study in studies:
        for path in sorted(study.glob("runs/*/*/*/results.json")):
            name, model, seed_folder = path.parts[-4:-1]
            results = json.loads(path.read_text())
            scores = {key: float(results["averaged"][key]) for key in SCORES}
            found.setdefault(name, {}).setdefault(MODELS[model], {})[results["seed"]] = scores
            if out is not None:
                target = out / "runs" / name / model / seed_folder
                target.mkdir(parents=True, exist_ok=True)
                for file in KEPT_FILES:
                    shutil.copyfile(path.with_name(file), target / file)
    return found


def tables(scores: dict[str, dict[str, dict[int, dict[str, float]]]]) -> str:
    """Return Markdown: for each data set, the mean and the standard deviation over seeds, then every seed."""
    lines = []
    for name, by_label in scores.items():
        lines += [f"## {name}", "", _row(["", *(TITLES[key] for key in SCORES)]), _rule(len(SCORES))]
        for label, by_seed in by_label.items():
            cells = [_mean_and_spread([one[key] for one in by_seed.values()], DIGITS.get(key, 2)) for key in SCORES]
            lines.append(_row([label, *cells]))
        lines += ["", "InfoM and R² of each seed:", "", _row(["", *(f"seed {seed}" for seed in SEEDS)])]
        lines.append(_rule(len(SEEDS)))
        for label, by_seed in by_label.items():
            if len(by_seed) > 1:
                cells = [f"{one['infom']:.3f}, {one['r2']:.4f}" for _, one in sorted(by_seed.items())]
                lines.append(_row([label, *cells]))
        lines.append("")
    return "\n".join(lines)


def _mean_and_spread(values: list[float], digits: int) -> str:
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(num_columns: int) -> str:
    return "|---" * (num_columns + 1) + "|"


def draw(scores: dict[str, dict[str, dict[int, dict[str, float]]]]) -> Figure:
    """Draw a panel for each data set and score, with a dot for each seed."""
    keys = ("infom_corrected", "infoc_corrected", "infoe_corrected", "r2")
    figure = Figure(figsize=(11, 2.6 * len(scores)), layout="constrained")
    panels = figure.subplots(len(scores), len(keys), squeeze=False)
    for row, (name, by_label) in zip(panels, scores.items(), strict=True):
        labels = list(by_label)
        for panel, key in zip(row, keys, strict=True):
            for place, label in enumerate(labels):
                values = [one[key] for one in by_label[label].values()]
                colour = "tab:orange" if label.startswith("QLAE") else "tab:blue" if label in MODELS.values() else "0.4"
                panel.plot(values, [place] * len(values), "o", color=colour, alpha=0.6, markersize=5)
                panel.plot(statistics.fmean(values), place, "|", color="black", markersize=13)
            panel.set_yticks(range(len(labels)), labels if panel is row[0] else [""] * len(labels), fontsize=8)
            panel.invert_yaxis()
            panel.set_title(f"{name}: {TITLES[key]}", fontsize=9)
            panel.set_xlim(None if key == "r2" else -0.02, None if key == "r2" else 1.02)
            panel.tick_params(axis="x", labelsize=7)
            panel.grid(axis="x", alpha=0.3)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", type=Path, help="folders of the studies")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the tables and the picture")
    arguments = parser.parse_args()
    runs = study_scores(arguments.studies, arguments.out)
    scores = {name: runs.get(name, {}) | baselines(name) for name in DATA}
    for name, by_label in scores.items():  # models in the order of the table
        order = [*MODELS.values(), *(label for label in by_label if label not in MODELS.values())]
        scores[name] = {label: by_label[label] for label in order if label in by_label}
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_json(arguments.out / "scores.json", scores)
    write_bytes(arguments.out / "tables.md", tables(scores).encode())
    draw(scores).savefig(arguments.out / "scores.png", dpi=110)


if __name__ == "__main__":
    main()
